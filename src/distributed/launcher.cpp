#include "distributed/launcher.h"

#include <charconv>
#include <cstring>

namespace pantala::distributed {

namespace {

constexpr const char *kOpenMpi = "libpantala_mpi_openmpi.so", *kMpich = "libpantala_mpi_mpich.so",
                     *kOther = "libpantala_mpi.so";

struct Launcher {
  const char *rank, *size;  // variables
  std::vector<std::string> plugins;
};

// PMI is MPICH's and its descendants', PMIx may be anybody's. Slurm sets its own in any case: they
// say how many there are where PMIx says only which one this is.
const std::vector<Launcher>& launchers() {
  static const std::vector<Launcher> table = {
      {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", {kOpenMpi, kOther}},
      {"PMI_RANK", "PMI_SIZE", {kMpich, kOther}},
      {"PMIX_RANK", "SLURM_NTASKS", {kOpenMpi, kMpich, kOther}},
  };
  return table;
}

std::optional<int> number(const char* text) {
  if (text == nullptr) return {};
  int value = 0;
  const auto [end, error] = std::from_chars(text, text + std::strlen(text), value);
  if (error != std::errc() || *end != '\0' || value < 0) return {};
  return value;
}

}  // namespace

std::optional<Launch> launch_of(const Environment& environment) {
  for (const Launcher& launcher : launchers()) {
    const std::optional<int> rank = number(environment(launcher.rank));
    if (!rank) continue;
    const std::optional<int> size = number(environment(launcher.size));
    return Launch{*rank, size.value_or(*rank + 1), launcher.plugins};
  }
  return {};
}

std::vector<std::string> all_plugins() { return {kOpenMpi, kMpich, kOther}; }

}  // namespace pantala::distributed
