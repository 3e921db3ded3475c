// Division, square root and fma of f32 that are correctly rounded, where a device's own are not:
// Vulkan allows 2.5 units of the last place, and an fma that is a product and a sum. About 60
// instructions each, on integers; an fma takes 20 where there is double precision.
#pragma once

#include "codegen/spirv/module.h"

namespace pantala::codegen::spirv {

// Emits into the open block of the module.
class Rounding {
 public:
  explicit Rounding(Module& module);
  Id divide(Id x, Id y);
  Id square_root(Id x);
  Id multiply_add(Id x, Id y, Id z);
  // Subnormal results are what the device's conversion makes of them.
  Id multiply_add_in_double(Id x, Id y, Id z);

 private:
  // A number as digits * 2^(exponent - 150), 2^23 <= digits < 2^24.
  struct Parts {
    Id sign, magnitude;  // bits of the float
    Id digits, exponent;
  };
  Parts parts(Id x);
  Id rounded(Id sign, Id x, Id exponent);
  Id with_sticky(Id x, Id is_exact);
  Id aligned(Id x, Id by);
  Id top_bit(Id x);

  Id u32(std::uint32_t value) { return m_.constant32(value); }
  Id u64(std::uint64_t value) { return m_.constant64(value); }
  Id word(spv::Op op, Id a, Id b) { return m_.emit(op, word_, {a, b}); }
  Id dword(spv::Op op, Id a, Id b) { return m_.emit(op, long_, {a, b}); }
  Id floats(spv::Op op, Id a, Id b);
  Id doubles(spv::Op op, Id a, Id b);
  Id compare(spv::Op op, Id a, Id b);
  Id select(Id type, Id condition, Id a, Id b);
  Id either(Id a, Id b);
  Id both(Id a, Id b);
  Id bits(Id x);
  Id real(Id integer);
  Id lengthened(Id x);

  Module& m_;
  const Id word_, long_, float_, bool_;
};

}  // namespace pantala::codegen::spirv
