#include "compiler/canonicalise.h"

#include "rewrite/canonical.h"
#include "rewrite/rules/rules.h"

namespace pantala::compiler {

namespace {

// A name that no output of a user has.
constexpr const char* kLoss = "\x01loss";

}  // namespace

CanonicalGraph canonicalise(LossGraph given, bool trains, const Options& options, Report& report) {
  if (options.level == search::Level::none) return {std::move(given)};
  const std::size_t size = given.graph.size();
  auto outputs = given.graph.outputs();
  if (trains) outputs.emplace_back(kLoss, given.graph.value(given.loss));
  rewrite::Canonical found = rewrite::canonical_form(
      given.graph.with_outputs(outputs),
      rewrite::allowed_rules(rewrite::canonical_rules(), options.promise, options.rules_off));
  CanonicalGraph result{{std::move(found.graph), {}}};
  result.is_other = result.graph.size() != size;
  for (const rewrite::RuleUse& use : found.rules) {
    report.rules.push_back({use.name, use.matches, use.fired, use.reached, use.milliseconds});
    result.is_other |= use.reached > 0;
    result.stays_finite |= use.reached > 0 && use.stays_finite;
  }
  if (!trains) return result;
  result.loss = result.graph.output(kLoss).id();
  outputs = result.graph.outputs();
  outputs.pop_back();
  result.graph = std::move(result.graph).with_outputs(outputs);
  return result;
}

}  // namespace pantala::compiler
