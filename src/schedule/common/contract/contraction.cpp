#include "schedule/common/contract/contraction.h"

#include "ops/contract.h"
#include "ops/face.h"

namespace pantala::schedule {

using ir::Ints;

namespace {

Axes axes_of(const Context& context, const ir::Node& node, int side) {
  const auto attrs = ir::attributes<op::Contract>(node);
  const int rank = context.type(node.inputs[static_cast<std::size_t>(side)]).shape.rank();
  return side == 0 ? axes_of_side(rank, attrs.batch_a, attrs.contract_a)
                   : axes_of_side(rank, attrs.batch_b, attrs.contract_b);
}

}  // namespace

Contraction contraction_of(const Context& context, std::uint32_t id) {
  const ir::Node& node = context.node(id);
  Contraction p;
  p.a = axes_of(context, node, 0);
  p.b = axes_of(context, node, 1);
  const Shape &a = context.type(node.inputs[0]).shape, &b = context.type(node.inputs[1]).shape;
  const auto append = [&](const Shape& shape, const Ints& axes, int& count, std::int64_t& size) {
    for (const std::int64_t axis : axes) {
      p.domain.sizes.push_back(shape[static_cast<int>(axis)]);
      size *= shape[static_cast<int>(axis)];
    }
    count = static_cast<int>(axes.size());
  };
  p.sizes = {1, 1, 1, 1};
  append(a, p.a.batch, p.batch, p.sizes.batch);
  append(a, p.a.free, p.m, p.sizes.m);
  append(b, p.b.free, p.n, p.sizes.n);
  append(a, p.a.contracted, p.k, p.sizes.k);
  return p;
}

double flops_of(const Contraction& p) {
  return 2 * static_cast<double>(p.sizes.batch * p.sizes.m) * static_cast<double>(p.sizes.n) *
         static_cast<double>(p.sizes.k);
}

Indices operand_indices(const Contraction& p, int side) {
  const Axes& axes = side == 0 ? p.a : p.b;
  Indices at(axes.batch.size() + axes.free.size() + axes.contracted.size());
  const auto assign = [&](const Ints& list, int first) {
    for (std::size_t k = 0; k < list.size(); ++k)
      at[static_cast<std::size_t>(list[k])] = Affine::loop(first + static_cast<int>(k));
  };
  assign(axes.batch, 0);
  assign(axes.free, side == 0 ? p.batch : p.batch + p.m);
  assign(axes.contracted, p.batch + p.m + p.n);
  return at;
}

Footprint operand_reads(const Context& context, std::uint32_t id, int side, const Contraction& p,
                        const IsStored& is_stored) {
  ValueInfo info = context.info();
  info.is_stored = is_stored;
  return trace(info, p.domain, {context.node(id).inputs[static_cast<std::size_t>(side)]},
               operand_indices(p, side));
}

ElementwiseBody epilogue_body(const Context& context, std::uint32_t id, const Contraction& p,
                              const std::vector<GroupOutput>& outputs) {
  Domain domain;
  domain.sizes.assign(p.domain.sizes.begin(), p.domain.sizes.end() - p.k);
  return make_body(context, outputs, domain, [&](ValueId value) { return value.node == id; });
}

Work work_of_contraction(const Context& context, const Group& group) {
  const std::uint32_t id = group.anchors[0];
  const Contraction p = contraction_of(context, id);
  Work work = work_of(context, epilogue_body(context, id, p, group.outputs));
  for (const int side : {0, 1})
    add_reads(context, {.domain = p.domain},
              operand_reads(context, id, side, p,
                            [&](ValueId value) { return context.is_stored(value); }),
              work);
  work.flops += flops_of(p);
  return work;
}

}  // namespace pantala::schedule
