// The product. Gradients of a contraction are contractions again; operands that are permutations
// are read in place, with the axes renumbered, so transposes never stand in front of a product.
#include "ops/contract.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>

#include "ops/define.h"
#include "ops/indexing.h"
#include "ops/movement.h"

namespace pantala::ops {
namespace {

struct Family {
  static constexpr std::string_view kFamily = "contract";
};

bool contains(const Ints& list, std::int64_t value) {
  return std::find(list.begin(), list.end(), value) != list.end();
}

// The axes that are neither batch nor contracted, in order.
Ints free_axes(int rank, const Ints& batch, const Ints& contracted) {
  Ints rest;
  for (int axis = 0; axis < rank; ++axis)
    if (!contains(batch, axis) && !contains(contracted, axis)) rest.push_back(axis);
  return rest;
}

Ints sizes_at(const Shape& shape, const Ints& axes) {
  Ints sizes;
  for (const std::int64_t axis : axes) sizes.push_back(shape[static_cast<int>(axis)]);
  return sizes;
}

Ints joined(std::initializer_list<Ints> lists) {
  Ints all;
  for (const Ints& list : lists) all.insert(all.end(), list.begin(), list.end());
  return all;
}

// The elements in the order of the given axes.
std::vector<double> permuted(const Literal& in, const Ints& axes) {
  const Ints strides = in.shape().strides();
  Ints order;
  for (const std::int64_t axis : axes) order.push_back(strides[axis]);
  std::vector<double> out(static_cast<std::size_t>(in.numel()));
  for_each_index(sizes_at(in.shape(), axes), [&](const Index& index, std::int64_t flat) {
    out[flat] = in.f()[flat_of(index, order)];
  });
  return out;
}

struct Contract : op::Contract, Family {
  static constexpr OpInfo info{
      name, "(a, b) -> y",
      "The product of a and b summed over the contracted axes: [batch, free of a, free of b]."};

