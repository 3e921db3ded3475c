#include "onnx/training_notes.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <optional>
#include <set>
#include <tuple>

#include "base/hash.h"
#include "onnx/merged_weights.h"
#include "onnx/model_inputs.h"
#include "onnx/node.h"
#include "onnx/node_scope.h"

namespace pantala::onnx {

namespace {

constexpr std::size_t kMostNames = 3;

// "'a', 'b', 'c' and 4 more"
std::string listed(const std::vector<std::string>& names) {
  const std::vector<std::string> shown(
      names.begin(),
      names.begin() + static_cast<std::ptrdiff_t>(std::min(names.size(), kMostNames)));
  const std::string text = fmt::format("'{}'", fmt::join(shown, "', '"));
  return names.size() <= kMostNames
             ? text
             : fmt::format("{} and {} more", text, names.size() - kMostNames);
}

bool is_one_of(const pb::NodeProto& node, std::initializer_list<std::string_view> ops) {
  return is_default_domain(node.domain()) &&
         std::find(ops.begin(), ops.end(), node.op_type()) != ops.end();
}

class Notes {
 public:
  Notes(const pb::ModelProto& model, const TensorPlace& source)
      : model_(model), graph_(model.graph()), source_(source), scopes_(model) {
    for (const pb::NodeProto& node : graph_.node())
      for (int k = 0; k < node.input_size(); ++k) {
        read_.insert(node.input(k));
        if (is_state_input(node, k)) states_.insert(node.input(k));
      }
  }

  std::vector<std::string> run(const std::vector<std::string>& guessed) {
    if (!guessed.empty())
      lines_.push_back(
          fmt::format("{}: read by several nodes, and the file does not say whether that is one "
                      "weight or equal ones of several layers; each node trains its own",
                      listed(guessed)));
    folded_norms();
    dropped_biases();
    single_numbers();
    constant_weights();
    copies_of_tied_weights();
    merged_copies();
    shared_weights();
    computed_values();
    return std::move(lines_);
  }

 private:
  // The older exporter gives the weight a name of its own, the newer one tells whose node it was.
  bool has_folded_norm(const pb::NodeProto& node) const {
    return node.input(1).starts_with("onnx::Conv") ||
           scopes_.of(node).function.find("batch_norm") != std::string::npos;
  }
  void folded_norms() {
    std::vector<std::string> found;
    for (const pb::NodeProto& node : graph_.node())
      if (is_one_of(node, {"Conv", "ConvTranspose", "Gemm"}) && node.input_size() > 1 &&
          has_folded_norm(node))
        found.push_back(label_of(node));
    if (!found.empty())
      lines_.push_back(
          fmt::format("the exporter folded batch norm into {}: it is trained without that norm "
                      "(docs/onnx.md says how to export for training)",
                      listed(found)));
  }

  // The newer exporter leaves out a bias of zeros; the call still has it.
  void dropped_biases() {
    std::vector<std::string> found;
    for (const pb::NodeProto& node : graph_.node()) {
      if (!is_one_of(node, {"Conv", "ConvTranspose", "Gemm"}) || node.input_size() != 2 ||
          has_folded_norm(node))
        continue;
      for (const std::string& name : scopes_.parameters(node))
        if (name.ends_with("bias") && !read_.contains(name)) found.push_back(name);
    }
    if (!found.empty())
      lines_.push_back(
          fmt::format("the exporter left out {}, zeros so far: the layer is trained without "
                      "(docs/onnx.md says how to export for training)",
                      listed(found)));
  }

  void single_numbers() {
    std::vector<std::string> found;
    for (const pb::TensorProto& tensor : graph_.initializer()) {
      const std::optional<DType> dtype = dtype_of(tensor.data_type());
      if (tensor.dims_size() == 0 && dtype && is_float(*dtype) && read_.contains(tensor.name()) &&
          is_parameter_name(tensor.name(), model_))
        found.push_back(tensor.name());
    }
    if (!found.empty())
      lines_.push_back(fmt::format(
          "{}: single numbers are not trained (a parameter of shape [1] is)", listed(found)));
  }

