// How an op is declared. A family's .cpp holds one struct per op; define_op() derives the
// type-erased table entry from what the struct has.
//
// Always:
//  - info: name, signature, one line of documentation, ONNX name.
//  - infer: the shape rule; pointwise ops inherit one from `Pointwise`.
//  - samples: examples for the generated tests.
//
// At least one of these four, which say what the op means:
//  - scalar: a primitive pointwise op, on Number.
//  - body: a composite pointwise op, generic: on Number it is evaluated, on Tensor expanded.
//  - eval: a primitive op on whole tensors.
//  - expand: a composite op, in terms of other ops.
//
// Optional:
//  - a face as its base (ir/face.h): its name and attributes, if others speak of the op.
//  - Attrs: a struct of compile-time arguments with a `fields` function.
//  - grad: the gradient rule; without one the expansion is differentiated.
//  - kSugar, kIndexInputs, kGradResults: see OpDef.
//
// These templates are instantiated in the family's .cpp only.
#pragma once

#include <array>
#include <initializer_list>
#include <string_view>

#include "ops/face.h"
#include "pantala/ops.h"

namespace pantala::ops {

using ir::AttrValues;
using ir::EvalContext;
using ir::ExpandContext;
using ir::Field;
using ir::GradContext;
using ir::InferContext;
using ir::Ints;
using ir::NoAttrs;
using ir::Number;
using ir::OpDef;
using ir::Sample;
using ir::SampleInput;

struct OpInfo {
  std::string_view name;
  std::string_view sig;
  std::string_view doc;
  std::string_view onnx = "";
};

template <class Op>
struct AttrsOf {
  using type = NoAttrs;
};
template <class Op>
  requires requires { typename Op::Attrs; }
struct AttrsOf<Op> {
  using type = typename Op::Attrs;
};
template <class Op>
using attrs_t = typename AttrsOf<Op>::type;

// A pointwise op: inputs of one shape and one float dtype, a result of the same type. Numbers and
// smaller shapes broadcast when the op is built from C++ or by name.
struct Pointwise {
  static constexpr bool kPointwise = true;
  static void infer(InferContext& c);
  static std::vector<Sample> samples() { return {}; }
};
// The same for any dtype but bool.
struct PointwiseNumeric : Pointwise {
  static void infer(InferContext& c);
};
// Pointwise with a bool result.
struct PointwiseTest : Pointwise {
  static void infer(InferContext& c);
};

// Samples of a pointwise op: a scalar, size 1, square, odd and zero-sized shapes, inputs drawn from
// [low, high).
struct Range {
  double low = -1, high = 1;
};
std::vector<Sample> pointwise_samples(std::vector<Range> ranges, AttrValues attrs = {});

template <class Attrs = NoAttrs>
Sample sample(std::vector<SampleInput> inputs, const Attrs& attrs = {}) {
  return {std::move(inputs), ir::to_values(attrs)};
}
inline SampleInput floats(Shape shape, double low = -1, double high = 1) {
  return {std::move(shape), low, high, f32, false};
}
inline SampleInput ints(Shape shape, double low, double high, DType dtype = i64) {
  return {std::move(shape), low, high, dtype, false};
}

namespace detail {

inline std::vector<Tensor> as_list(Tensor t) { return {std::move(t)}; }
inline std::vector<Tensor> as_list(std::vector<Tensor> ts) { return ts; }
inline std::vector<Literal> as_list(Literal l) { return {std::move(l)}; }
inline std::vector<Literal> as_list(std::vector<Literal> ls) { return ls; }

// Calls f(context, attributes), or f(context) where the op has no use for attributes.
template <class F, class Context, class Attrs>
decltype(auto) call(F&& f, Context&& context, Attrs&& attrs) {
  if constexpr (std::is_invocable_v<F, Context, Attrs>)
    return f(context, attrs);
  else
    return f(context);
}

// Calls f on 1 to 3 values taken from an array, with the attributes behind them if f wants them.
template <class T, class F, class Attrs>
auto apply_body(F f, const T* x, const Attrs& a) {
  // Two values are tried before a value and attributes: a generic lambda would accept either.
  if constexpr (std::is_invocable_v<F, T>)
    return f(x[0]);
  else if constexpr (std::is_invocable_v<F, T, T>)
    return f(x[0], x[1]);
  else if constexpr (std::is_invocable_v<F, T, const Attrs&>)
    return f(x[0], a);
  else
    return f(x[0], x[1], x[2]);
}

}  // namespace detail

template <class Op>
OpDef define_op(std::string_view family) {
  using Attrs = attrs_t<Op>;
  OpDef d;
  d.name = Op::info.name;
  d.signature = Op::info.sig;
  d.doc = Op::info.doc;
  d.onnx = Op::info.onnx;
  d.family = family;
  d.attrs = ir::specs_of<Attrs>();
  d.attrs_type = &typeid(Attrs);
  ir::parse_signature(d);
  d.infer = [](InferContext& c) {
    Attrs attrs = ir::from_values<Attrs>(c.attrs());
    detail::call([](auto&... args) -> decltype(Op::infer(args...)) { return Op::infer(args...); },
                 c, attrs);
    c.attrs() = ir::to_values(attrs);
  };
  if constexpr (requires { Op::scalar; })
    d.scalar = [](const AttrValues& values) -> ir::ScalarFn {
      return [attrs = ir::from_values<Attrs>(values)](const Number* x) {
        return Number(detail::apply_body(&Op::scalar, x, attrs));
      };
    };
  if constexpr (requires { Op::body; }) {
    d.scalar = [](const AttrValues& values) -> ir::ScalarFn {
      return [attrs = ir::from_values<Attrs>(values)](const Number* x) {
        return Number(detail::apply_body(Op::body, x, attrs));
      };
    };
    d.expand = [](const ExpandContext& c, const AttrValues& values) {
      const std::vector<Tensor> inputs = c.all();
      return detail::as_list(
          Tensor(detail::apply_body(Op::body, inputs.data(), ir::from_values<Attrs>(values))));
    };
  }
  if constexpr (requires { &Op::expand; })
    d.expand = [](const ExpandContext& c, const AttrValues& values) {
      return detail::as_list(
          detail::call(Op::expand, c, static_cast<const Attrs&>(ir::from_values<Attrs>(values))));
    };
  if constexpr (requires { &Op::eval; })
    d.eval = [](const EvalContext& c, const AttrValues& values) {
      return detail::as_list(
          detail::call(Op::eval, c, static_cast<const Attrs&>(ir::from_values<Attrs>(values))));
    };
  if constexpr (requires { &Op::grad; })
    d.grad = [](GradContext& g, const AttrValues& values) {
      detail::call([](auto&... args) -> decltype(Op::grad(args...)) { return Op::grad(args...); },
                   g, static_cast<const Attrs&>(ir::from_values<Attrs>(values)));
    };
  d.samples = &Op::samples;
  if constexpr (requires { Op::kPointwise; }) d.pointwise = true;
  if constexpr (requires { Op::kSugar; }) d.sugar = Op::kSugar;
  if constexpr (requires { Op::kIndexInputs; })
    d.index_inputs.assign(std::begin(Op::kIndexInputs), std::end(Op::kIndexInputs));
  if constexpr (requires { Op::kGradResults; }) d.grad_results = Op::kGradResults;
  return d;
}

// The table entry of an op, made once; the family lists its ops with family<...>() and builds nodes
// with make<Op>().
template <class Op>
const OpDef& op_def() {
  static const OpDef def = define_op<Op>(Op::kFamily);
  return def;
}

template <class... Ops>
std::vector<const OpDef*> family() {
  return {&op_def<Ops>()...};
}

// All results of a node with these inputs. Plain numbers take the dtype of the last tensor that is
// no index or condition; pointwise inputs are broadcast.
template <class Op>
std::vector<Tensor> make_all(const std::vector<Operand>& inputs, const attrs_t<Op>& attrs = {}) {
  return apply(op_def<Op>(), inputs, ir::to_values(attrs));
}
template <class Op>
Tensor make(const std::vector<Operand>& inputs, const attrs_t<Op>& attrs = {}) {
  return make_all<Op>(inputs, attrs)[0];
}

}  // namespace pantala::ops
