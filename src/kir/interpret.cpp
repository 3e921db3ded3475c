#include "kir/interpret.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <unordered_set>

#include "kir/arithmetic.h"
#include "kir/shadow.h"
#include "kir/text.h"
#include "kir/verify.h"
#include "pantala/error.h"

namespace pantala::kir {

namespace {

// The instructions with a barrier or group_* inside, and these themselves.
std::unordered_set<const Inst*> meetings(const Kernel& kernel) {
  std::unordered_set<const Inst*> found;
  const auto visit = [&](const auto& self, const Block& block) -> bool {
    bool any = false;
    for (const Inst& inst : block.body) {
      bool meets = is_meeting(inst.op);
      for (const Block& inner : inst.blocks) meets = self(self, inner) || meets;
      if (meets) found.insert(&inst);
      any = any || meets;
    }
    return any;
  };
  visit(visit, kernel.body);
  return found;
}

// Threads of an item run one after the other up to the next meeting, each with its own frame of
// registers. Loops and branches with a meeting inside are entered by all together, so nothing has
// to be suspended: what the threads do between two meetings is a run of whole instructions.
class Machine {
 public:
  Machine(const Kernel& kernel, const Arguments& arguments)
      : kernel_(kernel),
        shadow_((check_arguments(kernel, arguments), kernel), arguments),
        meetings_(meetings(kernel)),
        buffers_(arguments.buffers),
        params_(arguments.params) {
    for (std::size_t k = buffers_.size(); k < kernel.buffers.size(); ++k) {
      const Buffer& b = kernel.buffers[k];
      scratch_.emplace_back(static_cast<std::size_t>(b.size * dtype_bytes(b.dtype)));
      buffers_.push_back({b.dtype, scratch_.back().data(), b.size});
    }
    // Registers are slots of a multiple of 32 bytes in one frame.
    std::size_t bytes = 0;
    for (const VType& type : kernel.types) {
      offsets_.push_back(bytes);
      bytes += (register_bytes(type) + 31) / 32 * 32;
    }
    frame_size_ = bytes / sizeof(std::max_align_t) + 1;
    frames_.resize(frame_size_ * static_cast<std::size_t>(kernel.threads));
  }

  void run_item(std::int64_t item) {
    agent_ = {item, Agent::kAllThreads, 0};
    each_thread([&](int thread) {
      set_scalar(kernel_.body.params[0], item);
      if (kernel_.threads != 1) set_scalar(kernel_.body.params[1], thread);
    });
    run_together(kernel_.body);
  }
  std::int64_t status() const { return status_; }

 private:
  static void check_arguments(const Kernel& kernel, const Arguments& arguments) {
    verify(kernel);
    const auto fail = [&](const std::string& what) {
      throw InternalError(fmt::format("kernel '{}': {}", kernel.name, what));
    };
    const int wanted = kernel.global_buffers();
    if (std::ssize(arguments.buffers) != wanted)
      fail(fmt::format("{} buffers are bound, it has {}", arguments.buffers.size(), wanted));
    for (std::size_t k = 0; k < arguments.buffers.size(); ++k) {
      const BoundBuffer& b = arguments.buffers[k];
      if (b.dtype != kernel.buffers[k].dtype)
        fail(fmt::format("buffer '{}' is {}, bound as {}", kernel.buffers[k].name,
                         dtype_name(kernel.buffers[k].dtype), dtype_name(b.dtype)));
      if (b.elements < 0 || (b.elements > 0 && b.data == nullptr))
        fail(fmt::format("buffer '{}' is bound to nothing", kernel.buffers[k].name));
    }
    if (arguments.params.size() != kernel.params.size())
      fail(fmt::format("{} parameters are given, it has {}", arguments.params.size(),
                       kernel.params.size()));
    for (std::size_t k = 0; k < arguments.params.size(); ++k) {
      const Param& p = kernel.params[k];
      const ir::Number& n = arguments.params[k];
      if (n.integral == is_float(p.dtype))
        fail(fmt::format("parameter '{}' is {}, not {}", p.name, dtype_name(p.dtype),
                         n.integral ? "an integer" : "a float"));
      if (n.integral && wrap_to(p.dtype, n.i) != n.i)
        fail(fmt::format("parameter '{}': {} is not a number of {}", p.name, n.i,
                         dtype_name(p.dtype)));
    }
  }