  void constant_weights() {
    std::set<std::string> constants;
    for (const pb::NodeProto& node : graph_.node())
      if (is_one_of(node, {"Constant"}))
        for (const pb::AttributeProto& attribute : node.attribute())
          if (attribute.name() == "value" && attribute.t().dims_size() > 1 &&
              node.output_size() > 0)
            constants.insert(node.output(0));
    std::vector<std::string> found;
    for (const pb::NodeProto& node : graph_.node())
      if (is_one_of(node, {"Conv", "ConvTranspose", "Gemm", "MatMul"}) && node.input_size() > 1 &&
          constants.contains(node.input(1)))
        found.push_back(label_of(node));
    if (!found.empty())
      lines_.push_back(fmt::format(
          "the weights of {} are constants of the graph, no initialisers: they are not trained",
          listed(found)));
  }

  struct Matrix {
    std::vector<std::byte> bytes;
    std::size_t rows, columns, size;  // of an element

    const std::byte* at(std::size_t row, std::size_t column) const {
      return &bytes[(row * columns + column) * size];
    }
    bool varies() const {
      return bytes.size() > size &&
             std::memcmp(bytes.data(), bytes.data() + size, bytes.size() - size) != 0;
    }
    // The same for every order of the elements.
    std::uint64_t content() const {
      std::uint64_t sum = 0;
      for (std::size_t k = 0; k < bytes.size(); k += size)
        sum += fnv1a(std::string_view(reinterpret_cast<const char*>(&bytes[k]), size));
      return sum;
    }
    bool is_transposed(const Matrix& other) const {
      for (std::size_t r = 0; r < rows; ++r)
        for (std::size_t c = 0; c < columns; ++c)
          if (std::memcmp(at(r, c), other.at(c, r), size) != 0) return false;
      return true;
    }
  };
  // None for what is no weight, or the same number everywhere.
  std::optional<Matrix> matrix_of(const pb::TensorProto& tensor) const {
    const std::optional<DType> dtype = dtype_of(tensor.data_type());
    if (tensor.dims_size() != 2 || !dtype || !is_float(*dtype) || !read_.contains(tensor.name()))
      return {};
    Matrix matrix{.bytes = tensor_bytes(tensor, source_),
                  .rows = static_cast<std::size_t>(tensor.dims(0)),
                  .columns = static_cast<std::size_t>(tensor.dims(1)),
                  .size = static_cast<std::size_t>(dtype_bytes(*dtype))};
    return matrix.varies() ? std::optional(std::move(matrix)) : std::nullopt;
  }

  // A weight that two layers share is one parameter; what the exporter computed of it is another.
  void copies_of_tied_weights() {
    using Key = std::tuple<int, std::size_t, std::size_t, std::uint64_t>;
    std::map<Key, const pb::TensorProto*> computed;
    for (const pb::TensorProto& tensor : graph_.initializer())
      if (!is_parameter_name(tensor.name(), model_))
        if (const std::optional<Matrix> matrix = matrix_of(tensor))
          computed.emplace(
              Key{tensor.data_type(), matrix->columns, matrix->rows, matrix->content()}, &tensor);
    if (computed.empty()) return;
    for (const pb::TensorProto& tensor : graph_.initializer()) {
      if (!is_parameter_name(tensor.name(), model_)) continue;
      const std::optional<Matrix> matrix = matrix_of(tensor);
      if (!matrix) continue;
      const auto found =
          computed.find(Key{tensor.data_type(), matrix->rows, matrix->columns, matrix->content()});
      if (found != computed.end() && matrix->is_transposed(*matrix_of(*found->second)))
        lines_.push_back(
            fmt::format("'{}' is '{}', transposed by the exporter: the two are tied in the "
                        "network, and are trained apart here",
                        found->second->name(), tensor.name()));
    }
  }

