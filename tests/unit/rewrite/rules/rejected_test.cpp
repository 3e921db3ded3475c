// Equalities that other optimisers have shipped and that do not hold: the samples by which rules
// are tested would show it, and the table says none of them.
#include <gtest/gtest.h>

#include "ir/graph_data.h"
#include "ir/rewriter.h"
#include "ops/arithmetic.h"
#include "ops/contract.h"
#include "ops/conv.h"
#include "pantala/error.h"
#include "pantala/ops.h"
#include "pantala/text.h"
#include "rewrite/rules/rules.h"
#include "rewrite/saturation.h"
#include "unit/rewrite/rules/promises.h"

namespace pantala::rewrite::rejected_test {
namespace {

using namespace samples;

const Pattern x = any("x"), y = any("y"), z = any("z");

struct Claim {
  Rule rule;
  std::function<Graph()> left;
};

Tensor product(Fit& f, const Tensor& a, const Tensor& b) {
  const auto n = f.attributes<op::Contract>("first");
  return contract(a, b, {n.batch_a, n.batch_b, n.contract_a, n.contract_b});
}
Graph two_products(bool quotient) {
  Graph g;
  const Tensor a = g.input("a", {2, 3}), b = g.input("b", {3, 4}) + 5, c = g.input("c", {3, 4}) + 5;
  const Tensor first = matmul(a, b), second = matmul(a, c);
  g.output("y", quotient ? first / second : first * second);
  return g;
}
Claim of_two_products(bool quotient) {
  const Pattern first = named<op::Contract>("first", x, y), second = node<op::Contract>(x, z);
  return {{.name = quotient ? "quotient of products" : "product of products",
           .left = quotient ? node<op::Div>(first, second) : node<op::Mul>(first, second),
           .right =
               [=](Fit& f) {
                 return product(f, f["x"], quotient ? f["y"] / f["z"] : f["y"] * f["z"]);
               }},
          [=] { return two_products(quotient); }};
}

// (x y) / z is x (y / z) neither in whole numbers nor to the last bit.
Graph divided_product(bool whole) {
  Graph g;
  const Tensor quotient =
      g.input("a", {64}) * g.input("b", {64}) / (square(g.input("c", {64})) + 3);
  g.output("y", whole ? floor(quotient) : quotient);
  return g;
}
Claim of_divided_product(bool whole) {
  const Pattern quotient = node<op::Div>(node<op::Mul>(x, y), z);
  return {{.name = whole ? "whole quotient" : "quotient",
           .promise = whole ? Promise::real : Promise::bits,
           .left = whole ? node<op::Floor>(quotient) : quotient,
           .right =
               [=](Fit& f) { return f["x"] * (whole ? floor(f["y"] / f["z"]) : f["y"] / f["z"]); }},
          [=] { return divided_product(whole); }};
}

// As if the distance of the windows did not matter where the shape is made to fit.
Graph strided_convolution() {
  Graph g;
  g.output("y",
           conv2d(g.input("a", {1, 2, 5, 5}), g.input("b", {3, 2, 2, 2}), {}, {.stride = {2}}));
  return g;
}
Claim of_strides() {
  return {{.name = "convolutions of two strides",
           .left = named<op::Convolution>("first", x, y),
           .when = {{"windows lie apart",
                     [](Fit& f) {
                       return f.attributes<op::Convolution>("first").stride == ir::Ints{2, 2};
                     }}},
           .right =
               [](Fit& f) {
                 const Shape& shape = f.type().shape;
                 return slice(conv2d(f["x"], f["y"]), {0, 0, 0, 0}, shape.vec());
               }},
          strided_convolution};
}

std::vector<Claim> claims() {
  return {of_two_products(false), of_two_products(true), of_divided_product(true),
          of_divided_product(false), of_strides()};
}

TEST(RejectedRules, are_found_to_be_wrong) {
  for (const Claim& claim : claims()) {
    SCOPED_TRACE(claim.rule.name);
    const Graph given = claim.left();
    const std::optional<Graph> made = rewritten(given, claim.rule);
    ASSERT_TRUE(made.has_value()) << "it does not fire";
    Random r(1);
    const bool wrong = !differing_numbers(given, *made, r, kRounding).empty() ||
                       !differing_results(given, *made, r, claim.rule.promise, "cpu").empty();
    EXPECT_TRUE(wrong) << to_text(*made);
  }
}

// The left side's graph with the right side's beside it.
Graph both_sides(const Claim& claim) {
  Graph both = claim.left();
  const Graph made = rewritten(both, claim.rule).value();
  ir::Rewriter copy(*made.data(), both.data());
  for (const Leaf& leaf : made.leaves()) copy.set(leaf.value.id(), both.leaf(leaf.name));
  const ValueId wanted = made.output("y").id();
  copy.copy({&wanted, 1});
  both.output("z", copy.at(wanted));
  return both;
}

TEST(RejectedRules, are_not_what_the_table_says) {
  for (const Claim& claim : claims()) {
    if (claim.rule.promise == Promise::bits) continue;  // over the reals it holds
    const Graph both = both_sides(claim);
    const Saturation all(both, all_rules());
    EXPECT_EQ(all.run().stop_reason, egraph::StopReason::saturated);
    const auto class_of = [&](const char* name) {
      return all.joint().equal().find(all.joint().class_of(both.output(name).id()));
    };
    EXPECT_NE(class_of("y"), class_of("z")) << claim.rule.name << ":\n" << to_text(both);
  }
}

TEST(RejectedRules, whole_numbers_are_not_divided) {
  Graph g;
  const Tensor a = g.input("a", {4}, i64), b = g.input("b", {4}, i64);
  EXPECT_THROW(a / b, TypeError);
}

}  // namespace
}  // namespace pantala::rewrite::rejected_test
