// ONNX files under damage: bytes changed at random, and messages that are whole but lie (sizes,
// indices, attributes, operators, the order of nodes). A file may be refused with a typed error;
// anything else (a crash, another exception, an InternalError, memory that the file's size does not
// explain, undefined behaviour under the sanitizers) is a bug.
#include <gtest/gtest.h>

#include <filesystem>
#include <random>

#include "fuzz/onnx_models.h"
#include "onnx/adapters.h"
#include "pantala/error.h"
#include "pantala/onnx.h"
#include "support/allocations.h"
#include "support/temporary.h"

namespace pantala::onnx_fuzz_test {
namespace {

namespace pb = ::onnx;

constexpr int kTrials = 50'000;

class OnnxFuzz : public testing::Test {
 protected:
  std::uint64_t below(std::uint64_t limit) { return random_() % limit; }
  int index(int count) { return static_cast<int>(below(static_cast<std::uint64_t>(count))); }
  std::int64_t number() {
    static constexpr std::int64_t kNumbers[] = {
        0,         1,     2,  3,  4,   5,       7,       9,         16,        255,
        1000,      -1,    -2, -3, -7,  1 << 16, 1 << 20, INT32_MAX, INT32_MIN, INT64_MAX,
        INT64_MIN, -1000, 64, 31, 511, 512,     1 << 30, 1ll << 40, 1ll << 60, (1ll << 62) + 1};
    return kNumbers[below(std::size(kNumbers))];
  }
  float real() {
    static constexpr float kReals[] = {0, 1, -1, 0.5F, 2, 1e30F, -1e30F, INFINITY, NAN, 1e-30F};
    return kReals[below(std::size(kReals))];
  }

  // True if the file was taken.
  bool survives(const std::string& file) {
    const std::int64_t before = tests::allocations().live;
    tests::reset_peak_allocation();
    bool taken = false;
    try {
      onnx::import_model(std::as_bytes(std::span(file)), "fuzz.onnx", {}, folder_.path());
      taken = true;
    } catch (const ParseError&) {
    } catch (const IoError&) {
    } catch (const UnsupportedError&) {
    } catch (const TypeError&) {
    } catch (const std::exception& error) {
      ADD_FAILURE() << error.what() << "\nfile: " << testing::PrintToString(file);
    }
    const auto peak = static_cast<std::size_t>(tests::allocations().peak - before);
    worst_ = std::max(worst_, peak);
    EXPECT_LE(peak, (std::size_t{64} << 20) + 200 * file.size()) << testing::PrintToString(file);
    return taken;
  }

  // --- bytes
  void change_bytes(std::string& file) {
    const std::size_t at = below(file.size() + 1);
    switch (below(5)) {
      case 0:
        if (at < file.size()) file[at] = static_cast<char>(file[at] ^ 1 << below(8));
        break;
      case 1:
        if (at < file.size()) file[at] = static_cast<char>(random_());
        break;
      case 2:
        file.erase(at, below(16));
        break;
      case 3:
        file.insert(at, file.substr(below(file.size() + 1), below(48)));
        break;
      default:
        file.resize(at);
    }
  }

  // --- messages
  void change_attribute(pb::NodeProto& node) {
    static constexpr const char* kTexts[] = {"linear", "cubic", "reflect",    "SAME_LOWER",
                                             "VALID",  "CRD",   "...ii->...", "ij,jk->",
                                             "tanh",   "\xff"};
    if (node.attribute_size() == 0) return;
    pb::AttributeProto& a = *node.mutable_attribute(index(node.attribute_size()));
    switch (below(8)) {
      case 0:
        a.set_type(static_cast<pb::AttributeProto::AttributeType>(index(12)));
        break;
      case 1:
        a.set_i(number());
        break;
      case 2:
        a.set_f(real());
        break;
      case 3:
        a.set_s(kTexts[below(std::size(kTexts))]);
        break;
      case 4:
        a.add_ints(number());
        break;
      case 5:
        if (a.ints_size() > 0) a.mutable_ints()->RemoveLast();
        break;
      case 6:
        if (a.has_t()) change_tensor(*a.mutable_t());
        break;
      default:
        if (a.ints_size() > 0)
          a.set_ints(index(a.ints_size()), number());
        else
          a.set_i(number());
    }
  }

