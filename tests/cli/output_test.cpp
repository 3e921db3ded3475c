// Standard descriptors that are closed or full, and memory that cannot be got: an exit code and
// a message, and no byte where it does not belong.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdlib>
#include <filesystem>

#include "cli/training.h"

namespace pantala::tests {
namespace {

using testing::ContainsRegex;
using testing::StartsWith;

class Output : public TrainingTest {
 protected:
  // The command with redirections as a shell has them, and its exit code; what it prints to err.txt
  // is `errors()`.
  int shell(const std::vector<std::string>& words, const std::string& redirections,
            const std::string& before = "") const {
    std::string line = before + "exec '" PANTALA_COMMAND "'";
    for (const std::string& word : words) line += " '" + word + "'";
    const int status =
        std::system(("cd '" + file("") + "' && " + line + " " + redirections).c_str());
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }
  std::string errors() const { return bytes("err.txt"); }
  // Every line is one of a log, and the run is whole.
  void expect_whole(const std::string& run) const {
    std::istringstream lines(bytes(run + "/metrics.jsonl"));
    for (std::string line; std::getline(lines, line);)
      EXPECT_THAT(line, StartsWith("{\"kind\":")) << run;
    EXPECT_TRUE(exists(run + "/result.json"));
  }
};

TEST_F(Output, descriptors_that_are_closed_get_no_text_of_the_run_into_its_files) {
  const std::vector<std::string> closed = {">out.txt 2>&-", ">&- 2>&-", "<&- >&- 2>&-"};
  for (std::size_t k = 0; k < closed.size(); ++k) {
    const std::string run = "run" + std::to_string(k);
    EXPECT_EQ(shell(train(run, {"--progress", "plain"}), closed[k]), 0) << closed[k];
    expect_whole(run);
  }
  EXPECT_EQ(shell({"eval", file("nowhere")}, "2>&-"), 2);
  EXPECT_EQ(shell({"eval", file("nowhere")}, "<&- >&- 2>&-"), 2);
}

TEST_F(Output, a_full_stderr_changes_no_exit_code) {
  EXPECT_EQ(shell({"eval", file("nowhere")}, "2>/dev/full"), 2);
  EXPECT_EQ(shell(train("run", {"--progress", "plain"}), "2>/dev/full >out.txt"), 0);
  expect_whole("run");
  EXPECT_EQ(shell(train("run"), "2>/dev/full >out.txt"), 0);  // says that it is finished
  std::vector<std::string> find = train("", {"--plot", file("lr.svg")});
  find[0] = "lr-find";
  EXPECT_EQ(shell(find, "2>/dev/full >out.txt"), 0);
}

TEST_F(Output, a_full_stdout_is_an_error_that_says_so) {
  const std::string message = "pantala: cannot write to standard output: No space left on device\n";
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"--version"}, {"--help"}, {"ops"}, {"ops", "--markdown"}}) {
    EXPECT_EQ(shell(words, ">/dev/full 2>err.txt"), 2) << words[0];
    EXPECT_EQ(errors(), message) << words[0];
  }
  EXPECT_EQ(shell(train("run", {"--progress", "none"}), ">/dev/full 2>err.txt"), 2);
  EXPECT_EQ(errors(), message);
  expect_whole("run");
  EXPECT_EQ(shell({"ops"}, ">/dev/full 2>/dev/full"), 2);
}

TEST_F(Output, a_reader_who_goes_does_not_end_a_run) {
  shell(train("run", {"--progress", "plain"}), "2>&1 >out.txt | true");  // the code is that of true
  expect_whole("run");
}

// A model that is too large for the limit of the process.
TEST_F(Output, memory_that_is_not_to_be_had_is_an_error_that_says_how_much_for_what) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "a sanitizer takes more address space than any limit of this test";
#endif
  EXPECT_EQ(shell(train("wide", {"--progress", "none", "--set", "model.hidden=[200000,10000]"}),
                  "2>err.txt", "ulimit -v 2000000;"),
            2);
  EXPECT_THAT(
      errors(),
      ContainsRegex("^pantala: there is no memory for [0-9]{10,} bytes more while compiling "
                    "mlp for batches of 16; the process has [0-9]+ MiB of the 1953 MiB that "
                    "it may have \\(ulimit -v\\)\n$"));
}

}  // namespace
}  // namespace pantala::tests
