// The progress line, on a terminal that is a string and a clock that is a number.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <array>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <nlohmann/json.hpp>
#include <sstream>
#include <thread>

#include "base/log.h"
#include "monitor/progress_line.h"
#include "pantala/error.h"
#include "support/errors.h"

namespace pantala::monitor::progress_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

// What a terminal shows after the bytes were written: finished lines, and the one with the cursor.
// Knows \r, \n, \x1b[K and colours.
struct Screen {
  std::vector<std::string> lines{""};
  std::size_t column = 0;
  void write(std::string_view text) {
    for (std::size_t k = 0; k < text.size(); ++k) {
      std::string& line = lines.back();
      if (text[k] == '\r') {
        column = 0;
      } else if (text[k] == '\n') {
        lines.emplace_back();
        column = 0;
      } else if (text.substr(k, 3) == "\x1b[K") {
        line.resize(column);
        k += 2;
      } else if (text[k] == '\x1b') {
        k = text.find('m', k);
      } else {
        line.resize(std::max(line.size(), column + 1), ' ');
        line[column++] = text[k];
      }
    }
  }
};

struct Watched {
  std::string bytes;
  Screen screen;
  double now = 1000;
  int width = 200;

  ProgressOptions options(ProgressMode mode, bool terminal, bool colour = false) {
    return {.mode = mode,
            .terminal = terminal,
            .colour = colour,
            .width = [this] { return width; },
            .write =
                [this](std::string_view text) {
                  bytes += text;
                  screen.write(text);
                },
            .clock = [this] { return now; }};
  }
  std::vector<std::string> lines() const {
    std::istringstream in(bytes);
    std::vector<std::string> all;
    for (std::string line; std::getline(in, line);) all.push_back(line);
    return all;
  }
};

StepRecord step_record(std::int64_t epoch, std::int64_t step) {
  return {.epoch = epoch,
          .step = step,
          .global_step = epoch * 100 + step + 1,
          .loss = 0.5,
          .learning_rate = 0.001,
          .gradient_norm = 1.5,
          .items_per_second = 41234.4,
          .wait_share = 0.034,
          .memory_bytes = std::int64_t{412} << 20};
}
RunPlace place(std::int64_t batch) { return {.epochs = 5, .batch = batch, .batches = 100}; }

EpochRecord epoch_record(std::int64_t epoch) {
  return {.epoch = epoch,
          .steps = 100,
          .global_step = 100 * (epoch + 1),
          .avg_loss = 0.5312,
          .learning_rate = 0.001,
          .seconds = 13.21,
          .items_per_second = 4545,
          .validation_loss = 0.4012,
          .metrics = {{"accuracy", 0.85314}, {"top5", 0.99}}};
}

void show(ProgressLine& line, std::int64_t epoch, std::int64_t step) {
  line.observe(0.5);
  line.step(step_record(epoch, step), place(step + 1));
}

TEST(ProgressLine, a_nan_has_no_sign) {
  Watched watched;
  ProgressLine line(watched.options(ProgressMode::plain, false));
  EpochRecord record = epoch_record(0);
  record.avg_loss = -std::numeric_limits<double>::quiet_NaN();
  line.epoch(record, 5);
  EXPECT_THAT(watched.bytes, HasSubstr("epoch 1/5  loss nan  "));
}

TEST(ProgressLine, is_one_live_line_on_a_terminal) {
  Watched watched;
  ProgressLine line(watched.options(ProgressMode::automatic, true));
  show(line, 1, 10);
  EXPECT_THAT(watched.screen.lines,
              ElementsAre("epoch 2/5  step 11/100  loss 0.5000  lr 0.001  41,234 items/s  data 3%  "
                          "mem 412 MiB"));
  watched.now += 10;
  show(line, 1, 20);
  // 10 steps took 10 s; 379 are left.
  EXPECT_THAT(watched.screen.lines,
              ElementsAre("epoch 2/5  step 21/100  loss 0.5000  lr 0.001  41,234 items/s  data 3%  "
                          "mem 412 MiB  left 6:19"));
  line.epoch(epoch_record(1), 5);
  ASSERT_EQ(watched.screen.lines.size(), 2U);
  EXPECT_EQ(watched.screen.lines[0],
            "epoch 2/5  loss 0.5312  validation loss 0.4012  accuracy 0.8531  top5 0.9900  13.2 s  "
            "4,545 items/s");
  EXPECT_EQ(watched.screen.lines[1], "");  // nothing old below it
  watched.now += 1;
  show(line, 2, 0);
  EXPECT_THAT(watched.screen.lines[1], HasSubstr("epoch 3/5  step 1/100  loss 0.5000  accuracy "
                                                 "0.8531  lr 0.001"));
  line.finish();
  EXPECT_EQ(watched.screen.lines[1], "");
  EXPECT_EQ(watched.screen.lines.size(), 2U);
}

