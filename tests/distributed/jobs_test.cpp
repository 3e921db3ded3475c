// `mpirun -n N pantala train` from outside: the same bits for any number of ranks, resuming with
// another number, faults, and set-ups that cannot work. All with PANTALA_MPI_TESTS=all.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <thread>

#include "compiler/build_id.h"
#include "distributed/job.h"

namespace pantala::tests {
namespace {

using testing::AllOf;
using testing::AnyOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;
using Clock = std::chrono::steady_clock;

class Jobs : public JobTest {};

INSTANTIATE_TEST_SUITE_P(Mpi, Jobs, testing::ValuesIn(both_mpis()),
                         [](const auto& info) { return info.param.name; });

TEST_P(Jobs, any_number_of_ranks_leaves_the_same_files) {
  ASSERT_EQ(run_pantala(shards("one")).exit_code, 0);
  const std::string one = record("one");
  const std::vector<int> all = {2, 3, 4}, some = {2, 4};
  for (const int ranks : wants_all_of_mpi() ? all : some) {
    const std::string out = "of" + std::to_string(ranks);
    const Outcome outcome = run_job(ranks, shards(out));
    ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
    EXPECT_EQ(record(out), one) << ranks;
  }
  const Outcome parted =
      run_job(2, shards("parted", {"--set", "distributed.shard_optimizer=true"}));
  ASSERT_EQ(parted.exit_code, 0) << parted.err;
  EXPECT_EQ(record("parted"), one);
}

TEST_P(Jobs, a_signal_to_one_rank_saves_and_another_number_of_ranks_goes_on) {
  ASSERT_EQ(run_pantala(shards("whole", {}, 30)).exit_code, 0);
  Running job(GetParam().launcher, JobTest::job(4, shards("run", {}, 30)));
  const auto ranks = processes("run", 4);
  wait_for_steps("run", job);
  ::kill(ranks.at(2), SIGTERM);
  const Outcome stopped = job.wait();
  // Launchers give the code of one of the ranks.
  ASSERT_EQ(stopped.exit_code, 75) << stopped.err;
  EXPECT_THAT(messages_of(stopped),
              ElementsAre(HasSubstr("a signal to another rank: saved after")));
  const Outcome resumed = run_job(2, shards("run", {}, 30));
  ASSERT_EQ(resumed.exit_code, 0) << resumed.err;
  EXPECT_THAT(resumed.err, HasSubstr("continues"));
  EXPECT_EQ(record("run"), record("whole"));
}

TEST_P(Jobs, a_rank_that_is_stopped_ends_the_run_and_is_named) {
  Running job(GetParam().launcher,
              JobTest::job(4, shards("run", {"--set", "distributed.timeout=1"}, 100000)));
  const auto ranks = processes("run", 4);
  wait_for_steps("run", job);
  ::kill(ranks.at(1), SIGSTOP);
  const auto begin = Clock::now();
  const Outcome outcome = job.wait();
  const std::chrono::duration<double> taken = Clock::now() - begin;
  EXPECT_NE(outcome.exit_code, 0);
  EXPECT_LT(taken.count(), 15);
  EXPECT_THAT(messages_of(outcome), ElementsAre(HasSubstr("rank 1 on ")));
}

TEST_P(Jobs, a_rank_that_is_killed_ends_the_run) {
  std::vector<std::string> words = JobTest::job(2, shards("run", {}, 100000));
  Running job(GetParam().launcher, words);
  const auto ranks = processes("run", 2);
  wait_for_steps("run", job);
  ::kill(ranks.at(1), SIGKILL);
  const auto begin = Clock::now();
  const Outcome outcome = job.wait();
  const std::chrono::duration<double> taken = Clock::now() - begin;
  EXPECT_NE(outcome.exit_code, 0);
  EXPECT_LT(taken.count(), 15);
  // The ranks that are left name it, unless the launcher ends them before: Open MPI's names it
  // then, MPICH's says only how it ended.
  EXPECT_THAT(outcome.out + outcome.err,
              AnyOf(HasSubstr("rank 1 "), HasSubstr("TERMINATED WITH THE EXIT STRING")));
}

TEST_P(Jobs, tell_how_long_they_have_waited_for_gradients) {
  const Outcome outcome =
      run_job(2, shards("run", {"--progress", "json", "--trace", file("trace.json")}));
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const auto result = nlohmann::json::parse(bytes("run/result.json"));
  EXPECT_GT(result.at("exposed_seconds").get<double>(), 0);
  EXPECT_LT(result.at("exposed_seconds").get<double>(), result.at("seconds").get<double>());
  EXPECT_THAT(outcome.out, HasSubstr("rank 0 has waited for gradients of other ranks"));
  EXPECT_THAT(outcome.err, HasSubstr("\"network_share\":"));
  EXPECT_THAT(bytes("trace.json"), HasSubstr("\"gradients\""));
}

// How a job ends of whose ranks the second one has a callback that fails after a few updates.
class CallbackThatFails : public JobTest {
 protected:
  Outcome run_with(const std::string& how) {
    ::setenv("PANTALA_MPI_FAULT", ("1:5:" + how).c_str(), 1);
    const Outcome outcome = run_job(
        4, shards("run", {"--set", "checkpoint.every_steps=2", "--set", "distributed.timeout=3"}));
    ::unsetenv("PANTALA_MPI_FAULT");
    return outcome;
  }
};
INSTANTIATE_TEST_SUITE_P(Mpi, CallbackThatFails, testing::ValuesIn(both_mpis()),
                         [](const auto& info) { return info.param.name; });

TEST_P(CallbackThatFails, by_exit_ends_the_run_and_its_rank_is_named) {
  ASSERT_EQ(run_pantala(shards("whole")).exit_code, 0);
  const auto begin = Clock::now();
  const Outcome outcome = run_with("exit");
  const std::chrono::duration<double> taken = Clock::now() - begin;
  EXPECT_NE(outcome.exit_code, 0);
  EXPECT_LT(taken.count(), 15);
  EXPECT_THAT(messages_of(outcome),
              ElementsAre(AllOf(HasSubstr("rank 1 on "), HasSubstr("has called exit()"))));
  // What was saved before is whole.
  const Outcome resumed = run_job(2, shards("run"));
  ASSERT_EQ(resumed.exit_code, 0) << resumed.err;
  EXPECT_THAT(resumed.err, HasSubstr("continues"));
  EXPECT_EQ(record("run"), record("whole"));
}

TEST_P(CallbackThatFails, by_an_exception_ends_the_run_and_its_rank_is_named) {
  const Outcome outcome = run_with("throw");
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_THAT(messages_of(outcome),
              ElementsAre(AllOf(HasSubstr("rank 1 on "), HasSubstr("a callback has failed"))));
}

TEST_P(Jobs, evaluate_and_predict_together_what_one_rank_does) {
  ASSERT_EQ(run_pantala(shards("run")).exit_code, 0);
  const std::vector<std::vector<std::string>> verbs = {
      {"eval", file("run"), "--json"},
      {"eval", file("run"), "--json", "--data", points()},
      {"predict", file("run"), "--data", points(), "--csv", "--probabilities"},
      {"predict", file("run"), "--data", points(), "--limit", "5"}};  // fewer batches than ranks
  for (const std::vector<std::string>& words : verbs) {
    const Outcome alone = run_pantala(words);
    ASSERT_EQ(alone.exit_code, 0) << alone.err;
    for (const int ranks : {2, 3}) {
      const Outcome together = run_job(ranks, words);
      EXPECT_EQ(together.exit_code, 0) << together.err;
      EXPECT_EQ(together.out, alone.out) << words[0] << " on " << ranks;
    }
  }
}

TEST_P(Jobs, fewer_shards_than_ranks_are_refused_in_one_line) {
  const Outcome outcome = run_job(4, shards("run", {"--set", "distributed.shards=3"}));
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_THAT(messages_of(outcome),
              ElementsAre(HasSubstr("distributed.shards is 3, too few for 4 ranks")));
}

TEST_P(Jobs, ranks_with_different_configs_are_refused_in_one_line) {
  std::vector<std::string> words = job(1, shards("run"));
  words.push_back(":");
  for (const std::string& word : job(1, shards("run", {"--set", "seed=7"}))) words.push_back(word);
  const Outcome outcome = Running(GetParam().launcher, words).wait();
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_THAT(messages_of(outcome), ElementsAre(HasSubstr("has another config: seed = 7 there, "
                                                          "seed = 0 on rank 0")));
}

TEST_P(Jobs, ranks_with_different_data_are_refused_in_one_line) {
  write_points(file("others.csv"), 160);
  std::vector<std::string> words = job(1, shards("run"));
  // The same name in another folder, as on another machine.
  std::filesystem::create_directory(file("there"));
  std::filesystem::rename(file("others.csv"), file("there/points.csv"));
  const std::vector<std::string> there = {":", "-wdir", file("there"), "-n", "1", PANTALA_COMMAND};
  words.insert(words.begin(), {"-wdir", file("")});
  words.insert(words.end(), there.begin(), there.end());
  for (const std::string& word : shards("run")) words.push_back(word);
  for (std::string& word : words)
    if (word == points()) word = "csv:points.csv";
  const Outcome outcome = Running(GetParam().launcher, words).wait();
  EXPECT_EQ(outcome.exit_code, 2) << outcome.err;
  EXPECT_THAT(messages_of(outcome), ElementsAre(HasSubstr("has another data set")));
}

// The second rank runs a command whose build id is another one.
TEST_P(Jobs, ranks_of_different_versions_are_refused_in_one_line) {
  std::string command = io::read_file(PANTALA_COMMAND);
  const std::string id(compiler::build_id());
  const std::size_t place = command.find(id);
  ASSERT_NE(place, std::string::npos);
  command[place + id.size() - 1] ^= 1;
  io::write_file(file("pantala"), command);
  std::filesystem::permissions(file("pantala"), std::filesystem::perms::owner_all);
  ::setenv("PANTALA_PLUGINS", PANTALA_BINARY_DIR "/lib/pantala", 1);
  std::vector<std::string> words = job(1, shards("run"));
  words.insert(words.end(), {":", "-n", "1", file("pantala")});
  for (const std::string& word : shards("run")) words.push_back(word);
  const Outcome outcome = Running(GetParam().launcher, words).wait();
  ::unsetenv("PANTALA_PLUGINS");
  EXPECT_EQ(outcome.exit_code, 2) << outcome.err;
  EXPECT_THAT(messages_of(outcome),
              ElementsAre(AllOf(HasSubstr("rank 1 on "),
                                HasSubstr("has another version of Pantala: " + id.substr(0, 6)))));
}

TEST_P(Jobs, ranks_with_different_cost_tables_are_refused_in_one_line) {
  ASSERT_EQ(run_pantala(train("table")).exit_code, 0);
  std::string table = bytes("table/cost-table.txt");
  io::write_file(file("one.txt"), table);
  const std::size_t digit = table.find_last_of("123456789");
  ASSERT_NE(digit, std::string::npos);
  table[digit] = table[digit] == '9' ? '8' : static_cast<char>(table[digit] + 1);
  io::write_file(file("two.txt"), table);
  std::vector<std::string> words =
      job(1, shards("run", {"--set", "compile.cost_table=" + file("one.txt")}));
  words.push_back(":");
  for (const std::string& word :
       job(1, shards("run", {"--set", "compile.cost_table=" + file("two.txt")})))
    words.push_back(word);
  const Outcome outcome = Running(GetParam().launcher, words).wait();
  EXPECT_EQ(outcome.exit_code, 2) << outcome.err;
  EXPECT_THAT(messages_of(outcome),
              ElementsAre(AllOf(HasSubstr("rank 1 on "), HasSubstr("has another cost table"))));
}

// Mesa's GPU in software, which both ranks would compute on.
TEST_P(Jobs, ranks_that_share_a_gpu_are_refused_in_one_line) {
  const Outcome outcome = run_job(2, shards("run", {"--device", "vulkan:0"}));
  EXPECT_EQ(outcome.exit_code, 2) << outcome.err;
  EXPECT_THAT(messages_of(outcome), ElementsAre(HasSubstr("ranks 0 and 1 share a GPU: ")));
}

TEST_P(Jobs, a_missing_plug_in_is_told_in_one_line) {
  ::setenv("PANTALA_PLUGINS", file("nowhere").c_str(), 1);
  const Outcome outcome = run_job(2, shards("run"));
  ::unsetenv("PANTALA_PLUGINS");
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_THAT(messages_of(outcome), ElementsAre(HasSubstr("the plug-in for MPI is missing")));
}

}  // namespace
}  // namespace pantala::tests
