#include "schedule/gpu/conv/windows.h"

#include <algorithm>

#include "ops/face.h"
#include "pantala/error.h"

namespace pantala::schedule::gpu {

using kir::Op;
using kir::Var;

namespace {

Var both(Var a, Var b) {
  if (!a.valid() || !b.valid()) return a.valid() ? a : b;
  return a.builder().binary(Op::bit_and, a, b);
}

// A number as indices along axes of these sizes, the last of which counts fastest.
std::vector<Var> taken_apart(Var number, const std::vector<Var>& sizes) {
  std::vector<Var> at(sizes.size());
  for (std::size_t k = sizes.size(); k-- > 1;) {
    const Var rest = number / sizes[k];
    at[k] = number - rest * sizes[k];
    number = rest;
  }
  at[0] = number;
  return at;
}

// The index of an image and of a position within it.
struct Position {
  Var image;
  std::vector<Var> at;
};
Position position_of(Var number, const std::vector<Var>& sizes) {
  std::vector<Var> all{like(number, 1)};  // images: the first index has all that is left
  all.insert(all.end(), sizes.begin(), sizes.end());
  const std::vector<Var> parts = taken_apart(number, all);
  return {parts[0], {parts.begin() + 1, parts.end()}};
}

}  // namespace

ConvWindows::ConvWindows(const Context& context, std::uint32_t node)
    : sizes_(sizes_of(context, context.node(node))),
      direction_(direction_of(*context.node(node).op)),
      first_(image(context, context.node(node).inputs[0])),
      second_(image(context, context.node(node).inputs[1])) {
  for (const ConvAxis& axis : sizes_.axes) {
    is_padded_ = is_padded_ || axis.padding != 0;
    is_strided_ = is_strided_ || axis.stride != 1;
  }
  channels_inner_ = first_.strides[1] == 1;
}

ConvWindows::Image ConvWindows::image(const Context& context, ValueId value) const {
  const std::uint32_t buffer = context.buffer_of(value);
  return {buffer, context.type(value).dtype, context.strides(buffer)};
}

ProductSizes conv_product(const ConvSizes& sizes, ConvDirection direction) {
  const std::int64_t in = sizes.in / sizes.groups, out = sizes.out / sizes.groups;
  std::int64_t x_positions = sizes.batch;
  for (const ConvAxis& axis : sizes.axes) x_positions *= axis.x;
  switch (direction) {
    case ConvDirection::forward:
      return {sizes.groups, sizes.positions(), out, in * sizes.taps()};
    case ConvDirection::input_grad:
      return {sizes.groups, x_positions, in, out * sizes.taps()};
    case ConvDirection::weight_grad:
      break;
  }
  return {sizes.groups, out, in * sizes.taps(), sizes.positions()};
}

void ConvWindows::announce(Arguments& arguments) const {
  for (const Image* image : {&first_, &second_}) arguments.will_read(image->buffer, image->dtype);
}

ConvWindows::Extents ConvWindows::declare_extents(kir::Builder& b, Arguments& arguments) const {
  Extents e;
  e.in = arguments.integer(b, "in", sizes_.in / sizes_.groups);
  e.out = arguments.integer(b, "out", sizes_.out / sizes_.groups);
  for (const ConvAxis& axis : sizes_.axes) {
    e.x.push_back(arguments.integer(b, "x", axis.x));
    e.y.push_back(arguments.integer(b, "y", axis.y()));
    e.kernel.push_back(arguments.integer(b, "kernel", axis.kernel));
  }
  return e;
}

void ConvWindows::declare(kir::Builder& b, Arguments& arguments) {
  extents_ = declare_extents(b, arguments);
  stride_.clear(), padding_.clear(), dilation_.clear();
  for (const ConvAxis& axis : sizes_.axes) {
    stride_.push_back(arguments.integer(b, "stride", axis.stride));
    padding_.push_back(arguments.integer(b, "padding", axis.padding));
    dilation_.push_back(arguments.integer(b, "dilation", axis.dilation));
  }
  for (Image* image : {&first_, &second_}) {
    image->id = arguments.id(image->buffer);
    image->steps.clear();
    for (const std::int64_t stride : image->strides)
      image->steps.push_back(arguments.integer(b, "step", stride));
  }
}

// Channels count fastest where they are neighbours in the image.
ConvWindows::Tap ConvWindows::tap_of(Var number, Var channels, const Extents& extents) const {
  std::vector<Var> sizes = extents.kernel;
  if (channels_inner_) {
    sizes.push_back(channels);
    Vars parts = taken_apart(number, sizes);
    const Var channel = parts.back();
    parts.pop_back();
    return {channel, std::move(parts)};
  }
  const Position parts = position_of(number, sizes);
  return {parts.image, parts.at};
}

ConvWindows::Spot ConvWindows::under(const Vars& position, const Vars& taps) const {
  Spot spot;
  for (std::size_t d = 0; d < taps.size(); ++d) {
    const Var at = position[d] * stride_[d] - padding_[d] + taps[d] * dilation_[d];
    if (is_padded_)
      spot.inside = both(spot.inside, both(le(like(at, 0), at), lt(at, extents_.x[d])));
    spot.at.push_back(at);
  }
  return spot;
}

ConvWindows::Spot ConvWindows::reaching(const Vars& position, const Vars& taps) const {
  Spot spot;
  for (std::size_t d = 0; d < taps.size(); ++d) {
    const Var number = position[d] + padding_[d] - taps[d] * dilation_[d];
    const Var at = is_strided_ ? number / stride_[d] : number;
    spot.inside = both(spot.inside, both(le(like(number, 0), number), lt(at, extents_.y[d])));
    if (is_strided_) spot.inside = both(spot.inside, eq(at * stride_[d], number));
    spot.at.push_back(at);
  }
  return spot;
}

Var ConvWindows::load(const Image& image, Var first, Var second, const Spot& spot, Var mask) const {
  Var at = first * image.steps[0] + second * image.steps[1];
  for (std::size_t d = 0; d < spot.at.size(); ++d) at = at + spot.at[d] * image.steps[d + 2];
  return at.builder().load(image.id, at, 1, both(mask, spot.inside));
}

TileOperand ConvWindows::windows(Var group) const {
  const bool forward = direction_ == ConvDirection::forward;
  const Var channels = forward ? extents_.in : extents_.out;
  return {.open =
              [=, this](Var m) {
                const Position p = position_of(m, forward ? extents_.y : extents_.x);
                return TileLoad([=, this](Var k, Var mask) {
                  const Tap tap = tap_of(k, channels, extents_);
                  const Spot spot = forward ? under(p.at, tap.taps) : reaching(p.at, tap.taps);
                  return load(first_, p.image, group * channels + tap.channel, spot, mask);
                });
              },
          .k_inner = channels_inner_};
}

TileOperand ConvWindows::weights(Var group) const {
  const bool forward = direction_ == ConvDirection::forward;
  const Var channels = forward ? extents_.in : extents_.out;
  return {.open =
              [=, this](Var n) {
                return TileLoad([=, this](Var k, Var mask) {
                  const Tap tap = tap_of(k, channels, extents_);
                  const Var out = group * extents_.out + (forward ? n : tap.channel);
                  return load(second_, out, forward ? tap.channel : n, {tap.taps, {}}, mask);
                });
              },
          .k_inner = true};
}

TileOperand ConvWindows::gradients(Var group) const {
  return {.open =
              [=, this](Var m) {
                const Var channel = group * extents_.out + m;
                return TileLoad([=, this](Var k, Var mask) {
                  const Position p = position_of(k, extents_.y);
                  return load(second_, p.image, channel, {p.at, {}}, mask);
                });
              },
          .k_inner = second_.strides[1] != 1};
}

TileOperand ConvWindows::inputs(Var group) const {
  return {.open =
              [=, this](Var n) {
                const Tap tap = tap_of(n, extents_.in, extents_);
                return TileLoad([=, this](Var k, Var mask) {
                  const Position p = position_of(k, extents_.y);
                  return load(first_, p.image, group * extents_.in + tap.channel,
                              under(p.at, tap.taps), mask);
                });
              },
          .k_inner = !channels_inner_};
}

TileOperand ConvWindows::a(Var group) const {
  return direction_ == ConvDirection::weight_grad ? gradients(group) : windows(group);
}
TileOperand ConvWindows::b(Var group) const {
  return direction_ == ConvDirection::weight_grad ? inputs(group) : weights(group);
}

void ConvWindows::declare_site(kir::Builder& b, Arguments& arguments) {
  result_ = declare_extents(b, arguments);
}

Site ConvWindows::site(Var group, Var m, Var n) const {
  Site site;
  const auto enter = [&](Var first, Var second, const Vars& at) {
    site.loops[0] = first;
    site.loops[1] = second;
    for (std::size_t d = 0; d < at.size(); ++d) site.loops[d + 2] = at[d];
  };
  if (direction_ == ConvDirection::weight_grad) {
    const Tap tap = tap_of(n, result_.in, result_);
    enter(group * result_.out + m, tap.channel, tap.taps);
    return site;
  }
  const bool forward = direction_ == ConvDirection::forward;
  const Position p = position_of(m, forward ? result_.y : result_.x);
  enter(p.image, group * (forward ? result_.out : result_.in) + n, p.at);
  return site;
}

}  // namespace pantala::schedule::gpu
