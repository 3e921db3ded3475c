#include "train/run.h"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <set>
#include <sstream>
#include <thread>

namespace pantala::tests {

namespace {

namespace fs = std::filesystem;
using nlohmann::json;

bool is_time(const std::string& name) {
  static const std::set<std::string> names = {"time", "items_per_second", "wait_share",
                                              "memory_bytes", "seconds"};
  return names.contains(name);
}

std::vector<std::string> lines_of(const fs::path& path) {
  std::vector<std::string> lines;
  std::istringstream in(io::read_file(path));
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

std::vector<std::string> split(const std::string& line) {
  std::vector<std::string> cells;
  std::istringstream in(line + ',');
  for (std::string cell; std::getline(in, cell, ',');) cells.push_back(cell);
  return cells;
}

// A cell of a time says only whether it is there.
std::vector<std::string> csv_of(const fs::path& path) {
  std::vector<std::string> lines = lines_of(path);
  if (lines.empty()) return lines;
  const std::vector<std::string> header = split(lines[0]);
  for (std::size_t k = 1; k < lines.size(); ++k) {
    std::vector<std::string> cells = split(lines[k]);
    EXPECT_EQ(cells.size(), header.size()) << path << ": " << lines[k];
    lines[k].clear();
    for (std::size_t c = 0; c < std::min(cells.size(), header.size()); ++c) {
      if (is_time(header[c]) && !cells[c].empty()) cells[c] = "*";
      lines[k] += cells[c] + ',';
    }
  }
  return lines;
}

std::vector<std::string> jsonl_of(const fs::path& path) {
  std::vector<std::string> lines;
  for (const std::string& line : lines_of(path)) {
    json record = json::parse(line);
    for (auto& [name, value] : record.items())
      if (is_time(name)) value = "*";
    lines.push_back(record.dump());
  }
  return lines;
}

std::vector<Event> scalars_of(const fs::path& run) {
  std::vector<Event> events;
  int files = 0;
  for (const fs::directory_entry& entry : fs::directory_iterator(run)) {
    if (!entry.path().filename().string().starts_with("events.out.tfevents.")) continue;
    ++files;
    events = events_of(entry.path());
  }
  EXPECT_EQ(files, 1) << run;
  for (Event& event : events) {
    event.wall_time = 0;
    for (auto& [tag, value] : event.values)
      if (is_time(tag.substr(tag.find('/') + 1))) value = 0;
  }
  return events;
}

std::vector<std::string> names_in(const fs::path& folder, bool checkpoints) {
  std::vector<std::string> names;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, error))
    if (std::string name = entry.path().filename().string();
        name.starts_with("step-") == checkpoints)
      names.push_back(std::move(name));
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace

std::vector<std::string> checkpoints_of(const fs::path& run) {
  return names_in(run / "checkpoints", true);
}
std::vector<std::string> leftovers_of(const fs::path& run) {
  std::vector<std::string> names = names_in(run / "checkpoints", false);
  for (const std::string& name : names_in(run, false))
    if (name.starts_with('.')) names.push_back(name);
  return names;
}

RunRecord record_of(const fs::path& run) {
  RunRecord record;
  record.checkpoints = checkpoints_of(run);
  record.files["model.safetensors"] = io::read_file(run / "model.safetensors");
  EXPECT_FALSE(record.checkpoints.empty());
  if (!record.checkpoints.empty()) {
    const fs::path newest = run / "checkpoints" / record.checkpoints.back();
    for (const char* name : {"model.safetensors", "optimizer.safetensors", "best.safetensors"})
      if (fs::exists(newest / name))
        record.files[record.checkpoints.back() + "/" + name] = io::read_file(newest / name);
    record.state = json::parse(io::read_file(newest / "state.json")).at("state");
  }
  record.result = json::parse(io::read_file(run / "result.json"));
  for (const char* name : {"seconds", "items_per_second", "folder", "plots"})
    EXPECT_EQ(record.result.erase(name), 1U) << name;
  record.csv = csv_of(run / "metrics.csv");
  record.jsonl = jsonl_of(run / "metrics.jsonl");
  record.events = scalars_of(run);
  return record;
}

void expect_same(const RunRecord& actual, const RunRecord& expected, const std::string& about) {
  for (const auto& [name, bytes] : expected.files) {
    const auto found = actual.files.find(name);
    EXPECT_TRUE(found != actual.files.end() && found->second == bytes) << name << ' ' << about;
  }
  EXPECT_EQ(actual.files.size(), expected.files.size()) << about;
  EXPECT_EQ(actual.checkpoints, expected.checkpoints) << about;
  EXPECT_EQ(actual.state, expected.state) << about;
  EXPECT_EQ(actual.result, expected.result) << about;
  EXPECT_EQ(actual.csv, expected.csv) << about;
  EXPECT_EQ(actual.jsonl, expected.jsonl) << about;
  EXPECT_TRUE(actual.events == expected.events)
      << about << ": " << actual.events.size() << " events, not " << expected.events.size();
}

RichRun::RichRun() : TrainingTest(Place::memory) {
  std::ofstream(file("rich.toml")) << "seed = 3\n"
                                      "epochs = 12\n"
                                      "batch_size = 16\n"
                                      "accumulate = 2\n"
                                      "threads = 1\n"
                                      "[model]\n"
                                      "name = 'mlp'\n"
                                      "hidden = [64, 64]\n"
                                      "[data]\n"
                                      "validation = 0.2\n"
                                      "[optimizer]\n"
                                      "lr = 0.02\n"
                                      "[schedule]\n"
                                      "name = 'cosine'\n"
                                      "warmup_steps = 5\n"
                                      "[clip]\n"
                                      "norm = 0.5\n"
                                      "[ema]\n"
                                      "decay = 0.8\n"
                                      "[early_stopping]\n"
                                      "patience = 1\n"
                                      "min_delta = 0.001\n"
                                      "[checkpoint]\n"
                                      "every_steps = 1\n"
                                      "[output]\n"
                                      "log_interval = 1\n"
                                      "plots = false\n";
}

std::vector<std::string> RichRun::rich(const std::string& out,
                                       std::vector<std::string> more) const {
  std::vector<std::string> words = {"train",  file("rich.toml"), "--data",
                                    points(), "--out",           file(out)};
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

Outcome RichRun::finish(const std::string& out) const {
  Outcome outcome = run_pantala(rich(out));
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_TRUE(leftovers_of(file(out)).empty())
      << testing::PrintToString(leftovers_of(file(out))) << " is left of a crash";
  return outcome;
}

RunRecord RichRun::whole() const {
  finish("whole");
  RunRecord record = this->record("whole");
  EXPECT_EQ(record.result.at("end"), "stopped_early");
  EXPECT_GE(record.result.at("best_epoch"), 1);
  // A row for every step and epoch.
  const std::size_t rows =
      record.result.at("steps").get<std::size_t>() + record.state.at("history").size();
  EXPECT_EQ(record.jsonl.size(), rows);
  EXPECT_EQ(record.csv.size(), rows + 1);
  EXPECT_EQ(record.events.size(), rows + 1);
  return record;
}

void RichRun::try_until(const std::string& out, const std::function<bool()>& disturb) const {
  for (int attempt = 0; attempt < 50; ++attempt) {
    if (disturb() || HasFatalFailure()) return;
    remove(out);
  }
  FAIL() << "the run always ends before it is disturbed";
}

void RichRun::kill_after_checkpoints(const std::string& out, std::size_t checkpoints) const {
  try_until(out, [&] {
    const auto running = run_until(rich(out), file(out), checkpoints);
    running->send(SIGKILL);
    return running->wait().exit_code == 128 + SIGKILL;
  });
}

std::unique_ptr<Running> run_until(const std::vector<std::string>& words, const fs::path& run,
                                   std::size_t checkpoints) {
  const std::vector<std::string> before = checkpoints_of(run);
  std::set<std::string> seen(before.begin(), before.end());  // old ones are removed
  auto running = std::make_unique<Running>(words);
  while (seen.size() < before.size() + checkpoints && !running->ended()) {
    for (std::string& name : checkpoints_of(run)) seen.insert(std::move(name));
    pause_briefly();
  }
  return running;
}

void pause_briefly() { std::this_thread::sleep_for(std::chrono::microseconds(50)); }

}  // namespace pantala::tests