  // What the older exporter computed of weights, and merged: of one layer that is used twice, or of
  // two that were equal.
  void merged_copies() {
    std::set<std::string> initialisers;
    for (const pb::TensorProto& tensor : graph_.initializer())
      if (tensor.dims_size() > 0) initialisers.insert(tensor.name());
    std::vector<std::string> found;
    for (const pb::NodeProto& node : graph_.node())
      if (is_one_of(node, {"Identity"}) && node.input_size() == 1 && node.output_size() == 1 &&
          node.output(0).starts_with("onnx::") && read_.contains(node.output(0)) &&
          initialisers.contains(node.input(0)))
        found.push_back(node.output(0));
    if (!found.empty())
      lines_.push_back(fmt::format(
          "{} were equal to other weights when the file was written, and are trained as "
          "one with these (docs/onnx.md says how to export for training)",
          listed(found)));
  }

  struct Readers {
    std::set<std::string> layers;
    bool is_told = true;  // that they all mean this weight
  };
  // Of all weights, also through Identity; nodes that tell no layer are left out.
  std::map<std::string, Readers> readers() const {
    std::map<std::string, std::string> behind;
    for (const pb::TensorProto& tensor : graph_.initializer())
      if (const std::optional<DType> dtype = dtype_of(tensor.data_type());
          dtype && is_float(*dtype) && tensor.dims_size() > 0)
        behind.emplace(tensor.name(), tensor.name());
    std::map<std::string, Readers> all;
    for (const pb::NodeProto& node : graph_.node())
      for (const std::string& input : node.input()) {
        const auto weight = behind.find(input);
        if (weight == behind.end()) continue;
        if (is_one_of(node, {"Identity"}) && node.output_size() == 1)
          behind.emplace(node.output(0), weight->second);
        else
          add_reader(all[weight->second], node, weight->second);
      }
    return all;
  }
  void add_reader(Readers& readers, const pb::NodeProto& node, const std::string& weight) const {
    const NodeScope scope = scopes_.of(node);
    if (!scope.is_told) return;
    readers.layers.insert(scope.layer.empty() ? "(the network)" : scope.layer);
    const std::vector<std::string> called = scopes_.parameters(node);
    readers.is_told =
        readers.is_told && std::find(called.begin(), called.end(), weight) != called.end();
  }

  // Tied in the network, or merged in a way that could not be told from it.
  void shared_weights() {
    std::size_t count = 0;
    for (const auto& [weight, readers] : readers()) {
      if (readers.layers.size() < 2 || readers.is_told) continue;
      if (++count <= kMostNames)
        lines_.push_back(fmt::format("'{}' is read by the layers {}: it is trained as one weight",
                                     weight,
                                     listed({readers.layers.begin(), readers.layers.end()})));
    }
    if (count > kMostNames)
      lines_.push_back(fmt::format("{} more weights are read by several layers, and trained as one",
                                   count - kMostNames));
  }

  // The newer exporter writes constants of the network in the same way as what it computed of
  // weights.
  void computed_values() {
    if (model_.producer_name() != "pytorch") return;
    std::vector<std::string> found;
    for (const pb::TensorProto& tensor : graph_.initializer()) {
      const std::optional<DType> dtype = dtype_of(tensor.data_type());
      if (tensor.name().starts_with("val_") && tensor.dims_size() > 0 && dtype &&
          is_float(*dtype) && read_.contains(tensor.name()) && !states_.contains(tensor.name()))
        found.push_back(tensor.name());
    }
    if (!found.empty())
      lines_.push_back(
          fmt::format("{}: computed by the exporter, of weights or of constants; they are trained "
                      "(docs/onnx.md says how to export for training)",
                      listed(found)));
  }

  const pb::ModelProto& model_;
  const pb::GraphProto& graph_;
  const TensorPlace& source_;
  const Scopes scopes_;
  std::set<std::string> read_, states_;  // by nodes
  std::vector<std::string> lines_;
};

}  // namespace

std::vector<std::string> training_notes(const pb::ModelProto& model, const TensorPlace& source,
                                        const std::vector<std::string>& guessed) {
  return Notes(model, source).run(guessed);
}

}  // namespace pantala::onnx