  static void check_side(InferContext& c, int side, Ints& batch, Ints& contracted) {
    const int rank = c.shape(side).rank();
    for (Ints* list : {&batch, &contracted})
      for (std::int64_t& axis : *list) axis = c.axis(axis, rank);
    const Ints both = joined({batch, contracted});
    if (!both.empty()) c.axes(both, rank);
  }
  static void check_pairs(InferContext& c, const Ints& of_a, const Ints& of_b,
                          std::string_view what) {
    if (of_a.size() != of_b.size())
      c.fail(fmt::format("{} {} axes of a, {} of b: {}", of_a.size(), what, of_b.size(),
                         c.describe_inputs()));
    if (sizes_at(c.shape(0), of_a) != sizes_at(c.shape(1), of_b))
      c.fail(fmt::format("{} sizes differ: {}", what, c.describe_inputs()));
  }
  static void infer(InferContext& c, Attrs& a) {
    c.require_float(0);
    c.require_same_dtype(0, 1);
    check_side(c, 0, a.batch_a, a.contract_a);
    check_side(c, 1, a.batch_b, a.contract_b);
    check_pairs(c, a.batch_a, a.batch_b, "batch");
    check_pairs(c, a.contract_a, a.contract_b, "contracted");
    c.result({c.in(0).dtype,
              Shape(joined(
                  {sizes_at(c.shape(0), a.batch_a),
                   sizes_at(c.shape(0), free_axes(c.shape(0).rank(), a.batch_a, a.contract_a)),
                   sizes_at(c.shape(1), free_axes(c.shape(1).rank(), a.batch_b, a.contract_b))}))});
  }
  static Literal eval(const EvalContext& c, const Attrs& at) {
    const Shape &sa = c.in(0).shape(), &sb = c.in(1).shape();
    const Ints fa = free_axes(sa.rank(), at.batch_a, at.contract_a),
               fb = free_axes(sb.rank(), at.batch_b, at.contract_b);
    const std::int64_t batch = Shape(sizes_at(sa, at.batch_a)).numel(),
                       m = Shape(sizes_at(sa, fa)).numel(), n = Shape(sizes_at(sb, fb)).numel(),
                       k = Shape(sizes_at(sa, at.contract_a)).numel();
    // [batch, m, k] and [batch, k, n].
    const std::vector<double> a = permuted(c.in(0), joined({at.batch_a, fa, at.contract_a}));
    const std::vector<double> b = permuted(c.in(1), joined({at.batch_b, at.contract_b, fb}));
    Literal out(Type{c.in(0).dtype(), Shape(joined({sizes_at(sa, at.batch_a), sizes_at(sa, fa),
                                                    sizes_at(sb, fb)}))});
    double* y = out.f().data();
    for (std::int64_t row = 0; row < batch * m; ++row)
      for (std::int64_t i = 0; i < k; ++i) {
        const double x = a[row * k + i];
        const double* from = b.data() + (row / m * k + i) * n;
        for (std::int64_t j = 0; j < n; ++j) y[row * n + j] += x * from[j];
      }
    return out;
  }
  static void grad(GradContext& g, const Attrs& a);
  static std::vector<Sample> samples() {
    return {sample({floats({3, 4}), floats({4, 5})}, Attrs{{}, {}, {1}, {0}}),
            sample({floats({3, 3}), floats({3, 3})}, Attrs{{}, {}, {0}, {1}}),
            sample({floats({2, 3, 4}), floats({2, 5, 4})}, Attrs{{0}, {0}, {2}, {2}}),
            sample({floats({3}), floats({2})}, Attrs{{}, {}, {}, {}}),
            sample({floats({2, 3, 4}), floats({4, 2, 5})}, Attrs{{0}, {1}, {2}, {0}}),
            sample({floats({2, 3, 4, 2}), floats({4, 3, 2})}, Attrs{{3}, {2}, {1, 2}, {1, 0}}),
            sample({floats({1, 7}), floats({7, 1})}, Attrs{{}, {}, {1}, {0}}),
            sample({floats({2, 0}), floats({0, 3})}, Attrs{{}, {}, {1}, {0}})};
  }
};

// A permuted operand is read where it lies: the axes are renumbered instead.
void look_through_permute(Tensor& x, Ints& labels) {
  const ir::Node& node = x.graph()->node(x.id().node);
  if (!is<op::Permute>(node)) return;
  const Ints axes = ir::attributes<op::Permute>(node).axes;
  Ints source(labels.size());
  for (std::size_t k = 0; k < axes.size(); ++k) source[axes[k]] = labels[k];
  x = x.graph()->tensor(node.inputs[0]);
  labels = source;
}

// The product of two operands whose axes carry labels: labels of both and of the result are batch,
// labels of both but not of the result are summed over. Operands are exchanged where that saves a
// permutation of the result.
Tensor product(Operand a, Ints la, Operand b, Ints lb, const Ints& result) {
  Tensor x = a.tensor(), y = b.tensor();
  look_through_permute(x, la);
  look_through_permute(y, lb);
  const auto order_of = [&](const Ints& l, const Ints& r) {
    Ints order;
    for (const std::int64_t label : result)
      if (contains(l, label) && contains(r, label)) order.push_back(label);
    for (const Ints* side : {&l, &r})
      for (const std::int64_t label : *side)
        if (contains(result, label) && !contains(order, label)) order.push_back(label);
    return order;
  };
  if (order_of(la, lb) != result && order_of(lb, la) == result) std::swap(x, y), std::swap(la, lb);
  ContractAxes axes;
  const auto position = [](const Ints& l, std::int64_t label) {
    return std::find(l.begin(), l.end(), label) - l.begin();
  };
  for (const std::int64_t label : result)
    if (contains(la, label) && contains(lb, label))
      axes.batch_a.push_back(position(la, label)), axes.batch_b.push_back(position(lb, label));
  for (const std::int64_t label : la)
    if (contains(lb, label) && !contains(result, label))
      axes.contract_a.push_back(position(la, label)),
          axes.contract_b.push_back(position(lb, label));
  const Tensor out = contract({x, a.where()}, {y, b.where()}, axes);
  const Ints order = order_of(la, lb);
  Ints axes_of_result;
  for (const std::int64_t label : result) axes_of_result.push_back(position(order, label));
  return permute(out, axes_of_result);
}

void Contract::grad(GradContext& g, const Attrs& a) {
  // One label per axis of a; paired axes of b share it, free ones continue.
  Ints la(static_cast<std::size_t>(g.in(0).rank())),
      lb(static_cast<std::size_t>(g.in(1).rank()), -1);
  std::iota(la.begin(), la.end(), 0);
  for (std::size_t k = 0; k < a.batch_a.size(); ++k) lb[a.batch_b[k]] = a.batch_a[k];
  for (std::size_t k = 0; k < a.contract_a.size(); ++k) lb[a.contract_b[k]] = a.contract_a[k];
  std::int64_t next = g.in(0).rank();
  for (std::int64_t& label : lb)
    if (label < 0) label = next++;
  Ints ly = a.batch_a;
  for (const std::int64_t axis : free_axes(g.in(0).rank(), a.batch_a, a.contract_a))
    ly.push_back(axis);
  for (const std::int64_t axis : free_axes(g.in(1).rank(), a.batch_b, a.contract_b))
    ly.push_back(lb[axis]);
  g.give(0, [&] { return product(g.dy(), ly, g.in(1), lb, la); });
  g.give(1, [&] { return product(g.in(0), la, g.dy(), ly, lb); });
}

struct Matmul : Family {
  struct Attrs {
    bool transpose_a = false, transpose_b = false;
    static void fields(auto&& f, auto& a) {
      f("transpose_a", a.transpose_a, "exchange the last two axes of a");
      f("transpose_b", a.transpose_b, "exchange the last two axes of b");
    }
  };
  static constexpr OpInfo info{"matmul", "(a, b) -> y",
                               "The matrix product of the last two axes; leading axes broadcast, "
                               "vectors are rows on the left and columns on the right.",
                               "MatMul"};
  static constexpr bool kSugar = true;

