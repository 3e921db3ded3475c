// The files that a run leaves behind: what is in them, how they go on, how they are read back.
#include "monitor/run_log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <cmath>
#include <csignal>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <random>
#include <sstream>

#include "base/log.h"
#include "io/file.h"
#include "monitor/environment.h"
#include "monitor/run_series.h"
#include "pantala/error.h"
#include "support/errors.h"
#include "support/temporary.h"

namespace pantala::monitor::run_log_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using tests::message_of;
using tests::TemporaryFolder;

// Without waiting for the disk.
void overwrite(const std::filesystem::path& path, std::string_view content) {
  std::filesystem::remove(path);  // cutting a file waits for the disk, too
  std::ofstream(path, std::ios::binary) << content;
}

RunLogOptions options(std::int64_t interval = 2) {
  // A clock that says the same in every run.
  return {.log_interval = interval, .wall_clock = [] { return 1700000000.125; }};
}

StepRecord step_record(std::int64_t global_step) {
  const auto x = static_cast<double>(global_step);
  StepRecord record{.epoch = (global_step - 1) / 4,
                    .step = (global_step - 1) % 4,
                    .global_step = global_step,
                    .loss = 1 / x,
                    .learning_rate = 0.1 / (x + 2),
                    .gradient_norm = std::sqrt(x),
                    .items_per_second = 1e5 / 3,
                    .wait_share = 0.01,
                    .memory_bytes = 123456789};
  if (global_step % 4 == 0) record.gradient_norm.reset();
  return record;
}

EpochRecord epoch_record(std::int64_t epoch) {
  const auto x = static_cast<double>(epoch + 1);
  return {.epoch = epoch,
          .steps = 4,
          .global_step = 4 * (epoch + 1),
          .avg_loss = 0.7 / x,
          .learning_rate = 0.01,
          .seconds = 12.5,
          .items_per_second = 4800,
          .validation_loss = 0.8 / x,
          .metrics = {{"accuracy", 1 - 0.1 / x}, {"f1", 0.3}}};
}

void train(RunLog& log, std::int64_t from, std::int64_t to) {
  for (std::int64_t step = from; step <= to; ++step) {
    log.step(step_record(step));
    if (step % 4 == 0) log.epoch(epoch_record(step / 4 - 1));
  }
}

std::map<std::string, std::string> files_of(const std::filesystem::path& folder) {
  std::map<std::string, std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    files[entry.path().filename().string()] = io::read_file(entry.path());
  return files;
}

struct Warnings {
  std::vector<std::string> texts;
  logging::Capture capture{logging::Level::warning, [this](logging::Level, std::string_view text) {
                             texts.emplace_back(text);
                           }};
};

