// Pools, element by element: forward over the window of an output, backward over the outputs whose
// windows hold an input. Small windows are written out, large ones are loops.
#include <algorithm>

#include "ops/face.h"
#include "ops/pool.h"
#include "schedule/emitter.h"
#include "schedule/scalar_ops.h"

namespace pantala::schedule {

using ir::Ints;
using kir::Var;

namespace {

constexpr std::int64_t kMostUnrolled = 16;

}  // namespace

struct Emitter::Pool {
  Ints kernel, stride, padding;
  Shape plane;  // [height, width] of x
  Pool(const op::PoolAttrs& window, const Shape& x)
      : kernel(window.kernel),
        stride(window.stride),
        padding(window.padding),
        plane({x[2], x[3]}) {}
  std::int64_t positions() const { return kernel[0] * kernel[1]; }
  // The first row or column of the window of an output.
  Index origin(const Indices& at, int axis) const {
    const auto k = static_cast<std::size_t>(axis);
    return at[k + 2] * stride[k] + -padding[k];
  }
  // How many outputs' windows can hold one input, along an axis.
  std::int64_t windows(int axis) const {
    const auto k = static_cast<std::size_t>(axis);
    return (kernel[k] + stride[k] - 1) / stride[k];
  }
};

std::int64_t elements_read(const ir::GraphData& graph, const ir::Node& node, std::size_t operand) {
  if (is_scalar_op(*node.op)) {
    // All operands are asked for the same element: the code of equal ones is shared.
    const auto at = node.inputs.begin() + static_cast<std::ptrdiff_t>(operand);
    return std::find(node.inputs.begin(), at, *at) == at ? 1 : 0;
  }
  if (!is_window(*node.op)) return 1;
  const auto windows = [&](const op::PoolAttrs& window) {
    const Emitter::Pool pool(window, node.results[0].shape);
    return pool.windows(0) * pool.windows(1);
  };
  const auto positions = [&](const op::PoolAttrs& window) {
    return Emitter::Pool(window, graph.type(node.inputs[0]).shape).positions();
  };
  if (ops::is<op::MaxPool2d>(node)) return positions(ir::attributes<op::MaxPool2d>(node));
  if (ops::is<op::AvgPool2d>(node)) return positions(ir::attributes<op::AvgPool2d>(node).window);
  return ops::is<op::MaxPool2dGrad>(node)
             ? windows(ir::attributes<op::MaxPool2dGrad>(node).window)
             : windows(ir::attributes<op::AvgPool2dGrad>(node).pool.window);
}

// Calls code(row, column, carried) for rows x columns positions in order; the carried values go
// from one to the next.
std::vector<Var> Emitter::over_window(std::int64_t rows, std::int64_t columns,
                                      std::vector<Var> carried, const WindowCode& code) {
  if (rows * columns <= kMostUnrolled) {
    for (std::int64_t i = 0; i < rows; ++i)
      for (std::int64_t j = 0; j < columns; ++j)
        carried = code(Index::of(i), Index::of(j), carried);
    return carried;
  }
  if (trace_) {
    const double outside = taps_;
    taps_ *= static_cast<double>(rows * columns);
    carried = code(Index(b_.i64(0)), Index(b_.i64(0)), carried);
    taps_ = outside;
    return carried;
  }
  const auto outside = known_;
  carried = b_.loop(b_.i64(0), b_.i64(rows * columns), b_.i64(1), carried,
                    [&](Var k, std::span<const Var> now) {
                      known_ = outside;
                      const Var row = k / columns;
                      return code(Index(row), Index(k - row * columns), {now.begin(), now.end()});
                    });
  known_ = outside;
  return carried;
}

Var Emitter::max_pool(ValueId id, const ir::Node& node, const Indices& at) {
  const Shape& in = info_.graph->type(node.inputs[0]).shape;
  const Pool pool(ir::attributes<op::MaxPool2d>(node), in);
  const Index top = pool.origin(at, 0), left = pool.origin(at, 1);
  const DType dtype = kir::register_dtype(node.results[0].dtype);
  // Of elements that are all -infinity the first one inside is the largest.
  const Var first = max(number(top), 0) * in[3] + max(number(left), 0);
  std::vector<Var> best{wide(b_.constant(kir::VType{dtype, 1}, -INFINITY)), wide(first)};
  best = over_window(
      pool.kernel[0], pool.kernel[1], best,
      [&](const Index& i, const Index& j, const std::vector<Var>& now) -> std::vector<Var> {
        Indices source = at;
        source[2] = top + i;
        source[3] = left + j;
        const Var inside = both(within(source[2], 0, in[2]), within(source[3], 0, in[3]));
        const Var x = wide(under(inside, [&] { return value(node.inputs[0], source); }));
        // NaN wins, once; of equals the first.
        Var better = both(b_.binary(kir::Op::bit_or, lt(now[0], x), ne(x, x)), eq(now[0], now[0]));
        better = both(better, inside);
        const Var place = number(source[2]) * in[3] + number(source[3]);
        return {b_.select(better, x, now[0]), b_.select(better, place, now[1])};
      });
  const Var indices = b_.cast(best[1], DType::i32);
  remember({id.node, 0}, at, best[0]);
  remember({id.node, 1}, at, indices);
  return id.result == 0 ? best[0] : indices;
}

Var Emitter::max_pool_grad(ValueId, const ir::Node& node, const Indices& at) {
  const Shape& dy = info_.graph->type(node.inputs[0]).shape;
  const Pool pool(ir::attributes<op::MaxPool2dGrad>(node).window, node.results[0].shape);
  // Outputs are visited from the last to the first along both axes; the same order for every input.
  const Index bottom = quotient(at[2] + pool.padding[0], pool.stride[0], nullptr),
              right = quotient(at[3] + pool.padding[1], pool.stride[1], nullptr);
  const Var place = number(at[2]) * pool.plane[1] + number(at[3]);
  const DType dtype = kir::register_dtype(node.results[0].dtype);
  const Var zero = b_.constant(kir::VType{dtype, 1}, 0.0);
  std::vector<Var> sum = over_window(
      pool.windows(0), pool.windows(1), {wide(zero)},
      [&](const Index& i, const Index& j, const std::vector<Var>& now) -> std::vector<Var> {
        Indices source = at;
        source[2] = bottom + i * -1;
        source[3] = right + j * -1;
        const Var exists = both(within(source[2], 0, dy[2]), within(source[3], 0, dy[3]));
        const Var index = under(exists, [&] { return value(node.inputs[1], source); });
        Var chosen = both(eq(b_.cast(index, DType::i64), place), exists);
        const Var gradient = under(exists, [&] { return value(node.inputs[0], source); });
        return {now[0] + b_.select(chosen, wide(gradient), wide(zero))};
      });
  return emit_fit(b_, sum[0], node.results[0].dtype);
}

// How many positions a window counts along one axis: with the padding, but not what sticks out
// behind it, or only what lies inside of x.
Var Emitter::window_length(const Index& origin, std::int64_t kernel, std::int64_t size,
                           std::int64_t padding, bool include_padding) {
  const Var begin = number(origin), end = begin + kernel;
  return include_padding ? min(end, size + padding) - begin : min(end, size) - max(begin, 0);
}

Var Emitter::window_count(const Pool& pool, const Index& top, const Index& left,
                          bool include_padding, DType dtype) {
  const Var rows =
                window_length(top, pool.kernel[0], pool.plane[0], pool.padding[0], include_padding),
            columns = window_length(left, pool.kernel[1], pool.plane[1], pool.padding[1],
                                    include_padding);
  return b_.cast(rows * columns, dtype);
}

Var Emitter::average_pool(ValueId, const ir::Node& node, const Indices& at) {
  const Shape& in = info_.graph->type(node.inputs[0]).shape;
  const op::AvgPoolAttrs attrs = ir::attributes<op::AvgPool2d>(node);
  const Pool pool(attrs.window, in);
  const Index top = pool.origin(at, 0), left = pool.origin(at, 1);
  const DType dtype = kir::register_dtype(node.results[0].dtype);
  const Var zero = wide(b_.constant(kir::VType{dtype, 1}, 0.0));
  const std::vector<Var> sum = over_window(
      pool.kernel[0], pool.kernel[1], {zero},
      [&](const Index& i, const Index& j, const std::vector<Var>& now) -> std::vector<Var> {
        Indices source = at;
        source[2] = top + i;
        source[3] = left + j;
        const Var inside = both(within(source[2], 0, in[2]), within(source[3], 0, in[3]));
        const Var x = under(inside, [&] { return value(node.inputs[0], source); });
        return {inside.valid() ? b_.select(wide(inside), now[0] + x, now[0]) : now[0] + x};
      });
  return emit_fit(b_, sum[0] / wide(window_count(pool, top, left, attrs.count_include_pad, dtype)),
                  node.results[0].dtype);
}

Var Emitter::average_pool_grad(ValueId, const ir::Node& node, const Indices& at) {
  const Shape& dy = info_.graph->type(node.inputs[0]).shape;
  const op::AvgPoolAttrs attrs = ir::attributes<op::AvgPool2dGrad>(node).pool;
  const Pool pool(attrs.window, node.results[0].shape);
  const Index bottom = quotient(at[2] + pool.padding[0], pool.stride[0], nullptr),
              right = quotient(at[3] + pool.padding[1], pool.stride[1], nullptr);
  const DType dtype = kir::register_dtype(node.results[0].dtype);
  const Var zero = wide(b_.constant(kir::VType{dtype, 1}, 0.0));
  const std::vector<Var> sum = over_window(
      pool.windows(0), pool.windows(1), {zero},
      [&](const Index& i, const Index& j, const std::vector<Var>& now) -> std::vector<Var> {
        Indices source = at;
        source[2] = bottom + i * -1;
        source[3] = right + j * -1;
        const Index top = pool.origin(source, 0), left = pool.origin(source, 1);
        Var holds = both(within(source[2], 0, dy[2]), within(source[3], 0, dy[3]));
        // The window of this output may end before the input.
        holds = both(holds, within(at[2] + top * -1, 0, pool.kernel[0]));
        holds = both(holds, within(at[3] + left * -1, 0, pool.kernel[1]));
        const Var gradient = under(holds, [&] { return value(node.inputs[0], source); });
        const Var share =
            wide(gradient) / wide(window_count(pool, top, left, attrs.count_include_pad, dtype));
        return {holds.valid() ? b_.select(wide(holds), now[0] + share, now[0]) : now[0] + share};
      });
  return emit_fit(b_, sum[0], node.results[0].dtype);
}

}  // namespace pantala::schedule
