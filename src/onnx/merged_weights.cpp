#include "onnx/merged_weights.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "onnx/model_inputs.h"
#include "onnx/node_scope.h"
#include "pantala/error.h"

namespace pantala::onnx {

namespace {

// Elements that separated weights may have, for each that the file's weights have, and for none.
constexpr std::int64_t kMostCopies = 64, kFreeCopies = 1 << 20;
constexpr std::int64_t kMostElements = std::int64_t{1} << 50;
// Elements of a weight that PyTorch's newer exporter merges.
constexpr std::int64_t kMostMerged = 1024;
// Inputs of a node whose weights are looked up in its call, which is read for each.
constexpr int kMostInputs = 64;

// What an input of an operator is to its layer, in PyTorch's word for it.
struct Role {
  std::string_view op;
  int input;
  std::string_view name;
  bool is_state = false;
  // It may be anything else as well: only where the layer is known, and another than the weight's.
  bool needs_layer = false;
};
constexpr Role kRoles[] = {
    {"BatchNormalization", 1, "weight"},
    {"BatchNormalization", 2, "bias"},
    {"BatchNormalization", 3, "running_mean", true},
    {"BatchNormalization", 4, "running_var", true},
    {"LSTM", 5, "initial_h", true},
    {"LSTM", 6, "initial_c", true},
    {"GRU", 5, "initial_h", true},
    {"RNN", 5, "initial_h", true},
    {"LayerNormalization", 1, "weight"},
    {"LayerNormalization", 2, "bias"},
    {"GroupNormalization", 1, "weight"},
    {"GroupNormalization", 2, "bias"},
    {"InstanceNormalization", 1, "weight"},
    {"InstanceNormalization", 2, "bias"},
    {"RMSNormalization", 1, "weight"},
    {"Conv", 2, "bias"},
    {"ConvTranspose", 2, "bias"},
    {"Gemm", 2, "bias"},
    {"Add", 0, "bias", false, true},
    {"Add", 1, "bias", false, true},
    {"Mul", 0, "weight", false, true},
    {"Mul", 1, "weight", false, true},
    {"PRelu", 1, "weight"},
};
// Whose second input is called a weight as well: for finding it in a call.
constexpr std::string_view kProducts[] = {"Conv", "ConvTranspose", "Gemm", "MatMul"};
const Role* role_of(const pb::NodeProto& node, int input) {
  const auto found = std::find_if(std::begin(kRoles), std::end(kRoles), [&](const Role& role) {
    return role.input == input && role.op == node.op_type();
  });
  return found != std::end(kRoles) && is_default_domain(node.domain()) ? &*found : nullptr;
}

std::string_view word_for(const pb::NodeProto& node, int input) {
  if (const Role* role = role_of(node, input)) return role->name;
  const bool is_product =
      std::find(std::begin(kProducts), std::end(kProducts), node.op_type()) != std::end(kProducts);
  return is_product && input == 1 ? "weight" : "";
}

bool is_identity(const pb::NodeProto& node) {
  return node.op_type() == "Identity" && is_default_domain(node.domain()) &&
         node.input_size() == 1 && node.output_size() == 1 && !Scopes::is_of_detach(node);
}

bool same_type(const pb::TensorProto& a, const pb::TensorProto& b) {
  return a.data_type() == b.data_type() &&
         std::equal(a.dims().begin(), a.dims().end(), b.dims().begin(), b.dims().end());
}

// "gammas." of "gammas.1", an entry of a list; "" of other names.
std::string list_of(std::string_view name) {
  const std::size_t dot = name.find_last_not_of("0123456789");
  const bool is_entry =
      dot != std::string_view::npos && dot + 1 < name.size() && dot > 0 && name[dot] == '.';
  return is_entry ? std::string(name.substr(0, dot + 1)) : "";
}

std::int64_t elements_of(const pb::TensorProto& tensor) {
  std::int64_t count = 1;
  for (const std::int64_t size : tensor.dims())
    if (size < 0 || __builtin_mul_overflow(count, size, &count)) return 0;
  return count;
}

class Separation {
 public:
  Separation(pb::ModelProto& model, const TensorPlace& source)
      : model_(model), graph_(*model.mutable_graph()), source_(source), scopes_(model) {}