TEST(ProgressLine, is_redrawn_ten_times_a_second_at_most) {
  Watched watched;
  ProgressLine line(watched.options(ProgressMode::automatic, true));
  for (int k = 0; k < 1000; ++k) {
    show(line, 0, k % 100);
    watched.now += 0.001;
  }
  const auto redrawn = std::ranges::count(watched.bytes, '\r');
  EXPECT_GE(redrawn, 9);
  EXPECT_LE(redrawn, 11);
}

TEST(ProgressLine, fits_into_any_width) {
  for (const bool colour : {false, true})
    for (int width = 1; width < 130; ++width) {
      Watched watched;
      watched.width = width;
      ProgressLine line(watched.options(ProgressMode::automatic, true, colour));
      line.epoch(epoch_record(0), 5);
      show(line, 1, 10);
      watched.now += 1;
      show(line, 1, 11);
      EXPECT_LE(watched.screen.lines.back().size(), static_cast<std::size_t>(width - 1));
      EXPECT_FALSE(width > 10 && watched.screen.lines.back().empty());
      // Whole parts only, the ones that matter most.
      EXPECT_TRUE(width <= 60 || watched.screen.lines.back().ends_with("left 6:28"));
      EXPECT_TRUE(width <= 36 ||
                  watched.screen.lines.back().find("loss 0.5000") != std::string::npos);
    }
  Watched unknown;
  unknown.width = 0;
  ProgressLine line(unknown.options(ProgressMode::automatic, true));
  show(line, 0, 0);
  EXPECT_LE(unknown.screen.lines.back().size(), 79U);
}

TEST(ProgressLine, the_line_of_an_epoch_fits_into_any_width) {
  const std::string whole =
      "epoch 1/5  loss 0.5312  validation loss 0.4012  accuracy 0.8531  top5 0.9900  13.2 s  4,545 "
      "items/s";
  const std::string at_80 =
      "epoch 1/5  loss 0.5312  validation loss 0.4012  accuracy 0.8531  13.2 s";
  for (const bool colour : {false, true})
    for (int width = 1; width < 130; ++width) {
      Watched watched;
      watched.width = width;
      ProgressLine line(watched.options(ProgressMode::automatic, true, colour));
      line.epoch(epoch_record(0), 5);
      ASSERT_EQ(watched.screen.lines.size(), 2U);
      const std::string& shown = watched.screen.lines[0];
      EXPECT_LE(shown.size(), static_cast<std::size_t>(width - 1));
      EXPECT_TRUE(width <= 64 ||
                  shown.find("validation loss 0.4012  accuracy 0.8531") != shown.npos);
      EXPECT_TRUE(width <= 24 || shown.starts_with("epoch 1/5  loss 0.5312")) << width;
      EXPECT_TRUE(width != 80 || shown == at_80) << shown;
      EXPECT_TRUE(width <= 100 || shown == whole) << shown;
    }
  // What goes into a file is whole.
  Watched file;
  file.width = 40;
  ProgressLine(file.options(ProgressMode::automatic, false)).epoch(epoch_record(0), 5);
  EXPECT_EQ(file.bytes, whole + "\n");
}

