// pantala --man: the manual page has everything that --help has.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>
#include <string>
#include <vector>

#include "cli/run.h"

namespace pantala::tests::manual_test {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::StartsWith;

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

std::string manual() {
  const Outcome outcome = run_pantala({"--man"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.err, IsEmpty());
  return outcome.out;
}

// The names of the verbs, as the list in --help has them.
std::vector<std::string> verbs() {
  std::vector<std::string> names;
  bool in_list = false;
  for (const std::string& line : lines_of(run_pantala({"--help"}).out)) {
    if (in_list && line.empty()) break;
    if (in_list && line.starts_with("  ") && line[2] != ' ')
      names.push_back(line.substr(2, line.find(' ', 2) - 2));
    in_list = in_list || line == "Subcommands:";
  }
  return names;
}

// The long options that a verb's --help describes.
std::vector<std::string> options(const std::string& verb) {
  std::vector<std::string> names;
  for (const std::string& line : lines_of(run_pantala({verb, "--help"}).out))
    if (const std::size_t begin = line.find("--"); begin < 6 && line.starts_with("  -"))
      names.push_back(line.substr(begin, line.find_first_of(" ,=", begin) - begin));
  return names;
}

std::string in_roff(const std::string& text) {
  std::string roff;
  for (const char c : text) roff += c == '-' ? "\\-" : std::string(1, c);
  return roff;
}

TEST(Manual, has_every_verb_with_every_option) {
  const std::string page = manual();
  ASSERT_GE(verbs().size(), 5u);
  for (const std::string& verb : verbs()) {
    const std::string title = "\n.SS pantala " + in_roff(verb) + " ";
    ASSERT_THAT(page, HasSubstr(title));
    const std::size_t begin = page.find(title) + 1;
    const std::string section = page.substr(begin, page.find("\n.S", begin) - begin);
    ASSERT_THAT(options(verb), Not(IsEmpty())) << verb;
    for (const std::string& option : options(verb))
      EXPECT_THAT(section, HasSubstr(in_roff(option))) << verb;
  }
}

TEST(Manual, help_fits_a_terminal_and_the_long_text_stands_in_the_manual) {
  std::vector<std::string> all = verbs();
  all.emplace_back("");
  for (const std::string& verb : all) {
    const Outcome outcome = run_pantala(verb.empty() ? std::vector<std::string>{"--help"}
                                                     : std::vector<std::string>{verb, "--help"});
    for (const std::string& line : lines_of(outcome.out))
      EXPECT_LE(line.size(), 80U) << verb << ": " << line;
    EXPECT_THAT(outcome.out, Not(HasSubstr("\f")));
  }
  const std::string help = run_pantala({"train", "--help"}).out, page = manual();
  for (const char* group : {"\nModel:\n", "\nData:\n", "\nTraining:\n", "\nRunning:\n"})
    EXPECT_THAT(help, HasSubstr(group));
  EXPECT_THAT(help, HasSubstr("  --epochs VALUE          Passes over the training set\n"));
  EXPECT_THAT(help, Not(HasSubstr("several with commas between")));
  EXPECT_THAT(page, HasSubstr("several with commas between"));
  EXPECT_THAT(page, Not(HasSubstr("\f")));
}

TEST(Manual, has_the_sections_of_a_manual_page) {
  const std::string page = manual();
  EXPECT_THAT(page, StartsWith(".TH PANTALA 1 "));
  for (const char* section : {"NAME", "SYNOPSIS", "DESCRIPTION", "OPTIONS", "VERBS", "EXIT STATUS",
                              "ENVIRONMENT", "FILES"})
    EXPECT_THAT(page, HasSubstr(std::string("\n.SH ") + section + "\n"));
  EXPECT_THAT(page, HasSubstr("PANTALA_LOG"));
  EXPECT_THAT(page, HasSubstr("PANTALA_FIXTURES"));  // told by an option
}

TEST(Manual, has_no_requests_but_its_own) {
  for (const std::string& line : lines_of(manual()))
    if (line.starts_with(".") || line.starts_with("'")) {
      EXPECT_THAT(line.substr(0, 3),
                  testing::AnyOf(".TH", ".SH", ".SS", ".TP", ".PP", ".br", ".nh", ".ad"));
    }
}

TEST(Manual, help_names_the_exit_codes) {
  const std::string help = run_pantala({"--help"}).out;
  for (const char* code : {"  0 ", "  1 ", "  2 ", "  3 ", "  70 ", "  75 "})
    EXPECT_THAT(help, HasSubstr(code));
  EXPECT_THAT(run_pantala({"ops", "--help"}).out, Not(HasSubstr("Exit codes")));
}

}  // namespace
}  // namespace pantala::tests::manual_test
