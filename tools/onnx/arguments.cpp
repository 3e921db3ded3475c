#include "tools/onnx/arguments.h"

#include <fmt/format.h>

#include <charconv>

#include "base/text.h"
#include "io/npy.h"
#include "pantala/error.h"

namespace pantala::tools {

namespace {

// The names may hold '=': the last one counts, as file names hold it less often.
std::map<std::string, std::string> named(const std::string& option, const std::string& form,
                                         const std::vector<std::string>& arguments) {
  std::map<std::string, std::string> values;
  for (const std::string& argument : arguments) {
    const std::size_t at = argument.rfind('=');
    if (at == std::string::npos || at == 0 || at + 1 == argument.size())
      throw TypeError(fmt::format("{} must be {}, got {}", option, form, in_quotes(argument)));
    if (!values.emplace(argument.substr(0, at), argument.substr(at + 1)).second)
      throw TypeError(fmt::format("{}: '{}' is given twice", option, argument.substr(0, at)));
  }
  return values;
}

}  // namespace

std::map<std::string, io::HostArray> named_arrays(const std::string& option,
                                                  const std::vector<std::string>& arguments) {
  std::map<std::string, io::HostArray> arrays;
  for (const auto& [name, file] : named(option, "NAME=FILE.npy", arguments))
    arrays.emplace(name, io::read_npy(std::filesystem::path(file)));
  return arrays;
}

std::map<std::string, std::int64_t> named_sizes(const std::string& option,
                                                const std::vector<std::string>& arguments) {
  std::map<std::string, std::int64_t> sizes;
  for (const auto& [name, text] : named(option, "NAME=N", arguments)) {
    std::int64_t size = -1;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), size);
    if (error != std::errc() || end != text.data() + text.size() || size < 0)
      throw TypeError(fmt::format("{} {}: a size is a whole number from 0, got {}", option, name,
                                  in_quotes(text)));
    sizes.emplace(name, size);
  }
  return sizes;
}

Literal literal_of(const io::HostArray& array) {
  Literal literal(Type{array.dtype(), array.shape});
  std::visit(
      [&](const auto& values) {
        for (std::size_t k = 0; k < values.size(); ++k) {
          if (literal.is_float())
            literal.f()[k] = static_cast<double>(values[k]);
          else
            literal.i()[k] = static_cast<std::int64_t>(values[k]);
        }
      },
      array.values);
  return literal;
}

}  // namespace pantala::tools
