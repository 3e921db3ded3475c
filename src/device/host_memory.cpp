#include "device/host_memory.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/doing.h"
#include "pantala/error.h"

namespace pantala::device {

namespace {
constexpr std::size_t kPage = 4096, kHugePage = std::size_t{2} << 20;
constexpr std::size_t round_up(std::size_t n, std::size_t unit) {
  return (n + unit - 1) / unit * unit;
}
constexpr std::int64_t kMaxBytes = std::int64_t{1} << 46;
}  // namespace

HostBlock::HostBlock(std::int64_t bytes, bool sentinels) : bytes_(bytes), sentinels_(sentinels) {
  if (bytes < 0 || bytes > kMaxBytes)
    throw DeviceError(fmt::format("{} bytes of memory are asked for", bytes));
  const auto size = static_cast<std::size_t>(bytes);
  if (sentinels) {
    map(size + 2 * kPage);
    data_ = static_cast<std::byte*>(mapped_) + kPage;
    write_sentinels({data_ - kPage, kPage});
    write_sentinels({data_ + size, kPage});
    return;
  }
  if (bytes == 0) return;
  const bool huge = size >= kHugePage;
  map(huge ? round_up(size, kHugePage) + kHugePage : size);
  const auto address = reinterpret_cast<std::uintptr_t>(mapped_);
  data_ = static_cast<std::byte*>(mapped_) + (huge ? round_up(address, kHugePage) - address : 0);
#ifdef MADV_HUGEPAGE
  // A wish: without huge pages everything works, more slowly.
  if (huge) madvise(data_, round_up(size, kHugePage), MADV_HUGEPAGE);
#endif
}

void HostBlock::map(std::size_t bytes) {
  const std::size_t whole = round_up(bytes, kPage);
  void* memory = mmap(nullptr, whole, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) throw DeviceError(no_memory_text(static_cast<std::uint64_t>(bytes_)));
  mapped_ = memory;
  mapped_bytes_ = whole;
}

void HostBlock::check_sentinels(std::string_view what) const {
  if (!sentinels_) return;
  const auto size = static_cast<std::size_t>(bytes_);
  if (const auto at = damaged_sentinel({data_ - kPage, kPage}))
    throw InternalError(fmt::format("{}: something wrote {} bytes before its {} bytes", what,
                                    static_cast<std::int64_t>(kPage) - *at, bytes_));
  if (const auto at = damaged_sentinel({data_ + size, kPage}))
    throw InternalError(
        fmt::format("{}: something wrote to byte {} of its {} bytes", what, bytes_ + *at, bytes_));
}

HostBlock::HostBlock(HostBlock&& other) noexcept { *this = std::move(other); }

HostBlock& HostBlock::operator=(HostBlock&& other) noexcept {
  std::swap(mapped_, other.mapped_);
  std::swap(mapped_bytes_, other.mapped_bytes_);
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  std::swap(sentinels_, other.sentinels_);
  return *this;
}

void HostBlock::release() noexcept {
  if (mapped_) munmap(mapped_, mapped_bytes_);
}

MemoryId HostMemory::allocate(std::int64_t bytes) {
  const MemoryId id{++last_id_};
  blocks_.emplace(id, HostBlock(bytes, sentinels_));
  allocated_ += bytes;
  peak_allocated_ = std::max(peak_allocated_, allocated_);
  return id;
}

void HostMemory::free(MemoryId memory) {
  allocated_ -= find(memory, "free").bytes();
  blocks_.erase(memory);
  ++generation_;
}

void HostMemory::check_sentinels() const {
  for (const auto& [id, block] : blocks_) block.check_sentinels(fmt::format("memory {}", id.id));
}

const HostBlock& HostMemory::find(MemoryId memory, std::string_view what) const {
  const auto found = blocks_.find(memory);
  if (found == blocks_.end())
    throw TypeError(fmt::format("{}: there is no memory {}", what, memory.id));
  return found->second;
}

std::byte* HostMemory::view(MemoryId memory) const { return find(memory, "host view").data(); }

std::byte* HostMemory::at(const Slice& slice, std::string_view what) const {
  const HostBlock& block = find(slice.memory, what);
  if (slice.offset < 0 || slice.bytes < 0 || slice.offset > block.bytes() ||
      slice.bytes > block.bytes() - slice.offset)
    throw TypeError(fmt::format("{}: {} bytes from byte {} of a memory of {} bytes", what,
                                slice.bytes, slice.offset, block.bytes()));
  return block.data() ? block.data() + slice.offset : nullptr;
}

void HostMemory::write(const Slice& to, std::span<const std::byte> from) {
  std::byte* target = at(to, "write");
  if (std::ssize(from) != to.bytes)
    throw TypeError(fmt::format("write: {} bytes are given for {}", from.size(), to.bytes));
  if (!from.empty()) std::memcpy(target, from.data(), from.size());
}

void HostMemory::read(const Slice& from, std::span<std::byte> to) const {
  const std::byte* source = at(from, "read");
  if (std::ssize(to) != from.bytes)
    throw TypeError(
        fmt::format("read: there is room for {} bytes, {} are asked for", to.size(), from.bytes));
  if (!to.empty()) std::memcpy(to.data(), source, to.size());
}

void HostMemory::copy(const Slice& from, const Slice& to) {
  const std::byte* source = at(from, "copy");
  std::byte* target = at(to, "copy");
  if (from.bytes != to.bytes)
    throw TypeError(fmt::format("copy: {} bytes to a place of {}", from.bytes, to.bytes));
  if (from.bytes > 0) std::memmove(target, source, static_cast<std::size_t>(from.bytes));
}

Binder::Binder(const plan::Plan& plan) : Binder(plan, nullptr) {
  constants_ = HostBlock(std::ssize(plan.constants));
  if (!plan.constants.empty())
    std::memcpy(constants_.data(), plan.constants.data(), plan.constants.size());
  bases_[1] = constants_.data();
}

Binder::Binder(const plan::Plan& plan, std::byte* constants)
    : gaps_(plan), bases_(2 + plan.regions.size()), regions_(plan.regions.size()) {
  bases_[1] = constants;
  extents_.reserve(bases_.size());
}

std::size_t Binder::base_of(const plan::Buffer& buffer) {
  if (plan::is_bound(buffer.storage)) return 2 + std::size_t{buffer.region};
  return buffer.storage == plan::Storage::constant ? 1 : 0;
}

bool Binder::bind(const plan::Plan& plan, const RunArguments& arguments,
                  const AddressSpace& memory) {
  if (arguments.uniforms.size() != plan.uniforms.size())
    throw TypeError(fmt::format("plan '{}': {} uniforms are given, it has {}", plan.name,
                                arguments.uniforms.size(), plan.uniforms.size()));
  if (bound_ && generation_ == memory.generation() && arena_ == arguments.arena &&
      std::ranges::equal(regions_, arguments.regions))
    return false;
  bound_ = false;
  check(plan, arguments, memory);
  check_overlaps(plan);
  bound_ = true;
  generation_ = memory.generation();
  arena_ = arguments.arena;
  std::ranges::copy(arguments.regions, regions_.begin());
  return true;
}

void Binder::check(const plan::Plan& plan, const RunArguments& arguments,
                   const AddressSpace& memory) {
  const auto fail = [&](const std::string& what) {
    throw TypeError(fmt::format("plan '{}': {}", plan.name, what));
  };
  if (arguments.regions.size() != plan.regions.size())
    fail(fmt::format("{} regions are bound, it has {}", arguments.regions.size(),
                     plan.regions.size()));
  if (arguments.arena.bytes < plan.arena_bytes)
    fail(fmt::format("an arena of {} bytes, it needs {}", arguments.arena.bytes, plan.arena_bytes));
  bases_[0] = plan.arena_bytes == 0 ? nullptr : memory.at(arguments.arena, "arena");
  if (reinterpret_cast<std::uintptr_t>(bases_[0]) % plan::kAlignment != 0)
    fail(fmt::format("the arena starts at byte {}, not at a multiple of {}", arguments.arena.offset,
                     plan::kAlignment));
  for (std::size_t r = 0; r < plan.regions.size(); ++r) {
    const plan::Region& region = plan.regions[r];
    if (arguments.regions[r].bytes != region.bytes)
      fail(fmt::format("{} '{}' has {} bytes, {} are bound", storage_name(region.storage),
                       region.name, region.bytes, arguments.regions[r].bytes));
    bases_[2 + r] = region.bytes == 0 ? nullptr : memory.at(arguments.regions[r], region.name);
  }
  for (const plan::Buffer& b : plan.buffers)
    if (reinterpret_cast<std::uintptr_t>(bases_[base_of(b)] + b.offset) %
            static_cast<std::uintptr_t>(dtype_bytes(b.dtype)) !=
        0)
      fail(fmt::format("'{}' is bound to an address that does not suit {}", b.name,
                       dtype_name(b.dtype)));
}

void Binder::check_overlaps(const plan::Plan& plan) {
  extents_.clear();
  if (plan.arena_bytes > 0) extents_.push_back({bases_[0], plan.arena_bytes, 0});
  for (std::size_t r = 0; r < plan.regions.size(); ++r)
    if (plan.regions[r].bytes > 0)
      extents_.push_back({bases_[2 + r], plan.regions[r].bytes, 2 + r});
  std::ranges::sort(extents_, std::ranges::less{}, [](const Extent& e) { return e.begin; });
  const auto name = [&](const Extent& e) {
    return e.base == 0 ? std::string("the arena")
                       : fmt::format("'{}'", plan.regions[e.base - 2].name);
  };
  for (std::size_t k = 1; k < extents_.size(); ++k)
    if (extents_[k].begin < extents_[k - 1].begin + extents_[k - 1].bytes)
      throw TypeError(fmt::format("plan '{}': {} and {} are bound to memory that overlaps",
                                  plan.name, name(extents_[k - 1]), name(extents_[k])));
}

}  // namespace pantala::device