  std::vector<std::string> run() {
    find_names();
    name_identities();
    find_uses();
    for (const auto& [name, uses] : uses_) separate(name, uses);
    return std::move(guessed_);
  }

 private:
  // An input of a node that reads a weight, directly or through an Identity.
  struct Use {
    int node, input;
    bool is_direct;
  };
  // The weight that a use is of.
  struct Meant {
    std::string name = {};    // "": the tensor's own, however many use it
    bool is_certain = false;  // or only if all numbers are equal
  };
  using Groups = std::vector<std::pair<std::string, std::vector<Use>>>;  // by their names

  const pb::TensorProto& tensor(const std::string& name) const {
    return graph_.initializer(weights_.at(name));
  }

  void find_names() {
    for (int k = 0; k < graph_.initializer_size(); ++k) {
      const pb::TensorProto& tensor = graph_.initializer(k);
      taken_.insert(tensor.name());
      const std::optional<DType> dtype = dtype_of(tensor.data_type());
      if (!dtype || !is_float(*dtype) || tensor.dims_size() == 0) continue;
      weights_.emplace(tensor.name(), k);
      elements_left_ = std::min(
          kMostElements, elements_left_ + kMostCopies * std::min(elements_of(tensor),
                                                                 kMostElements / kMostCopies));
    }
    for (const pb::ValueInfoProto& output : graph_.output()) outputs_.insert(output.name());
    for (const pb::ValueInfoProto& input : graph_.input()) taken_.insert(input.name());
    for (const pb::NodeProto& node : graph_.node())
      for (const std::string& output : node.output()) taken_.insert(output);
  }

  // The weight that a name stands for; "": none.
  std::string weight_behind(const std::string& name) const {
    if (weights_.contains(name)) return name;
    const auto alias = aliases_.find(name);
    return alias != aliases_.end() ? alias->second : "";
  }

  void add_copy(const std::string& weight, const std::string& name) {
    const std::int64_t elements = elements_of(tensor(weight));
    if (elements > elements_left_)
      throw UnsupportedError(
          fmt::format("{}: so many layers share '{}' that a weight for each would be far larger "
                      "than the file",
                      source_.name, weight));
    elements_left_ -= elements;
    pb::TensorProto copy = tensor(weight);
    copy.set_name(name);
    weights_.emplace(name, graph_.initializer_size());
    taken_.insert(name);
    *graph_.add_initializer() = std::move(copy);
  }

  // Entries of lists of parameters have names that values may have, too ("input.4"). Of values
  // there is one, of a list more.
  std::map<std::string, int> lists_of_weights() const {
    std::map<std::string, int> entries;
    for (const auto& [name, place] : weights_) ++entries[list_of(name)];
    for (const pb::NodeProto& node : graph_.node())
      if (is_identity(node) && weights_.contains(node.input(0))) ++entries[list_of(node.output(0))];
    entries.erase("");
    return entries;
  }

  // An Identity of a weight under the name of a parameter is that parameter.
  void name_identities() {
    const std::map<std::string, int> lists = lists_of_weights();
    const auto is_parameter = [&](const std::string& name) {
      const auto list = lists.find(list_of(name));
      return is_parameter_name(name, model_) || (list != lists.end() && list->second > 1);
    };
    int kept = 0;
    for (int k = 0; k < graph_.node_size(); ++k) {
      const pb::NodeProto& node = graph_.node(k);
      const std::string weight = is_identity(node) ? weight_behind(node.input(0)) : "";
      if (!weight.empty()) {
        const std::string& name = node.output(0);
        if (is_parameter(name) && !is_of_network(node) && !outputs_.contains(name) &&
            !weights_.contains(name)) {
          add_copy(weight, name);
          continue;
        }
        aliases_.emplace(name, weight);
      }
      graph_.mutable_node()->SwapElements(kept++, k);
    }
    graph_.mutable_node()->DeleteSubrange(kept, graph_.node_size() - kept);
  }