  // Rows, columns and leading axes of one side; a vector has no rows (left) or no columns (right).
  struct Side {
    Shape lead;
    std::int64_t outer = 1, inner = 1;  // the free and the contracted size
    bool vector = false;
  };
  static Side side(const Shape& s, bool inner_last) {
    if (s.rank() == 1) return {{}, 1, s[0], true};
    const std::int64_t last = s[s.rank() - 1], before = s[s.rank() - 2];
    return {Shape(Ints(s.begin(), s.end() - 2)), inner_last ? before : last,
            inner_last ? last : before, false};
  }
  static void infer(InferContext& c, Attrs& a) {
    c.require_float(0);
    c.require_same_dtype(0, 1);
    for (int i = 0; i < 2; ++i)
      if (c.shape(i).rank() < 1)
        c.fail("a scalar cannot be multiplied as a matrix: " + c.describe_inputs());
    const Side l = side(c.shape(0), !a.transpose_a), r = side(c.shape(1), a.transpose_b);
    if (l.inner != r.inner) c.fail("inner sizes differ: " + c.describe_inputs());
    Shape lead;
    if (!broadcast_shapes(l.lead, r.lead, lead))
      c.fail("leading axes do not broadcast: " + c.describe_inputs());
    Ints sizes = lead.vec();
    if (!l.vector) sizes.push_back(l.outer);
    if (!r.vector) sizes.push_back(r.outer);
    c.result({c.in(0).dtype, Shape(sizes)});
  }
  static Tensor expand(const ExpandContext& c, const Attrs& a) {
    Tensor x = c.in(0), y = c.in(1);
    const Side l = side(x.shape(), !a.transpose_a), r = side(y.shape(), a.transpose_b);
    Shape lead;
    broadcast_shapes(l.lead, r.lead, lead);
    // A right side without leading axes multiplies all rows at once; otherwise both sides run over
    // the common leading axes.
    const bool shared = r.lead.rank() == 0;
    if (!shared) {
      const auto widen = [&](const Tensor& t) {
        return broadcast_to(
            t, Shape(joined({lead.vec(), Ints(t.shape().end() - 2, t.shape().end())})));
      };
      if (l.vector) x = reshape(x, {1, l.inner});
      x = widen(x);
      y = widen(y);
    }
    const int batch = shared ? 0 : lead.rank();
    ContractAxes axes;
    for (int k = 0; k < batch; ++k) axes.batch_a.push_back(k), axes.batch_b.push_back(k);
    axes.contract_a = {x.rank() == 1 ? 0 : x.rank() - (a.transpose_a && !l.vector ? 2 : 1)};
    axes.contract_b = {y.rank() == 1 ? 0 : y.rank() - (a.transpose_b ? 1 : 2)};
    Tensor out = contract(x, y, axes);
    if (!shared && l.vector) out = squeeze(out, -2);
    return out;
  }
  static std::vector<Sample> samples() {
    return {sample({floats({3, 4}), floats({4, 5})}, Attrs{}),
            sample({floats({2, 3, 4}), floats({2, 4, 5})}, Attrs{}),
            sample({floats({2, 1, 3, 4}), floats({5, 4, 6})}, Attrs{}),
            sample({floats({4}), floats({4, 5})}, Attrs{}),
            sample({floats({3, 4}), floats({4})}, Attrs{}),
            sample({floats({4}), floats({4})}, Attrs{}),
            sample({floats({4, 3}), floats({5, 4})}, Attrs{true, true}),
            sample({floats({2, 4, 3}), floats({4, 5})}, Attrs{true, false}),
            sample({floats({4}), floats({2, 4, 3})}, Attrs{}),
            sample({floats({3, 4}), floats({2, 5, 4})}, Attrs{false, true}),
            sample({floats({1, 1}), floats({1, 1})}, Attrs{})};
  }
};

struct Linear : Family {
  static constexpr OpInfo info{
      "linear", "(x, weight, bias?) -> y",
      "x [..., in] times the transposed weight [out, in], plus bias [out].", "Gemm"};
  static constexpr bool kSugar = true;
  static void infer(InferContext& c) {
    c.require_float(0);
    c.require_same_dtype(0, 1);
    c.require_rank(1, 2);
    if (c.shape(0).rank() < 1 || c.shape(0).back() != c.shape(1)[1])
      c.fail("the last axis of x is not the input size of the weight: " + c.describe_inputs());
    if (c.has(2)) {
      c.require_same_dtype(0, 2);
      c.require_shape(2, {c.shape(1)[0]});
    }
    c.result({c.in(0).dtype, c.shape(0).with(c.shape(0).rank() - 1, c.shape(1)[0])});
  }
  static Tensor expand(const ExpandContext& c) {
    const Tensor y = contract(
        c.in(0), c.in(1),
        {.batch_a = {}, .batch_b = {}, .contract_a = {c.in(0).rank() - 1}, .contract_b = {1}});
    return c.has(2) ? y + c.in(2) : y;
  }
  static std::vector<Sample> samples() {
    return {sample({floats({6, 7}), floats({5, 7}), floats({5})}),
            sample({floats({2, 3, 7}), floats({5, 7})}),
            sample({floats({3, 3}), floats({3, 3}), floats({3})}),
            sample({floats({7}), floats({1, 7})})};
  }
};

}  // namespace

std::vector<const OpDef*> contract_ops() { return family<Contract, Matmul, Linear>(); }

}  // namespace pantala::ops

namespace pantala {

using namespace ops;

Tensor contract(Operand a, Operand b, const ContractAxes& axes) {
  return make<Contract>({a, b}, {axes.batch_a, axes.batch_b, axes.contract_a, axes.contract_b});
}
Tensor matmul(Operand a, Operand b, const MatmulOptions& o) {
  return make<Matmul>({a, b}, {o.transpose_a, o.transpose_b});
}
Tensor linear(Operand x, Operand weight, const std::optional<Tensor>& bias) {
  return bias ? make<Linear>({x, weight, *bias}) : make<Linear>({x, weight});
}

}  // namespace pantala