TEST(ProgressLine, says_what_it_is_about_while_no_steps_come) {
  using Kind = Activity::Kind;
  Watched watched;
  ProgressLine line(watched.options(ProgressMode::automatic, true));
  line.activity({.kind = Kind::compiling});
  EXPECT_THAT(watched.screen.lines, ElementsAre("compiling"));
  line.activity({});
  EXPECT_THAT(watched.screen.lines, ElementsAre(""));
  watched.now += 1;
  show(line, 1, 10);
  const std::string step = watched.screen.lines.back();
  line.activity({.kind = Kind::compiling});  // at once, although nothing is due
  EXPECT_THAT(watched.screen.lines, ElementsAre("epoch 2/5  step 11/100  loss 0.5000  compiling"));
  line.activity({});
  EXPECT_THAT(watched.screen.lines, ElementsAre(step));
  line.activity({.kind = Kind::validating, .batches = 79});
  EXPECT_THAT(watched.screen.lines, ElementsAre("epoch 2/5  validating"));
  line.activity({.kind = Kind::validating, .batch = 1, .batches = 79});
  EXPECT_THAT(watched.screen.lines,
              ElementsAre("epoch 2/5  validating"));  // not ten times a second
  watched.now += 0.2;
  line.activity({.kind = Kind::validating, .batch = 30, .batches = 79});
  EXPECT_THAT(watched.screen.lines, ElementsAre("epoch 2/5  validating 30/79"));
  line.activity({});
  line.epoch(epoch_record(1), 5);
  EXPECT_EQ(watched.screen.lines.size(), 2U);
  EXPECT_EQ(watched.screen.lines.back(), "");
  // After the end of the run nothing stays.
  line.finish();
  line.activity({.kind = Kind::validating, .batches = 79});
  EXPECT_EQ(watched.screen.lines.back(), "validating");
  line.activity({});
  EXPECT_EQ(watched.screen.lines.back(), "");
}

TEST(ProgressLine, elsewhere_it_says_so_when_a_line_is_due) {
  using Kind = Activity::Kind;
  Watched plain, json, none;
  ProgressLine lines[] = {ProgressLine(plain.options(ProgressMode::plain, false)),
                          ProgressLine(none.options(ProgressMode::none, false))};
  ProgressLine in_json(json.options(ProgressMode::json, false));
  for (ProgressLine* line : {&lines[0], &lines[1], &in_json}) {
    line->activity({.kind = Kind::compiling});
    show(*line, 0, 4);
    line->activity({.kind = Kind::validating, .batches = 9});
    for (Watched* watched : {&plain, &json, &none}) watched->now += 20;
    line->activity({.kind = Kind::validating, .batch = 3, .batches = 9});
    line->activity({});
    line->finish();
    line->activity({.kind = Kind::validating, .batches = 9});
  }
  EXPECT_EQ(plain.lines().size(), 2U);
  EXPECT_EQ(plain.lines().at(1), "epoch 1/5  validating 3/9");
  EXPECT_EQ(json.lines().size(), 2U);
  EXPECT_EQ(json.lines().at(1),
            "{\"event\":\"activity\",\"activity\":\"validating\",\"batch\":3,\"batches\":9}");
  EXPECT_THAT(none.bytes, IsEmpty());
}

TEST(ProgressLine, compiling_is_no_part_of_the_time_that_is_left) {
  Watched watched;
  ProgressLine line(watched.options(ProgressMode::automatic, true));
  show(line, 1, 10);
  line.activity({.kind = Activity::Kind::compiling});
  watched.now += 100;
  line.activity({});
  watched.now += 10;
  show(line, 1, 20);
  EXPECT_THAT(watched.screen.lines.back(), testing::EndsWith("left 6:19"));
}

TEST(ProgressLine, the_beginning_does_not_linger_in_the_average) {
  Watched watched;
  ProgressLine line(watched.options(ProgressMode::json, false));
  for (int k = 0; k < 20; ++k) line.observe(k < 2 ? 2.3 : 0.02);
  line.step(step_record(0, 19), place(20));
  const auto event = nlohmann::json::parse(watched.bytes);
  EXPECT_LT(event.at("smoothed_loss").get<double>(), 0.03);
  EXPECT_GE(event.at("smoothed_loss").get<double>(), 0.02);
}

TEST(ProgressLine, colours_only_if_asked_for) {
  Watched without, with;
  ProgressLine(without.options(ProgressMode::automatic, true, false)).epoch(epoch_record(0), 5);
  EXPECT_THAT(without.bytes, Not(HasSubstr("\x1b[1m")));
  ProgressLine line(with.options(ProgressMode::automatic, true, true));
  show(line, 0, 0);
  EXPECT_THAT(with.bytes, HasSubstr("\x1b[1m"));
  EXPECT_THAT(with.screen.lines.back(), HasSubstr("epoch 1/5  step 1/100"));
}

