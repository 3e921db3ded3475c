#include "plan/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "kir/verify.h"
#include "pantala/error.h"

namespace pantala::plan {

namespace {

constexpr std::int64_t kMaxBytes = std::int64_t{1} << 48;

class Validator {
 public:
  explicit Validator(const Plan& plan) : plan_(plan) {}

  void check() const {
    if (plan_.arena_bytes < 0 || plan_.arena_bytes > kMaxBytes)
      fail(fmt::format("an arena of {} bytes", plan_.arena_bytes));
    unique_regions();
    for (const Region& r : plan_.regions) region(r);
    for (const Buffer& b : plan_.buffers) buffer(b);
    unique(plan_.uniforms, "uniforms", &Uniform::name);
    for (const Uniform& u : plan_.uniforms)
      if (!scalar_dtype(u.dtype))
        fail(fmt::format("uniform '{}' is {}", u.name, dtype_name(u.dtype)));
    unique(plan_.units, "units", &Unit::entry);
    for (const Unit& u : plan_.units) unit(u);
    for (std::size_t k = 0; k < plan_.launches.size(); ++k) launch(k);
    preparation();
    ports(plan_.inputs, "input", {Storage::input});
    ports(plan_.parameters, "parameter", {Storage::store});
    ports(plan_.outputs, "output",
          {Storage::output, Storage::arena, Storage::store, Storage::input, Storage::constant});
    unique(plan_.gradients, "gradients", &ParameterGradient::name);
    for (const ParameterGradient& g : plan_.gradients)
      if (std::max(g.parameter, g.gradient) >= plan_.buffers.size())
        fail(fmt::format("gradient of '{}': there is no such buffer", g.name));
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw InternalError(fmt::format("plan '{}': {}", plan_.name, what));
  }

  static bool scalar_dtype(DType t) {
    return t == DType::f32 || t == DType::f64 || t == DType::i32 || t == DType::i64;
  }

  template <class T>
  void unique(const std::vector<T>& list, std::string_view what, std::string T::* name) const {
    std::set<std::string_view> seen;
    for (const T& entry : list)
      if (!seen.insert(entry.*name).second)
        fail(fmt::format("two {} are called '{}'", what, entry.*name));
  }

  // An output, and what is prepared, may be called like a leaf.
  void unique_regions() const {
    std::set<std::pair<Storage, std::string_view>> seen;
    for (const Region& r : plan_.regions)
      if (!seen.emplace(r.storage == Storage::input ? Storage::store : r.storage, r.name).second)
        fail(fmt::format("two regions are called '{}'", r.name));
  }

  void region(const Region& r) const {
    if (!is_bound(r.storage))
      fail(fmt::format("region '{}' is of kind {}, which is not bound", r.name,
                       storage_name(r.storage)));
    if (r.bytes < 0 || r.bytes > kMaxBytes)
      fail(fmt::format("region '{}' has {} bytes", r.name, r.bytes));
  }

  void buffer(const Buffer& b) const {
    const auto wrong = [&](const std::string& what) {
      fail(fmt::format("buffer '{}': {}", b.name, what));
    };
    if (b.elements < 0 || b.elements > kMaxBytes / 8)
      wrong(fmt::format("it has {} elements", b.elements));
    std::int64_t available = plan_.arena_bytes, alignment = kAlignment;
    if (b.storage == Storage::constant) available = std::ssize(plan_.constants);
    if (is_bound(b.storage)) {
      if (b.region >= plan_.regions.size()) wrong(fmt::format("there is no region {}", b.region));
      const Region& r = plan_.regions[b.region];
      if (r.storage != b.storage)
        wrong(fmt::format("it is of kind {}, its region '{}' is {}", storage_name(b.storage),
                          r.name, storage_name(r.storage)));
      available = r.bytes, alignment = dtype_bytes(b.dtype);
    }
    if (b.offset < 0 || b.offset > kMaxBytes) wrong(fmt::format("it begins at byte {}", b.offset));
    if (b.offset + b.bytes() > available)
      wrong(fmt::format("bytes {} to {} of {} {}", b.offset, b.offset + b.bytes(), available,
                        storage_name(b.storage)));
    if (b.offset % alignment != 0)
      wrong(fmt::format("offset {} is no multiple of {}", b.offset, alignment));
  }