std::vector<std::string> lines_of(const std::string& text) {
  std::istringstream in(text);
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

TEST(RunLog, writes_a_table_with_a_fixed_header) {
  const TemporaryFolder folder;
  RunLog log(folder.path(), options());
  train(log, 1, 4);
  EXPECT_THAT(
      lines_of(io::read_file(folder.path() / "metrics.csv")),
      ElementsAre(
          "kind,time,epoch,step,steps,global_step,loss,learning_rate,gradient_norm,"
          "items_per_second,wait_share,memory_bytes,seconds,validation_loss,validation_accuracy,"
          "validation_top5,validation_precision,validation_recall,validation_f1,validation_mae,"
          "validation_rmse,validation_r2",
          "step,1700000000.125,0,0,,1,1,0.03333333333333333,1,33333.333333333336,0.01,123456789,,,"
          ",,,,,,,",
          "step,1700000000.125,0,1,,2,0.5,0.025,1.4142135623730951,33333.333333333336,0.01,"
          "123456789,,,,,,,,,,",
          "step,1700000000.125,0,3,,4,0.25,0.016666666666666666,,33333.333333333336,0.01,"
          "123456789,,,,,,,,,,",
          "epoch,1700000000.125,0,,4,4,0.7,0.01,,4800,,,12.5,0.8,0.9,,,,0.3,,,"));
}

TEST(RunLog, writes_an_object_a_line) {
  const TemporaryFolder folder;
  RunLog log(folder.path() / "made" / "here", options());
  train(log, 1, 4);
  const auto lines = lines_of(io::read_file(folder.path() / "made" / "here" / "metrics.jsonl"));
  ASSERT_EQ(lines.size(), 4U);
  EXPECT_EQ(lines[0],
            "{\"kind\":\"step\",\"time\":1700000000.125,\"epoch\":0,\"step\":0,\"global_step\":1,"
            "\"loss\":1,\"learning_rate\":0.03333333333333333,\"gradient_norm\":1,"
            "\"items_per_second\":33333.333333333336,\"wait_share\":0.01,"
            "\"memory_bytes\":123456789}");
  const auto epoch = nlohmann::json::parse(lines[3]);
  EXPECT_EQ(epoch.at("kind"), "epoch");
  EXPECT_EQ(epoch.at("validation_accuracy"), 0.9);
  EXPECT_FALSE(nlohmann::json::parse(lines[2]).contains("gradient_norm"));
}

TEST(RunLog, steps_are_logged_at_the_interval) {
  for (const auto& [interval, expected] : std::map<std::int64_t, std::vector<std::int64_t>>{
           {0, {}}, {1, {1, 2, 3, 4, 5, 6, 7, 8}}, {3, {1, 3, 6}}, {100, {1}}}) {
    const TemporaryFolder folder;
    RunLog log(folder.path(), options(interval));
    train(log, 1, 8);
    const RunSeries series = read_run(folder.path());
    std::vector<std::int64_t> steps;
    for (const StepRecord& step : series.steps) steps.push_back(step.global_step);
    EXPECT_EQ(steps, expected);
    EXPECT_EQ(series.epochs.size(), 2U);
  }
}

TEST(RunLog, by_itself_the_interval_grows_with_the_run) {
  const TemporaryFolder folder;
  const RunLog log(folder.path(), RunLogOptions{});
  std::vector<std::int64_t> due;
  for (std::int64_t step = 1; step <= 20000; ++step)
    if (log.step_is_due(step)) due.push_back(step);
  const auto rows_until = [&](std::int64_t step) {
    return std::ranges::upper_bound(due, step) - due.begin();
  };
  EXPECT_EQ(rows_until(60), 60);  // a short run has them all
  EXPECT_EQ(rows_until(99), 99);
  EXPECT_EQ(rows_until(1000), 275);
  EXPECT_EQ(rows_until(5000), 400);
  EXPECT_EQ(rows_until(20000), 550);
  // Never further apart than a fiftieth of the way, nor than 100 steps.
  for (std::size_t k = 1; k < due.size(); ++k) {
    const std::int64_t apart = due[k] - due[k - 1];
    EXPECT_LE(apart, std::clamp<std::int64_t>(due[k] / 50, 1, 100)) << due[k];
  }
}

TEST(RunLog, reads_back_the_same_bits_from_both_files) {
  const TemporaryFolder folder;
  RunLog log(folder.path(), options(1));
  std::vector<StepRecord> steps;
  std::mt19937_64 random(1);
  for (std::int64_t k = 1; k <= 300; ++k) {
    StepRecord record = step_record(k);
    record.loss = std::bit_cast<double>(random());
    if (std::isnan(record.loss)) record.loss = std::numeric_limits<double>::infinity();
    steps.push_back(record);
    log.step(record);
  }
  log.epoch(epoch_record(0));
  EpochRecord bare{.epoch = 1, .steps = 0, .global_step = 300, .avg_loss = -0.0, .metrics = {}};
  log.epoch(bare);
  const RunSeries jsonl = read_metrics_jsonl(folder.path() / "metrics.jsonl"),
                  csv = read_metrics_csv(folder.path() / "metrics.csv");
  for (const RunSeries& series : {jsonl, csv}) {
    EXPECT_EQ(series.steps, steps);
    EXPECT_THAT(series.epochs, ElementsAre(epoch_record(0), bare));
    EXPECT_TRUE(std::signbit(series.epochs[1].avg_loss));
  }
  StepRecord broken = step_record(301);
  broken.loss = std::nan("");
  log.step(broken);
  EXPECT_TRUE(std::isnan(read_run(folder.path()).steps.back().loss));
  std::filesystem::remove(folder.path() / "metrics.jsonl");
  EXPECT_TRUE(std::isnan(read_run(folder.path()).steps.back().loss));
}

TEST(RunLog, goes_on_as_if_it_had_never_been_interrupted) {
  const TemporaryFolder whole, parts;
  RunLog uninterrupted(whole.path(), options());
  train(uninterrupted, 1, 20);
  // Saved after step 6 and after step 11; killed later both times.
  std::string positions;
  {
    RunLog log(parts.path(), options());
    train(log, 1, 6);
    positions = log.positions();
    train(log, 7, 13);
  }
  {
    RunLog log(parts.path(), positions, options());
    train(log, 7, 11);
    positions = log.positions();
    train(log, 12, 18);
  }
  RunLog log(parts.path(), positions, options());
  train(log, 12, 20);
  EXPECT_EQ(files_of(parts.path()), files_of(whole.path()));
  EXPECT_EQ(log.positions(), uninterrupted.positions());
}

TEST(RunLog, event_file_keeps_its_name) {
  const TemporaryFolder folder;
  double now = 1700000000;
  RunLogOptions moving = options(1);
  moving.wall_clock = [&now] { return now += 1; };
  std::string positions;
  {
    RunLog log(folder.path(), moving);
    train(log, 1, 3);
    positions = log.positions();
  }
  now += 1000;
  RunLog again(folder.path(), positions, moving);
  train(again, 4, 8);
  EXPECT_EQ(files_of(folder.path()).size(), 3U);
}

TEST(RunLog, anew_means_that_nothing_old_is_left) {
  const TemporaryFolder folder;
  double now = 1700000000;
  RunLogOptions moving = options(1);
  moving.wall_clock = [&now] { return now += 1; };
  std::string old_events;
  {
    RunLog log(folder.path(), moving);
    train(log, 1, 8);
    old_events = files_of(folder.path()).begin()->first;
  }
  std::ofstream(folder.path() / "other.txt") << "kept";
  RunLog log(folder.path(), moving);
  train(log, 1, 1);
  const auto files = files_of(folder.path());
  EXPECT_EQ(files.size(), 4U);
  EXPECT_FALSE(files.contains(old_events));
  EXPECT_EQ(lines_of(files.at("metrics.csv")).size(), 2U);
  EXPECT_EQ(lines_of(files.at("metrics.jsonl")).size(), 1U);
}

TEST(RunLog, without_tensor_board_there_is_no_event_file) {
  const TemporaryFolder folder;
  RunLogOptions without = options();
  without.tensorboard = false;
  RunLog log(folder.path(), without);
  train(log, 1, 4);
  EXPECT_EQ(files_of(folder.path()).size(), 2U);
  const auto positions = nlohmann::json::parse(log.positions());
  EXPECT_EQ(positions.size(), 2U);
  EXPECT_EQ(positions.at("metrics.csv"), std::filesystem::file_size(folder.path() / "metrics.csv"));
}

TEST(RunLog, missing_and_shorter_files_are_a_warning) {
  const TemporaryFolder folder;
  std::string positions;
  {
    RunLog log(folder.path(), options());
    train(log, 1, 8);
    positions = log.positions();
  }
  const std::string csv = io::read_file(folder.path() / "metrics.csv");
  std::filesystem::resize_file(folder.path() / "metrics.csv", csv.size() - 5);
  std::filesystem::remove(folder.path() / "metrics.jsonl");
  std::filesystem::path events;
  for (const auto& entry : std::filesystem::directory_iterator(folder.path()))
    if (entry.path().filename().string().starts_with("events")) events = entry.path();
  std::filesystem::resize_file(events, std::filesystem::file_size(events) - 1);
  const Warnings warnings;
  RunLog log(folder.path(), positions, options());
  EXPECT_THAT(warnings.texts,
              ElementsAre(HasSubstr("metrics.jsonl: missing; the log goes on with 0 of its"),
                          HasSubstr("metrics.csv: shorter than"),
                          HasSubstr("events.out.tfevents.1700000000")));
  // Whole lines and records only.
  const std::string kept = io::read_file(folder.path() / "metrics.csv");
  EXPECT_TRUE(kept.ends_with('\n'));
  EXPECT_TRUE(csv.starts_with(kept));
  EXPECT_EQ(io::whole_event_bytes(events, ~std::uint64_t{0}), std::filesystem::file_size(events));
  train(log, 9, 12);
  EXPECT_EQ(read_metrics_csv(folder.path() / "metrics.csv").epochs.size(), 2U);
  EXPECT_EQ(read_run(folder.path()).epochs.size(), 1U);
}

TEST(RunLog, a_table_with_other_columns_is_put_aside) {
  const TemporaryFolder folder;
  RunLogOptions few = options();
  few.metrics = {"accuracy", "a,b\"c"};
  std::string positions;
  {
    RunLog log(folder.path(), few);
    EpochRecord record = epoch_record(0);
    record.metrics.emplace_back("a,b\"c", 0.25);
    log.epoch(record);
    positions = log.positions();
  }
  EXPECT_THAT(io::read_file(folder.path() / "metrics.csv"),
              HasSubstr("validation_accuracy,\"validation_a,b\"\"c\"\n"));
  const auto metrics = read_metrics_csv(folder.path() / "metrics.csv").epochs.at(0).metrics;
  EXPECT_THAT(metrics, testing::Contains(std::pair<std::string, double>("a,b\"c", 0.25)));
  const Warnings warnings;
  RunLog log(folder.path(), positions, options());
  EXPECT_THAT(warnings.texts, testing::Contains(HasSubstr("its columns are others")));
  EXPECT_TRUE(std::filesystem::exists(folder.path() / "metrics.csv.old"));
  train(log, 5, 8);
  EXPECT_EQ(read_metrics_csv(folder.path() / "metrics.csv").epochs.size(), 1U);
}

TEST(RunLog, positions_that_are_none_are_refused) {
  const TemporaryFolder folder;
  for (const char* text :
       {"", "[]", "7", "{", "{\"metrics.csv\":-1}", "{\"metrics.csv\":\"1\"}",
        "{\"metrics.csv\":1.5}", "{\"../metrics.csv\":1}", "{\"/etc/passwd\":0}",
        "{\"events.out.tfevents./../x\":1}", "{\"metrics.csv\":1,\"metrics.csv\":2}",
        "{\"metrics.csv\":[[[[1]]]]}", "{\"metrics.csv\":123456789012345678901234567890}"})
    EXPECT_THROW(RunLog(folder.path(), text, options()), ParseError) << text;
  EXPECT_THAT(files_of(folder.path()), IsEmpty());
}

// No file may grow beyond a size, as on a disk that is full.
class FileLimit {
 public:
  explicit FileLimit(std::uint64_t bytes) {
    std::signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit limit{bytes, before_.rlim_max};
    setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FileLimit() { setrlimit(RLIMIT_FSIZE, &before_); }

 private:
  rlimit before_{};
};

TEST(RunLog, a_full_disk_is_an_io_error_and_leaves_whole_records) {
  const TemporaryFolder folder;
  RunLog log(folder.path(), options(1));
  train(log, 1, 3);
  const std::string before = io::read_file(folder.path() / "metrics.jsonl");
  {
    const FileLimit limit(before.size() + 10);
    EXPECT_THROW(log.step(step_record(4)), IoError);
  }
  EXPECT_EQ(io::read_file(folder.path() / "metrics.jsonl"), before);
  train(log, 4, 4);
  EXPECT_EQ(read_run(folder.path()).steps.size(), 4U);
}

TEST(RunSeries, an_unfinished_last_line_is_left_out) {
  const TemporaryFolder folder;
  {
    RunLog log(folder.path(), options(1));
    train(log, 1, 4);
  }
  const auto path = folder.path() / "metrics.jsonl";
  const std::string content = io::read_file(path);
  for (std::size_t length = 0; length <= content.size(); length += 7) {
    overwrite(path, content.substr(0, length));
    const RunSeries series = read_metrics_jsonl(path);
    EXPECT_EQ(series.steps.size() + series.epochs.size(),
              static_cast<std::size_t>(std::ranges::count(content.substr(0, length), '\n')));
  }
}

TEST(RunSeries, what_is_no_record_is_named_with_its_line) {
  const TemporaryFolder folder;
  const auto path = folder.path() / "metrics.jsonl", csv = folder.path() / "metrics.csv";
  const std::string good =
      "{\"kind\":\"step\",\"epoch\":0,\"step\":0,\"global_step\":1,\"loss\":1,\"learning_rate\":1}";
  const auto message = [&](const std::string& line) -> std::string {
    overwrite(path, good + "\n" + line + "\n");
    const std::string text = message_of<ParseError>([&] { read_metrics_jsonl(path); });
    return text.starts_with(folder.path().string()) ? text.substr(folder.path().string().size() + 1)
                                                    : text;
  };
  EXPECT_EQ(message(good), "no error");
  EXPECT_EQ(message("{\"kind\":\"batch\"}"),
            "metrics.jsonl:2: the kind is \"batch\", not \"step\" or \"epoch\"");
  EXPECT_EQ(message("{\"kind\":\"step\",\"epoch\":0}"), "metrics.jsonl:2: 'step' is missing");
  EXPECT_EQ(message("{\"kind\":\"step\",\"epoch\":0.5}"),
            "metrics.jsonl:2: 'epoch' is 0.5, not a whole number");
  EXPECT_EQ(message("{\"kind\":\"step\",\"epoch\":-1}"),
            "metrics.jsonl:2: 'epoch' is -1, not a whole number");
  EXPECT_EQ(message("{\"kind\":\"step\",\"epoch\":1e300}"),
            "metrics.jsonl:2: 'epoch' is 1e+300, not a whole number");
  EXPECT_EQ(message("{\"kind\":\"step\",\"loss\":\"x\"}"),
            "metrics.jsonl:2: 'loss' is \"x\", not a number");
  EXPECT_THAT(message("{\"kind\":\"step\",\"loss\":[1]}"), HasSubstr("metrics.jsonl:2: "));
  EXPECT_THAT(message("{\"epoch\":0}"), HasSubstr("metrics.jsonl:2: "));
  EXPECT_THAT(message("[]"), HasSubstr("metrics.jsonl:2: "));
  EXPECT_THAT(message("{\"loss\":1e999}"), HasSubstr("metrics.jsonl:2: not valid JSON"));
  EXPECT_THAT(message("not json"), HasSubstr("metrics.jsonl:2: byte "));
  EXPECT_THAT(message(std::string(3 << 20, 'x')),
              HasSubstr("metrics.jsonl:2: the line has more than 1048576 bytes"));

  overwrite(csv, "kind,epoch\nstep,0,1\n");
  EXPECT_THROW(read_metrics_csv(csv), ParseError);
  overwrite(csv, "kind,epoch\nstep,\"0\n");
  EXPECT_THROW(read_metrics_csv(csv), ParseError);
  overwrite(csv, "kind,epoch,steps,global_step,loss\r\nepoch,0,1,2,\"0.5\"\r\n");
  EXPECT_EQ(read_metrics_csv(csv).epochs.at(0).avg_loss, 0.5);
}

TEST(RunSeries, mutated_files_are_read_or_refused) {
  const TemporaryFolder folder;
  {
    RunLog log(folder.path(), options(1));
    train(log, 1, 4);
  }
  std::mt19937_64 random(7);
  for (const char* name : {"metrics.jsonl", "metrics.csv"}) {
    const auto path = folder.path() / name;
    const std::string content = io::read_file(path);
    for (int k = 0; k < 1000; ++k) {
      std::string changed = content;
      for (int change = 0; change < 3; ++change)
        changed[random() % changed.size()] = static_cast<char>(random());
      overwrite(path, changed);
      try {
        name == std::string("metrics.csv") ? read_metrics_csv(path) : read_metrics_jsonl(path);
      } catch (const ParseError& error) { EXPECT_THAT(error.what(), HasSubstr(name)); }
    }
  }
}

TEST(RunSeries, long_runs_are_thinned) {
  const TemporaryFolder folder;
  const auto path = folder.path() / "metrics.csv";
  const std::int64_t count = 300000;
  {
    std::ofstream out(path);
    out << "kind,epoch,step,global_step,loss,learning_rate\n";
    for (std::int64_t k = 0; k < count; ++k) out << "step,0," << k << "," << k + 1 << ",0.5,0.1\n";
  }
  const RunSeries series = read_metrics_csv(path);
  EXPECT_LT(series.steps.size(), kMostRecords);
  EXPECT_GT(series.steps.size(), kMostRecords / 4);
  EXPECT_EQ(series.steps[0].step, 0);
  for (std::size_t k = 0; k < series.steps.size(); ++k)
    ASSERT_EQ(series.steps[k].step, static_cast<std::int64_t>(4 * k));
}

TEST(RunSeries, folders_without_a_run_are_mistakes) {
  const TemporaryFolder folder;
  const auto message = [](const std::filesystem::path& path) -> std::string {
    return message_of<IoError>([&] { read_run(path); });
  };
  EXPECT_EQ(message(folder.path() / "no"),
            folder.file("no") + ": there is no such folder; expected the folder of a run");
  EXPECT_EQ(message(folder.path()), folder.path().string() +
                                        ": there is no metrics.jsonl in it; expected the folder of "
                                        "a run");
  overwrite(folder.path() / "metrics.jsonl", "");
  EXPECT_EQ(message(folder.path()),
            folder.path().string() + ": no step and no epoch has been logged yet");
}

TEST(Environment, says_what_made_the_numbers) {
  const RunEnvironment run{.command = {"pantala", "train", "a\xff b"},
                           .device = "cpu",
                           .threads = 2,
                           .start_time = 1700000000.5};
  const TemporaryFolder folder;
  write_environment(folder.path(), run, false);
  const auto document = nlohmann::json::parse(io::read_file(folder.path() / kEnvironmentFile));
  EXPECT_EQ(document.at("started"), "2023-11-14T22:13:20Z");
  EXPECT_EQ(document.at("command"), nlohmann::json({"pantala", "train", "a? b"}));
  EXPECT_EQ(document.at("device"), "cpu");
  EXPECT_EQ(document.at("threads"), 2);
  EXPECT_THAT(document.at("version").get<std::string>(), testing::MatchesRegex("[0-9.]+"));
  EXPECT_EQ(document.at("build_id").get<std::string>().size(), 64U);
  EXPECT_THAT(document.at("compiler").get<std::string>(),
              testing::AnyOf(HasSubstr("GCC"), HasSubstr("Clang")));
  EXPECT_FALSE(document.at("llvm").get<std::string>().empty());
  EXPECT_GT(document.at("cpu").at("l1_bytes").get<std::int64_t>(), 0);
  EXPECT_FALSE(document.at("cpu").at("features").empty());
  EXPECT_EQ(document.at("system").at("name"), "Linux");
  EXPECT_GT(resident_bytes(), 1 << 20);
}

TEST(Environment, a_continued_run_lists_every_continuation) {
  const TemporaryFolder folder;
  const auto path = folder.path() / kEnvironmentFile;
  const auto run = [](double time) {
    return RunEnvironment{.command = {"pantala"}, .device = "cpu", .start_time = time};
  };
  write_environment(folder.path(), run(1), true);
  write_environment(folder.path(), run(2), true);
  write_environment(folder.path(), run(3), true);
  auto document = nlohmann::json::parse(io::read_file(path));
  EXPECT_EQ(document.at("started"), "1970-01-01T00:00:01Z");
  EXPECT_EQ(document.at("continued").size(), 2U);
  EXPECT_EQ(document.at("continued")[1].at("started"), "1970-01-01T00:00:03Z");
  write_environment(folder.path(), run(4), false);
  document = nlohmann::json::parse(io::read_file(path));
  EXPECT_FALSE(document.contains("continued"));
  for (const char* damage : {"{", "[1]", "{\"continued\":3}"}) {
    overwrite(path, damage);
    const Warnings warnings;
    write_environment(folder.path(), run(5), true);
    EXPECT_EQ(warnings.texts.size(), 1U);
    EXPECT_EQ(nlohmann::json::parse(io::read_file(path)).at("started"), "1970-01-01T00:00:05Z");
  }
}

}  // namespace
}  // namespace pantala::monitor::run_log_test
