#include "schedule/common/recurrent/recurrent.h"

#include <fmt/format.h>

#include "ops/face.h"
#include "ops/recurrent.h"
#include "schedule/append.h"
#include "schedule/building.h"
#include "schedule/common/recurrent/kernel.h"
#include "schedule/work.h"

namespace pantala::schedule {

namespace {

struct Layer {
  Cell cell = Cell::lstm;
  bool reverse = false, is_grad = false;
};

Layer layer_of(const ir::Node& node) {
  if (ops::is<op::Rnn>(node) || ops::is<op::RnnGrad>(node)) {
    const auto attrs = ir::attributes<op::RnnAttrs>(node);
    return {attrs.relu ? Cell::rnn_relu : Cell::rnn_tanh, attrs.reverse,
            ops::is<op::RnnGrad>(node)};
  }
  if (ops::is<op::Gru>(node) || ops::is<op::GruGrad>(node)) {
    const auto attrs = ir::attributes<op::GruAttrs>(node);
    return {attrs.reset_first ? Cell::gru_reset_first : Cell::gru, attrs.reverse,
            ops::is<op::GruGrad>(node)};
  }
  return {Cell::lstm, ir::attributes<op::RecurrentAttrs>(node).reverse,
          ops::is<op::LstmGrad>(node)};
}

RecurrentSizes sizes_of(const Context& context, const ir::Node& node, const Layer& layer) {
  const Shape& states = layer.is_grad ? context.type(node.inputs[0]).shape : node.results[0].shape;
  return {states[0], states[1], states[2]};
}

// The product of every row's state with the weight, at every step; what a gate does to its sum is
// little beside it.
double flops_of(Cell cell, const RecurrentSizes& sizes) {
  return 2.0 * gate_count(cell) * static_cast<double>(sizes.steps) *
         static_cast<double>(sizes.batch) * static_cast<double>(sizes.hidden) *
         static_cast<double>(sizes.hidden);
}

// All operands and all results; the code comes back to the weight for every row of every step.
Work work_of_recurrence(const Context& context, const Group& group) {
  constexpr std::size_t kWeight = 1;  // of the operands, in either direction
  const ir::Node& node = context.node(group.anchors[0]);
  const Layer layer = layer_of(node);
  const RecurrentSizes sizes = sizes_of(context, node, layer);
  Work work{.flops = flops_of(layer.cell, sizes)};
  for (std::size_t k = 0; k < node.inputs.size(); ++k)
    if (context.is_stored(node.inputs[k]))
      add_whole(context, context.buffer_of(node.inputs[k]), false,
                k == kWeight ? static_cast<double>(sizes.steps * sizes.batch) : 1, work);
  for (const GroupOutput& output : group.outputs) add_whole(context, output.buffer, true, 1, work);
  return work;
}

class Recurrence {
 public:
  Recurrence(Building& building, const Group& group)
      : building_(building),
        context_(building.context()),
        id_(group.anchors[0]),
        node_(context_.node(id_)),
        layer_(layer_of(node_)),
        sizes_(sizes_of(context_, node_, layer_)),
        outputs_(group.outputs) {
    const bool is_lstm = layer_.cell == Cell::lstm,
               is_gru = layer_.cell == Cell::gru || layer_.cell == Cell::gru_reset_first;
    spec_ = {.cell = layer_.cell,
             .dtype = node_.results[0].dtype,
             .save_c = is_lstm && !layer_.is_grad && wanted(1),
             .save_gates = !layer_.is_grad && ((is_lstm && wanted(2)) || (is_gru && wanted(1))),
             .has_dc = layer_.is_grad && is_lstm && node_.inputs.size() > 5};
  }

  KernelDraft build() {
    const RecurrentTiling tiling =
        choose_tiling(spec_, sizes_, context_.target, context_.options.workers);
    KernelDraft draft;
    draft.name = fmt::format("{}.{}", node_.op->name, id_);
    draft.kernel = layer_.is_grad ? build_recurrent_grad("recurrent_grad", spec_, tiling)
                                  : build_recurrent("recurrent", spec_, tiling);
    draft.set.items = recurrent_items(sizes_, tiling);
    draft.set.buffers = buffers();
    for (const std::int64_t value : recurrent_params(sizes_, layer_.reverse != layer_.is_grad))
      draft.set.params.push_back(ParamValue::of(value));
    draft.flops = flops_of(spec_.cell, sizes_);
    return draft;
  }

 private:
  bool wanted(std::uint32_t r) const {
    for (const GroupOutput& output : outputs_)
      if (output.value == ValueId{id_, r}) return true;
    return false;
  }
  // The buffer of a result; one that nobody reads gets memory all the same.
  std::uint32_t result(std::uint32_t r) {
    for (const GroupOutput& output : outputs_)
      if (output.value == ValueId{id_, r}) return output.buffer;
    return building_.add_scratch_tensor(fmt::format("unused.{}.{}", id_, r), node_.results[r].dtype,
                                        node_.results[r].shape);
  }
  // All operands, then the results but for those that are left out.
  std::vector<std::uint32_t> buffers() {
    std::vector<std::uint32_t> all;
    for (const ValueId input : node_.inputs) all.push_back(context_.buffer_of(input));
    for (std::uint32_t r = 0; r < node_.results.size(); ++r)
      if (layer_.is_grad || r == 0 || wanted(r)) all.push_back(result(r));
    return all;
  }

  Building& building_;
  const Context& context_;
  std::uint32_t id_;
  const ir::Node& node_;
  const Layer layer_;
  const RecurrentSizes sizes_;
  const std::vector<GroupOutput>& outputs_;
  RecurrentSpec spec_;
};

bool must_store(const Context& context, std::uint32_t node, std::size_t operand,
                const IsStored& is_stored) {
  return !is_stored(context.node(node).inputs[operand]);
}

Reads reads_of_operands(const Context& context, const ValueInfo& info, std::uint32_t node) {
  const ir::Node& n = context.node(node);
  std::vector<ValueId> stored;
  for (const ValueId input : n.inputs)
    if (info.is_stored(input)) stored.push_back(input);
  return reads_whole(n.results[0].shape, stored);
}

}  // namespace

const Archetype& recurrent_archetype() {
  static const Archetype row{
      .name = "recurrent",
      .ops = {&ops::def<op::Lstm>(), &ops::def<op::LstmGrad>(), &ops::def<op::Gru>(),
              &ops::def<op::GruGrad>(), &ops::def<op::Rnn>(), &ops::def<op::RnnGrad>()},
      .append = append_widened,
      .must_store = must_store,
      .reads = reads_of_operands,
      .stores_once = true,
      .row_major = true,
      .work = work_of_recurrence,
      .build = [](Building& building,
                  const Group& group) { return std::vector{Recurrence(building, group).build()}; },
  };
  return row;
}

}  // namespace pantala::schedule