  void change_tensor(pb::TensorProto& t) {
    switch (below(7)) {
      case 0:
        t.add_dims(number());
        break;
      case 1:
        if (t.dims_size() > 0) t.set_dims(index(t.dims_size()), number());
        break;
      case 2:
        t.set_data_type(index(28));
        break;
      case 3:
        if (t.int64_data_size() > 0) t.set_int64_data(index(t.int64_data_size()), number());
        break;
      case 4:
        t.add_int64_data(number());
        break;
      case 5: {
        t.set_data_location(pb::TensorProto::EXTERNAL);
        pb::StringStringEntryProto& entry = *t.add_external_data();
        entry.set_key("location");
        static constexpr const char* kPlaces[] = {"../x", "/etc/passwd", "x", "", ".", "a/../b"};
        entry.set_value(kPlaces[below(std::size(kPlaces))]);
        break;
      }
      default:
        if (t.has_raw_data() && t.raw_data().size() >= 8) {
          const std::int64_t value = number();
          t.mutable_raw_data()->replace(below(t.raw_data().size() / 8) * 8, 8,
                                        reinterpret_cast<const char*>(&value), 8);
        }
    }
  }

  void change_node(pb::GraphProto& graph) {
    if (graph.node_size() == 0) return;
    pb::NodeProto& node = *graph.mutable_node(index(graph.node_size()));
    switch (below(9)) {
      case 0:
        node.set_op_type(operators_[below(operators_.size())]);
        break;
      case 1:
        if (node.input_size() > 0)
          node.set_input(index(node.input_size()), below(2) == 0 ? "" : any_name(graph));
        break;
      case 2:
        node.add_input(any_name(graph));
        break;
      case 3:
        if (node.input_size() > 0) node.mutable_input()->RemoveLast();
        break;
      case 4:
        graph.mutable_node()->SwapElements(index(graph.node_size()), index(graph.node_size()));
        break;
      case 5:
        if (below(2) == 0)
          node.add_output("extra");
        else if (node.output_size() > 0)
          node.set_output(0, "");
        break;
      case 6: {
        pb::NodeProto copy = node;
        for (std::string& output : *copy.mutable_output()) output += "_again";
        *graph.add_node() = copy;
        break;
      }
      default:
        change_attribute(node);
    }
  }

  const std::string& any_name(const pb::GraphProto& graph) {
    static const std::string kNone = "nothing";
    const pb::NodeProto& node = graph.node(index(graph.node_size()));
    if (graph.initializer_size() > 0 && below(2) == 0)
      return graph.initializer(index(graph.initializer_size())).name();
    if (node.output_size() > 0 && below(2) == 0) return node.output(0);
    return node.input_size() > 0 ? node.input(0) : kNone;
  }

  void change_input(pb::GraphProto& graph) {
    if (graph.input_size() == 0) return;
    pb::TypeProto::Tensor& type =
        *graph.mutable_input(index(graph.input_size()))->mutable_type()->mutable_tensor_type();
    if (below(4) == 0)
      type.set_elem_type(index(28));
    else if (type.shape().dim_size() > 0 && below(4) != 0)
      type.mutable_shape()->mutable_dim(index(type.shape().dim_size()))->set_dim_value(number());
    else
      type.mutable_shape()->add_dim()->set_dim_value(number());
  }

  void change_message(pb::ModelProto& model) {
    pb::GraphProto& graph = *model.mutable_graph();
    switch (below(8)) {
      case 0:
        change_input(graph);
        break;
      case 1:
        if (model.opset_import_size() > 0) model.mutable_opset_import(0)->set_version(index(30));
        break;
      case 2:
      case 3:
        if (graph.initializer_size() > 0)
          change_tensor(*graph.mutable_initializer(index(graph.initializer_size())));
        break;
      default:
        change_node(graph);
    }
  }

  tests::TemporaryFolder folder_;
  const std::vector<std::string> operators_ = onnx::supported_operators();
  std::mt19937_64 random_{1};
  std::size_t worst_ = 0;
};

TEST_F(OnnxFuzz, damaged_files_are_refused_with_typed_errors_and_little_memory) {
  const std::vector<pb::ModelProto> models = tests::onnx_models();
  std::vector<std::string> files;
  for (const pb::ModelProto& model : models) {
    files.push_back(model.SerializeAsString());
    EXPECT_TRUE(survives(files.back())) << model.graph().name();
  }
  int taken = 0;
  for (int trial = 0; trial < kTrials; ++trial) {
    const std::size_t which = below(models.size());
    std::string file;
    if (below(3) == 0) {
      file = files[which];
    } else {
      pb::ModelProto model = models[which];
      for (std::uint64_t k = 0, count = 1 + below(4); k < count; ++k) change_message(model);
      file = model.SerializeAsString();
    }
    if (below(3) == 0)
      for (std::uint64_t k = 0, count = 1 + below(3); k < count; ++k) change_bytes(file);
    taken += survives(file);
    if (HasFailure()) break;
  }
  // Both sides must be reached.
  EXPECT_GT(taken, kTrials / 20);
  EXPECT_LT(taken, kTrials - kTrials / 20);
  RecordProperty("taken", taken);
  RecordProperty("worst_bytes", std::to_string(worst_));
}

}  // namespace
}  // namespace pantala::onnx_fuzz_test