  void unit(const Unit& u) const {
    const auto wrong = [&](const std::string& what) {
      fail(fmt::format("unit '{}': {}", u.entry, what));
    };
    if (!u.kernel && u.object.empty()) wrong("it has no code");
    if (!u.object.empty() && plan_.target.empty())
      wrong("it has an object, but the plan has no target");
    if (u.signature.scratch_bytes < 0 || u.signature.scratch_bytes > plan_.scratch_bytes)
      wrong(fmt::format("it needs {} bytes of scratch, the plan has {}", u.signature.scratch_bytes,
                        plan_.scratch_bytes));
    for (const DType t : u.signature.params)
      if (!scalar_dtype(t)) wrong(fmt::format("a parameter is {}", dtype_name(t)));
    if (!u.kernel) return;
    kir::verify(*u.kernel);
    if (u.kernel->name != u.entry) wrong(fmt::format("its kernel is called '{}'", u.kernel->name));
    if (signature_of(*u.kernel) != u.signature) wrong("its kernel has another signature");
  }

  void launch(std::size_t number) const {
    const Launch& l = plan_.launches[number];
    const auto wrong = [&](const std::string& what) {
      fail(fmt::format("launch {} '{}': {}", number, l.name, what));
    };
    if (l.unit >= plan_.units.size()) wrong(fmt::format("there is no unit {}", l.unit));
    const Signature& signature = plan_.units[l.unit].signature;
    std::int64_t items = 0;
    for (const ArgumentSet& set : l.sets) {
      if (set.items < 0 || __builtin_add_overflow(items, set.items, &items) || items > kMaxBytes)
        wrong(fmt::format("{} items", set.items));
      if (const std::string what = broken_rule(signature, set); !what.empty()) wrong(what);
    }
    for (std::size_t k = 0; k < l.after.size(); ++k) {
      if (l.after[k] >= number)
        wrong(fmt::format("it waits for launch {}, which is not an earlier one", l.after[k]));
      if (k > 0 && l.after[k] <= l.after[k - 1]) wrong("its edges are not in ascending order");
    }
  }

  template <class Use>
  void for_each_use(const Launch& l, const Use& use) const {
    for (const ArgumentSet& set : l.sets)
      for (std::size_t k = 0; k < set.buffers.size(); ++k)
        use(plan_.buffers[set.buffers[k]], plan_.units[l.unit].signature.buffers[k].access);
  }

  // A run without the preparation finds all that it reads.
  void preparation() const {
    if (plan_.preparation == 0) return;
    if (plan_.preparation > plan_.launches.size())
      fail(fmt::format("{} of {} launches are a preparation", plan_.preparation,
                       plan_.launches.size()));
    std::set<const Buffer*> gone;  // what the preparation alone has written to the arena
    for (std::size_t number = 0; number < plan_.launches.size(); ++number) {
      const Launch& l = plan_.launches[number];
      const bool prepares = number < plan_.preparation;
      for_each_use(l, [&](const Buffer& b, kir::Access access) {
        if (b.storage != Storage::arena) return;
        if (prepares)
          gone.insert(&b);
        else if (access == kir::Access::write)
          gone.erase(&b);
        else if (gone.contains(&b))
          fail(fmt::format("launch {} '{}' reads '{}', which only the preparation has written",
                           number, l.name, b.name));
      });
      for_each_use(l, [&](const Buffer& b, kir::Access access) {
        const bool reads = access != kir::Access::write, writes = access != kir::Access::read;
        const bool is_own = b.storage == Storage::arena || b.storage == Storage::prepared;
        const bool stays = b.storage == Storage::store || b.storage == Storage::constant;
        if (prepares ? (writes && !is_own) || (reads && !is_own && !stays)
                     : writes && b.storage == Storage::prepared)
          fail(fmt::format("launch {} '{}' {} the preparation, but {} {} '{}'", number, l.name,
                           prepares ? "belongs to" : "comes behind", writes ? "writes" : "reads",
                           storage_name(b.storage), b.name));
        if (writes && b.storage == Storage::store)
          fail(fmt::format("launch {} '{}' changes '{}', and there is a preparation", number,
                           l.name, b.name));
      });
      for (const ArgumentSet& set : l.sets)
        if (prepares && std::ranges::any_of(set.params, &Scalar::is_uniform))
          fail(fmt::format("launch {} '{}' belongs to the preparation and has a uniform", number,
                           l.name));
    }
  }

