#include "onnx/model_inputs.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <set>

#include "base/text.h"
#include "onnx/merged_weights.h"
#include "onnx/node_scope.h"
#include "pantala/error.h"

namespace pantala::onnx {

namespace {

class Leaves {
 public:
  Leaves(const pb::GraphProto& graph, Context& context) : graph_(graph), context_(context) {}

  Values run() {
    if (graph_.sparse_initializer_size() > 0)
      throw UnsupportedError(context_.source.name + ": sparse initialisers are not read");
    find_states();
    for (const pb::TensorProto& tensor : graph_.initializer()) add_initializer(tensor);
    check_names();
    for (const pb::ValueInfoProto& input : graph_.input())
      if (!values_.contains(input.name()) || context_.options.bind.contains(input.name()))
        add_input(input);
    if (!problems_.empty())
      throw TypeError(fmt::format("{}: {}", context_.source.name, fmt::join(problems_, "; ")));
    return std::move(values_);
  }

 private:
  // They are no parameters: they are not trained.
  void find_states() {
    for (const pb::NodeProto& node : graph_.node())
      for (int k = 0; k < node.input_size(); ++k)
        if (is_state_input(node, k)) states_.insert(node.input(k));
  }

  // A single number is an option (0.5, an epsilon), not a weight; as a list of one it is if an
  // exporter numbered it.
  static bool is_option(const pb::TensorProto& tensor, const Type& type) {
    return type.shape.rank() == 0 || (type.shape == Shape{1} && is_counted_name(tensor.name()));
  }

  // Zeros, and numbers below all others for what attention must not see: no weight, whatever its
  // name. Of zeros alone it is one unless it can only be a mask that hides nothing.
  bool is_mask(const pb::TensorProto& tensor) const {
    constexpr double kHidden = -1e30;
    const auto is_either = [](double value) { return value == 0 || value <= kHidden; };
    // The first element of almost every weight tells.
    if (!is_either(first_float(tensor))) return false;
    const Literal values = tensor_literal(tensor, context_.source);
    if (!std::ranges::all_of(values.f(), is_either)) return false;
    return std::ranges::any_of(values.f(), [](double value) { return value != 0; }) ||
           (tensor.name().find('.') == std::string::npos && masks_softmax(tensor.name()));
  }
  static double first_float(const pb::TensorProto& tensor) {
    float first = 1;
    if (tensor.data_type() != pb::TensorProto::FLOAT) return first;
    if (tensor.raw_data().size() >= sizeof first)
      std::memcpy(&first, tensor.raw_data().data(), sizeof first);
    else if (tensor.float_data_size() > 0)
      first = tensor.float_data(0);
    return first;
  }
  // Whether it is only ever added to what a softmax takes.
  bool masks_softmax(const std::string& name) const {
    const std::vector<const pb::NodeProto*> sums = readers(name);
    return !sums.empty() && std::ranges::all_of(sums, [&](const pb::NodeProto* sum) {
      if (sum->op_type() != "Add" || sum->output_size() != 1) return false;
      const std::vector<const pb::NodeProto*> next = readers(sum->output(0));
      return next.size() == 1 && next[0]->op_type() == "Softmax";
    });
  }
  std::vector<const pb::NodeProto*> readers(const std::string& name) const {
    std::vector<const pb::NodeProto*> found;
    for (const pb::NodeProto& node : graph_.node())
      if (std::ranges::find(node.input(), name) != node.input().end()) found.push_back(&node);
    return found;
  }

  void add_initializer(const pb::TensorProto& tensor) {
    if (tensor.name().empty())
      throw TypeError(context_.source.name + ": an initialiser has no name");
    const Type type = tensor_type(tensor, context_.source);
    auto value = std::make_shared<Value>(Value{.name = tensor.name(), .type = type});
    if (is_float(type.dtype) && !is_option(tensor, type) && !is_mask(tensor)) {
      value->weight = &tensor;
      value->is_state = states_.contains(tensor.name());
    } else {
      value->constant = std::make_shared<const Literal>(tensor_literal(tensor, context_.source));
    }
    if (!values_.emplace(tensor.name(), std::move(value)).second)
      throw TypeError(fmt::format("{}: two initialisers have the name '{}'", context_.source.name,
                                  tensor.name()));
  }

  // Every name in the options must mean something.
  void check_names() {
    std::vector<std::string> inputs, sizes;
    for (const pb::ValueInfoProto& input : graph_.input()) {
      inputs.push_back(input.name());
      for (const auto& dim : input.type().tensor_type().shape().dim())
        if (!dim.dim_param().empty()) sizes.push_back(dim.dim_param());
    }
    const auto check = [&](const auto& given, const std::vector<std::string>& known,
                           std::string_view what) {
      for (const auto& [name, value] : given)
        if (std::find(known.begin(), known.end(), name) == known.end())
          throw TypeError(fmt::format("{}: it has no {} '{}'{}", context_.source.name, what, name,
                                      did_you_mean(name, known)));
    };
    check(context_.options.sizes, sizes, "symbolic size");
    check(context_.options.shapes, inputs, "input");
    check(context_.options.bind, inputs, "input");
  }