  void find_uses() {
    for (int k = 0; k < graph_.node_size(); ++k) {
      const pb::NodeProto& node = graph_.node(k);
      if (is_identity(node) && aliases_.contains(node.output(0)) &&
          !outputs_.contains(node.output(0)))
        continue;  // its readers are
      for (int input = 0; input < node.input_size(); ++input)
        if (const std::string weight = weight_behind(node.input(input)); !weight.empty())
          uses_[weight].push_back({k, input, weights_.contains(node.input(input))});
    }
  }

  // Weights that training begins with are zeros or ones; others are equal because they are one.
  bool all_equal(const std::string& weight) const {
    const std::vector<std::byte> bytes = tensor_bytes(tensor(weight), source_);
    const auto size =
        static_cast<std::size_t>(dtype_bytes(tensor_type(tensor(weight), source_).dtype));
    return bytes.size() >= size &&
           std::memcmp(bytes.data(), bytes.data() + size, bytes.size() - size) == 0;
  }

  // Whether equal weights stand side by side. Exporters do not merge large ones.
  bool has_equal_weights() {
    if (has_equal_weights_) return *has_equal_weights_;
    std::set<std::tuple<int, std::vector<std::int64_t>, std::vector<std::byte>>> seen;
    has_equal_weights_ = false;
    for (const auto& [name, place] : weights_) {
      const pb::TensorProto& weight = graph_.initializer(place);
      if (elements_of(weight) > kMostMerged) continue;
      const bool is_new =
          seen.emplace(weight.data_type(), std::vector(weight.dims().begin(), weight.dims().end()),
                       tensor_bytes(weight, source_))
              .second;
      if (!is_new) has_equal_weights_ = true;
    }
    return *has_equal_weights_;
  }

  // The parameter that a use is of, where the file has the call; "" where it does not, or not
  // clearly.
  std::string told_by_call(const std::string& weight, const Use& use) const {
    const pb::NodeProto& node = graph_.node(use.node);
    if (node.input_size() > kMostInputs) return "";
    std::vector<std::string> called = scopes_.parameters(node);
    // The weights among the inputs are these, one by one, unless the call became several nodes.
    std::size_t before = 0, all = 0;
    for (int k = 0; k < node.input_size(); ++k)
      if (!weight_behind(node.input(k)).empty()) ++all, before += k < use.input ? 1 : 0;
    std::string found = all == called.size() ? called[before] : "";
    if (found.empty()) {
      const std::string_view word = word_for(node, use.input);
      std::erase_if(called, [&](const std::string& name) { return !name.ends_with(word); });
      if (called.size() == 1) found = called.front();
    }
    const bool is_other = weights_.contains(found) && !same_type(tensor(found), tensor(weight));
    return is_other ? "" : found;
  }

  bool has_one_axis(const std::string& weight) const {
    const auto& dims = tensor(weight).dims();
    return std::count_if(dims.begin(), dims.end(), [](std::int64_t n) { return n != 1; }) <= 1;
  }
  // Whether the weight belongs to the layer, or to one around it, which may hand it in.
  static bool is_within(const std::string& layer, const std::string& weight) {
    const std::string owner = weight.substr(0, weight.rfind('.') + 1);
    return weight.starts_with(layer + ".") || (layer + ".").starts_with(owner);
  }

  Meant meant_by(const std::string& weight, const Use& use) {
    if (const std::string told = told_by_call(weight, use); !told.empty())
      // What was computed of a parameter is not called like it.
      return {scopes_.has_parameter(weight) ? told : "\n" + told, true};
    const pb::NodeProto& node = graph_.node(use.node);
    const Role* role = role_of(node, use.input);
    if (role == nullptr) return {};
    const NodeScope scope = scopes_.of(node);
    if (role->needs_layer &&
        (scope.layer.empty() || is_within(scope.layer, weight) || !has_one_axis(weight)))
      return {};
    // The newer exporter, which tells functions, may merge weights and leave equal statistics.
    const bool by_older = scope.is_told && scope.function.empty();
    if (by_older && use.is_direct && has_equal_weights()) return {};
    const std::string name = !scope.is_told        ? weight_of_node(use)
                             : scope.layer.empty() ? std::string(role->name)
                                                   : fmt::format("{}.{}", scope.layer, role->name);
    return {name, role->is_state};
  }
  // The name of no weight: without a layer there is one for each node.
  static std::string weight_of_node(const Use& use) {
    return fmt::format("\n{}:{}", use.node, use.input);
  }

