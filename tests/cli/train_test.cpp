// pantala train: runs from the command line, their folders, interruptions and continuations.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <nlohmann/json.hpp>
#include <thread>

#include "cli/training.h"
#include "pantala/weights.h"
#include "support/numbers.h"

namespace pantala::tests::train_test {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using testing::AllOf;
using testing::ContainsRegex;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::StartsWith;

bool has_control_characters(const std::string& text) {
  return std::any_of(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) < 0x20 && c != '\n') || c == 0x7f;
  });
}

// The newest checkpoint of a run: "step-000000123", or "".
std::string newest_checkpoint(const fs::path& run) {
  std::string newest;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(run / "checkpoints", error))
    if (const std::string name = entry.path().filename().string(); name.starts_with("step-"))
      newest = std::max(newest, name);
  return newest;
}

using Train = TrainingTest;

// A run that does not end by itself, until it has saved something.
std::unique_ptr<Running> endless_run(const std::vector<std::string>& words, const fs::path& run) {
  auto running = std::make_unique<Running>(words);
  while (newest_checkpoint(run).empty() && !running->ended())
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  EXPECT_FALSE(running->ended()) << running->wait().err;
  return running;
}

TEST_F(Train, trains_and_leaves_a_run_folder) {
  const Outcome outcome = run_pantala(train("run"));
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, ContainsRegex("^accuracy [0-9.]+ %, loss [0-9.]+ over 15 items\n"));
  EXPECT_THAT(outcome.out, HasSubstr("wide"));  // the confusion matrix has the names
  EXPECT_THAT(outcome.out, HasSubstr("36 steps in "));
  EXPECT_THAT(outcome.out, HasSubstr("device cpu: "));
  EXPECT_THAT(outcome.out, HasSubstr("run folder: " + file("run") + "\n"));
  EXPECT_THAT(outcome.out, HasSubstr("plot: " + file("run/plots/loss.svg") + "\n"));
  for (const char* name : {"config.toml", "data.json", "environment.json", "metrics.jsonl",
                           "metrics.csv", "result.json", "model.safetensors", "plots/loss.svg",
                           "plots/accuracy.svg", "checkpoints/step-000000036/state.json"})
    EXPECT_TRUE(exists(std::string("run/") + name)) << name;
  EXPECT_THAT(bytes("run/config.toml"), HasSubstr("\nhidden = [12]\n"));
}

TEST_F(Train, progress_goes_to_stderr_without_control_characters) {
  const Outcome outcome = run_pantala(train("run"));
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("device cpu: "));
  EXPECT_THAT(outcome.err, HasSubstr("begins in "));
  EXPECT_FALSE(has_control_characters(outcome.err)) << outcome.err;
  EXPECT_FALSE(has_control_characters(outcome.out)) << outcome.out;
}

TEST_F(Train, json_is_one_object_and_progress_can_be_silent) {
  const Outcome outcome = run_pantala(train("run", {"--json", "--progress", "none"}));
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.err, IsEmpty());
  const json result = json::parse(outcome.out);
  EXPECT_EQ(result.at("end"), "finished");
  EXPECT_EQ(result.at("steps"), 36);
  EXPECT_EQ(result.at("evaluation").at("items"), 15);
  EXPECT_EQ(result.at("evaluation").at("classes").size(), 3U);
  EXPECT_EQ(result.at("evaluation").at("confusion").size(), 3U);
  EXPECT_GT(result.at("items_per_second"), 0);
  EXPECT_EQ(result, json::parse(bytes("run/result.json")));
}

