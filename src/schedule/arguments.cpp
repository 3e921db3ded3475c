#include "schedule/arguments.h"

#include <fmt/format.h>

#include <algorithm>

#include "pantala/error.h"

namespace pantala::schedule {

using kir::Var;

void Arguments::add(std::uint32_t buffer, DType dtype, bool write) {
  const auto it = std::find_if(entries_.begin(), entries_.end(),
                               [&](const Entry& e) { return e.buffer == buffer; });
  Entry& entry = it != entries_.end()
                     ? *it
                     : entries_.emplace_back(Entry{buffer, dtype, false, false, false, {}});
  (write ? entry.write : entry.read) = true;
}

const Arguments::Entry* Arguments::find(std::uint32_t buffer) const {
  const auto it = std::find_if(entries_.begin(), entries_.end(),
                               [&](const Entry& e) { return e.buffer == buffer; });
  return it != entries_.end() ? &*it : nullptr;
}

void Arguments::assume(std::uint32_t buffer, kir::BufferId id) {
  const auto it = std::find_if(entries_.begin(), entries_.end(),
                               [&](const Entry& e) { return e.buffer == buffer; });
  if (it == entries_.end()) throw InternalError("schedule: an assumed buffer was not announced");
  it->assumed = true;
  it->id = id;
}

void Arguments::declare_buffers(kir::Builder& b) {
  for (Entry& entry : entries_)
    if (!entry.assumed)
      entry.id = b.buffer(fmt::format("b{}", names_++), entry.dtype, access_of(entry.buffer));
}

kir::Access Arguments::access_of(std::uint32_t buffer) const {
  const Entry* entry = find(buffer);
  if (entry == nullptr) throw InternalError("schedule: a buffer was not announced");
  return !entry->write ? kir::Access::read
         : entry->read ? kir::Access::read_write
                       : kir::Access::write;
}

kir::BufferId Arguments::id(std::uint32_t buffer) const {
  const Entry* entry = find(buffer);
  if (entry == nullptr || !entry->id.valid())
    throw InternalError("schedule: a buffer was not declared");
  return entry->id;
}

Var Arguments::integer(kir::Builder& b, const std::string& name, std::int64_t value) {
  params_.push_back(ParamValue::of(value));
  return b.param(fmt::format("{}{}", name, params_.size()));
}

void Arguments::take_integers(const std::vector<std::int64_t>& values) {
  for (const std::int64_t value : values) params_.push_back(ParamValue::of(value));
}

Var Arguments::uniform(kir::Builder& b, ValueId value) {
  const DType dtype = info_.graph->type(value).dtype;
  // Integers and conditions travel as i64.
  const DType held = dtype == DType::f64 ? DType::f64 : is_float(dtype) ? DType::f32 : DType::i64;
  params_.push_back(ParamValue::of_uniform(uniform_index(uniforms_, value, held)));
  return b.param(fmt::format("u{}", params_.size()), held);
}

std::size_t uniform_index(std::vector<Uniform>& uniforms, ValueId value, DType dtype) {
  auto it = std::find_if(uniforms.begin(), uniforms.end(),
                         [&](const Uniform& u) { return u.value == value && u.dtype == dtype; });
  if (it == uniforms.end()) it = uniforms.insert(uniforms.end(), Uniform{value, dtype});
  return static_cast<std::size_t>(it - uniforms.begin());
}

DeclaredAccess Arguments::access(kir::Builder& b, std::uint32_t buffer, const Affine& flat,
                                 const std::vector<std::int64_t>& offset_strides) {
  DeclaredAccess declared;
  const auto like = std::find_if(shared_.begin(), shared_.end(), [&](const Shared& s) {
    return s.buffer == buffer && s.flat.coef == flat.coef;
  });
  if (like != shared_.end()) {
    declared = like->declared;
    declared.offset_strides.clear();
    declared.constant = {};
  } else {
    for (std::size_t d = 0; d < kMaxLoops; ++d) {
      if (flat.coef[d] == 1)
        declared.unit[d] = true;
      else if (flat.coef[d] != 0)
        declared.coef[d] = integer(b, "stride", flat.coef[d]);
    }
    shared_.push_back({buffer, flat, declared});
  }
  declared.buffer = id(buffer);
  if (flat.constant != 0) declared.constant = integer(b, "start", flat.constant);
  for (const std::int64_t stride : offset_strides)
    declared.offset_strides.push_back(integer(b, "stride", stride));
  return declared;
}

Declared Arguments::declare(kir::Builder& b, const Footprint& footprint,
                            const std::function<std::uint32_t(ValueId)>& buffer_of) {
  Declared all;
  for (const Access& a : footprint.accesses)
    all.accesses.push_back(access(b, buffer_of(a.value), a.flat, a.offset_strides));
  for (const ValueId value : footprint.uniforms) all.uniforms.push_back(uniform(b, value));
  for (const NodeNumber& n : footprint.numbers)
    all.numbers.push_back(integer(b, "number", n.number));
  return all;
}

std::vector<std::uint32_t> Arguments::buffers() const {
  std::vector<std::uint32_t> list;
  for (const Entry& entry : entries_)
    if (!entry.assumed) list.push_back(entry.buffer);
  return list;
}

}  // namespace pantala::schedule