  // What is wrong with the arguments, or "".
  std::string broken_rule(const Signature& signature, const ArgumentSet& set) const {
    if (set.buffers.size() != signature.buffers.size())
      return fmt::format("{} buffers, the kernel takes {}", set.buffers.size(),
                         signature.buffers.size());
    if (set.params.size() != signature.params.size())
      return fmt::format("{} parameters, the kernel takes {}", set.params.size(),
                         signature.params.size());
    for (std::size_t k = 0; k < set.buffers.size(); ++k) {
      if (set.buffers[k] >= plan_.buffers.size())
        return fmt::format("there is no buffer {}", set.buffers[k]);
      const Buffer& b = plan_.buffers[set.buffers[k]];
      const Signature::Argument& a = signature.buffers[k];
      if (b.dtype != a.dtype)
        return fmt::format("buffer '{}' is {}, the kernel takes {}", b.name, dtype_name(b.dtype),
                           dtype_name(a.dtype));
      if (a.access != kir::Access::read &&
          (b.storage == Storage::constant || b.storage == Storage::input))
        return fmt::format("it writes {} '{}'", storage_name(b.storage), b.name);
      for (std::size_t j = 0; j < k; ++j)
        if ((a.access == kir::Access::read) != (signature.buffers[j].access == kir::Access::read) &&
            overlap(b, plan_.buffers[set.buffers[j]]))
          return fmt::format("'{}' and '{}' overlap, one is only read and the other is written",
                             plan_.buffers[set.buffers[j]].name, b.name);
    }
    for (std::size_t k = 0; k < set.params.size(); ++k) {
      const Scalar& s = set.params[k];
      if (!s.is_uniform) continue;
      if (s.value < 0 || s.value >= std::ssize(plan_.uniforms))
        return fmt::format("there is no uniform {}", s.value);
      const Uniform& u = plan_.uniforms[static_cast<std::size_t>(s.value)];
      if (u.dtype != signature.params[k])
        return fmt::format("uniform '{}' is {}, the kernel takes {}", u.name, dtype_name(u.dtype),
                           dtype_name(signature.params[k]));
    }
    return "";
  }

  static bool overlap(const Buffer& a, const Buffer& b) {
    if (a.storage != b.storage || (is_bound(a.storage) && a.region != b.region)) return false;
    return a.offset < b.offset + b.bytes() && b.offset < a.offset + a.bytes() && a.elements > 0 &&
           b.elements > 0;
  }

  void ports(const std::vector<Port>& list, std::string_view what,
             std::initializer_list<Storage> allowed) const {
    unique(list, fmt::format("{}s", what), &Port::name);
    for (const Port& p : list) {
      const auto wrong = [&](const std::string& text) {
        fail(fmt::format("{} '{}': {}", what, p.name, text));
      };
      if (p.buffer >= plan_.buffers.size()) wrong(fmt::format("there is no buffer {}", p.buffer));
      const Buffer& b = plan_.buffers[p.buffer];
      if (std::ranges::find(allowed, b.storage) == allowed.end())
        wrong(fmt::format("it is of kind {}", storage_name(b.storage)));
      if (p.shape.numel() != b.elements)
        wrong(fmt::format("it is {}, its buffer has {} elements", p.shape.str(), b.elements));
      if (p.limit < 0) wrong(fmt::format("a limit of {}", p.limit));
      if (p.limit == 0 && p.exempt) wrong("an exemption without a limit");
    }
  }