TEST(ProgressLine, log_lines_do_not_tear_it) {
  Watched watched;
  testing::internal::CaptureStderr();
  {
    ProgressLine line(watched.options(ProgressMode::automatic, true));
    show(line, 0, 0);
    const std::string before = watched.screen.lines.back();
    watched.bytes.clear();
    logging::warning("something odd");
    // Erased, then (the log's line, and) drawn again.
    EXPECT_EQ(watched.bytes, "\r\x1b[K\r\x1b[K" + before);
    line.message("saved\nand going on\x1b[2J");
    ASSERT_EQ(watched.screen.lines.size(), 3U);
    EXPECT_EQ(watched.screen.lines[0], "saved");
    EXPECT_EQ(watched.screen.lines[1], "and going on?[2J");
    EXPECT_EQ(watched.screen.lines[2], before);
  }
  logging::warning("afterwards");
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              testing::MatchesRegex(".*something odd\n.*afterwards\n"));
}

TEST(ProgressLine, log_lines_of_other_threads_do_not_tear_it) {
  Watched watched;
  testing::internal::CaptureStderr();
  ProgressLine line(watched.options(ProgressMode::automatic, true));
  {
    const std::jthread other([] {
      for (int k = 0; k < 200; ++k) logging::warning("odd");
    });
    for (int k = 0; k < 200; ++k) {
      watched.now += 1;
      show(line, 0, k % 100);
    }
  }
  testing::internal::GetCapturedStderr();
  EXPECT_EQ(watched.screen.lines.size(), 1U);
  EXPECT_THAT(watched.screen.lines[0], testing::StartsWith("epoch 1/5  step 100/100"));
}

TEST(ProgressLine, plain_lines_come_at_intervals_without_control_characters) {
  Watched watched;
  {
    ProgressLine line(watched.options(ProgressMode::automatic, false, true));
    for (int k = 0; k < 3600; ++k) {
      line.observe(0.5);
      line.step(step_record(k / 100, k % 100), place(k % 100 + 1));
      watched.now += 1;
    }
    EpochRecord odd = epoch_record(0);
    odd.metrics = {{"acc\x1b[31m\r\n\x80\t", 0.5}};
    line.epoch(odd, 5);
    line.message("a\rb\x07");
  }
  for (const char c : watched.bytes) {
    const bool plain = c == '\n' || (c >= 0x20 && c != 0x7f);
    EXPECT_TRUE(plain) << static_cast<int>(c);
  }
  // Every 10 s at first, every minute in the end.
  const std::vector<std::string> lines = watched.lines();
  EXPECT_THAT(lines.at(0), testing::StartsWith("epoch 1/5  step 1/100"));
  EXPECT_THAT(lines.at(1), testing::StartsWith("epoch 1/5  step 11/100"));
  EXPECT_GT(lines.size(), 60U);
  EXPECT_LT(lines.size(), 120U);
  EXPECT_THAT(lines.at(lines.size() - 2), HasSubstr("acc?[31m???? 0.5000"));
  EXPECT_EQ(lines.back(), "a?b?");
}

TEST(ProgressLine, plain_is_plain_on_a_terminal_too) {
  Watched watched;
  ProgressLine line(watched.options(ProgressMode::plain, true, true));
  show(line, 0, 0);
  line.epoch(epoch_record(0), 0);
  EXPECT_THAT(watched.bytes, Not(HasSubstr("\x1b")));
  EXPECT_THAT(watched.bytes, Not(HasSubstr("\r")));
  EXPECT_THAT(watched.lines().at(1), testing::StartsWith("epoch 1  loss 0.5312"));
}