// A number such as a price as label makes very many classes: all pairs of them would fill the disk.
TEST_F(Train, of_very_many_classes_only_cells_with_items_are_listed) {
  std::ofstream out(file("prices.csv"));
  for (int k = 0; k < 40; ++k) out << k << ".5," << 700 * (k % 4) << '\n';
  out.close();
  const Outcome outcome =
      run_pantala({"train", "--model", "mlp", "--data", "csv:" + file("prices.csv"), "--out",
                   file("run"), "--epochs", "1", "--set", "model.hidden=[2]", "--json"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const json evaluation = json::parse(outcome.out).at("evaluation");
  EXPECT_FALSE(evaluation.contains("confusion"));
  int items = 0;
  for (const json& cell : evaluation.at("confusion_cells")) {
    EXPECT_EQ(cell.at(0).get<int>() % 700, 0);
    items += cell.at(2).get<int>();
  }
  EXPECT_EQ(items, evaluation.at("items"));
  EXPECT_LT(bytes("run/result.json").size(), 4000U);
}

TEST_F(Train, items_without_a_prediction_stay_in_the_confusion_matrix) {
  const std::vector<std::string> words =
      train("run", {"--epochs=1", "--set", "optimizer.name=sgd", "--set", "non_finite=propagate"});
  std::vector<std::string> wild;
  for (std::size_t k = 0; k < words.size(); ++k) {
    if (words[k] == "--epochs") {
      ++k;  // given above
      continue;
    }
    wild.push_back(k > 0 && words[k - 1] == "--lr" ? "1e30" : words[k]);
  }
  const Outcome outcome = run_pantala(wild);
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, ContainsRegex("true .* none  recall\n"));
  int undecided = 0;
  const json result = json::parse(bytes("run/result.json"));
  for (const json& entry : result.at("evaluation").at("undecided"))
    undecided += entry.at(1).get<int>();
  EXPECT_EQ(undecided, 15);
}

TEST_F(Train, labels_that_have_changed_are_noticed) {
  ASSERT_EQ(run_pantala(train("run")).exit_code, 0);
  std::string text = bytes("points.csv");
  const std::size_t place = text.find("deep");
  ASSERT_NE(place, std::string::npos);
  io::write_file(file("points.csv"), text.replace(place, 4, "wide"));
  const Outcome evaluated = run_pantala({"eval", file("run")});
  EXPECT_EQ(evaluated.exit_code, 2);
  EXPECT_THAT(evaluated.err, HasSubstr("has changed since the run"));
}

TEST_F(Train, whole_numbers_may_be_written_as_powers_and_limits_are_told) {
  const Outcome outcome = run_pantala(train("run", {"--max-steps", "1e1", "--dry-run"}));
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("\nmax_steps = 10\n"));
  EXPECT_EQ(run_pantala({"train", "--seed", "9223372036854775807"}).err,
            "pantala: --seed: seed must be a whole number from 0 to 9007199254740992, got "
            "9223372036854775807\n");
  io::write_file(file("label.toml"), "[data]\nlabel = 4\n");
  EXPECT_THAT(run_pantala(train("run", {"--config", file("label.toml"), "--dry-run"})).out,
              HasSubstr("\nlabel = \"4\"\n"));
}

TEST_F(Train, progress_as_json_is_an_object_a_line) {
  const Outcome outcome = run_pantala(train("run", {"--progress", "json"}));
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  std::istringstream lines(outcome.err);
  int count = 0;
  for (std::string line; std::getline(lines, line); ++count)
    EXPECT_TRUE(json::parse(line).is_object()) << line;
  EXPECT_GE(count, 4);
  const Outcome again = run_pantala(train("run", {"--progress", "json"}));
  EXPECT_EQ(json::parse(again.err).at("text"),
            "this run is finished already; --restart trains anew");
}

TEST_F(Train, the_same_command_again_says_that_the_run_is_finished) {
  const Outcome first = run_pantala(train("run"));
  ASSERT_EQ(first.exit_code, 0) << first.err;
  const std::string model = bytes("run/model.safetensors");
  const Outcome second = run_pantala(train("run"));
  EXPECT_EQ(second.exit_code, 0);
  EXPECT_EQ(second.out, first.out);
  EXPECT_EQ(second.err, file("run") + ": this run is finished already; --restart trains anew\n");
  EXPECT_EQ(bytes("run/model.safetensors"), model);
}

TEST_F(Train, more_epochs_continue_a_finished_run_with_the_same_bits) {
  ASSERT_EQ(run_pantala(train("run", {"--epochs", "2"})).exit_code, 2);  // given twice
  std::vector<std::string> shorter = train("run");
  *std::find(shorter.begin(), shorter.end(), "4") = "2";
  ASSERT_EQ(run_pantala(shorter).exit_code, 0);
  const Outcome longer = run_pantala(train("run"));
  ASSERT_EQ(longer.exit_code, 0) << longer.err;
  EXPECT_THAT(longer.err, HasSubstr("continues " + file("run") + " from epoch 3, batch 1"));
  ASSERT_EQ(run_pantala(train("whole")).exit_code, 0);
  EXPECT_TRUE(bytes("run/model.safetensors") == bytes("whole/model.safetensors"));
  EXPECT_THAT(bytes("run/environment.json"), HasSubstr("\"continued\""));
}

