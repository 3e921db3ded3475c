#include "onnx/export_symbolic.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <vector>

#include "onnx/export_writer.h"
#include "pantala/error.h"

namespace pantala::onnx {

namespace {

[[noreturn]] void refuse(const std::string& what) {
  throw UnsupportedError(
      fmt::format("{} depends on the batch size in a way that has no form", what));
}

// How often the batch is in a size that is `one` and `other` in the two files; 0: it is the same.
std::optional<std::int64_t> batches_in(std::int64_t one, std::int64_t other) {
  if (one == other) return 0;
  if (one % kOneBatch != 0 || one <= 0 || one / kOneBatch * kOtherBatch != other) return {};
  return one / kOneBatch;
}

// A list of sizes, some of them multiples of the batch.
struct SizeList {
  std::vector<std::int64_t> fixed;    // 0 where it is none
  std::vector<std::int64_t> batches;  // how often the batch; 0: it is a fixed one
  std::int64_t open() const {
    return std::count_if(batches.begin(), batches.end(), [](std::int64_t n) { return n > 0; });
  }
};

std::optional<SizeList> size_list(const pb::TensorProto& one, const pb::TensorProto& other) {
  const bool are_lists = one.data_type() == pb::TensorProto::INT64 &&
                         other.data_type() == pb::TensorProto::INT64 && one.dims_size() == 1 &&
                         other.dims_size() == 1 && one.dims(0) == other.dims(0);
  if (!are_lists) return {};
  const Literal a = tensor_literal(one, {}), b = tensor_literal(other, {});
  SizeList list;
  for (std::size_t k = 0; k < a.i().size(); ++k) {
    const std::optional<std::int64_t> batches = batches_in(a.i()[k], b.i()[k]);
    if (!batches) return {};
    list.batches.push_back(*batches);
    list.fixed.push_back(*batches > 0 ? 0 : a.i()[k]);
  }
  return list;
}

class Unification {
 public:
  Unification(pb::GraphProto& one, const pb::GraphProto& other,
              const std::set<std::string>& weights)
      : one_(one), other_(other), weights_(weights) {}

  void run() {
    check_same_nodes();
    open_values(*one_.mutable_input(), other_.input(), true);
    open_values(*one_.mutable_output(), other_.output(), false);
    if (batch_input_.empty()) throw UnsupportedError("no input has the size of the batch");
    const std::map<std::string, SizeList> lists = open_lists();
    for (const auto& [name, list] : lists) replace(name, list);
    put_first();
  }

 private:
  void check_same_nodes() const {
    if (one_.node_size() != other_.node_size()) refuse("the graph");
    for (int k = 0; k < one_.node_size(); ++k) {
      const pb::NodeProto &a = one_.node(k), &b = other_.node(k);
      if (a.SerializeAsString() != b.SerializeAsString())
        refuse(fmt::format("{} '{}'", a.op_type(), a.name()));
    }
  }

  // Sizes of inputs and outputs get the batch's name; multiples of it have none.
  template <class Values>
  void open_values(Values& values, const Values& others, bool inputs) {
    if (values.size() != others.size()) refuse("the graph");
    for (int k = 0; k < values.size(); ++k) {
      auto& shape = *values.Mutable(k)->mutable_type()->mutable_tensor_type()->mutable_shape();
      const auto& other = others.Get(k).type().tensor_type().shape();
      if (shape.dim_size() != other.dim_size()) refuse(fmt::format("'{}'", values.Get(k).name()));
      for (int axis = 0; axis < shape.dim_size(); ++axis) {
        const std::optional<std::int64_t> batches =
            batches_in(shape.dim(axis).dim_value(), other.dim(axis).dim_value());
        if (!batches || (inputs && *batches > 1)) refuse(fmt::format("'{}'", values.Get(k).name()));
        if (*batches == 0) continue;
        shape.mutable_dim(axis)->clear_dim_value();
        if (*batches == 1) shape.mutable_dim(axis)->set_dim_param(kBatchName);
        if (!inputs || !batch_input_.empty()) continue;
        batch_input_ = values.Get(k).name();
        batch_axis_ = axis;
      }
    }
  }

  std::map<std::string, SizeList> open_lists() const {
    if (one_.initializer_size() != other_.initializer_size()) refuse("the graph");
    std::map<std::string, SizeList> lists;
    for (int k = 0; k < one_.initializer_size(); ++k) {
      const pb::TensorProto &a = one_.initializer(k), &b = other_.initializer(k);
      if (a.name() != b.name()) refuse("the graph");
      if (weights_.contains(a.name()) || a.SerializeAsString() == b.SerializeAsString()) continue;
      const std::optional<SizeList> list = size_list(a, b);
      if (!list) refuse(fmt::format("the constant '{}'", a.name()));
      lists.emplace(a.name(), *list);
    }
    return lists;
  }

