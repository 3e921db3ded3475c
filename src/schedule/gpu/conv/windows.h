// The operands of a convolution's product: where the element lies that stands at (m, k) or (n, k).
#pragma once

#include <vector>

#include "schedule/building.h"
#include "schedule/common/conv/problem.h"
#include "schedule/gpu/product.h"

namespace pantala::schedule::gpu {

ProductSizes conv_product(const ConvSizes& sizes, ConvDirection direction);

class ConvWindows {
 public:
  ConvWindows(const Context& context, std::uint32_t node);

  ConvDirection direction() const { return direction_; }
  ProductSizes product() const { return conv_product(sizes_, direction_); }

  void announce(Arguments& arguments) const;
  void declare(kir::Builder& b, Arguments& arguments);
  TileOperand a(kir::Var group) const;
  TileOperand b(kir::Var group) const;

  // Of the result: parameters of its own, so that a kernel that only finishes needs no others.
  void declare_site(kir::Builder& b, Arguments& arguments);
  Site site(kir::Var group, kir::Var m, kir::Var n) const;

 private:
  using Vars = std::vector<kir::Var>;
  // A tensor that is read.
  struct Image {
    std::uint32_t buffer = 0;
    DType dtype = DType::f32;
    std::vector<std::int64_t> strides;
    kir::BufferId id = {};
    Vars steps = {};  // the strides, as the kernel knows them
  };
  // Sizes as a kernel knows them.
  struct Extents {
    kir::Var in, out;  // channels of a group
    Vars x, y, kernel;
  };
  // A channel and the taps of a window, which one number counts.
  struct Tap {
    kir::Var channel;
    Vars taps;
  };
  // A place in an image: the index along each spatial axis, and whether all lie inside (invalid:
  // they do).
  struct Spot {
    Vars at;
    kir::Var inside;
  };

  Image image(const Context& context, ValueId value) const;
  Extents declare_extents(kir::Builder& b, Arguments& arguments) const;
  Tap tap_of(kir::Var number, kir::Var channels, const Extents& extents) const;
  // Of x under a tap of the window at a position of y; of y, whose window reaches a position of x.
  Spot under(const Vars& position, const Vars& taps) const;
  Spot reaching(const Vars& position, const Vars& taps) const;
  kir::Var load(const Image& image, kir::Var first, kir::Var second, const Spot& spot,
                kir::Var mask) const;

  TileOperand windows(kir::Var group) const;    // x or dy at positions, by taps and channels
  TileOperand weights(kir::Var group) const;    // the weight, by taps and channels
  TileOperand gradients(kir::Var group) const;  // dy by channel, along its positions
  TileOperand inputs(kir::Var group) const;     // x by taps and channels, along positions of y

  const ConvSizes sizes_;
  const ConvDirection direction_;
  bool is_padded_ = false, is_strided_ = false;
  bool channels_inner_ = false;  // of the image that windows are laid over
  Image first_, second_;
  Extents extents_, result_;
  Vars stride_, padding_, dilation_;
};

}  // namespace pantala::schedule::gpu