  const Plan& plan_;
};

std::uint32_t last_index(std::size_t size) { return static_cast<std::uint32_t>(size - 1); }

}  // namespace

std::string_view storage_name(Storage storage) {
  switch (storage) {
    case Storage::arena:
      return "arena";
    case Storage::constant:
      return "constant";
    case Storage::store:
      return "store";
    case Storage::input:
      return "input";
    case Storage::output:
      return "output";
    case Storage::prepared:
      return "prepared";
  }
  return "?";
}

Signature signature_of(const kir::Kernel& kernel) {
  Signature s{.buffers = {}, .params = {}, .scratch_bytes = kernel.scratch_bytes()};
  for (const kir::Buffer& b : kernel.buffers)
    if (b.space == kir::Space::global) s.buffers.push_back({b.dtype, b.access});
  for (const kir::Param& p : kernel.params) s.params.push_back(p.dtype);
  return s;
}

Unit unit_of(kir::Kernel kernel) {
  Unit unit{.entry = kernel.name, .signature = signature_of(kernel)};
  unit.kernel = std::move(kernel);
  return unit;
}

std::int64_t Launch::items() const {
  std::int64_t sum = 0;
  for (const ArgumentSet& set : sets) sum += set.items;
  return sum;
}

std::uint32_t add_region_buffer(Plan& plan, Storage storage, std::string name, DType dtype,
                                std::int64_t elements) {
  plan.regions.push_back({name, storage, elements * dtype_bytes(dtype)});
  plan.buffers.push_back(
      {std::move(name), dtype, elements, storage, last_index(plan.regions.size()), 0});
  return last_index(plan.buffers.size());
}

std::uint32_t add_prepared_buffer(Plan& plan, std::string name, DType dtype,
                                  std::int64_t elements) {
  auto region = std::ranges::find(plan.regions, Storage::prepared, &Region::storage);
  if (region == plan.regions.end())
    region = plan.regions.insert(region, {"prepared", Storage::prepared, 0});
  const std::int64_t offset = (region->bytes + kAlignment - 1) / kAlignment * kAlignment;
  region->bytes = offset + elements * dtype_bytes(dtype);
  plan.buffers.push_back({std::move(name), dtype, elements, Storage::prepared,
                          static_cast<std::uint32_t>(region - plan.regions.begin()), offset});
  return last_index(plan.buffers.size());
}

bool writes_store(const Plan& plan) {
  for (const Launch& launch : plan.launches)
    for (const ArgumentSet& set : launch.sets)
      for (std::size_t k = 0; k < set.buffers.size(); ++k)
        if (plan.units[launch.unit].signature.buffers[k].access != kir::Access::read &&
            plan.buffers[set.buffers[k]].storage == Storage::store)
          return true;
  return false;
}

std::int64_t prepared_bytes(const Plan& plan) {
  const auto region = std::ranges::find(plan.regions, Storage::prepared, &Region::storage);
  return region == plan.regions.end() ? 0 : region->bytes;
}

std::uint32_t add_arena_buffer(Plan& plan, std::string name, DType dtype, std::int64_t elements) {
  plan.buffers.push_back({std::move(name), dtype, elements, Storage::arena, 0, 0});
  return last_index(plan.buffers.size());
}

std::uint32_t add_constant(Plan& plan, std::string name, DType dtype,
                           std::vector<std::byte> content) {
  if (std::ssize(content) % dtype_bytes(dtype) != 0)
    throw InternalError(
        fmt::format("constant '{}': {} bytes of {}", name, content.size(), dtype_name(dtype)));
  const std::size_t offset = (plan.constants.size() + kAlignment - 1) / kAlignment * kAlignment;
  plan.constants.resize(offset);
  plan.constants.insert(plan.constants.end(), content.begin(), content.end());
  plan.buffers.push_back({std::move(name), dtype, std::ssize(content) / dtype_bytes(dtype),
                          Storage::constant, 0, static_cast<std::int64_t>(offset)});
  return last_index(plan.buffers.size());
}

std::uint32_t add_uniform(Plan& plan, std::string name, DType dtype) {
  plan.uniforms.push_back({std::move(name), dtype});
  return last_index(plan.uniforms.size());
}

std::uint32_t add_unit(Plan& plan, kir::Kernel kernel) {
  plan.units.push_back(unit_of(std::move(kernel)));
  plan.scratch_bytes = std::max(plan.scratch_bytes, plan.units.back().signature.scratch_bytes);
  return last_index(plan.units.size());
}

void validate(const Plan& plan) { Validator(plan).check(); }

}  // namespace pantala::plan