TEST_F(Train, another_config_in_the_same_folder_is_refused) {
  ASSERT_EQ(run_pantala(train("run")).exit_code, 0);
  const std::string model = bytes("run/model.safetensors");
  const Outcome other = run_pantala(train("run", {"--seed", "5", "--set", "clip.norm=1"}));
  EXPECT_EQ(other.exit_code, 2);
  EXPECT_EQ(other.err, "pantala: " + file("run") +
                           " holds a run with another config:\n"
                           "  seed: 0 there, 5 here\n"
                           "  clip.norm: 0 there, 1 here\n"
                           "choose another folder with --out, or --restart to remove that run\n");
  EXPECT_EQ(bytes("run/model.safetensors"), model);
  const Outcome anew = run_pantala(train("run", {"--seed", "5", "--restart"}));
  EXPECT_EQ(anew.exit_code, 0) << anew.err;
  EXPECT_NE(bytes("run/model.safetensors"), model);
}

TEST_F(Train, foreign_folders_are_left_alone) {
  fs::create_directories(file("mine"));
  std::ofstream(file("mine/notes.txt")) << "precious";
  for (const char* flag : {"--restart", "--json"}) {
    const Outcome outcome = run_pantala(train("mine", {flag}));
    EXPECT_EQ(outcome.exit_code, 2);
    EXPECT_EQ(outcome.err, "pantala: " + file("mine") +
                               " is there already and is not the folder of a run; choose another "
                               "with --out\n");
  }
  ASSERT_EQ(run_pantala(train("run")).exit_code, 0);
  std::ofstream(file("run/notes.txt")) << "precious";
  ASSERT_EQ(run_pantala(train("run", {"--restart"})).exit_code, 0);
  EXPECT_EQ(bytes("run/notes.txt"), "precious");
}

TEST_F(Train, resume_insists_on_a_checkpoint) {
  const Outcome outcome = run_pantala(train("run", {"--resume"}));
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_EQ(outcome.err, "pantala: --resume: there is no checkpoint in " + file("run") + "\n");
  EXPECT_FALSE(exists("run"));
}

// --epochs and --max-steps say how long a run is and may differ: an endless run is interrupted
// wherever it is, continued to a fixed step, and compared with a run to there in one piece.
class Interrupted : public TrainingTest {
 protected:
  // Tests that nohup(1) started would pass on that it is ignored.
  Interrupted() { ::signal(SIGHUP, SIG_DFL); }

  std::vector<std::string> endless(std::vector<std::string> more = {}) const {
    std::vector<std::string> words =
        train("run", {"--set", "checkpoint.every_steps=20", "--set", "output.log_interval=10"});
    *std::find(words.begin(), words.end(), "4") = "1000000";
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }
  // Continues to a place past the interruption, and compares.
  void expect_same_bits_in_the_end() {
    const std::string newest = newest_checkpoint(file("run"));
    ASSERT_THAT(newest, StartsWith("step-"));
    const std::string steps = std::to_string(std::stol(newest.substr(5)) + 45);
    const Outcome rest = run_pantala(endless({"--max-steps", steps, "--resume"}));
    ASSERT_EQ(rest.exit_code, 0) << rest.err;
    EXPECT_THAT(rest.err, HasSubstr("continues "));
    std::vector<std::string> whole = endless({"--max-steps", steps});
    *std::find(whole.begin(), whole.end(), file("run")) = file("whole");
    ASSERT_EQ(run_pantala(whole).exit_code, 0);
    EXPECT_TRUE(bytes("run/model.safetensors") == bytes("whole/model.safetensors"));
    const std::string last = newest_checkpoint(file("whole"));
    EXPECT_EQ(newest_checkpoint(file("run")), last);
    for (const char* name : {"/model.safetensors", "/optimizer.safetensors"})
      EXPECT_TRUE(bytes("run/checkpoints/" + last + name) ==
                  bytes("whole/checkpoints/" + last + name))
          << name;
    EXPECT_EQ(logged_steps("run"), logged_steps("whole"));
  }

