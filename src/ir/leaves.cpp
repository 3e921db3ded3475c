// The entries of the leaf ops. Made by hand here because ir/ stands below the op families; they are
// part of the op table like any other op.
#include "ir/leaves.h"

#include <fmt/format.h>

#include <array>
#include <cmath>

#include "base/text.h"
#include "ir/init_kinds.h"
#include "pantala/error.h"

namespace pantala::ir {

namespace {

void check_name(InferContext& c, const std::string& name) {
  if (name.empty()) c.fail("a name cannot be empty");
}

void infer_leaf(InferContext& c) {
  const auto a = from_values<op::Input::Attrs>(c.attrs());
  check_name(c, a.name);
  c.result({a.dtype, Shape(a.shape)});
}

void infer_initialized(InferContext& c) {
  const auto a = from_values<op::StoredAttrs>(c.attrs());
  check_name(c, a.name);
  const Type type{a.dtype, Shape(a.shape)};
  init::check(a.init, type);
  c.result(type);
}

void infer_scalar(InferContext& c) {
  check_name(c, from_values<op::Scalar::Attrs>(c.attrs()).name);
  c.result({f64, {}});
}

void infer_constant(InferContext& c) {
  const auto a = from_values<op::Constant::Attrs>(c.attrs());
  if (!can_hold(a.dtype, a.value))
    c.fail(fmt::format("{} cannot hold {}", dtype_name(a.dtype), exact(a.value)));
  c.result({a.dtype, Shape(a.shape)});
}

void infer_data(InferContext& c) {
  const auto a = from_values<op::Data::Attrs>(c.attrs());
  if (!a.values) c.fail("there are no values");
  c.result(a.values->type());
}

std::vector<Literal> eval_constant(const EvalContext& c, const AttrValues& attrs) {
  const auto a = from_values<op::Constant::Attrs>(attrs);
  Literal out(c.result_type());
  if (out.is_float())
    std::fill(out.f().begin(), out.f().end(), a.value);
  else
    std::fill(out.i().begin(), out.i().end(), wrap_to(a.dtype, static_cast<std::int64_t>(a.value)));
  return {std::move(out)};
}

std::vector<Literal> eval_data(const EvalContext&, const AttrValues& attrs) {
  return {*from_values<op::Data::Attrs>(attrs).values};
}

template <class Face>
OpDef leaf(const char* doc, void (*infer)(InferContext&), bool named) {
  OpDef op;
  op.name = Face::name;
  op.signature = "() -> value";
  op.doc = doc;
  op.family = "leaf";
  op.attrs = specs_of<typename Face::Attrs>();
  op.attrs_type = &typeid(typename Face::Attrs);
  op.infer = infer;
  op.leaf = named;
  parse_signature(op);
  return op;
}

}  // namespace

const OpDef& input_op() {
  static const OpDef op =
      leaf<op::Input>("A value that is given anew for every step.", infer_leaf, true);
  return op;
}
const OpDef& parameter_op() {
  static const OpDef op = leaf<op::Parameter>("A value that training changes; kept under its name.",
                                              infer_initialized, true);
  return op;
}
const OpDef& state_op() {
  static const OpDef op = leaf<op::State>(
      "A value that is carried from step to step: optimizer moments, running statistics, counters.",
      infer_initialized, true);
  return op;
}
const OpDef& scalar_op() {
  static const OpDef op = leaf<op::Scalar>(
      "A hyper-parameter: an f64 input with a value that can be set between steps.", infer_scalar,
      true);
  return op;
}
const OpDef& constant_op() {
  static const OpDef op = [] {
    OpDef d = leaf<op::Constant>("A tensor whose elements are all equal.", infer_constant, false);
    d.eval = eval_constant;
    d.onnx = "ConstantOfShape";
    return d;
  }();
  return op;
}
const OpDef& data_op() {
  static const OpDef op = [] {
    OpDef d = leaf<op::Data>("A constant tensor given element by element.", infer_data, false);
    d.eval = eval_data;
    d.onnx = "Constant";
    return d;
  }();
  return op;
}

std::span<const OpDef* const> leaf_ops() {
  static const std::array<const OpDef*, 6> all = {&input_op(),  &parameter_op(), &state_op(),
                                                  &scalar_op(), &constant_op(),  &data_op()};
  return all;
}

std::optional<LeafKind> leaf_kind(const OpDef& op) {
  if (&op == &input_op()) return LeafKind::input;
  if (&op == &parameter_op()) return LeafKind::parameter;
  if (&op == &state_op()) return LeafKind::state;
  if (&op == &scalar_op()) return LeafKind::scalar;
  return std::nullopt;
}

const std::string& leaf_name(const Node& leaf) {
  return std::get<std::string>(leaf.attrs[static_cast<std::size_t>(leaf.op->attr_index("name"))]);
}

std::optional<double> splat_value(const Node& node) {
  if (node.op != &constant_op()) return std::nullopt;
  return attributes<op::Constant>(node).value;
}

}  // namespace pantala::ir