  [[noreturn]] void fail(const Inst& inst, const std::string& what) const {
    throw InternalError(fmt::format("kernel '{}', item {}: {}, in: {}", kernel_.name, agent_.item,
                                    what, print(kernel_, inst)));
  }

  std::byte* reg(Value v) { return reinterpret_cast<std::byte*>(frame_) + offsets_[v.id]; }
  std::int64_t scalar(Value v) {
    std::int64_t value;
    std::memcpy(&value, reg(v), sizeof(value));
    return value;
  }
  void set_scalar(Value v, std::int64_t value) { std::memcpy(reg(v), &value, sizeof(value)); }
  bool flag(Value v, int lane = 0) { return reg(v)[lane] != std::byte{0}; }

  // From here on the registers are those of this thread.
  void become(int thread) {
    frame_ = frames_.data() + frame_size_ * static_cast<std::size_t>(thread);
    if (kernel_.threads != 1) agent_.thread = thread;
  }
  template <class F>
  void each_thread(const F& f) {
    for (int thread = 0; thread < kernel_.threads; ++thread) become(thread), f(thread);
  }

  void run_together(const Block& block) {
    for (auto first = block.body.begin(); first != block.body.end();) {
      if (meetings_.contains(&*first)) {
        meet(*first++);
        continue;
      }
      const auto last = std::find_if(first, block.body.end(),
                                     [&](const Inst& inst) { return meetings_.contains(&inst); });
      each_thread([&](int) { std::for_each(first, last, [&](const Inst& i) { step(i); }); });
      first = last;
    }
  }

  // What all threads must agree on.
  std::int64_t common(const Inst& inst, Value v, bool boolean) {
    std::optional<std::int64_t> agreed;
    each_thread([&](int) {
      const std::int64_t mine = boolean ? flag(v) : scalar(v);
      if (agreed && *agreed != mine)
        fail(inst,
             fmt::format("threads part before they meet: %{} is {} and {}", v.id, *agreed, mine));
      agreed = mine;
    });
    return *agreed;
  }

  void meet(const Inst& inst) {
    if (inst.op == Op::loop) return loop_together(inst);
    if (inst.op == Op::if_) {
      const Block& chosen = inst.blocks[common(inst, inst.args[0], true) != 0 ? 0 : 1];
      run_together(chosen);
      return each_thread([&](int) { move(chosen.yields, inst.results); });
    }
    if (inst.op != Op::barrier) combine(inst);
    ++agent_.phase;
  }

  void loop_together(const Inst& inst) {
    const Block& body = inst.blocks[0];
    const std::int64_t begin = common(inst, inst.args[0], false),
                       end = common(inst, inst.args[1], false),
                       step = common(inst, inst.args[2], false);
    if (step <= 0) fail(inst, fmt::format("the step is {}", step));
    const std::vector<Value> initial(inst.args.begin() + 3, inst.args.end());
    const std::span carried = std::span(body.params).subspan(1);
    each_thread([&](int) { move(initial, carried); });
    for (std::int64_t i = begin; i < end;) {
      each_thread([&](int) { set_scalar(body.params[0], i); });
      run_together(body);
      each_thread([&](int) { move(body.yields, carried); });
      if (__builtin_add_overflow(i, step, &i)) fail(inst, "the index overflows");
    }
    each_thread([&](int) { move({carried.begin(), carried.end()}, inst.results); });
  }

