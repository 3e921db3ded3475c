#include "distributed/job.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

#include "base/sha256.h"
#include "base/text.h"

namespace pantala::tests {

namespace fs = std::filesystem;

std::vector<Mpi> both_mpis() {
  return {{"openmpi", PANTALA_MPIRUN_OPENMPI}, {"mpich", PANTALA_MPIRUN_MPICH}};
}

bool wants_all_of_mpi() {
  const char* wanted = std::getenv("PANTALA_MPI_TESTS");
  return wanted && std::string(wanted) == "all";
}

JobTest::JobTest() {
  // More ranks than CPUs, as root where the tests are run so.
  for (const char* name : {"OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM",
                           "OMPI_MCA_rmaps_base_oversubscribe"})
    ::setenv(name, "1", 1);
  ::setenv("OMPI_MCA_hwloc_base_binding_policy", "none", 1);
  // Under AddressSanitizer: what an MPI itself never gives back. Programs of ours have other tests.
  ::setenv("ASAN_OPTIONS", "detect_leaks=0", 0);
}

std::vector<std::string> JobTest::shards(const std::string& out, std::vector<std::string> more,
                                         int epochs) const {
  std::vector<std::string> words = {
      "--set", "distributed.shards=4", "--set", "accumulate=2",        "--clip", "1",
      "--set", "data.validation=0.2",  "--set", "schedule.name=cosine"};
  words.insert(words.end(), more.begin(), more.end());
  words = train(out, std::move(words));
  *(std::ranges::find(words, "--epochs") + 1) = std::to_string(epochs);
  return words;
}

std::vector<std::string> JobTest::job(int ranks, const std::vector<std::string>& words) {
  std::vector<std::string> all = {"-n", std::to_string(ranks), PANTALA_COMMAND};
  all.insert(all.end(), words.begin(), words.end());
  return all;
}

Outcome JobTest::run_job(int ranks, const std::vector<std::string>& words) {
  return Running(GetParam().launcher, job(ranks, words)).wait();
}

std::map<int, pid_t> JobTest::processes(const std::string& out, int ranks) const {
  std::map<int, pid_t> found;
  while (std::ssize(found) < ranks) {
    for (const fs::directory_entry& entry : fs::directory_iterator("/proc")) {
      std::error_code unknown;
      if (fs::read_symlink(entry.path() / "exe", unknown) != fs::path(PANTALA_COMMAND)) continue;
      const auto text = [&](const char* name) {
        std::ifstream in(entry.path() / name, std::ios::binary);
        return std::string(std::istreambuf_iterator<char>(in), {});
      };
      if (text("cmdline").find(file(out)) == std::string::npos) continue;
      std::istringstream variables(text("environ"));
      for (std::string variable; std::getline(variables, variable, '\0');)
        for (const std::string& name : {"OMPI_COMM_WORLD_RANK=", "PMI_RANK="})
          if (variable.starts_with(name))
            found[std::stoi(variable.substr(name.size()))] =
                std::stoi(entry.path().filename().string());
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return found;
}

void JobTest::wait_for_steps(const std::string& out, Running& job) const {
  while (!exists(out + "/metrics.csv") && !job.ended())
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
}

std::string JobTest::record(const std::string& out) const {
  std::string text;
  std::vector<fs::path> files = {file(out + "/model.safetensors")};
  std::string newest;
  for (const fs::directory_entry& entry : fs::directory_iterator(file(out + "/checkpoints")))
    newest = std::max(newest, entry.path().filename().string());
  files.push_back(file(out + "/checkpoints/" + newest + "/optimizer.safetensors"));
  for (const fs::path& path : files)
    text += path.filename().string() + ' ' + hex(sha256(io::read_file(path))) + '\n';
  // Of the log: kind, epoch, step and losses.
  std::istringstream lines(bytes(out + "/metrics.csv"));
  for (std::string line; std::getline(lines, line);) {
    std::vector<std::string> cells;
    std::istringstream row(line);
    for (std::string cell; std::getline(row, cell, ',');) cells.push_back(cell);
    for (const std::size_t k : {0u, 2u, 3u, 5u, 6u, 7u, 13u, 14u})
      text += (k < cells.size() ? cells[k] : "") + ' ';
    text += '\n';
  }
  return text;
}

std::vector<std::string> messages_of(const Outcome& outcome) {
  std::vector<std::string> messages;
  std::istringstream lines(outcome.err);
  for (std::string line; std::getline(lines, line);)
    if (line.starts_with("pantala: ")) messages.push_back(line);
  return messages;
}

}  // namespace pantala::tests