  bool only_reshapes_read(const std::string& name) const {
    for (const pb::NodeProto& node : one_.node())
      for (int k = 0; k < node.input_size(); ++k)
        if (node.input(k) == name &&
            (node.op_type() != "Reshape" || k != 1 || node.attribute_size() > 0))
          return false;
    return true;
  }

  // Where one size is open, Reshape finds it by itself; elsewhere the list is put together from the
  // input's shape, under its own name.
  void replace(const std::string& name, const SizeList& list) {
    pb::TensorProto& tensor =
        *std::find_if(one_.mutable_initializer()->begin(), one_.mutable_initializer()->end(),
                      [&](const pb::TensorProto& candidate) { return candidate.name() == name; });
    const bool has_zero = std::count(list.fixed.begin(), list.fixed.end(), 0) > list.open();
    if (list.open() == 1 && !has_zero && only_reshapes_read(name)) {
      std::vector<std::int64_t> sizes = list.fixed;
      std::replace(sizes.begin(), sizes.end(), std::int64_t{0}, std::int64_t{-1});
      set_list(tensor, name, sizes);
      return;
    }
    Names parts;
    for (std::size_t k = 0; k < list.fixed.size(); ++k)
      parts.push_back(list.batches[k] == 0 ? number(list.fixed[k]) : batches(list.batches[k]));
    tensor.set_name(fresh(name));  // nobody reads it any more
    unread_.insert(tensor.name());
    add("Concat", parts, name, "axis");
  }

  static void set_list(pb::TensorProto& tensor, const std::string& name,
                       const std::vector<std::int64_t>& values) {
    tensor.Clear();
    set_tensor(tensor, name, Literal::ints({std::ssize(values)}, values));
  }

  std::string fresh(const std::string& stem) const { return "batch/" + stem; }

  std::string number(std::int64_t value) {
    const std::string name = fresh(std::to_string(value));
    if (made_.insert(name).second) set_list(*one_.add_initializer(), name, {value});
    return name;
  }

  // [batch * count]
  std::string batches(std::int64_t count) {
    const std::string size = fresh("size");
    if (made_.insert(size).second) {
      add("Shape", {batch_input_}, fresh("shape"));
      add("Gather", {fresh("shape"), number(batch_axis_)}, size);
    }
    if (count == 1) return size;
    const std::string name = fresh(fmt::format("size_times_{}", count));
    if (made_.insert(name).second) add("Mul", {size, number(count)}, name);
    return name;
  }

  void add(const std::string& op, const Names& inputs, const std::string& output,
           const char* zero_attribute = nullptr) {
    pb::NodeProto& node = first_.emplace_back();
    node.set_op_type(op);
    node.set_name(fresh(fmt::format("{}_{}", op, first_.size())));
    for (const std::string& input : inputs) node.add_input(input);
    node.add_output(output);
    if (zero_attribute == nullptr) return;
    pb::AttributeProto& attribute = *node.add_attribute();
    attribute.set_name(zero_attribute);
    attribute.set_type(pb::AttributeProto::INT);
    attribute.set_i(0);
  }

  // Before all nodes that read them; lists that were replaced go.
  void put_first() {
    google::protobuf::RepeatedPtrField<pb::NodeProto> nodes(first_.begin(), first_.end());
    nodes.MergeFrom(one_.node());
    one_.mutable_node()->Swap(&nodes);
    auto& initializers = *one_.mutable_initializer();
    initializers.erase(std::remove_if(initializers.begin(), initializers.end(),
                                      [&](const pb::TensorProto& tensor) {
                                        return unread_.contains(tensor.name());
                                      }),
                       initializers.end());
  }

  pb::GraphProto& one_;
  const pb::GraphProto& other_;
  const std::set<std::string>& weights_;
  std::string batch_input_;
  std::int64_t batch_axis_ = 0;
  std::vector<pb::NodeProto> first_;
  std::set<std::string> made_, unread_;
};

}  // namespace

void make_batch_symbolic(pb::ModelProto& one, const pb::ModelProto& other,
                         const std::set<std::string>& weights) {
  Unification(*one.mutable_graph(), other.graph(), weights).run();
}

}  // namespace pantala::onnx
