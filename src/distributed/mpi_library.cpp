#include "distributed/mpi_library.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>

#include "pantala/error.h"

namespace pantala::distributed {

namespace {

namespace fs = std::filesystem;

// The libraries of an MPI open parts of themselves, which look for its functions among all.
void* open_library(const fs::path& path) { return dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL); }

const PantalaMpi* table_of(void* library) {
  const auto entry = reinterpret_cast<PantalaMpiEntry>(dlsym(library, "pantala_mpi"));
  return entry ? entry() : nullptr;
}

}  // namespace

MpiLibrary::MpiLibrary(const std::vector<fs::path>& folders,
                       const std::vector<std::string>& names) {
  std::vector<std::string> places, problems;
  for (const fs::path& folder : folders) places.push_back(folder.string());
  for (const std::string& name : names)
    for (const fs::path& folder : folders) {
      std::error_code unknown;
      const fs::path path = folder / name;
      if (table_ || !fs::exists(path, unknown)) continue;
      void* const library = open_library(path);
      const PantalaMpi* const table = library ? table_of(library) : nullptr;
      if (table && table->version == kPantalaMpiVersion)
        table_ = table;
      else
        problems.push_back(library ? fmt::format("{} is of another version", path.string())
                                   : std::string(dlerror()));
    }
  if (!table_)
    throw UnsupportedError(
        fmt::format("the plug-in for MPI is missing: there is no {} in {}{}{}; `make mpi` builds "
                    "it where an MPI "
                    "is installed",
                    fmt::join(names, " or "), fmt::join(places, " or "),
                    problems.empty() ? "" : ": ", fmt::join(problems, "; ")));
  check(table_->start(), "to start");
  rank_ = table_->rank();
  size_ = table_->size();
  name_ = table_->library();
  std::array<char, 256> host{};
  table_->host(host.data(), static_cast<int>(host.size()));
  host_ = host.data();
}

void MpiLibrary::check(int code, const char* doing) const {
  if (code == 0) return;
  std::array<char, 1024> text{};
  table_->error_text(code, text.data(), static_cast<int>(text.size()));
  throw DeviceError(fmt::format("MPI failed {}: {}", doing, text.data()));
}

MpiLibrary::Request MpiLibrary::send(int to, int tag, std::span<const std::byte> bytes) {
  const std::lock_guard lock(mutex_);
  Request request = nullptr;
  check(table_->send(to, tag, bytes.data(), static_cast<int>(bytes.size()), &request), "to send");
  return request;
}

MpiLibrary::Request MpiLibrary::receive(int from, int tag, std::span<std::byte> bytes) {
  const std::lock_guard lock(mutex_);
  Request request = nullptr;
  check(table_->receive(from, tag, bytes.data(), static_cast<int>(bytes.size()), &request),
        "to receive");
  return request;
}

bool MpiLibrary::is_done(Request request) {
  const std::lock_guard lock(mutex_);
  int done = 0;
  check(table_->test(request, &done), "to wait for a message");
  return done != 0;
}

std::optional<MpiLibrary::Found> MpiLibrary::find(int tag) {
  const std::lock_guard lock(mutex_);
  int is_there = 0;
  Found found{};
  check(table_->find(tag, &is_there, &found.from, &found.bytes), "to look for messages");
  if (is_there == 0) return {};
  return found;
}

void MpiLibrary::abort(int code) { table_->abort(code); }

void MpiLibrary::stop() {
  const std::lock_guard lock(mutex_);
  check(table_->stop(), "to end");
}

}  // namespace pantala::distributed