 private:
  // Step and loss of each line.
  std::vector<std::string> logged_steps(const std::string& run) const {
    std::vector<std::string> steps;
    std::istringstream lines(bytes(run + "/metrics.jsonl"));
    for (std::string line; std::getline(lines, line);) {
      const json record = json::parse(line);
      steps.push_back(record.at("kind").dump() + record.at("global_step").dump() +
                      record.at("loss").dump());
    }
    return steps;
  }
};

TEST_F(Interrupted, by_sigint_saves_and_continues_with_the_same_bits) {
  const auto running = endless_run(endless(), file("run"));
  running->send(SIGINT);
  const Outcome outcome = running->wait();
  EXPECT_EQ(outcome.exit_code, 75);
  EXPECT_THAT(outcome.out, IsEmpty());
  EXPECT_THAT(outcome.err, ContainsRegex("pantala: SIGINT: saved after [0-9]+ updates? in " +
                                         file("run") + "; the same command goes on from there\n"));
  expect_same_bits_in_the_end();
}

// The same command with --restart would begin anew.
TEST_F(Interrupted, with_restart_says_that_it_must_be_left_out_to_go_on) {
  const auto running = endless_run(endless({"--restart"}), file("run"));
  running->send(SIGINT);
  const Outcome outcome = running->wait();
  EXPECT_EQ(outcome.exit_code, 75);
  EXPECT_THAT(outcome.err,
              ContainsRegex("pantala: SIGINT: saved after [0-9]+ updates? in " + file("run") +
                            "; the same command without --restart goes on from there\n"));
  expect_same_bits_in_the_end();
}

TEST_F(Interrupted, by_sigterm_with_accumulation_and_averages_continues_with_the_same_bits) {
  const std::vector<std::string> more = {"--accumulate", "3", "--ema", "0.9", "--clip", "1"};
  const auto running = endless_run(endless(more), file("run"));
  running->send(SIGTERM);
  EXPECT_EQ(running->wait().exit_code, 75);
  const std::string newest = newest_checkpoint(file("run"));
  const std::string steps = std::to_string(std::stol(newest.substr(5)) + 30);
  std::vector<std::string> rest = endless(more), whole = endless(more);
  for (std::vector<std::string>* words : {&rest, &whole}) {
    words->push_back("--max-steps");
    words->push_back(steps);
  }
  ASSERT_EQ(run_pantala(rest).exit_code, 0);
  *std::find(whole.begin(), whole.end(), file("run")) = file("whole");
  ASSERT_EQ(run_pantala(whole).exit_code, 0);
  EXPECT_TRUE(bytes("run/model.safetensors") == bytes("whole/model.safetensors"));
}

TEST_F(Interrupted, by_sigkill_continues_with_the_same_bits) {
  const auto running = endless_run(endless(), file("run"));
  running->send(SIGKILL);
  EXPECT_EQ(running->wait().exit_code, 128 + SIGKILL);
  expect_same_bits_in_the_end();
}

// timeout(1) signals the process and its group: two requests that are one.
TEST_F(Interrupted, by_two_signals_in_a_row_saves_and_continues_with_the_same_bits) {
  const auto running = endless_run(endless(), file("run"));
  running->send(SIGSTOP);  // all are there when it goes on
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) running->send(signal);
  running->send(SIGCONT);
  const Outcome outcome = running->wait();
  EXPECT_EQ(outcome.exit_code, 75) << outcome.err;
  EXPECT_THAT(outcome.err, ContainsRegex("pantala: SIG[A-Z]+: saved after [0-9]+ updates? in "));
  expect_same_bits_in_the_end();
}

TEST_F(Interrupted, by_sighup_saves_and_continues_with_the_same_bits) {
  const auto running = endless_run(endless(), file("run"));
  running->send(SIGHUP);
  const Outcome outcome = running->wait();
  EXPECT_EQ(outcome.exit_code, 75) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("pantala: SIGHUP: saved after "));
  expect_same_bits_in_the_end();
}

