// What convolutions rely on for their speed: register tiles that stay in registers, on every
// target, and items that two workers can share evenly.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "codegen/llvm/llvm.h"
#include "kir/simplify.h"
#include "schedule/cpu/conv/kernel.h"

namespace pantala::schedule::cpu::register_tile_test {
namespace {

constexpr ConvDirection kDirections[] = {ConvDirection::forward, ConvDirection::input_grad,
                                         ConvDirection::weight_grad};

// batch, channels, size, channels of the result, window, stride.
ConvSizes square(std::int64_t batch, std::int64_t in, std::int64_t size, std::int64_t out,
                 std::int64_t kernel, std::int64_t stride) {
  return {batch, in, out, 1, std::vector(2, ConvAxis{size, kernel, stride, kernel / 2, 1})};
}
// Of ResNet-18 and ResNet-50.
std::vector<ConvSizes> layers() {
  return {square(8, 3, 224, 64, 7, 2),   square(8, 64, 56, 64, 3, 1),
          square(8, 128, 28, 128, 3, 1), square(8, 256, 14, 256, 3, 1),
          square(8, 512, 7, 512, 3, 1),  square(8, 64, 56, 128, 3, 2),
          square(8, 128, 28, 256, 3, 2), square(8, 256, 14, 512, 3, 2),
          square(8, 64, 56, 128, 1, 2),  square(4, 512, 14, 512, 3, 2),
          square(4, 256, 56, 512, 1, 2), square(4, 1024, 14, 2048, 1, 2)};
}

struct Chosen {
  ConvSpec spec;
  ConvOrder order;
  ConvTiling tiling;
};
Chosen choose(ConvDirection direction, const ConvSizes& s, const codegen::HostTarget& host,
              int workers) {
  const Target target{.vector_bytes = host.vector_bytes,
                      .vector_registers = host.vector_registers,
                      .l2_bytes = 1 << 20};
  const ConvStrides strides = ConvStrides::channels_last(s);
  const ConvSpec spec = conv_spec(direction, DType::f32, s, strides);
  const ConvOrder order = reduction_order(direction, s, DType::f32, target);
  return {spec, order, choose_conv_tiling(spec, s, strides, order, target, {.workers = workers})};
}
std::string describe(ConvDirection direction, const ConvSizes& s, const ConvTiling& t) {
  return std::to_string(static_cast<int>(direction)) + ": " + std::to_string(s.in) + " -> " +
         std::to_string(s.out) + " channels, window " + std::to_string(s.axes[0].kernel) +
         ", stride " + std::to_string(s.axes[0].stride) + ", tile " + std::to_string(t.rows) + "x" +
         std::to_string(t.vectors);
}

// Vectors on the stack in the blocks of code that have at least `products` fused products.
int spilled_vectors(const std::string& assembly, int products) {
  int spilled = 0, here = 0, fused = 0;
  const auto end_block = [&] {
    if (fused >= products) spilled += here;
    here = fused = 0;
  };
  for (std::size_t at = 0; at < assembly.size();) {
    const std::size_t end = std::min(assembly.find('\n', at), assembly.size());
    const std::string line = assembly.substr(at, end - at);
    at = end + 1;
    if (line.starts_with(".LBB")) end_block();
    if (line.find("vfmadd") != std::string::npos) ++fused;
    if (line.find("mm") != std::string::npos && line.find("(%rsp)") != std::string::npos) ++here;
  }
  end_block();
  return spilled;
}

TEST(RegisterTile, of_convolutions_stays_in_registers) {
  for (const char* name : {"x86-64-v3", "x86-64-v4"}) {
    const codegen::HostTarget host = codegen::known_target(name);
    for (const ConvDirection direction : kDirections)
      for (const ConvSizes& s :
           {square(8, 3, 224, 64, 7, 2), square(8, 64, 56, 64, 3, 1), square(8, 512, 7, 512, 3, 1),
            square(8, 64, 56, 128, 3, 2), square(4, 512, 28, 1024, 1, 2)}) {
        // Nobody asks for the gradient of an image, with lanes for 3 channels.
        if (direction == ConvDirection::input_grad && s.in == 3) continue;
        const auto [spec, order, tiling] = choose(direction, s, host, 2);
        const std::string code =
            codegen::assembly(kir::simplify(build_conv("conv", spec, order, tiling)), host);
        ASSERT_NE(code.find("vfmadd"), std::string::npos);
        EXPECT_EQ(spilled_vectors(code, tiling.rows * tiling.vectors), 0)
            << name << " " << describe(direction, s, tiling);
      }
  }
}

TEST(RegisterTile, spilled_vectors_are_found) {
  EXPECT_EQ(spilled_vectors(".LBB0_1:\n\tvmovaps\t64(%rsp), %zmm1\n\tvfmadd231ps\t%zmm1\n", 1), 1);
  EXPECT_EQ(spilled_vectors(".LBB0_1:\n\tvmovaps\t64(%rsp), %zmm1\n.LBB0_2:\n\tvfmadd231ps\n", 1),
            0);
}

TEST(RegisterTile, items_of_convolutions_are_shared_evenly_by_two_workers) {
  const codegen::HostTarget host = codegen::known_target("x86-64-v4");
  for (const ConvDirection direction : kDirections)
    for (const ConvSizes& s : layers()) {
      const auto [spec, order, tiling] = choose(direction, s, host, 2);
      std::int64_t phases = 1;
      if (direction == ConvDirection::input_grad)
        for (const ConvAxis& axis : s.axes) phases *= axis.stride;
      const std::int64_t sets = conv_items(spec, s, order, tiling) / phases;
      EXPECT_TRUE(sets % 2 == 0 || sets >= 16) << sets << " " << describe(direction, s, tiling);
    }
}

}  // namespace
}  // namespace pantala::schedule::cpu::register_tile_test
