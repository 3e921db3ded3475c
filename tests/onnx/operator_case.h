// The ONNX project's operator tests: a folder each, with model.onnx and test_data_set_0/input_K.pb,
// output_K.pb. A case is imported, compiled for the CPU, run and compared.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace pantala::tests {

// Folders of cases, by name, of all suites (node, pytorch-operator, ...) under `data`.
std::vector<std::filesystem::path> operator_cases(const std::filesystem::path& data);

struct Outcome {
  enum class Kind { passed, failed, unsupported } kind = Kind::passed;
  // What differs, or what is missing: "Op: reason" a line.
  std::vector<std::string> reasons = {};
};
Outcome run_operator_case(const std::filesystem::path& folder);

// A row of the table of exemptions in docs/onnx.md: a pattern for "test_name Op: reason".
struct Exemption {
  std::string pattern, why;
};
std::vector<Exemption> read_exemptions(const std::filesystem::path& document);

// The lines under a heading, and the words in backquotes.
std::vector<std::string> section(const std::filesystem::path& document, std::string_view heading);
std::vector<std::string> quoted_words(std::string_view text);

}  // namespace pantala::tests
