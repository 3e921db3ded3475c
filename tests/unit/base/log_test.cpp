// Log lines: levels, what is not formatted, where they go.
#include "base/log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <mutex>
#include <thread>
#include <vector>

#include "pantala/error.h"
#include "support/allocations.h"
#include "support/errors.h"

namespace pantala::logging {
namespace {

using Line = std::pair<Level, std::string>;

struct Lines {
  std::vector<Line> lines;
  Capture capture;
  explicit Lines(Level level)
      : capture(level, [this](Level of, std::string_view text) { lines.emplace_back(of, text); }) {}
};

void one_of_each() {
  error("e {}", 1);
  warning("w {}", 2.5);
  info("i {}", "text");
  debug("d");
  trace("t {}", true);
}

TEST(Log, lines_below_the_level_are_left_out) {
  const Line all[] = {{Level::error, "e 1"},
                      {Level::warning, "w 2.5"},
                      {Level::info, "i text"},
                      {Level::debug, "d"},
                      {Level::trace, "t true"}};
  const Level levels[] = {Level::off,  Level::error, Level::warning,
                          Level::info, Level::debug, Level::trace};
  for (std::size_t k = 0; k < std::size(levels); ++k) {
    const Lines captured(levels[k]);
    one_of_each();
    EXPECT_EQ(captured.lines, std::vector<Line>(all, all + k)) << level_name(levels[k]);
  }
}

TEST(Log, a_line_that_is_not_written_is_not_formatted) {
  const Lines captured(Level::warning);
  const auto before = tests::allocations().count;
  for (int k = 0; k < 100; ++k) debug("a line that is too long for the small-string buffer: {}", k);
  EXPECT_EQ(tests::allocations().count, before);
  EXPECT_THAT(captured.lines, testing::IsEmpty());
}

TEST(Log, goes_to_stderr_without_colours_when_that_is_no_terminal) {
  for (const bool colour : {true, false}) {
    configure({.level = Level::info, .colour = colour});
    testing::internal::CaptureStderr();
    info("the {} line", "first");
    warning("100% {{}}");
    debug("not this");
    const std::string text = testing::internal::GetCapturedStderr();
    configure({});
    EXPECT_THAT(text, testing::MatchesRegex("\\[..:..:..\\....\\] \\[info\\] the first line\n"
                                            "\\[..:..:..\\....\\] \\[warning\\] 100% \\{\\}\n"));
  }
}

TEST(Log, a_capture_ends_with_its_scope) {
  configure({.level = Level::error});
  {
    const Lines captured(Level::trace);
    EXPECT_TRUE(enabled(Level::trace));
    EXPECT_THROW(Lines(Level::info), InternalError);
    info("kept");
    EXPECT_EQ(captured.lines.size(), 1U);
  }
  EXPECT_EQ(level(), Level::error);
  configure({});
  EXPECT_EQ(level(), Level::warning);
}

TEST(Log, a_detour_decides_whether_a_line_is_written) {
  testing::internal::CaptureStderr();
  std::vector<std::string> texts;
  {
    const Detour detour(
        [&](Level level, std::string_view text, const std::function<void()>& write) {
          texts.push_back(fmt::format("{} {}", level_name(level), text));
          if (level == Level::warning) write();
        });
    EXPECT_THROW(Detour([](Level, std::string_view, const std::function<void()>&) {}),
                 InternalError);
    warning("first");
    error("second");
    const Lines captured(Level::info);
    info("captured");
    EXPECT_EQ(captured.lines.size(), 1U);
  }
  warning("after");
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              testing::MatchesRegex("\\[[^\n]*\\] first\n\\[[^\n]*\\] after\n"));
  EXPECT_THAT(texts, testing::ElementsAre("warning first", "error second"));
}

TEST(Log, options_come_from_the_environments_words) {
  EXPECT_EQ(options_of(nullptr, nullptr).level, Level::warning);
  EXPECT_EQ(options_of("", nullptr).level, Level::warning);
  EXPECT_EQ(options_of("trace", nullptr).level, Level::trace);
  EXPECT_TRUE(options_of(nullptr, nullptr).colour);
  EXPECT_TRUE(options_of(nullptr, "").colour);
  EXPECT_FALSE(options_of(nullptr, "1").colour);
  for (const Level level :
       {Level::trace, Level::debug, Level::info, Level::warning, Level::error, Level::off})
    EXPECT_EQ(parse_level(level_name(level)), level);
  EXPECT_EQ(tests::message_of<TypeError>([&] { options_of("verbose", nullptr); }),
            "there is no log level 'verbose'; there are: trace, debug, info, warning, error, off");
}

TEST(Log, lines_of_many_threads_stay_whole) {
  const Lines captured(Level::info);
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < 4; ++t)
      threads.emplace_back([] {
        for (int k = 0; k < 100; ++k) info("0123456789");
      });
  }
  EXPECT_EQ(captured.lines, std::vector<Line>(400, {Level::info, "0123456789"}));
}

}  // namespace
}  // namespace pantala::logging
