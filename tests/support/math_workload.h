// The `math` benchmark of the e-graph literature: identities of calculus over seven terms, every
// rule one way. The numbers of nodes after each round are the same in every engine that is correct.
#pragma once

#include <array>
#include <cstddef>
#include <string_view>
#include <utility>
#include <vector>

#include "support/terms.h"

namespace pantala::tests {

// `d` is the derivative by its first operand, `i` the integral of its first by its second one.
inline constexpr std::pair<std::string_view, std::string_view> kMathRules[] = {
    {"(+ ?a ?b)", "(+ ?b ?a)"},
    {"(* ?a ?b)", "(* ?b ?a)"},
    {"(+ ?a (+ ?b ?c))", "(+ (+ ?a ?b) ?c)"},
    {"(* ?a (* ?b ?c))", "(* (* ?a ?b) ?c)"},
    {"(- ?a ?b)", "(+ ?a (* -1 ?b))"},
    {"(+ ?a 0)", "?a"},
    {"(* ?a 0)", "0"},
    {"(* ?a 1)", "?a"},
    {"(* ?a (+ ?b ?c))", "(+ (* ?a ?b) (* ?a ?c))"},
    {"(+ (* ?a ?b) (* ?a ?c))", "(* ?a (+ ?b ?c))"},
    {"(* (pow ?a ?b) (pow ?a ?c))", "(pow ?a (+ ?b ?c))"},
    {"(pow ?x 1)", "?x"},
    {"(pow ?x 2)", "(* ?x ?x)"},
    {"(d ?x (+ ?a ?b))", "(+ (d ?x ?a) (d ?x ?b))"},
    {"(d ?x (* ?a ?b))", "(+ (* ?a (d ?x ?b)) (* ?b (d ?x ?a)))"},
    {"(d ?x (sin ?x))", "(cos ?x)"},
    {"(d ?x (cos ?x))", "(* -1 (sin ?x))"},
    {"(i 1 ?x)", "?x"},
    {"(i (cos ?x) ?x)", "(sin ?x)"},
    {"(i (sin ?x) ?x)", "(* -1 (cos ?x))"},
    {"(i (+ ?f ?g) ?x)", "(+ (i ?f ?x) (i ?g ?x))"},
    {"(i (- ?f ?g) ?x)", "(- (i ?f ?x) (i ?g ?x))"},
    {"(i (* ?a ?b) ?x)", "(- (* ?a (i ?b ?x)) (i (* (d ?x ?a) (i ?b ?x)) ?x))"},
};

inline constexpr std::string_view kMathTerms[] = {
    "(i (ln x) x)",
    "(i (+ x (cos x)) x)",
    "(i (* (cos x) x) x)",
    "(d x (+ 1 (* 2 x)))",
    "(d x (- (pow x 3) (* 7 (pow x 2))))",
    "(+ (* y (+ x y)) (- (+ x 2) (+ x x)))",
    "(/ 1 (- (/ (+ 1 (sqrt z)) 2) (/ (- 1 (sqrt z)) 2)))",
};

// After rounds 0, 1, 2, ...
inline constexpr std::array<std::size_t, 12> kMathNodes = {
    35, 69, 118, 208, 389, 784, 1576, 3160, 8113, 28303, 136446, 1047896};

inline std::vector<egraph::Rule> math_rules(egraph::EGraph& graph) {
  std::vector<egraph::Rule> rules;
  for (const auto& [left, right] : kMathRules)
    rules.push_back(egraph::rewrite(graph.symbols(), std::string(left), left, right));
  return rules;
}
inline void add_math_terms(egraph::EGraph& graph) {
  for (const std::string_view term : kMathTerms) add_term(graph, term);
}

}  // namespace pantala::tests
