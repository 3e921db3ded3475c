#include "schedule/preparation.h"

#include <algorithm>

namespace pantala::schedule {

namespace {

class Separation {
 public:
  explicit Separation(Program& program) : program_(program) {}

  void run() {
    if (!find_launches()) return;
    keep_what_others_read();
    std::vector<ProgramLaunch> first, rest;
    for (std::size_t k = 0; k < is_first_.size(); ++k)
      (is_first_[k] ? first : rest).push_back(std::move(program_.launches[k]));
    program_.preparation = first.size();
    std::ranges::move(rest, std::back_inserter(first));
    program_.launches = std::move(first);
  }

 private:
  template <class Use>
  void for_each_use(const ProgramLaunch& launch, const Use& use) const {
    const kir::Kernel& kernel = program_.kernels[launch.kernel];
    for (const ProgramLaunch::Set& set : launch.sets)
      for (std::size_t k = 0; k < set.buffers.size(); ++k)
        use(set.buffers[k], kernel.buffers[k].access);
  }
  static bool reads(kir::Access access) { return access != kir::Access::write; }
  static bool writes(kir::Access access) { return access != kir::Access::read; }

  // Whether there are any. Memory that a launch of the others writes, too, is none of theirs, and
  // what is read of it neither: so it is begun again without that.
  bool find_launches() {
    std::vector<bool> is_shared(program_.buffers.size());
    while (true) {
      mark_launches(is_shared);
      bool has_found = false;
      for (std::size_t k = 0; k < program_.launches.size(); ++k)
        for_each_use(program_.launches[k], [&](std::uint32_t buffer, kir::Access access) {
          if (!writes(access)) return;
          if (program_.buffers[buffer].role == Role::store) is_changing_ = true;
          if (is_first_[k] || is_shared[buffer]) return;
          is_shared[buffer] = has_found = true;
        });
      if (is_changing_) return false;
      if (!has_found) break;
    }
    return std::ranges::find(is_first_, true) != is_first_.end();
  }

  void mark_launches(const std::vector<bool>& is_shared) {
    std::vector<bool> is_known(program_.buffers.size());
    for (std::size_t b = 0; b < is_known.size(); ++b)
      is_known[b] =
          program_.buffers[b].role == Role::store || program_.buffers[b].role == Role::constant;
    is_first_.assign(program_.launches.size(), false);
    for (std::size_t k = 0; k < program_.launches.size(); ++k) {
      const ProgramLaunch& launch = program_.launches[k];
      bool fits = !has_uniform(launch);
      for_each_use(launch, [&](std::uint32_t buffer, kir::Access access) {
        fits &= !reads(access) || is_known[buffer];
        fits &= !writes(access) ||
                (program_.buffers[buffer].role == Role::temporary && !is_shared[buffer]);
      });
      if (!fits) continue;
      is_first_[k] = true;
      for_each_use(launch, [&](std::uint32_t buffer, kir::Access access) {
        if (writes(access)) is_known[buffer] = true;
      });
    }
  }

  static bool has_uniform(const ProgramLaunch& launch) {
    return std::ranges::any_of(launch.sets, [](const ProgramLaunch::Set& set) {
      return std::ranges::find(set.params, ParamValue::Kind::uniform, &ParamValue::kind) !=
             set.params.end();
    });
  }

  void keep_what_others_read() {
    std::vector<bool> is_made(program_.buffers.size());
    for (const bool of_first : {true, false})
      for (std::size_t k = 0; k < program_.launches.size(); ++k) {
        if (is_first_[k] != of_first) continue;
        for_each_use(program_.launches[k], [&](std::uint32_t buffer, kir::Access access) {
          if (of_first && writes(access)) is_made[buffer] = true;
          if (!of_first && is_made[buffer]) program_.buffers[buffer].role = Role::prepared;
        });
      }
  }

  Program& program_;
  std::vector<bool> is_first_;  // by launch
  bool is_changing_ = false;    // the store
};

}  // namespace

void separate_preparation(Program& program) { Separation(program).run(); }

}  // namespace pantala::schedule