  // group_*: as reduce_* of a vector with a lane per thread.
  void combine(const Inst& inst) {
    const VType type = kernel_.type(inst.args[0]);
    const std::size_t size = register_bytes(type);
    std::vector<std::max_align_t> lanes(
        size * static_cast<std::size_t>(kernel_.threads) / sizeof(std::max_align_t) + 1);
    std::byte* all = reinterpret_cast<std::byte*>(lanes.data());
    each_thread([&](int thread) {
      std::memcpy(all + size * static_cast<std::size_t>(thread), reg(inst.args[0]), size);
    });
    const Inst reduce{.op = inst.op == Op::group_add   ? Op::reduce_add
                            : inst.op == Op::group_max ? Op::reduce_max
                                                       : Op::reduce_min};
    alignas(std::max_align_t) std::array<std::byte, 16> result{};
    const std::byte* arg = all;
    std::byte* out = result.data();
    compute(reduce, type.with_lanes(kernel_.threads), type, {&arg, 1}, {&out, 1});
    each_thread([&](int) { std::memcpy(reg(inst.results[0]), out, size); });
  }

  void run(const Block& block) {
    for (const Inst& inst : block.body) step(inst);
  }
  // Moves all at once: a loop may exchange its carried values.
  void move(const std::vector<Value>& from, std::span<const Value> to) {
    std::vector<std::vector<std::byte>> values;
    for (const Value v : from)
      values.emplace_back(reg(v), reg(v) + register_bytes(kernel_.type(v)));
    for (std::size_t k = 0; k < to.size(); ++k) std::ranges::copy(values[k], reg(to[k]));
  }

  void step(const Inst& inst) {
    switch (inst.op) {
      case Op::constant:
        return write_constant(inst, kernel_.type(inst.results[0]), reg(inst.results[0]));
      case Op::param:
        return parameter(inst);
      case Op::load:
      case Op::load_strided:
      case Op::gather:
        return load(inst);
      case Op::store:
      case Op::store_strided:
        return store(inst);
      case Op::prefetch:
        return;
      case Op::report:
        if (flag(inst.args[0])) status_ = inst.args.size() > 1 ? scalar(inst.args[1]) : inst.index;
        return;
      case Op::loop:
        return loop(inst);
      case Op::if_: {
        const Block& chosen = inst.blocks[flag(inst.args[0]) ? 0 : 1];
        run(chosen);
        return move(chosen.yields, inst.results);
      }
      default:
        return pure(inst);
    }
  }

  void pure(const Inst& inst) {
    std::array<const std::byte*, 32> args{};
    std::array<std::byte*, 32> results{};
    for (std::size_t k = 0; k < inst.args.size(); ++k) args[k] = reg(inst.args[k]);
    for (std::size_t k = 0; k < inst.results.size(); ++k) results[k] = reg(inst.results[k]);
    const VType& result = kernel_.type(inst.results[0]);
    const VType& operand =
        inst.op == Op::select || inst.args.empty() ? result : kernel_.type(inst.args[0]);
    const std::string_view wrong =
        compute(inst, operand, result, std::span(args).first(inst.args.size()),
                std::span(results).first(inst.results.size()));
    if (!wrong.empty()) fail(inst, std::string(wrong));
  }

  void parameter(const Inst& inst) {
    const ir::Number& n = params_[static_cast<std::size_t>(inst.index)];
    Inst value;
    value.imm = n.f, value.index = n.i;
    write_constant(value, kernel_.type(inst.results[0]), reg(inst.results[0]));
  }

  void loop(const Inst& inst) {
    const Block& body = inst.blocks[0];
    const std::int64_t begin = scalar(inst.args[0]), end = scalar(inst.args[1]),
                       step = scalar(inst.args[2]);
    if (step <= 0) fail(inst, fmt::format("the step is {}", step));
    const std::vector<Value> initial(inst.args.begin() + 3, inst.args.end());
    const std::span carried = std::span(body.params).subspan(1);
    move(initial, carried);
    for (std::int64_t i = begin; i < end;) {
      set_scalar(body.params[0], i);
      run(body);
      move(body.yields, carried);
      if (__builtin_add_overflow(i, step, &i)) fail(inst, "the index overflows");
    }
    move({carried.begin(), carried.end()}, inst.results);
  }

