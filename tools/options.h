// The options of a verb, as the verb describes them. CLI11 reads them; its header takes seconds to
// compile in every file that includes it, so that only options.cpp and what prints help do.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <string>
#include <string_view>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace pantala::tools {

// What an option says of itself: in few words for --help, and all of it for the manual.
std::string described(std::string_view shortly, std::string_view fully);
std::string short_text(const std::string& description);
std::string full_text(const std::string& description);

// One of them; lives as long as its VerbOptions. Every function returns the option itself.
class Option {
 public:
  explicit Option(CLI::Option& option) : option_(option) {}
  Option* required();
  Option* capture_default_str();  // help shows the value that the variable has now
  Option* between(int least, int most);
  Option* between(std::int64_t least, std::int64_t most);
  Option* between(double least, double most);
  Option* excludes(Option* other);
  Option* repeatable();  // with one value each time
  Option* type_name(const std::string& name);
  Option* group(const std::string& title);
  Option* envname(const std::string& variable);

 private:
  CLI::Option& option_;
};

class VerbOptions {
 public:
  explicit VerbOptions(CLI::App& verb) : verb_(verb) {}
  // The kinds of variables that there are stand at the end of options.cpp.
  template <class T>
  Option* add_option(const std::string& name, T& variable, const std::string& help);
  template <class T>
  Option* add_option_function(const std::string& name, const std::function<void(const T&)>& take,
                              const std::string& help);
  Option* add_flag(const std::string& name, bool& variable, const std::string& help);
  // What help ends with.
  void footer(const std::string& text);

 private:
  Option* keep(CLI::Option* option) { return &options_.emplace_back(*option); }
  CLI::App& verb_;
  std::deque<Option> options_;
};

}  // namespace pantala::tools