// A model of so many layers is scheduled for seconds, and nothing is trained before. The signal
// comes as soon as the folder is there, and in the middle.
TEST_F(Interrupted, while_it_compiles_answers_at_once_and_can_be_continued) {
  using Clock = std::chrono::steady_clock;
  std::ofstream(file("text.txt")) << std::string(400, 'a') + std::string(400, 'b');
  std::ofstream(file("deep.toml")) << "batch_size = 4\n"
                                      "max_steps = 1\n"
                                      "threads = 1\n"
                                      "[model]\n"
                                      "name = 'llama-bytes'\n"
                                      "width = 16\n"
                                      "heads = 2\n"
                                      "[data]\n"
                                      "sequence = 8\n";
  const auto words = [&](const std::string& layers) -> std::vector<std::string> {
    return {"train", file("deep.toml"), "--data", "text:" + file("text.txt"),
            "--out", file("run"),       "--set",  "model.layers=" + layers};
  };
  for (const int wait : {0, 500}) {
    std::filesystem::remove_all(file("run"));
    Running running(words("150"));
    while (!exists("run/run.lock") && !running.ended())
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    std::this_thread::sleep_for(std::chrono::milliseconds(wait));
    const Clock::time_point sent = Clock::now();
    running.send(SIGTERM);
    const Outcome outcome = running.wait();
    EXPECT_LT(Clock::now() - sent, std::chrono::seconds(3));
    EXPECT_EQ(outcome.exit_code, 75) << outcome.err;
    EXPECT_THAT(
        outcome.err,
        HasSubstr("pantala: SIGTERM: nothing has been trained yet, and what was in " + file("run") +
                  " is as it was; the same command begins, or goes on, there\n"));
  }
  const Outcome after = run_pantala(words("1"));
  EXPECT_EQ(after.exit_code, 0) << after.err;
}

TEST_F(Interrupted, by_sigusr1_saves_and_goes_on) {
  std::vector<std::string> words = endless({"--set", "checkpoint.keep=1000"});
  *std::find(words.begin(), words.end(), "checkpoint.every_steps=20") =
      "checkpoint.every_steps=1000000";
  *std::find(words.begin(), words.end(), "1000000") = "1000001";
  words.insert(words.end(), {"--set", "checkpoint.every_epochs=0"});
  Running running(words);
  while (!exists("run/metrics.jsonl") && !running.ended())
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  running.send(SIGUSR1);
  while (newest_checkpoint(file("run")).empty() && !running.ended())
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  ASSERT_FALSE(running.ended()) << running.wait().err;
  running.send(SIGINT);
  EXPECT_EQ(running.wait().exit_code, 75);
}

TEST_F(Train, only_one_process_trains_in_a_folder) {
  std::vector<std::string> words = train("run", {"--set", "checkpoint.every_steps=20"});
  *std::find(words.begin(), words.end(), "4") = "1000000";
  const auto running = endless_run(words, file("run"));
  const Outcome second = run_pantala(words);
  EXPECT_EQ(second.exit_code, 2);
  EXPECT_THAT(second.err, HasSubstr("pantala: another process is training in " + file("run")));
}

TEST_F(Train, a_dry_run_is_a_config_and_trains_nothing) {
  const Outcome outcome = run_pantala(train("run", {"--dry-run"}));
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_FALSE(exists("run"));
  EXPECT_THAT(outcome.out, HasSubstr("\n# steps: 9 an epoch, 36 in all\n"));
  EXPECT_THAT(outcome.out, HasSubstr("\n# model: 99 parameters\n"));
  EXPECT_THAT(outcome.out, HasSubstr("#   fc1.weight [12,4]\n"));
  std::ofstream(file("dry.toml")) << outcome.out;
  const Outcome again = run_pantala({"train", file("dry.toml"), "--dry-run"});
  EXPECT_EQ(again.out, outcome.out);
  const Outcome object = run_pantala(train("run", {"--dry-run", "--json"}));
  const json result = json::parse(object.out);
  EXPECT_EQ(result.at("parameter_count"), 99);
  EXPECT_EQ(result.at("config").at("model").at("hidden"), json({12.0}));
}

