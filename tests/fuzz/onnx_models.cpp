#include "fuzz/onnx_models.h"

#include "onnx/model_maker.h"

namespace pantala::tests {

namespace {

namespace pb = ::onnx;

pb::ModelProto network() {
  return ModelMaker("network")
      .input("x", {2, 3, 8, 8})
      .weight("conv.weight", {4, 3, 3, 3})
      .weight("conv.bias", {4})
      .weight("bn.weight", {4})
      .weight("bn.bias", {4})
      .weight("bn.mean", {4})
      .weight("bn.var", {4})
      .weight("fc.weight", {5, 64})
      .weight("fc.bias", {5})
      .node("Conv", {"x", "conv.weight", "conv.bias"}, {"c"})
      .with("pads", Sizes{1, 1, 1, 1})
      .with("strides", Sizes{1, 1})
      .node("BatchNormalization", {"c", "bn.weight", "bn.bias", "bn.mean", "bn.var"}, {"b"})
      .node("Relu", {"b"}, {"r"})
      .node("MaxPool", {"r"}, {"p"})
      .with("kernel_shape", Sizes{2, 2})
      .with("strides", Sizes{2, 2})
      .with("ceil_mode", 0)
      .node("AveragePool", {"p"}, {"a"})
      .with("kernel_shape", Sizes{3, 3})
      .with("pads", Sizes{1, 1, 1, 1})
      .with("count_include_pad", 1)
      .node("Flatten", {"a"}, {"f"})
      .with("axis", 1)
      .node("Gemm", {"f", "fc.weight", "fc.bias"}, {"g"})
      .with("transB", 1)
      .node("Softmax", {"g"}, {"y"})
      .with("axis", -1)
      .made({"y"});
}

// Shapes are computed from those of the input, as exporters write it.
pb::ModelProto attention() {
  return ModelMaker("attention")
      .input("ids", {2, 6}, pb::TensorProto::INT64)
      .weight("table", {10, 8})
      .weight("query", {8, 8})
      .weight("scale", {8})
      .number("zero", 0)
      .number("one", 1)
      .integers("heads", {2, 4})
      .integers("axis0", {0}, true)
      .integers("last", {-1})
      .node("Gather", {"table", "ids"}, {"e"})
      .with("axis", 0)
      .node("LayerNormalization", {"e", "scale"}, {"n"})
      .node("MatMul", {"n", "query"}, {"q"})
      .node("Shape", {"q"}, {"s"})
      .node("Gather", {"s", "zero"}, {"batch"})
      .node("Gather", {"s", "one"}, {"length"})
      .node("Unsqueeze", {"batch", "axis0"}, {"batch1"})
      .node("Unsqueeze", {"length", "axis0"}, {"length1"})
      .node("Concat", {"batch1", "length1", "heads"}, {"view"})
      .with("axis", 0)
      .node("Reshape", {"q", "view"}, {"split"})
      .node("Transpose", {"split"}, {"heads_first"})
      .with("perm", Sizes{0, 2, 1, 3})
      .node("Transpose", {"split"}, {"keys"})
      .with("perm", Sizes{0, 2, 3, 1})
      .node("MatMul", {"heads_first", "keys"}, {"scores"})
      .node("Concat", {"length1", "length1"}, {"square"})
      .with("axis", 0)
      .node("ConstantOfShape", {"square"}, {"ones"})
      .node("Trilu", {"ones"}, {"mask"})
      .with("upper", 0)
      .node("Range", {"zero", "length", "one"}, {"positions"})
      .node("Expand", {"positions", "square"}, {"expanded"})
      .node("Cast", {"expanded"}, {"shift"})
      .with("to", 1)
      .node("Add", {"scores", "mask"}, {"masked"})
      .node("Sub", {"masked", "shift"}, {"shifted"})
      .node("Softmax", {"shifted"}, {"y"})
      .made({"y"});
}

// Operators whose options are inputs.
pb::ModelProto movement() {
  return ModelMaker("movement")
      .input("x", {2, 3, 4, 4})
      .integers("starts", {0, -3}, true)
      .integers("ends", {2, 9223372036854775807})
      .integers("axes", {1, 2})
      .integers("steps", {1, 2})
      .integers("pads", {0, 0, 1, 1, 0, 0, 1, 1})
      .integers("repeats", {1, 2, 1, 1}, true)
      .integers("sizes", {2, 4, 8, 6})
      .integers("pieces", {1, 3})
      .integers("picked", {1, -1, 0})
      .integers("reduced", {1, -1}, true)
      .integers("pairs", {0, 1, 1, 0})
      .integers("pairs_shape", {2, 2})
      .node("Slice", {"x", "starts", "ends", "axes", "steps"}, {"cut"})
      .node("Pad", {"cut", "pads"}, {"padded"})
      .with("mode", std::string("reflect"))
      .node("Tile", {"padded", "repeats"}, {"tiled"})
      .node("Resize", {"tiled", "", "", "sizes"}, {"resized"})
      .with("mode", std::string("linear"))
      .node("Split", {"resized", "pieces"}, {"first", "second"})
      .with("axis", 1)
      .node("Gather", {"second", "picked"}, {"taken"})
      .with("axis", 1)
      .node("ReduceSum", {"taken", "reduced"}, {"sum"})
      .with("keepdims", 0)
      .node("Reshape", {"pairs", "pairs_shape"}, {"where"})
      .node("GatherND", {"sum", "where"}, {"y"})
      .node("Einsum", {"first", "first"}, {"z"})
      .with("equation", std::string("bchw,bckw->bhk"))
      .node("ConvTranspose", {"x", "spread"}, {"t"})
      .with("strides", Sizes{2, 2})
      .with("output_padding", Sizes{1, 1})
      .weight("spread", {3, 2, 3, 3})
      .made({"y", "z", "t"});
}

pb::ModelProto pointwise() {
  return ModelMaker("pointwise", 13)
      .input("x", {3, 4})
      .input("i", {3, 4}, pb::TensorProto::INT64)
      .weight("w", {4})
      .number("depth", 5)
      .integers("off_on", {0, 1})
      .number("axis", 1)
      .node("Clip", {"x"}, {"c"})
      .node("Pow", {"c", "w"}, {"p"})
      .node("Where", {"b", "p", "w"}, {"y"})
      .node("Less", {"x", "w"}, {"b"})
      .node("Div", {"i", "depth"}, {"d"})
      .node("Mod", {"d", "depth"}, {"m"})
      .node("OneHot", {"m", "depth", "off_on"}, {"h"})
      .with("axis", -1)
      .node("CumSum", {"x", "axis"}, {"s"})
      .with("exclusive", 1)
      .node("Dropout", {"s"}, {"o"})
      .node("ArgMax", {"o"}, {"a"})
      .with("axis", 1)
      .with("select_last_index", 1)
      .made({"y", "h", "a"});
}

// Loops over time, choice and sampling.
pb::ModelProto recurrent() {
  return ModelMaker("recurrent")
      .input("x", {5, 2, 4})
      .input("image", {1, 2, 4, 4})
      .input("grid", {1, 3, 3, 2})
      .weight("w", {2, 12, 4})
      .weight("r", {2, 12, 3})
      .weight("b", {2, 24})
      .weight("gru.w", {1, 9, 4})
      .weight("gru.r", {1, 9, 3})
      .integers("lengths", {5, 5}, true)
      .integers("k", {2})
      .integers("mask", {0, 1, 0, 2})
      .node("LSTM", {"x", "w", "r", "b", "lengths"}, {"y", "h", "c"})
      .with("hidden_size", 3)
      .with("direction", std::string("bidirectional"))
      .node("GRU", {"x", "gru.w", "gru.r"}, {"z"})
      .with("hidden_size", 3)
      .with("linear_before_reset", 1)
      .node("TopK", {"z", "k"}, {"values", "indices"})
      .with("axis", -1)
      .node("NonZero", {"mask"}, {"known"})
      .node("RandomNormalLike", {"values"}, {"noise"})
      .node("GridSample", {"image", "grid"}, {"sampled"})
      .with("mode", std::string("bilinear"))
      .made({"y", "c", "indices", "known", "noise", "sampled"});
}

}  // namespace

std::vector<pb::ModelProto> onnx_models() {
  return {network(), attention(), movement(), pointwise(), recurrent()};
}

}  // namespace pantala::tests
