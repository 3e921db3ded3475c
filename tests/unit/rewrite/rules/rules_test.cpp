// Every rule of the table, by samples of its left side: it fires, and what it makes is equal to
// what it was made from, as the rule promises. A rule without samples fails.
//  - small integers through the interpreter are equal, with no tolerance where both sides compute
//    the same numbers, and to a few roundings in double where they compute exponentials or roots;
//    also where other nodes and outputs read what the rule takes apart;
//  - what keeps derivatives has the same gradients;
//  - compiled, in every type of floats: what promises bits has the same bits, as machine code and
//    as interpreted kernels, also for zeros of both signs, infinities, NaN, subnormals and the
//    largest numbers, and the others are as near to what the interpreter says;
//  - every condition is needed: there is a sample that it alone refuses and that is wrong without
//    it; and what is only of no use is right.
#include "rewrite/rules/rules.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "ir/graph_data.h"
#include "pantala/autodiff.h"
#include "pantala/error.h"
#include "pantala/ops.h"
#include "pantala/text.h"
#include "rewrite/canonical.h"
#include "support/compiled.h"
#include "unit/rewrite/rules/promises.h"
#include "unit/rewrite/rules/samples.h"

namespace pantala::rewrite::rules_test {
namespace {

using namespace samples;

const Rule& rule_named(const std::string& name) {
  for (const Rule& rule : all_rules())
    if (rule.name == name) return rule;
  throw InternalError("there is no rule " + name);
}

std::string described(const Sample& sample, int seed, const Graph& given) {
  return fmt::format("{}{}{}, seed {}:\n{}", sample.rule,
                     sample.refused_by.empty() ? "" : " without ", sample.refused_by, seed,
                     to_text(given));
}

// Calls f(sample, seed, generator, graph) for so many graphs of each sample that is wanted.
template <class Wanted, class F>
void for_each_graph(int times, const Wanted& wanted, const F& f) {
  for (const Sample& sample : all_samples()) {
    if (!wanted(sample)) continue;
    for (int seed = 0; seed < times; ++seed) {
      Random r(static_cast<std::uint64_t>(seed));
      const Graph given = sample.make(r);
      SCOPED_TRACE(described(sample, seed, given));
      f(sample, seed, r, given);
    }
  }
}
bool fits(const Sample& sample) { return sample.refused_by.empty(); }

constexpr int kTimes = 12;

TEST(RewriteRules, have_samples_and_names_of_their_own) {
  std::set<std::string> names;
  const auto has_sample = [](const std::string& rule, const std::string& refused_by) {
    return std::ranges::any_of(all_samples(), [&](const Sample& sample) {
      return sample.rule == rule && sample.refused_by == refused_by;
    });
  };
  for (const Rule& rule : all_rules()) {
    EXPECT_TRUE(names.insert(rule.name).second) << rule.name << " stands there twice";
    EXPECT_TRUE(has_sample(rule.name, "")) << rule.name << " has no sample";
    for (const Condition& one : rule.when)
      EXPECT_TRUE(has_sample(rule.name, one.name))
          << rule.name << " has no sample that is refused since not '" << one.name << "'";
    EXPECT_EQ(has_sample(rule.name, kWorth), rule.worth != nullptr)
        << rule.name << ": samples of no use belong to rules that say what is";
  }
}

TEST(RewriteRules, are_equal_on_small_integers) {
  for_each_graph(kTimes, fits, [](const Sample& sample, int seed, Random& r, const Graph& plain) {
    const Graph given = seed % 2 == 0 ? plain : with_all_values(plain);
    const std::optional<Graph> made = rewritten(given, rule_named(sample.rule));
    ASSERT_TRUE(made.has_value()) << "it does not fire";
    EXPECT_EQ(differing_numbers(given, *made, r, sample.tolerance), "") << to_text(*made);
  });
}

// The gradients of a weighted sum of the output with respect to these inputs; zeros for those that
// the graph does not need.
std::vector<Literal> gradients_of(const Graph& graph, const std::vector<Leaf>& inputs,
                                  const ref::Bindings& bindings) {
  Graph weighted = graph;
  const Tensor y = weighted.output("y");
  const Tensor weights = cos(iota_beside(y, y.shape(), y.rank() - 1, f64));
  const Tensor loss = sum(cast(y, f64) * weights);
  std::vector<Literal> gradients;
  for (const Leaf& input : inputs) {
    const std::optional<Tensor> leaf = weighted.find(input.name);
    if (!leaf) {
      gradients.emplace_back(input.value.type());
      continue;
    }
    const Gradients found = differentiate(weighted, loss, {*leaf});
    Graph alone = found.graph;
    alone = alone.with_outputs({{"gradient", found.gradients[0]}});
    gradients.push_back(exactly(alone, bindings)[0]);
  }
  return gradients;
}

TEST(RewriteRules, keep_the_derivatives_that_they_promise) {
  const auto wanted = [](const Sample& sample) {
    return fits(sample) && rule_named(sample.rule).keeps_derivatives;
  };
  for_each_graph(3, wanted, [](const Sample& sample, int, Random& r, const Graph& given) {
    if (!is_float(given.output("y").dtype()) || given.output("y").rank() == 0) return;
    const std::optional<Graph> made = rewritten(given, rule_named(sample.rule));
    ASSERT_TRUE(made.has_value()) << "it does not fire";
    const ref::Bindings bindings = bindings_of(given, r, Numbers::integers);
    std::vector<Leaf> inputs = given.leaves(LeafKind::input);
    std::erase_if(inputs, [](const Leaf& leaf) { return !is_float(leaf.value.dtype()); });
    EXPECT_EQ(tests::differing(gradients_of(given, inputs, bindings),
                               gradients_of(*made, inputs, bindings), 1e-5 + sample.tolerance),
              "")
        << to_text(*made);
  });
}

// Compiled in a type: what differs, or "". A rule may refuse a type; whether it fired.
bool fires_and_keeps_its_promise(const Sample& sample, Random& r, const Graph& given,
                                 const char* device) {
  const Rule& rule = rule_named(sample.rule);
  const std::optional<Graph> made = rewritten(given, rule);
  if (!made) return false;
  EXPECT_EQ(differing_results(given, *made, r, rule.promise, device), "")
      << device << "\n"
      << to_text(given) << to_text(*made);
  return true;
}

TEST(RewriteRules, keep_what_they_promise_when_they_are_compiled) {
  for_each_graph(6, fits, [](const Sample& sample, int seed, Random& r, const Graph& given) {
    const bool of_bits = rule_named(sample.rule).promise <= Promise::zero_sign;
    if (!of_bits && seed >= 2) return;
    EXPECT_TRUE(fires_and_keeps_its_promise(sample, r, given, "cpu"));
    if (of_bits && seed < 3) { EXPECT_TRUE(fires_and_keeps_its_promise(sample, r, given, "kir")); }
  });
}

TEST(RewriteRules, keep_what_they_promise_in_every_type_of_floats) {
  std::set<std::string> fired_in[3];
  for_each_graph(1, fits, [&](const Sample& sample, int, Random& r, const Graph& given) {
    const DType types[] = {f64, f16, bf16};
    for (int k = 0; k < 3; ++k)
      if (fires_and_keeps_its_promise(sample, r, in_type(given, types[k]), "cpu"))
        fired_in[k].insert(sample.rule);
  });
  for (const Rule& rule : canonical_rules())
    EXPECT_TRUE(fired_in[0].contains(rule.name)) << rule.name;
}

// The rule without the condition of this name. Conditions must not rely on others: what is wrong
// then is seen at once.
Rule without(Rule rule, const std::string& condition) {
  std::erase_if(rule.when, [&](const Condition& one) { return one.name == condition; });
  for (Condition& one : rule.when)
    one.holds = [one](Fit& f) {
      try {
        return one.holds(f);
      } catch (const std::exception& error) {
        ADD_FAILURE() << "'" << one.name << "' cannot be asked by itself: " << error.what();
        return false;
      }
    };
  return rule;
}

// Whether the rule says something false, or something that is no graph.
bool is_wrong(const Rule& rule, const Graph& given, Random& r, double tolerance) {
  try {
    const std::optional<Graph> made = rewritten(given, rule);
    if (!made) return false;
    return !differing_numbers(given, *made, r, tolerance).empty() ||
           !differing_results(given, *made, r, rule.promise, "cpu").empty();
  } catch (const std::exception&) { return true; }
}

TEST(RewriteRules, need_each_of_their_conditions) {
  for (const Sample& sample : all_samples()) {
    if (fits(sample) || sample.refused_by == kWorth) continue;
    const Rule& rule = rule_named(sample.rule);
    bool wrong = false;
    for (int seed = 0; seed < kTimes && !wrong; ++seed) {
      Random r(static_cast<std::uint64_t>(seed));
      const Graph given = sample.make(r);
      SCOPED_TRACE(described(sample, seed, given));
      EXPECT_FALSE(rewritten(given, rule).has_value()) << "it fires";
      wrong = is_wrong(without(rule, sample.refused_by), given, r, sample.tolerance);
    }
    Random r(0);
    EXPECT_TRUE(wrong) << "it is right: " << described(sample, 0, sample.make(r));
  }
}

TEST(RewriteRules, are_right_where_they_are_of_no_use) {
  const auto wanted = [](const Sample& sample) { return sample.refused_by == kWorth; };
  for_each_graph(2, wanted, [](const Sample& sample, int, Random& r, const Graph& given) {
    Rule rule = rule_named(sample.rule);
    EXPECT_FALSE(rewritten(given, rule).has_value()) << "it fires";
    rule.worth = {};
    const std::optional<Graph> made = rewritten(given, rule);
    ASSERT_TRUE(made.has_value()) << "it does not fire";
    EXPECT_EQ(differing_numbers(given, *made, r, sample.tolerance), "") << to_text(*made);
    EXPECT_EQ(differing_results(given, *made, r, rule.promise, "cpu"), "") << to_text(*made);
  });
}

// All rules at once, wherever they fit, on what each of them refuses, too.
TEST(RewriteRules, are_equal_together) {
  for_each_graph(3, has_numbers, [](const Sample&, int, Random& r, const Graph& given) {
    const Canonical form = canonical_form(given, allowed_rules(canonical_rules(), Promise::real));
    EXPECT_EQ(differing_numbers(given, form.graph, r, 1e-6), "") << to_text(form.graph);
    const Graph step = rewrite_greedily(given, allowed_rules(step_rules(), Promise::real));
    EXPECT_EQ(differing_numbers(given, step, r, 1e-6), "") << to_text(step);
  });
}

}  // namespace
}  // namespace pantala::rewrite::rules_test
