// The faces of convolution and of its two gradients.
#pragma once

#include <algorithm>
#include <string>

#include "ir/face.h"

namespace pantala::op {

// x is [n, c, spatial...], weight [o, c / groups, spatial...], y [n, o, spatial...]. The lists of a
// node have one entry per spatial axis.
struct ConvAttrs {
  ir::Ints stride = {1}, padding = {0}, dilation = {1};
  std::int64_t groups = 1;
  std::string algorithm = "direct";
  // Whether every window is one element of x, next to each other and without padding.
  bool is_pointwise(const ir::Ints& kernel) const {
    const auto all = [](const ir::Ints& list, std::int64_t value) {
      return std::ranges::all_of(list, [=](std::int64_t one) { return one == value; });
    };
    return groups == 1 && all(stride, 1) && all(padding, 0) && all(kernel, 1);
  }
  // Whether windows are squares of 3 x 3, next to each other: those that Winograd's algorithms are
  // for.
  bool is_square3(const ir::Ints& kernel) const {
    const ir::Ints once{1, 1};
    return groups == 1 && kernel == ir::Ints{3, 3} && stride == once && dilation == once;
  }
  static void fields(auto&& f, auto& a) {
    f("stride", a.stride, "distance of the windows, per spatial axis or one for all");
    f("padding", a.padding, "zeros around x");
    f("dilation", a.dilation, "distance of the elements under a window");
    f("groups", a.groups, "channels are convolved in this many separate groups");
    f("algorithm", a.algorithm,
      "direct; planar: the same with images by planes instead of channels last; product: as a "
      "product of matrices where windows are single elements; winograd2 or "
      "winograd4: by Winograd's F(2, 3) or F(4, 3) where windows are 3 x 3; a choice of the "
      "compiler's, equal but for rounding");
  }
};

struct Convolution : ir::Face<"convolution"> {
  using Attrs = ConvAttrs;
};

struct ConvolutionInputGrad : ir::Face<"convolution_input_grad"> {
  struct Attrs {
    ir::Ints input_sizes;
    ConvAttrs window;
    static void fields(auto&& f, auto& a) {
      f("input_sizes", a.input_sizes, "the spatial sizes of x", ir::Field::required);
      ConvAttrs::fields(f, a.window);
    }
  };
};

struct ConvolutionWeightGrad : ir::Face<"convolution_weight_grad"> {
  struct Attrs {
    ir::Ints kernel_sizes;
    ConvAttrs window;
    static void fields(auto&& f, auto& a) {
      f("kernel_sizes", a.kernel_sizes, "the spatial sizes of the weight", ir::Field::required);
      ConvAttrs::fields(f, a.window);
    }
  };
};

}  // namespace pantala::op
