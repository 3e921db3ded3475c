// `mpirun -n N pantala train` from outside: the same bits for any number of ranks, resuming with
// another number, faults, and set-ups that cannot work. All with PANTALA_MPI_TESTS=all.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "distributed/job.h"

namespace pantala::tests {
namespace {

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
  std::vector<std::string> words =
      JobTest::job(2, shards("run", {"--set", "distributed.timeout=1"}, 100000));
  Running job(GetParam().launcher, words);
  const auto ranks = processes("run", 2);
  wait_for_steps("run", job);
  ::kill(ranks.at(1), SIGKILL);
  const auto begin = Clock::now();
  const Outcome outcome = job.wait();
  const std::chrono::duration<double> taken = Clock::now() - begin;
  EXPECT_NE(outcome.exit_code, 0);
  EXPECT_LT(taken.count(), 15);
  // The launcher sees it first: Open MPI's names the rank, MPICH's the machine and the process.
  EXPECT_THAT(outcome.out + outcome.err, AnyOf(HasSubstr("rank 1"), HasSubstr("RUNNING AT")));
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

TEST_P(Jobs, a_missing_plug_in_is_told_in_one_line) {
  ::setenv("PANTALA_PLUGINS", file("nowhere").c_str(), 1);
  const Outcome outcome = run_job(2, shards("run"));
  ::unsetenv("PANTALA_PLUGINS");
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_THAT(messages_of(outcome), ElementsAre(HasSubstr("the plug-in for MPI is missing")));
}

}  // namespace
}  // namespace pantala::tests