TEST_F(Train, divergence_stops_before_the_weights_change_and_names_the_op) {
  const Outcome outcome =
      run_pantala(train("run", {"--set", "optimizer.name=sgd", "--set", "model.activation=identity",
                                "--set", "output.log_interval=1"}));
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  std::vector<std::string> wild = train("wild", {"--optimizer", "sgd"});
  *std::find(wild.begin(), wild.end(), "0.01") = "1e30";
  const Outcome diverged = run_pantala(wild);
  EXPECT_EQ(diverged.exit_code, 3);
  EXPECT_THAT(diverged.out, IsEmpty());
  EXPECT_THAT(diverged.err,
              HasSubstr("batch, state and this text are in " + file("wild/diverged")));
  for (const char* name : {"diagnosis.txt", "batch-data.npy", "batch-labels.npy",
                           "state/model.safetensors", "state/state.json"})
    EXPECT_TRUE(exists(std::string("wild/diverged/") + name)) << name;
  EXPECT_THAT(bytes("wild/diverged/diagnosis.txt"),
              AllOf(StartsWith("epoch 0, step "),
                    HasSubstr("The first number that is not finite is made in "),
                    HasSubstr("parameter 'fc")));
  EXPECT_FALSE(exists("wild/result.json"));
}

TEST_F(Train, images_from_an_npz_or_fashion_mnist_need_the_right_model) {
  const Outcome outcome =
      run_pantala({"train", "--model", "lenet", "--data", points(), "--out", file("run")});
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_EQ(outcome.err,
            "pantala: model lenet takes square images [size, size] or [channels, size, size] from "
            "4 x 4 pixels on; the items of the data set are [4]; mlp takes any\n");
}

TEST_F(Train, mistakes_in_the_data_are_named) {
  const auto complaint = [&](std::vector<std::string> more) {
    const Outcome outcome = run_pantala(train("run", std::move(more)));
    EXPECT_EQ(outcome.exit_code, 2);
    EXPECT_FALSE(exists("run"));
    return outcome.err;
  };
  EXPECT_EQ(complaint({"--set", "data.subset=1000"}),
            "pantala: data.subset is 1000, but points.csv has 150 items only\n");
  EXPECT_EQ(complaint({"--set", "data.subset=1"}),
            "pantala: points.csv has 1 item; that is too few to keep 1 back for validation "
            "(data.validation)\n");
  EXPECT_EQ(complaint({"--set", "data.validation=test"}),
            "pantala: " + points() +
                " has no test set; data.validation can be a share of the training set such as "
                "0.1, or none\n");
  EXPECT_EQ(complaint({"--set", "data.flip=true"}),
            "pantala: data.flip and data.crop_pad are for images; the items of points.csv are "
            "[4]\n");
  EXPECT_EQ(
      complaint({"--set", "data.subset=12", "--set", "data.drop_last=true"}),
      "pantala: an epoch has no batch: the training set has fewer than 16 items (batch_size), "
      "and the short last batch is left out (data.drop_last)\n");
  EXPECT_EQ(complaint({"--set", "data.validation=none", "--set", "early_stopping.patience=2"}),
            "pantala: early_stopping.patience needs a validation, but data.validation is none\n");
  const auto of_file = [&](const std::string& content) {
    std::ofstream(file("bad.csv")) << content;
    std::vector<std::string> words = train("run");
    *std::find(words.begin(), words.end(), points()) = "csv:" + file("bad.csv");
    const Outcome outcome = run_pantala(words);
    EXPECT_EQ(outcome.exit_code, 2);
    return outcome.err;
  };
  EXPECT_EQ(of_file("1,2,0\n2,3,999999999999\n"),
            "pantala: bad.csv: the label of item 1 is 999999999999; classes are numbered from 0 to "
            "1048575 (model.task = \"regression\" learns numbers)\n");
  EXPECT_EQ(of_file("1,2,a\n2,3,a\n"), "pantala: bad.csv: all items are of one class\n");
  EXPECT_EQ(of_file("1,2,a\n2,3,\xff\n"),
            "pantala: bad.csv: the name of a class is not text in UTF-8\n");
}

