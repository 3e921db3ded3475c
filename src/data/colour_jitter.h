// Random changes of colour, as torchvision's ColorJitter makes them of f32 images.
#pragma once

#include <array>
#include <cstdint>
#include <span>

namespace pantala::data {

// What was drawn for one item.
struct ColourChange {
  double brightness = 1, contrast = 1, saturation = 1;  // factors
  double hue = 0;                                       // a turn, of 1
  // Which comes when: 0 is brightness, 1 contrast, 2 saturation, 3 hue.
  std::array<int, 4> order = {0, 1, 2, 3};
};

// The k-th of the 24 orders, k below 24.
std::array<int, 4> order_of_four(std::int64_t k);

// `pixels` lie in [0, 1], channel by channel: 3 of them, or 1, which has neither saturation nor
// hue.
void change_colours(std::span<float> pixels, std::int64_t channels, const ColourChange& change);

}  // namespace pantala::data
