// A rewrite as a row of a table: what is looked for, under which condition, what it is equal to,
// and what is promised about floating point. The left side is a pattern of ops by their faces; the
// right side is written with the ops of the library.
//
//   const Pattern x = any("x"), y = any("y");
//   {.name = "minus a negation", .promise = Promise::bits,
//    .left = node<op::Sub>(x, node<op::Neg>(y)),
//    .right = [](Fit& f) { return f["x"] + f["y"]; }}
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "egraph/rule.h"
#include "ops/face.h"
#include "rewrite/joint.h"

namespace pantala::rewrite {

// What a rule promises about the bits of the two sides, from the strictest on.
enum class Promise : std::uint8_t {
  bits,       // equal on all inputs
  order,      // equal if both sides sum in the same order, which is tested
  zero_sign,  // equal but for the sign of zeros
  real,       // equal over the reals
  finite,     // equal over the reals, where all numbers are finite and nothing overflows
};
std::string_view to_string(Promise promise);

class Pattern {
 public:
  enum class Kind : std::uint8_t { any, number, node, result };
  struct Data {
    Kind kind = Kind::any;
    std::string name;               // of a variable, or of a node whose attributes are asked for
    double number = 0;              // Kind::number: every element is this
    const ir::OpDef* op = nullptr;  // Kind::node
    std::uint32_t result = 0;       // Kind::result: of its operand, a node with several
    std::vector<Pattern> operands = {};
    bool any_operands = false;  // Kind::node: whatever they are
  };
  explicit Pattern(Data data) : data_(std::make_shared<const Data>(std::move(data))) {}
  const Data& data() const { return *data_; }

 private:
  std::shared_ptr<const Data> data_;
};

// Any value; the same wherever the name stands.
Pattern any(std::string name);
// A constant, every element of which is this number (bits are compared: -0 is not 0).
Pattern number(double value);
// A node of an op, named so that its attributes can be asked for.
template <class Face, class... Operands>
Pattern named(std::string name, const Operands&... operands) {
  return Pattern({.kind = Pattern::Kind::node,
                  .name = std::move(name),
                  .op = &ops::def<Face>(),
                  .operands = {operands...}});
}
template <class Face, class... Operands>
Pattern node(const Operands&... operands) {
  return named<Face>("", operands...);
}
// A node of an op with any number of operands, which Fit::operands() gives.
template <class Face>
Pattern with_any_operands(std::string name) {
  return Pattern({.kind = Pattern::Kind::node,
                  .name = std::move(name),
                  .op = &ops::def<Face>(),
                  .any_operands = true});
}
// A result of a node with several.
Pattern result(std::uint32_t number, const Pattern& of);

struct CompiledPattern;

// Where the left side of a rule fits, and what is known there.
class Fit {
 public:
  Fit(Joint& joint, const CompiledPattern& pattern, const egraph::Match& match)
      : joint_(joint), pattern_(pattern), match_(match) {}

  Tensor operator[](std::string_view variable) { return joint_.tensor(class_of(variable)); }
  // Of a variable, or of a node that has a name.
  const Type& type(std::string_view name) const { return joint_.type(class_of(name)); }
  std::optional<double> splat(std::string_view variable) const {
    return joint_.splat(class_of(variable));
  }
  bool is_number(std::string_view variable) const { return splat(variable).has_value(); }
  // The number that a variable is known to be; InternalError if it is none.
  double number(std::string_view variable) const;
  // A constant of the left side's type.
  Tensor filled(double value) { return joint_.constant(value, type()); }
  bool is_host(std::string_view variable) const { return joint_.is_host(class_of(variable)); }
  template <class Face>
  typename ir::AttrsNamedBy<Face>::type attributes(std::string_view name) const {
    return ir::from_values<typename ir::AttrsNamedBy<Face>::type>(joint_.attrs(node_of(name)));
  }
  // Of a node that has a name.
  std::vector<ClassId> operands(std::string_view name) const;
  // The node by which a class was known first, if it is one of this op.
  template <class Face>
  std::optional<NodeId> maker(ClassId of) const {
    const NodeId node = joint_.equal().representative(joint_.equal().find(of));
    return joint_.op(node) == &ops::def<Face>() ? std::optional(node) : std::nullopt;
  }
  // The class of the left side, and its type.
  ClassId left() const { return joint_.equal().class_of(match_.node(0)); }
  const Type& type() const { return joint_.type(left()); }
  Joint& joint() { return joint_; }

 private:
  ClassId class_of(std::string_view name) const;
  NodeId node_of(std::string_view name) const;

  Joint& joint_;
  const CompiledPattern& pattern_;
  const egraph::Match& match_;
};

// A side condition, by the name with which tests leave it out. It can be asked where those beside
// it do not hold.
struct Condition {
  std::string name;
  std::function<bool(Fit&)> holds;
};

struct Rule {
  std::string name;
  Promise promise = Promise::real;
  // Both sides have the same derivative, ties included: may be used before differentiation.
  bool keeps_derivatives = false;
  Pattern left;
  std::vector<Condition> when = {};      // it is true where all of these hold
  std::function<bool(Fit&)> worth = {};  // where it can be of use; it is true elsewhere too
  std::function<Tensor(Fit&)> right;
  bool stays_finite = false;  // where the left side overflows or becomes nothing on the way
};

// One time that a rule said something new: the node that its left side matched, and one that is
// equal to it and computes it as the right side does.
struct Application {
  egraph::RuleId rule;
  NodeId left, right;
};

// For the engine, which notes what the rule says in `applications`; both must outlive the rule.
egraph::Rule compile(const Rule& rule, Joint& joint, std::vector<Application>& applications);

}  // namespace pantala::rewrite