// Semicolons, texts and gaps: the run keeps what evaluation and prediction need of them.
TEST_F(Train, tables_as_people_have_them) {
  std::ofstream out(file("people.csv"));
  out << "colour;size;kind\n";
  for (int k = 0; k < 60; ++k)
    out << (k % 3 == 0   ? "red;"
            : k % 3 == 1 ? "blue;"
                         : "green;")
        << (k % 10 == 0 ? "NA" : "2") << (k % 3 == 1 ? ";yes\n" : ";no\n");
  out.close();
  std::vector<std::string> words =
      train("people", {"--set", "data.missing=mean", "--set", "data.onehot=*"});
  *std::find(words.begin(), words.end(), points()) = "csv:" + file("people.csv");
  *std::find(words.begin(), words.end(), "4") = "30";  // epochs
  const Outcome trained = run_pantala(words);
  ASSERT_EQ(trained.exit_code, 0) << trained.err;
  const nlohmann::json facts = nlohmann::json::parse(bytes("people/data.json"));
  EXPECT_EQ(facts.at("item"), std::vector<int>{4});
  EXPECT_EQ(facts.at("fill").at(3), 2.0);
  const Outcome evaluated = run_pantala({"eval", file("people"), "--json"});
  ASSERT_EQ(evaluated.exit_code, 0) << evaluated.err;
  std::ofstream(file("new.csv")) << "colour,size\nblue,\nred,2\n";
  const Outcome predicted =
      run_pantala({"predict", file("people"), "--data", "csv:" + file("new.csv"), "--csv"});
  ASSERT_EQ(predicted.exit_code, 0) << predicted.err;
  EXPECT_THAT(predicted.out, HasSubstr("\n0,1,yes,"));
  EXPECT_THAT(predicted.out, HasSubstr("\n1,0,no,"));
  // Who has the exported file alone can make the same items.
  const Outcome exported = run_pantala({"export", file("people"), "--out", file("people.onnx")});
  ASSERT_EQ(exported.exit_code, 0) << exported.err;
  const nlohmann::json metadata =
      nlohmann::json::parse(run_pantala({"inspect", file("people.onnx"), "--json"}).out)
          .at("metadata");
  for (const char* key : {"columns", "fill"})
    EXPECT_EQ(nlohmann::json::parse(metadata.at(key).get<std::string>()), facts.at(key)) << key;
  EXPECT_TRUE(facts.at("columns").at(0).at("one_hot").get<bool>());
}

// The sum over the 32 items of an update is 32 times their mean.
TEST_F(Train, accumulated_gradients_are_summed_if_the_config_says_so) {
  const auto weights = [&](const std::string& out, const std::string& rate,
                           std::vector<std::string> more) {
    more.insert(more.end(),
                {"--accumulate", "2", "--optimizer", "sgd", "--set", "data.drop_last=true"});
    std::vector<std::string> words = train(out, more);
    *std::find(words.begin(), words.end(), "0.01") = rate;
    const Outcome outcome = run_pantala(words);
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    EXPECT_EQ(nlohmann::json::parse(bytes(out + "/result.json")).at("steps"), 16);
    return Weights::open(file(out + "/model.safetensors"));
  };
  const Weights mean = weights("mean", "0.32", {}),
                sum = weights("sum", "0.01", {"--set", "accumulate_normalize=false"}),
                small = weights("small", "0.01", {});
  const std::string name = mean.names().at(0);
  expect_close(sum.read(name).to_doubles(), mean.read(name).to_doubles(), 1e-4);
  EXPECT_NE(sum.read(name).to_doubles(), small.read(name).to_doubles());
}

TEST_F(Train, labels_of_a_file_without_columns_are_refused) {
  std::vector<std::string> words = train("run", {"--labels", "kind"});
  *std::find(words.begin(), words.end(), points()) = "npz:points.npz";
  const Outcome outcome = run_pantala(words);
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_EQ(outcome.err,
            "pantala: --labels: data.label is of csv:FILE, but data.source is npz:points.npz\n");
}

TEST_F(Train, the_reference_of_keys_is_in_the_docs) {
  const Outcome outcome = run_pantala({"train", "--keys"});
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_THAT(io::read_file(PANTALA_SOURCE_DIR "/docs/training.md"), HasSubstr(outcome.out))
      << "docs/training.md is out of date: put the output of pantala train --keys there";
}

TEST_F(Train, every_verb_has_help_with_examples) {
  for (const char* verb : {"train", "eval", "predict", "lr-find", "verify-resume", "doctor"}) {
    const Outcome outcome = run_pantala({verb, "--help"});
    EXPECT_EQ(outcome.exit_code, 0);
    EXPECT_THAT(outcome.out, HasSubstr(std::string("Usage: pantala ") + verb));
    EXPECT_THAT(outcome.out, HasSubstr("Examples:\n  pantala " + std::string(verb)));
  }
}

}  // namespace
}  // namespace pantala::tests::train_test
