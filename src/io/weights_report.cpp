#include "io/weights_report.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"

namespace pantala {

namespace {

constexpr std::size_t kLines = 20;          // of each kind
constexpr std::size_t kCandidates = 2'000;  // that are searched for the nearest name

using Names = std::vector<std::string>;

// `whole` is `end` behind a prefix that ends at a dot.
bool ends_with_part(std::string_view whole, std::string_view end) {
  return whole.size() > end.size() && whole.ends_with(end) &&
         whole[whole.size() - end.size() - 1] == '.';
}

// The name among `others` that differs by a prefix, or else by a slip.
std::string counterpart(const std::string& name, const Names& others) {
  for (const std::string& other : others)
    if (ends_with_part(name, other) || ends_with_part(other, name)) return other;
  return nearest(name, std::span(others).first(std::min(others.size(), kCandidates)));
}

void add_list(std::string& text, std::string_view title, const Names& names,
              const Names& counterparts, std::string_view hint) {
  if (names.empty()) return;
  text += fmt::format("\n{} {}:", names.size(), title);
  for (std::size_t k = 0; k < std::min(names.size(), kLines); ++k) {
    const std::string other = counterpart(names[k], counterparts);
    text += fmt::format("\n  {}{}", names[k],
                        other.empty() ? "" : fmt::format(" ({} {}?)", hint, other));
  }
  if (names.size() > kLines) text += fmt::format("\n  and {} more", names.size() - kLines);
}

// The pair of prefixes that the first missing name and its counterpart suggest, if it brings more
// than one tensor to its place.
std::string prefix_hint(const Names& missing, const Names& unexpected) {
  if (missing.size() < 2 || unexpected.size() < 2) return "";
  const std::string& ours = missing.front();
  for (const std::string& theirs : unexpected) {
    std::string from, to;
    if (ends_with_part(theirs, ours))
      from = theirs.substr(0, theirs.size() - ours.size());
    else if (ends_with_part(ours, theirs))
      to = ours.substr(0, ours.size() - theirs.size());
    else
      continue;
    std::size_t count = 0;
    for (const std::string& name : unexpected)
      if (name.starts_with(from))
        count += static_cast<std::size_t>(
            std::binary_search(missing.begin(), missing.end(), to + name.substr(from.size())));
    if (count > 1)
      return fmt::format("\nthe prefixes {{{}, {}}} would fit {} of them", in_quotes(from),
                         in_quotes(to), count);
  }
  return "";
}

}  // namespace

std::string io::problems_text(const LoadWeightsReport& report) {
  std::string text;
  add_list(text, "missing", report.missing, report.unexpected, "given:");
  add_list(text, "unexpected", report.unexpected, report.missing, "in the model:");
  add_list(text, "of another type", report.mismatched, {}, "");
  return text + prefix_hint(report.missing, report.unexpected);
}

std::string LoadWeightsReport::text() const {
  std::string text = fmt::format("{} loaded", counted(loaded.size(), "tensor"));
  if (!skipped.empty()) text += fmt::format(", {} skipped", skipped.size());
  if (!tied.empty()) text += fmt::format(", {} tied", tied.size());
  return text + io::problems_text(*this);
}

}  // namespace pantala
