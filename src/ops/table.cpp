#include "ops/table.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "ir/graph_data.h"
#include "ir/text_form.h"
#include "ops/define.h"
#include "pantala/ops.h"
#include "pantala/text.h"

namespace pantala {

std::string to_text(const Graph& graph, const PrintOptions& options) {
  return ir::print(*graph.data(), options.locations);
}
Graph parse_graph(std::string_view text, std::string_view file) {
  return ops::parse_graph(text, file, ops::table());
}

namespace ops {

OpTable::OpTable(std::vector<const OpDef*> ops) : ops_(std::move(ops)) {
  std::sort(ops_.begin(), ops_.end(),
            [](const OpDef* a, const OpDef* b) { return a->name < b->name; });
  for (const OpDef* op : ops_) names_.push_back(op->name);
  if (std::adjacent_find(names_.begin(), names_.end()) != names_.end())
    throw InternalError("two ops have one name");
}

const OpDef* OpTable::find(std::string_view name) const {
  const auto it = std::lower_bound(names_.begin(), names_.end(), name);
  return it != names_.end() && *it == name ? ops_[static_cast<std::size_t>(it - names_.begin())]
                                           : nullptr;
}

const OpDef& OpTable::get(std::string_view name) const {
  if (const OpDef* op = find(name)) return *op;
  throw TypeError(fmt::format("there is no op '{}'{}", name, did_you_mean(name, names_)));
}

const OpTable& table() {
  static const OpTable all = [] {
    std::vector<const OpDef*> ops(ir::leaf_ops().begin(), ir::leaf_ops().end());
    for (const auto family : {arithmetic_ops, activation_ops, reduce_ops, movement_ops, slicing_ops,
                              index_ops, contract_ops, conv_ops, pool_ops, norm_ops, attention_ops,
                              random_ops, recurrent_ops, topk_ops, grid_ops, loss_ops, update_ops})
      for (const OpDef* op : family()) ops.push_back(op);
    return OpTable(std::move(ops));
  }();
  return all;
}

Graph parse_graph(std::string_view text, std::string_view file, const OpTable& ops) {
  return ir::parse(text, file, [&](std::string_view name) { return ops.find(name); }, ops.names());
}

namespace {
void check_operands(const OpDef& op, const std::vector<Operand>& inputs,
                    const ir::Provenance& where) {
  const Operand* first = nullptr;
  for (std::size_t k = 0; k < inputs.size(); ++k) {
    if (inputs[k].is_number()) continue;
    if (!inputs[k].is_tensor())
      ir::throw_type_error(op.name, where, fmt::format("input {} is an empty handle", k));
    if (first != nullptr && inputs[k].tensor().graph() != first->tensor().graph())
      ir::throw_type_error(op.name, where, "the inputs belong to different graphs");
    if (first == nullptr) first = &inputs[k];
  }
  if (first == nullptr) ir::throw_type_error(op.name, where, "needs at least one tensor");
}

// The last tensor that is no index or condition: plain numbers take its dtype.
const Tensor* model_of_numbers(const OpDef& op, const std::vector<Operand>& inputs) {
  for (auto k = static_cast<int>(inputs.size()); k-- > 0;)
    if (inputs[k].is_tensor() && !op.is_index(k)) return &inputs[k].tensor();
  return nullptr;
}

// Turns plain numbers into scalar constants beside the tensors.
std::vector<Tensor> to_tensors(const OpDef& op, const std::vector<Operand>& inputs,
                               const ir::Provenance& where) {
  const Tensor* model = model_of_numbers(op, inputs);
  std::vector<Tensor> tensors;
  for (const Operand& input : inputs) {
    if (input.is_tensor()) {
      tensors.push_back(input.tensor());
      continue;
    }
    const double value = input.number();
    if (model == nullptr)
      ir::throw_type_error(op.name, where,
                           fmt::format("the number {} has no dtype, for no other input tells it; "
                                       "full_beside makes a tensor of numbers",
                                       exact(value)));
    if (!can_hold(model->dtype(), value))
      ir::throw_type_error(op.name, where,
                           fmt::format("the number {} does not fit the dtype of {}", exact(value),
                                       model->type().str()));
    tensors.push_back(
        model->graph()->append(ir::constant_op(), {}, {value, model->dtype(), Ints{}}, where)[0]);
  }
  return tensors;
}

void broadcast_all(const OpDef& op, std::vector<Tensor>& tensors, const ir::Provenance& where) {
  Shape common;
  std::vector<Type> types;
  for (const Tensor& t : tensors) types.push_back(t.type());
  const auto described = [&] { return InferContext(op, types, {}).describe_inputs(); };
  for (const Type& type : types) {
    bool fits = false;
    try {
      fits = broadcast_shapes(common, type.shape, common);
    } catch (const TypeError& error) {
      ir::throw_type_error(op.name, where, fmt::format("{} ({})", error.what(), described()));
    }
    if (!fits) ir::throw_type_error(op.name, where, "shapes do not broadcast: " + described());
  }
  // A constant is made in the right shape at once.
  for (Tensor& t : tensors) {
    if (t.shape() == common) continue;
    const std::optional<double> splat = ir::splat_value(t.graph()->node(t.id().node));
    t = splat ? full_beside(t, common, *splat) : broadcast_to(t, common);
  }
}
}  // namespace

std::vector<Tensor> apply(const OpDef& op, const std::vector<Operand>& inputs, AttrValues attrs) {
  const ir::Provenance where =
      inputs.empty() ? ir::Provenance{} : ir::provenance(inputs[0].where());
  const auto owner =
      std::find_if(inputs.begin(), inputs.end(), [](const Operand& o) { return o.is_tensor(); });
  const ir::Provenance place =
      owner == inputs.end() ? where : owner->tensor().graph()->effective(where);
  check_operands(op, inputs, place);
  std::vector<Tensor> tensors = to_tensors(op, inputs, place);
  ir::GraphData& graph = *tensors[0].graph();
  const auto count = static_cast<int>(tensors.size());
  if (op.pointwise && count >= op.min_inputs() && count <= op.max_inputs().value_or(count)) {
    ir::GraphData::Scope scope(graph, place);
    broadcast_all(op, tensors, place);
  }
  return graph.append(op, tensors, std::move(attrs), place);
}

std::vector<Tensor> apply(std::string_view name, const std::vector<Operand>& inputs,
                          const ir::NamedAttrs& attrs) {
  const OpDef& op = table().get(name);
  return apply(op, inputs, ir::bind_attributes(op, attrs));
}

std::vector<Tensor> expand(const OpDef& op, const AttrValues& attrs, std::span<const Tensor> inputs,
                           const ir::Provenance& where) {
  ir::GraphData::Scope scope(*inputs[0].graph(), where);
  return op.expand(ExpandContext(inputs), attrs);
}

void Pointwise::infer(InferContext& c) {
  c.require_float(0);
  PointwiseNumeric::infer(c);
}

void PointwiseNumeric::infer(InferContext& c) {
  for (int i = 0; i < c.count(); ++i) {
    if (c.in(i).dtype == boolean)
      c.fail(fmt::format("{} must be numbers, got {}", c.name_of(i), c.in(i).str()));
    if (c.in(i).dtype != c.in(0).dtype) c.fail("dtypes differ: " + c.describe_inputs());
    if (!(c.shape(i) == c.shape(0))) c.fail("shapes differ: " + c.describe_inputs());
  }
  c.result(c.in(0));
}

void PointwiseTest::infer(InferContext& c) {
  PointwiseNumeric::infer(c);
  c.results()[0].dtype = boolean;
}

std::vector<Sample> pointwise_samples(std::vector<Range> ranges, AttrValues attrs) {
  std::vector<Sample> samples;
  for (const Shape& shape : {Shape{}, Shape{1}, Shape{3, 3}, Shape{2, 3, 5}, Shape{0, 4}}) {
    Sample s{{}, attrs};
    for (const Range& range : ranges) s.inputs.push_back(floats(shape, range.low, range.high));
    samples.push_back(std::move(s));
  }
  return samples;
}

}  // namespace ops
}  // namespace pantala