TEST(ProgressLine, json_is_an_object_a_line) {
  Watched watched;
  ProgressLine line(watched.options(ProgressMode::json, true, true));
  show(line, 1, 10);
  watched.now += 2;
  StepRecord second = step_record(1, 12);
  second.loss = std::nan("");
  second.gradient_norm.reset();
  line.step(second, place(13));
  line.epoch(epoch_record(1), 5);
  logging::warning("odd \"thing\" {}", 1);
  line.message("bye\xff");
  std::vector<nlohmann::json> events;
  for (const std::string& text : watched.lines()) events.push_back(nlohmann::json::parse(text));
  ASSERT_EQ(events.size(), 5U);
  EXPECT_EQ(events[0].at("event"), "step");
  EXPECT_EQ(events[0].at("global_step"), 111);
  EXPECT_EQ(events[0].at("batches"), 100);
  EXPECT_EQ(events[0].at("gradient_norm"), 1.5);
  EXPECT_FALSE(events[0].contains("seconds_left"));
  EXPECT_EQ(events[1].at("loss"), "nan");
  EXPECT_FALSE(events[1].contains("gradient_norm"));
  EXPECT_EQ(events[1].at("seconds_left"), 387.0);
  EXPECT_EQ(events[2].at("event"), "epoch");
  EXPECT_EQ(events[2].at("validation_accuracy"), 0.85314);
  EXPECT_EQ(events[3].at("event"), "log");
  EXPECT_EQ(events[3].at("level"), "warning");
  EXPECT_EQ(events[3].at("text"), "odd \"thing\" 1");
  EXPECT_EQ(events[4].at("event"), "message");
}

TEST(ProgressLine, none_writes_nothing) {
  Watched watched;
  {
    ProgressLine line(watched.options(ProgressMode::none, true));
    EXPECT_FALSE(line.is_due());
    show(line, 0, 0);
    line.epoch(epoch_record(0), 5);
    line.message("text");
  }
  EXPECT_THAT(watched.bytes, IsEmpty());
}

TEST(ProgressLine, shows_the_average_of_the_losses) {
  Watched watched;
  ProgressLine line(watched.options(ProgressMode::plain, false));
  line.observe(4.0);
  line.observe(std::nan(""));
  for (int k = 0; k < 1000; ++k) line.observe(k % 2 == 0 ? 0.9 : 1.1);
  line.step(step_record(0, 0), place(1));
  EXPECT_THAT(watched.bytes, HasSubstr("loss 1.00"));
  watched.now += 100;
  StepRecord broken = step_record(0, 1);
  broken.loss = std::nan("");
  line.step(broken, place(2));
  EXPECT_THAT(watched.bytes, HasSubstr("loss nan"));
}

TEST(ProgressLine, time_left_knows_the_step_limit) {
  Watched watched;
  ProgressLine line(watched.options(ProgressMode::plain, false));
  RunPlace limited = place(1);
  limited.max_steps = 31;
  line.step(step_record(0, 0), limited);
  watched.now += 10;
  limited.batch = 11;
  line.step(step_record(0, 10), limited);
  EXPECT_THAT(watched.bytes, HasSubstr("left 0:20"));
  // Without a number of batches: by steps alone, or not at all.
  Watched unknown;
  ProgressLine other(unknown.options(ProgressMode::plain, false));
  for (int k = 0; k < 2; ++k, unknown.now += 10) {
    const RunPlace open{.epochs = 5, .batch = k + 1, .max_steps = 0};
    other.step(step_record(0, k), open);
  }
  EXPECT_THAT(unknown.bytes, Not(HasSubstr("left")));
  EXPECT_THAT(unknown.bytes, HasSubstr("step 2  loss"));
}

// A terminal of 100 columns as the process's stderr.
class TerminalAsStderr {
 public:
  // A chroot without devpts, for one, has none.
  static bool is_to_be_had() {
    const int main = ::posix_openpt(O_RDWR | O_NOCTTY);
    if (main < 0) return false;
    const int side = ::grantpt(main) == 0 && ::unlockpt(main) == 0 && ::ptsname(main)
                         ? ::open(::ptsname(main), O_RDWR | O_NOCTTY)
                         : -1;
    ::close(main);
    if (side >= 0) ::close(side);
    return side >= 0;
  }