  // The element of a lane.
  std::int64_t element(const Inst& inst, int lane) {
    std::int64_t at = 0;
    bool overflow = false;
    if (inst.op == Op::gather) {
      const DType dtype = kernel_.type(inst.args[0]).dtype;
      const std::byte* index = reg(inst.args[0]) + lane * dtype_bytes(dtype);
      if (dtype == DType::i64) return std::memcpy(&at, index, sizeof(at)), at;
      std::int32_t narrow = 0;
      std::memcpy(&narrow, index, sizeof(narrow));
      return narrow;
    }
    const bool strided = inst.op == Op::load_strided || inst.op == Op::store_strided;
    overflow = __builtin_mul_overflow(strided ? scalar(inst.args[1]) : 1, lane, &at);
    overflow = __builtin_add_overflow(scalar(inst.args[0]), at, &at) || overflow;
    if (overflow) fail(inst, "the index overflows");
    return at;
  }

  // Vectors of what threads share lie at multiples of their lanes.
  bool is_aligned(const Inst& inst, std::int64_t at) const {
    if (kernel_.threads == 1 || inst.op != Op::load ||
        kernel_.buffers[static_cast<std::size_t>(inst.index)].space == Space::global)
      return true;
    return at % kernel_.type(inst.results[0]).lanes == 0;
  }

  // Checks an access and gives its address.
  std::byte* access(const Inst& inst, int lane, bool writes) {
    const auto index = static_cast<std::size_t>(inst.index);
    const BoundBuffer& b = buffers_[index];
    const std::int64_t at = element(inst, lane);
    const auto describe = [&](const std::string& what) {
      fail(inst, fmt::format("{} {}[{}] of {} elements: {}", writes ? "writes" : "reads",
                             kernel_.buffers[index].name, at, b.elements, what));
    };
    if (at < 0 || at >= b.elements) describe("out of bounds");
    if (lane == 0 && !is_aligned(inst, at)) describe("not at a multiple of its lanes");
    const std::string wrong =
        writes ? shadow_.write(index, at, agent_) : shadow_.read(index, at, agent_);
    if (!wrong.empty()) describe(wrong);
    return b.data + at * dtype_bytes(b.dtype);
  }

  void load(const Inst& inst) {
    const VType& type = kernel_.type(inst.results[0]);
    const auto size = static_cast<std::size_t>(dtype_bytes(type.dtype));
    for (int lane = 0; lane < type.lanes; ++lane) {
      std::byte* out = reg(inst.results[0]) + static_cast<std::size_t>(lane) * size;
      if (inst.masked && !flag(inst.args.back(), lane)) {
        std::memset(out, 0, size);
      } else {
        load_element(buffers_[static_cast<std::size_t>(inst.index)].dtype,
                     access(inst, lane, false), out);
      }
    }
  }

  void store(const Inst& inst) {
    const Value value = inst.args[inst.op == Op::store ? 1 : 2];
    const VType& type = kernel_.type(value);
    for (int lane = 0; lane < type.lanes; ++lane) {
      if (inst.masked && !flag(inst.args.back(), lane)) continue;
      store_element(buffers_[static_cast<std::size_t>(inst.index)].dtype,
                    reg(value) + lane * dtype_bytes(type.dtype), access(inst, lane, true));
    }
  }

  const Kernel& kernel_;
  Shadow shadow_;
  std::unordered_set<const Inst*> meetings_;
  std::vector<BoundBuffer> buffers_;  // global ones, then scratch
  std::vector<ir::Number> params_;
  std::vector<std::vector<std::byte>> scratch_;
  std::vector<std::size_t> offsets_;  // of registers, by value
  std::size_t frame_size_ = 0;
  std::vector<std::max_align_t> frames_;  // one per thread
  std::max_align_t* frame_ = nullptr;     // of the thread that runs
  Agent agent_;
  std::int64_t status_ = 0;
};

}  // namespace

std::int64_t interpret(const Kernel& kernel, const Arguments& arguments, std::int64_t begin,
                       std::int64_t end) {
  if (begin < 0)
    throw InternalError(
        fmt::format("kernel '{}': items start at 0, not at {}", kernel.name, begin));
  Machine machine(kernel, arguments);
  for (std::int64_t item = begin; item < end; ++item) machine.run_item(item);
  return machine.status();
}

}  // namespace pantala::kir