  std::vector<std::string> names_of(const std::string& weight, const std::vector<Use>& uses) {
    std::vector<Meant> all;
    bool depends = false;
    for (const Use& use : uses) {
      all.push_back(meant_by(weight, use));
      depends = depends || (!all.back().name.empty() && !all.back().is_certain);
    }
    const bool equal = depends && uses.size() > 1 && all_equal(weight);
    std::vector<std::string> names;
    for (Meant& meant : all)
      names.push_back(meant.is_certain || equal ? std::move(meant.name) : "");
    // The tensor keeps its name for whoever means it.
    if (std::find(names.begin(), names.end(), "") != names.end())
      std::replace(names.begin(), names.end(), weight, std::string());
    return names;
  }

  Groups groups_of(const std::string& weight, const std::vector<Use>& uses) {
    const std::vector<std::string> names = names_of(weight, uses);
    Groups groups;
    std::map<std::string, std::size_t> places;
    for (std::size_t k = 0; k < uses.size(); ++k) {
      const auto [place, is_new] = places.emplace(names[k], groups.size());
      if (is_new) groups.push_back({names[k], {}});
      groups[place->second].second.push_back(uses[k]);
    }
    return groups;
  }

  // Whether nodes that read the tensor itself have weights of their own now, for want of layers.
  static bool is_guess(const Groups& groups) {
    const auto is_of_node = [](const auto& group) {
      const Use& use = group.second.front();
      return use.is_direct && group.first == weight_of_node(use);
    };
    return std::count_if(groups.begin(), groups.end(), is_of_node) > 1;
  }

  // Which group the tensor itself is for: the one of any use, of its own name, or the first.
  static std::size_t owner_of(const std::string& weight, const Groups& groups) {
    for (const std::string& wanted : {std::string(), weight})
      for (std::size_t k = 0; k < groups.size(); ++k)
        if (groups[k].first == wanted) return k;
    return 0;
  }

  // `number` is that of the last copy without a name of its own.
  std::string free_name(const std::string& weight, const std::string& wanted, int& number) const {
    if (!wanted.starts_with('\n') && !taken_.contains(wanted)) return wanted;
    std::string name;
    do name = fmt::format("{}.{}", weight, ++number);
    while (taken_.contains(name));
    return name;
  }

  void separate(const std::string& weight, const std::vector<Use>& uses) {
    const Groups groups = groups_of(weight, uses);
    if (is_guess(groups)) guessed_.push_back(weight);
    const std::size_t owner = owner_of(weight, groups);
    int number = 1;
    for (std::size_t k = 0; k < groups.size(); ++k) {
      const auto& [wanted, members] = groups[k];
      std::string name = weight;
      if (k != owner) {
        name = free_name(weight, wanted, number);
        add_copy(weight, name);
      } else if (wanted.empty()) {
        continue;
      }
      for (const Use& use : members)
        *graph_.mutable_node(use.node)->mutable_input(use.input) = name;
    }
  }

  const pb::ModelProto& model_;
  pb::GraphProto& graph_;
  const TensorPlace& source_;
  const Scopes scopes_;
  std::map<std::string, int> weights_;          // their places among the initialisers
  std::map<std::string, std::string> aliases_;  // results of Identity: the weight behind them
  std::set<std::string> taken_, outputs_;
  std::map<std::string, std::vector<Use>> uses_;
  std::int64_t elements_left_ = kFreeCopies;
  std::optional<bool> has_equal_weights_;
  std::vector<std::string> guessed_;
};

}  // namespace

bool is_state_input(const pb::NodeProto& node, int input) {
  const Role* role = role_of(node, input);
  return role != nullptr && role->is_state;
}

std::vector<std::string> separate_merged_weights(pb::ModelProto& model, const TensorPlace& source) {
  // Its own exports have a tensor for each leaf.
  if (model.producer_name() == "pantala") return {};
  return Separation(model, source).run();
}

}  // namespace pantala::onnx
