// Standard descriptors that are closed or full, and memory that cannot be got: an exit code and
// a message, and no byte where it does not belong.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdlib>
#include <filesystem>

#include "cli/training.h"
#include "pantala/data.h"
#include "support/data_files.h"

namespace pantala::tests::output_test {
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

// Address space is limited, and a sanitizer takes more of it than any limit here.
class Memory : public Output {
 protected:
  void SetUp() override {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    GTEST_SKIP() << "a sanitizer takes more address space than any limit of this test";
#endif
  }
  // Without the kernels that tests share, which need no memory to compile.
  int limited(const std::vector<std::string>& words, long kib) const {
    return shell(words, ">out.txt 2>err.txt",
                 "unset PANTALA_KERNELS; ulimit -v " + std::to_string(kib) + ";");
  }
  // KiB with which the command just starts.
  long start() const {
    long too_few = 0, enough = 4'000'000;
    while (enough - too_few > 1000) {
      const long middle = (too_few + enough) / 2;
      (limited({"--version"}, middle) == 0 ? enough : too_few) = middle;
    }
    return enough;
  }
};

// A model that is too large for the limit of the process.
TEST_F(Memory, that_is_not_to_be_had_is_an_error_that_says_how_much_for_what) {
  EXPECT_EQ(limited(train("wide", {"--progress", "none", "--set", "model.hidden=[200000,10000]"}),
                    2'000'000),
            2);
  EXPECT_THAT(
      errors(),
      ContainsRegex("^pantala: there is no memory for [0-9]{10,} bytes more while compiling "
                    "mlp for batches of 16; the process has [0-9]+ MiB of the 1953 MiB that "
                    "it may have \\(ulimit -v\\)\n$"));
}

// Large pieces, which operator new refuses by an exception.
TEST_F(Memory, that_data_would_need_is_named_with_them) {
  constexpr int kItems = 400'000;
  const long limit = start() + 10'000;
  const auto expect = [&](const std::string& source) {
    std::vector<std::string> words = train("run", {"--progress", "none"});
    words[4] = source;
    EXPECT_EQ(limited(words, limit), 2) << source;
    EXPECT_THAT(errors(),
                ContainsRegex("^pantala: there is no memory for [0-9]{7,} bytes more while reading "
                              "the data " +
                              source + "; the process has [0-9]+ MiB of the [0-9]+ MiB"));
    EXPECT_FALSE(exists("run"));
  };
  write_points(file("many.csv"), kItems);
  expect("csv:" + file("many.csv"));
  data::write_npy(file("x.npy"), {{kItems, 8}, std::vector<float>(kItems * 8)});
  data::write_npy(file("y.npy"), {{kItems}, std::vector<std::int64_t>(kItems)});
  put_file(file("many.npz"), zip({{.name = "x.npy", .content = bytes("x.npy")},
                                  {.name = "y.npy", .content = bytes("y.npy")}}));
  expect("npz:" + file("many.npz"));
}

TEST_F(Memory, that_is_hardly_enough_to_start_ends_with_a_message) {
  forget_plans();
  const long least = start();
  for (long more = 0; more <= 48'000; more += 4000) {
    const int code =
        limited(train("run" + std::to_string(more), {"--progress", "none"}), least + more);
    if (code == 0) continue;  // it was enough
    EXPECT_EQ(code, 2) << more << " KiB more: " << errors();
    EXPECT_THAT(errors(), StartsWith("pantala: ")) << more << " KiB more";
  }
}

// Every verb that takes much says what it was about.
TEST_F(Memory, that_is_missing_names_what_a_verb_was_doing) {
  ASSERT_EQ(run_pantala(train("run")).exit_code, 0);
  ASSERT_EQ(run_pantala({"export", file("run"), "--out", file("m.onnx")}).exit_code, 0);
  data::write_npy(file("x.npy"), {{2, 4}, std::vector<float>(8)});
  forget_plans();  // plans that are there need no compiler
  std::vector<std::string> find = train("", {"--plot", file("lr.svg"), "--progress", "none"});
  find[0] = "lr-find";
  const std::pair<std::vector<std::string>, std::string> verbs[] = {
      {{"bench", "mlp32"}, "(compiling|running) mlp32"},
      {{"inspect", "lenet"}, "inspecting lenet"},
      {{"run", file("m.onnx"), "--input", "x=" + file("x.npy"), "--output", file("out")},
       "(reading|compiling|running) " + file("m.onnx")},
      {{"export", file("run"), "--out", file("again.onnx")},
       "(exporting " + file("run") + "|loading the model of " + file("run") + "|compiling mlp)"},
      {find, "(compiling|trying learning rates for) mlp"}};
  const long limit = start() + 3000;
  for (const auto& [words, activity] : verbs) {
    EXPECT_EQ(limited(words, limit), 2) << words[0];
    EXPECT_THAT(errors(), ContainsRegex("^pantala: there is (no memory for [0-9]+ bytes more|not "
                                        "enough memory) while " +
                                        activity))
        << words[0];
  }
}

}  // namespace
}  // namespace pantala::tests::output_test
