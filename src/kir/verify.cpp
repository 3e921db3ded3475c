#include "kir/verify.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <map>
#include <set>

#include "kir/rules.h"
#include "kir/text.h"
#include "kir/uniform.h"
#include "pantala/error.h"

namespace pantala::kir {

namespace {

// Names are words of the text form.
bool is_name(const std::string& name) {
  const auto letter = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
  };
  const auto part = [&](char c) { return letter(c) || (c >= '0' && c <= '9') || c == '.'; };
  return !name.empty() && letter(name[0]) && std::ranges::all_of(name, part);
}

class Verifier {
 public:
  explicit Verifier(const Kernel& kernel)
      : kernel_(kernel), state_(kernel.types.size(), State::undefined) {}

  void check() {
    arguments();
    for (std::size_t v = 0; v < kernel_.types.size(); ++v)
      if (const std::string wrong = broken_rule(kernel_.types[v]); !wrong.empty())
        fail(fmt::format("%{}: {}", v, wrong));
    const Block& body = kernel_.body;
    threads();
    if (!body.yields.empty()) fail("the body yields nothing");
    block(body, nullptr);
    for (std::size_t v = 0; v < state_.size(); ++v)
      if (state_[v] == State::undefined) fail(fmt::format("%{} is never defined", v));
    for (const Value v : body.params)
      if (kernel_.type(v) != VType{DType::i64, 1}) fail("the item or the thread is not an i64");
    if (const Inst* inst = divergent_meeting(kernel_))
      fail(inst, "threads meet where not all of them come");
  }

 private:
  enum class State : std::uint8_t { undefined, visible, closed };

  [[noreturn]] void fail(const std::string& what) const {
    throw InternalError(fmt::format("kernel '{}': {}", kernel_.name, what));
  }
  [[noreturn]] void fail(const Inst* inst, const std::string& what) const {
    fail(inst ? fmt::format("{}, in: {}", what, print(kernel_, *inst)) : what);
  }

  void threads() const {
    const int n = kernel_.threads;
    if (n < 1 || n > kMaxThreads || !std::has_single_bit(static_cast<unsigned>(n)))
      fail(fmt::format("{} threads are no power of two up to {}", n, kMaxThreads));
    if (kernel_.body.params.size() != (n == 1 ? 1 : 2))
      fail(n == 1 ? "the body has one parameter, the item"
                  : "the body has two parameters, the item and the thread");
  }

  void arguments() const {
    std::set<std::string> buffers, params;
    bool scratch = false;
    for (const Buffer& b : kernel_.buffers) {
      if (const std::string wrong = broken_rule(b); !wrong.empty()) fail(wrong);
      if (!is_name(b.name)) fail(fmt::format("'{}' is no name for a buffer", b.name));
      if (!buffers.insert(b.name).second) fail(fmt::format("two buffers are called '{}'", b.name));
      if (scratch && b.space == Space::global)
        fail(fmt::format("buffer '{}' comes after scratch", b.name));
      scratch = b.space == Space::scratch;
    }
    for (const Param& p : kernel_.params) {
      if (const std::string wrong = broken_rule(p); !wrong.empty()) fail(wrong);
      if (!is_name(p.name)) fail(fmt::format("'{}' is no name for a parameter", p.name));
      if (!params.insert(p.name).second)
        fail(fmt::format("two parameters are called '{}'", p.name));
    }
  }

  void define(Value v, const Inst* inst) {
    if (v.id >= state_.size()) fail(inst, fmt::format("%{} has no type", v.id));
    if (state_[v.id] != State::undefined) fail(inst, fmt::format("%{} is defined twice", v.id));
    state_[v.id] = State::visible;
  }
  void use(Value v, const Inst* inst) const {
    if (v.id >= state_.size()) fail(inst, fmt::format("%{} has no type", v.id));
    if (state_[v.id] == State::undefined)
      fail(inst, fmt::format("%{} is used before it is defined", v.id));
    if (state_[v.id] == State::closed)
      fail(inst, fmt::format("%{} is used outside of its block", v.id));
  }

  void block(const Block& block, const Inst* owner) {
    for (const Value v : block.params) define(v, owner);
    for (const Inst& i : block.body) inst(i);
    for (const Value v : block.yields) use(v, owner);
    close(block);
  }
  void close(const Block& block) {
    for (const Value v : block.params) state_[v.id] = State::closed;
    for (const Inst& i : block.body)
      for (const Value v : i.results) state_[v.id] = State::closed;
  }

  void inst(const Inst& inst) {
    for (const Value v : inst.args) use(v, &inst);
    for (const Block& b : inst.blocks) block(b, &inst);
    for (const Value v : inst.results) define(v, &inst);
    if (const std::string wrong = broken_rule(kernel_, inst); !wrong.empty()) fail(&inst, wrong);
    if (inst.op == Op::constant && !is_float(kernel_.type(inst.results[0]).dtype))
      integers_[inst.results[0]] = inst.index;
    if (inst.op != Op::loop) return;
    const auto step = integers_.find(inst.args[2]);
    if (step != integers_.end() && step->second <= 0)
      fail(&inst, fmt::format("the step is {}", step->second));
  }

  const Kernel& kernel_;
  std::vector<State> state_;
  std::map<Value, std::int64_t> integers_;  // constants
};

}  // namespace

void verify(const Kernel& kernel) { Verifier(kernel).check(); }

}  // namespace pantala::kir
