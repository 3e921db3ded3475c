// How each ONNX operator is said in Pantala's ops. Pointwise operators that have the same meaning
// stand in the op table (OpDef::onnx) and need no adapter; the others have one each, in the file of
// their family. Versions of the operator sets differ: an adapter reads Node::opset().
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "onnx/node.h"

namespace pantala::onnx {

struct Adapter {
  std::string_view op;
  void (*convert)(Node&);
  // Whether a node of constants is evaluated while the file is read: not where that takes long
  // (products, windows) or means something else (random numbers).
  bool folds = true;
  // Whether f16 and bf16 are computed in f32 and rounded once: where sums of them would overflow.
  bool in_f32 = false;
};

// nullptr: unsupported.
const Adapter* find_adapter(std::string_view op);
// All operators that can be read, sorted.
std::vector<std::string> supported_operators();

// The families; each is defined in its own file.
std::span<const Adapter> pointwise_adapters();
std::span<const Adapter> shape_adapters();
std::span<const Adapter> slicing_adapters();
std::span<const Adapter> index_adapters();
std::span<const Adapter> reduce_adapters();
std::span<const Adapter> product_adapters();
std::span<const Adapter> conv_adapters();
std::span<const Adapter> pool_adapters();
std::span<const Adapter> norm_adapters();
std::span<const Adapter> resize_adapters();
std::span<const Adapter> loss_adapters();
std::span<const Adapter> attention_adapters();
std::span<const Adapter> recurrent_adapters();
std::span<const Adapter> sample_adapters();
// In a file of its own.
void convert_einsum(Node& node);

}  // namespace pantala::onnx