  TerminalAsStderr() : before_(::dup(STDERR_FILENO)), main_(::posix_openpt(O_RDWR | O_NOCTTY)) {
    if (main_ < 0 || ::grantpt(main_) != 0 || ::unlockpt(main_) != 0)
      throw std::runtime_error("no terminal");
    side_ = ::open(::ptsname(main_), O_RDWR | O_NOCTTY);
    winsize size{};
    size.ws_col = 100;
    size.ws_row = 30;
    ::ioctl(side_, TIOCSWINSZ, &size);
    ::dup2(side_, STDERR_FILENO);
  }
  ~TerminalAsStderr() {
    ::dup2(before_, STDERR_FILENO);
    for (const int descriptor : {before_, main_, side_}) ::close(descriptor);
  }
  std::string read() const {
    std::array<char, 4096> bytes{};
    const ssize_t count = ::read(main_, bytes.data(), bytes.size());
    return {bytes.data(), static_cast<std::size_t>(std::max<ssize_t>(count, 0))};
  }

 private:
  int before_, main_, side_ = -1;
};

TEST(ProgressLine, knows_a_terminal_as_stderr) {
  if (!TerminalAsStderr::is_to_be_had())
    GTEST_SKIP() << "this system gives no pseudo-terminal (is devpts mounted?)";
  const TerminalAsStderr terminal;
  const ProgressOptions options =
      progress_on_stderr(ProgressMode::automatic, "xterm-256color", nullptr);
  EXPECT_TRUE(options.terminal);
  EXPECT_TRUE(options.colour);
  EXPECT_EQ(options.width(), 100);
  const double earlier = options.clock();
  EXPECT_LE(earlier, options.clock());
  EXPECT_FALSE(progress_on_stderr(ProgressMode::automatic, "xterm", "1").colour);
  EXPECT_TRUE(progress_on_stderr(ProgressMode::automatic, "xterm", "").colour);
  EXPECT_FALSE(progress_on_stderr(ProgressMode::automatic, "dumb", nullptr).terminal);
  EXPECT_FALSE(progress_on_stderr(ProgressMode::automatic, nullptr, nullptr).terminal);
  ProgressLine line(progress_on_stderr(ProgressMode::automatic, "xterm", "1"));
  show(line, 0, 0);
  EXPECT_THAT(terminal.read(), testing::StartsWith("\r\x1b[Kepoch 1/5  step 1/100  loss 0.5000"));
}

TEST(ProgressLine, knows_a_file_as_stderr) {
  testing::internal::CaptureStderr();
  const ProgressOptions options = progress_on_stderr(ProgressMode::automatic, "xterm", nullptr);
  EXPECT_FALSE(options.terminal);
  EXPECT_FALSE(options.colour);
  {
    ProgressLine line(options);
    show(line, 0, 0);
  }
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              testing::MatchesRegex("epoch 1/5  step 1/100  loss 0.5000  [ -~]*\n"));
}

TEST(ProgressLine, modes_have_names) {
  EXPECT_EQ(parse_progress_mode("auto"), ProgressMode::automatic);
  EXPECT_EQ(parse_progress_mode("none"), ProgressMode::none);
  EXPECT_EQ(tests::message_of<TypeError>([] { parse_progress_mode("plian"); }),
            "there is no progress 'plian'; did you mean 'plain'?; there are: auto, plain, json, "
            "none");
}

TEST(ProgressLine, numbers_are_for_people) {
  EXPECT_EQ(duration_text(7.4), "0:07");
  EXPECT_EQ(duration_text(59.6), "1:00");
  EXPECT_EQ(duration_text(754), "12:34");
  EXPECT_EQ(duration_text(3723), "1:02:03");
  EXPECT_EQ(duration_text(3 * 86400 + 4 * 3600 + 5 * 60), "3 d 04:05");
  EXPECT_EQ(duration_text(std::nan("")), "?");
  EXPECT_EQ(duration_text(1e300), "?");
  EXPECT_EQ(memory_text(950 << 10), "950 KiB");
  EXPECT_EQ(memory_text(std::int64_t{5} << 28), "1.2 GiB");
  EXPECT_EQ(rate_text(12.345), "12.3");
  EXPECT_EQ(rate_text(999), "999");
  EXPECT_EQ(rate_text(1234567.2), "1,234,567");
  EXPECT_EQ(rate_text(std::nan("")), "?");
}

}  // namespace
}  // namespace pantala::monitor::progress_test
