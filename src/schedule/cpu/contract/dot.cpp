// A contraction whose reduction runs over lanes: for products with very few rows or columns, where
// both operands are contiguous along k and transposing one of them would cost more than the
// product.
#include "schedule/cpu/contract/parts.h"

namespace pantala::schedule::cpu {

using kir::Builder;
using kir::Var;

namespace {

// The sums of `tiling.rows` neighbours along the rows axis, for one position of the other.
class DotKernel {
 public:
  DotKernel(std::string name, const ContractSpec& spec, const ContractOrder& order,
            const ContractTiling& tiling, const ContractHooks& hooks)
      : b(std::move(name)), spec_(spec), lanes_(order.lanes), t_(tiling), hooks_(hooks) {}

  kir::Kernel build() {
    args_ = declare_arguments(b, spec_, hooks_);
    const Var rows = t_.lanes_along_m ? args_.n : args_.m,
              others = t_.lanes_along_m ? args_.m : args_.n;
    const Var other_blocks = ceil_div(others, args_.lane_block);
    const Var per_batch = ceil_div(rows, args_.row_block) * other_blocks;
    const Var batch = b.item() / per_batch, rest = b.item() % per_batch;
    const Operand a{args_.a, spec_.a_k_inner,       args_.m,  args_.a_ld,
                    batch,   batch * args_.a_batch, &hooks_.a};
    const Operand right{args_.b, spec_.b_k_inner,       args_.n,  args_.b_ld,
                        batch,   batch * args_.b_batch, &hooks_.b};
    rows_ = t_.lanes_along_m ? right : a;
    others_ = t_.lanes_along_m ? a : right;
    result_ = {args_.c, spec_.c_n_inner, args_.c_ld, batch, batch * args_.c_batch, &hooks_.result};
    const Var row0 = rest / other_blocks * args_.row_block,
              other0 = rest % other_blocks * args_.lane_block;
    b.loop(row0, min(row0 + args_.row_block, rows), b.i64(t_.rows), [&](Var row) {
      const Var end = min(row0 + args_.row_block, rows);
      b.loop(other0, min(other0 + args_.lane_block, others), b.i64(1),
             [&](Var other) { tile(row, end, other); });
    });
    return b.finish();
  }

 private:
  void tile(Var row, Var end, Var other) {
    std::vector<Var> at;
    for (int r = 0; r < t_.rows; ++r) at.push_back(min(row + r, end - 1));
    const std::vector<Var> zeros(at.size(), b.constant({spec_.dtype, 1}, 0.0));
    const std::vector<Var> totals = b.loop(
        b.i64(0), max(args_.k, 1), args_.k_block, zeros, [&](Var k0, std::span<const Var> carried) {
          const std::vector<Var> block =
              block_sums(at, other, k0, min(args_.k_block, args_.k - k0));
          std::vector<Var> next;
          for (std::size_t r = 0; r < block.size(); ++r)
            next.push_back(b.select(eq(k0, 0), block[r], carried[r] + block[r]));
          return next;
        });
    for (int r = 0; r < t_.rows; ++r)
      b.branch(lt(row + r, end), [&] {
        const Var sum = totals[static_cast<std::size_t>(r)];
        if (t_.lanes_along_m)
          result_.store(b, sum, other, row + r, {});
        else
          result_.store(b, sum, row + r, other, {});
      });
  }

  std::vector<Var> block_sums(const std::vector<Var>& at, Var other, Var k0, Var depth) {
    const auto add = [&](Var k, std::span<const Var> sums, Var mask) {
      const Var y = others_.load(b, other, k0 + k, lanes_, true, mask);
      std::vector<Var> next;
      for (std::size_t r = 0; r < at.size(); ++r)
        next.push_back(b.fma(rows_.load(b, at[r], k0 + k, lanes_, true, mask), y, sums[r]));
      return next;
    };
    const std::vector<Var> zeros(at.size(), b.constant({spec_.dtype, lanes_}, 0.0));
    const Var whole = depth / lanes_ * lanes_;
    std::vector<Var> sums =
        b.loop(b.i64(0), whole, b.i64(lanes_), zeros,
               [&](Var k, std::span<const Var> carried) { return add(k, carried, {}); });
    sums = b.branch(
        lt(whole, depth), [&] { return add(whole, sums, first_lanes(b, depth - whole, lanes_)); },
        [&] { return sums; });
    for (Var& sum : sums) sum = b.reduce(kir::Op::reduce_add, sum);
    return sums;
  }

  Builder b;
  const ContractSpec spec_;
  const int lanes_;
  const ContractTiling t_;
  const ContractHooks& hooks_;
  ContractArguments args_;
  Operand rows_, others_;
  Result result_;
};

}  // namespace

kir::Kernel build_dot(std::string name, const ContractSpec& spec, const ContractOrder& order,
                      const ContractTiling& tiling, const ContractHooks& hooks) {
  return DotKernel(std::move(name), spec, order, tiling, hooks).build();
}

}  // namespace pantala::schedule::cpu
