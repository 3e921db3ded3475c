#include "runtime/load_weights.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <map>

#include "base/text.h"
#include "io/weights_report.h"
#include "pantala/error.h"
#include "runtime/convert.h"

namespace pantala::runtime {

namespace {

bool matches_any(const std::vector<std::string>& patterns, std::string_view name) {
  return std::any_of(patterns.begin(), patterns.end(),
                     [&](const std::string& pattern) { return glob_match(pattern, name); });
}

std::string name_in_model(const std::string& given, const LoadWeightsOptions& options) {
  for (const auto& [from, to] : options.prefixes)
    if (given.starts_with(from)) return to + given.substr(from.size());
  return given;
}

// The names of the given tensors by those that the model has for them.
std::map<std::string, std::string> given_by_name(const Weights& weights,
                                                 const LoadWeightsOptions& options) {
  std::map<std::string, std::string> given;
  for (const std::string& name : weights.names()) {
    const auto [place, is_new] = given.emplace(name_in_model(name, options), name);
    if (!is_new)
      throw TypeError(fmt::format("{}: {} and {} are both {} in the model; see `prefixes`",
                                  weights.source(), in_quotes(place->second), in_quotes(name),
                                  in_quotes(place->first)));
  }
  return given;
}

// Whether two tensors are one that was written under two names. Vectors and constants do not count:
// two biases of zeros are equal without being tied.
bool is_tied(const Weights& weights, const std::string& a, const std::string& b) {
  const Type& type = weights.type(a);
  if (type != weights.type(b) || type.shape.rank() < 2 || type.shape.numel() < 2) return false;
  const std::span<const std::byte> first = weights.bytes(a), second = weights.bytes(b);
  const auto size = static_cast<std::size_t>(dtype_bytes(type.dtype));
  const bool is_constant = std::memcmp(first.data(), first.data() + size, first.size() - size) == 0;
  return !is_constant && std::memcmp(first.data(), second.data(), first.size()) == 0;
}

// A tensor that the model does not have: a second name of a loaded one, or unexpected.
void add_unexpected(WeightsMatch& match, const Weights& weights, const std::string& name,
                    const std::string& given) {
  const auto same = std::find_if(
      match.pairs.begin(), match.pairs.end(),
      [&](const WeightsMatch::Pair& pair) { return is_tied(weights, pair.given, given); });
  if (same == match.pairs.end())
    match.report.unexpected.push_back(name);
  else
    match.report.tied.push_back(fmt::format("{}: the same as {}", name, same->entry->leaf.name));
}

}  // namespace

WeightsMatch match_weights(const Receivers& receivers, const Weights& weights,
                           const LoadWeightsOptions& options) {
  const std::map<std::string, std::string> given = given_by_name(weights, options);
  WeightsMatch match;
  LoadWeightsReport& report = match.report;
  for (const Store::Entry* entry : receivers.entries) {
    const auto& [name, type] = std::tie(entry->leaf.name, entry->leaf.type);
    const auto found = given.find(name);
    if (matches_any(options.skip, name)) {
      report.skipped.push_back(name);
    } else if (found == given.end()) {
      report.missing.push_back(name);
    } else {
      const Type& other = weights.type(found->second);
      const bool fits = other.shape == type.shape &&
                        (other.dtype == type.dtype ||
                         (!receivers.exact_types && storable(other.dtype, type.dtype)));
      if (fits) {
        match.pairs.push_back({entry, found->second});
        report.loaded.push_back(name);
      } else {
        report.mismatched.push_back(
            fmt::format("{}: {} in the model, {} given", name, type.str(), other.str()));
      }
    }
  }
  for (const auto& [name, file_name] : given) {
    if (receivers.store.find(name)) continue;
    if (matches_any(options.skip, name) || matches_any(options.ignore, name))
      report.skipped.push_back(name);
    else
      add_unexpected(match, weights, name, file_name);
  }
  for (auto* list : {&report.loaded, &report.missing, &report.skipped, &report.mismatched})
    std::sort(list->begin(), list->end());
  return match;
}

void require_fit(const WeightsMatch& match, const Weights& weights) {
  if (!match.report.fits())
    throw TypeError(fmt::format("{}: does not fit the model:{}", weights.source(),
                                io::problems_text(match.report)));
}

void write_weights(Store& store, const WeightsMatch& match, const Weights& weights) {
  std::vector<std::span<const std::byte>> bytes;
  for (const WeightsMatch::Pair& pair : match.pairs) {
    bytes.push_back(weights.bytes(pair.given));
    check_stored({"tensor", pair.given}, weights.type(pair.given).dtype, bytes.back(),
                 pair.entry->leaf.type);
  }
  for (std::size_t k = 0; k < match.pairs.size(); ++k)
    store.write_stored(*match.pairs[k].entry, weights.type(match.pairs[k].given).dtype, bytes[k]);
}

}  // namespace pantala::runtime