  void add_input(const pb::ValueInfoProto& input) {
    const std::string& name = input.name();
    if (name.empty()) throw TypeError(context_.source.name + ": an input has no name");
    const auto bound = context_.options.bind.find(name);
    if (!input.type().has_tensor_type())
      throw UnsupportedError(
          fmt::format("{}: input '{}' is no tensor", context_.source.name, name));
    const pb::TypeProto::Tensor& given = input.type().tensor_type();
    const std::optional<DType> dtype = dtype_of(given.elem_type());
    if (!dtype)
      throw UnsupportedError(fmt::format("{}: input '{}': elements of type {} are not available",
                                         context_.source.name, name,
                                         onnx_type_name(given.elem_type())));
    if (bound != context_.options.bind.end()) {
      add_bound(input, *dtype, bound->second);
      return;
    }
    const std::optional<Shape> shape = shape_of(name, given);
    if (!shape) return;
    auto value =
        std::make_shared<Value>(Value{.name = name, .type = {*dtype, *shape}, .sources = {name}});
    value->tensor = context_.graph.input(name, *shape, *dtype);
    if (!values_.emplace(name, std::move(value)).second)
      problems_.push_back(fmt::format("two inputs have the name '{}'", name));
  }

  void add_bound(const pb::ValueInfoProto& input, DType dtype, const Literal& literal) {
    const std::string& name = input.name();
    const pb::TypeProto::Tensor& given = input.type().tensor_type();
    if (literal.dtype() != dtype)
      problems_.push_back(fmt::format(
          "input '{}' has elements of {}, it is bound to {}: convert the array to {} first", name,
          dtype_name(dtype), literal.type().str(), dtype_name(dtype)));
    else if (given.has_shape() && !fits(given, literal.shape(), context_.options.any_batch))
      problems_.push_back(fmt::format("input '{}' has the shape {}, it is bound to {}", name,
                                      dims_text(given), literal.type().str()));
    else if (given.has_shape())
      check_sizes(name, given, literal.shape());
    auto value = std::make_shared<Value>(Value{.name = name, .type = literal.type()});
    value->constant = std::make_shared<const Literal>(literal);
    values_.insert_or_assign(name, std::move(value));
  }

  // Some exporters write -1 for a size that they do not know.
  static bool is_known(const pb::TensorShapeProto::Dimension& dim) {
    return dim.has_dim_value() && dim.dim_value() >= 0;
  }
  static std::string dims_text(const pb::TypeProto::Tensor& type) {
    std::vector<std::string> dims;
    for (const auto& dim : type.shape().dim())
      dims.push_back(is_known(dim)             ? std::to_string(dim.dim_value())
                     : dim.dim_param().empty() ? "?"
                                               : dim.dim_param());
    return fmt::format("[{}]", fmt::join(dims, ","));
  }
  static bool fits(const pb::TypeProto::Tensor& type, const Shape& shape, bool any_batch = false) {
    if (type.shape().dim_size() != shape.rank()) return false;
    for (int k = any_batch ? 1 : 0; k < shape.rank(); ++k)
      if (is_known(type.shape().dim(k)) && type.shape().dim(k).dim_value() != shape[k])
        return false;
    return true;
  }

  // A size that is given by its name and by the shape of an input is the same.
  void check_sizes(const std::string& name, const pb::TypeProto::Tensor& type, const Shape& shape) {
    for (int k = 0; k < shape.rank(); ++k) {
      const std::string& symbol = type.shape().dim(k).dim_param();
      const auto named = context_.options.sizes.find(symbol);
      if (named != context_.options.sizes.end() && named->second != shape[k])
        problems_.push_back(
            fmt::format("the size '{}' is given as {}, but input '{}' {} is given as {}", symbol,
                        named->second, name, dims_text(type), shape.str()));
    }
  }

  // None, with a reason in `problems_`, where something is missing.
  std::optional<Shape> shape_of(const std::string& name, const pb::TypeProto::Tensor& type) {
    const auto given = context_.options.shapes.find(name);
    if (given != context_.options.shapes.end()) {
      if (!type.has_shape()) return given->second;
      if (fits(type, given->second, context_.options.any_batch)) {
        check_sizes(name, type, given->second);
        return given->second;
      }
      problems_.push_back(fmt::format("input '{}' has the shape {}, not {}", name, dims_text(type),
                                      given->second.str()));
      return {};
    }
    if (!type.has_shape()) {
      problems_.push_back(fmt::format("input '{}' needs a shape: the file has none", name));
      return {};
    }
    return shape_from_sizes(name, type);
  }

  std::optional<Shape> shape_from_sizes(const std::string& name,
                                        const pb::TypeProto::Tensor& type) {
    if (type.shape().dim_size() > Shape::kMaxRank)
      throw UnsupportedError(fmt::format("{}: input '{}' has {} axes, at most {} are available",
                                         context_.source.name, name, type.shape().dim_size(),
                                         Shape::kMaxRank));
    std::vector<std::int64_t> sizes;
    const std::size_t problems = problems_.size();
    for (const auto& dim : type.shape().dim()) {
      const auto named = context_.options.sizes.find(dim.dim_param());
      if (is_known(dim))
        sizes.push_back(dim.dim_value());
      else if (!dim.dim_param().empty() && named != context_.options.sizes.end())
        sizes.push_back(named->second);
      else if (dim.dim_param().empty())
        problems_.push_back(
            fmt::format("input '{}' needs a shape: {} in the file", name, dims_text(type)));
      else
        problems_.push_back(fmt::format("input '{}' {}: the size '{}' must be given", name,
                                        dims_text(type), dim.dim_param()));
    }
    if (problems_.size() > problems) return {};
    try {
      return Shape(sizes);
    } catch (const TypeError& error) {
      problems_.push_back(fmt::format("input '{}': {}", name, error.what()));
      return {};
    }
  }

  const pb::GraphProto& graph_;
  Context& context_;
  Values values_;
  std::set<std::string> states_;
  std::vector<std::string> problems_;
};

}  // namespace

bool is_default_domain(std::string_view domain) { return domain.empty() || domain == "ai.onnx"; }

Values leaf_values(const pb::GraphProto& graph, Context& context) {
  return Leaves(graph, context).run();
}

}  // namespace pantala::onnx
