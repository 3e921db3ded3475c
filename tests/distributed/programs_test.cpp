// A program in C++ on the ranks of both MPIs (tests/rank_program): LeNet with dropout and batch
// norm, and a small transformer with accumulation and clipping, in eight shards. Up to 8 ranks with
// PANTALA_MPI_TESTS=all, which are more than there are CPUs.
#include <gtest/gtest.h>

#include <filesystem>

#include "distributed/job.h"

namespace pantala::tests {
namespace {

class Programs : public JobTest {
 protected:
  // What a job of so many ranks leaves; without ranks the program runs alone.
  std::string record_of(const std::string& out, const std::string& model, int ranks,
                        const std::vector<std::string>& more = {}) {
    run_program(out, model, ranks, more);
    return exists(out + "/record.txt") ? bytes(out + "/record.txt") : "nothing";
  }

  void run_program(const std::string& out, const std::string& model, int ranks,
                   const std::vector<std::string>& more) {
    std::vector<std::string> words = {model, file(out)};
    words.insert(words.end(), more.begin(), more.end());
    std::string program = PANTALA_RANK_PROGRAM;
    if (ranks > 0) {
      words.insert(words.begin(), {"-n", std::to_string(ranks), program});
      program = GetParam().launcher;
    }
    const Outcome outcome = Running(program, words).wait();
    EXPECT_EQ(outcome.exit_code, 0) << outcome.out << outcome.err;
  }

  void expect_same_for_all_ranks(const std::string& model) {
    const std::string expected = record_of("alone", model, 0);
    const std::vector<int> all = {2, 4, 8}, some = {4};
    for (const int ranks : wants_all_of_mpi() ? all : some)
      for (const bool parted : {false, true}) {
        const std::string out = std::to_string(ranks) + (parted ? "parted" : "whole");
        const std::vector<std::string> more(parted ? 1 : 0, "shard_optimizer");
        EXPECT_EQ(record_of(out, model, ranks, more), expected) << out;
      }
    // Within the first epoch 4 ranks hand over to 2, which keep states on both.
    for (const bool parted : {false, true}) {
      if (parted && !wants_all_of_mpi()) continue;
      const std::string out = parted ? "parted" : "stopped";
      std::vector<std::string> more(parted ? 1 : 0, "shard_optimizer");
      more.emplace_back("stop=2");
      run_program(out, model, 4, more);
      more.pop_back();
      EXPECT_EQ(record_of(out, model, 2, more), expected) << out;
    }
  }
};

INSTANTIATE_TEST_SUITE_P(Mpi, Programs, testing::ValuesIn(both_mpis()),
                         [](const auto& info) { return info.param.name; });

TEST_P(Programs, lenet_with_dropout_and_batch_norm_has_the_same_bits_for_any_number_of_ranks) {
  expect_same_for_all_ranks("lenet");
}

TEST_P(Programs, a_transformer_with_accumulation_and_clipping_has_the_same_bits) {
  expect_same_for_all_ranks("transformer");
}

}  // namespace
}  // namespace pantala::tests
