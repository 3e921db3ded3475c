#include "plan/serialize.h"

#include <fmt/format.h>

#include <concepts>
#include <type_traits>

#include "base/hash.h"
#include "kir/text.h"
#include "pantala/error.h"

namespace pantala::plan {

namespace {

constexpr std::string_view kMagic = "PANTPLAN";
constexpr std::size_t kHeaderBytes = 8 + 4 + 8 + 8;

// The fields of every struct, once for writing and reading.
template <class Archive, class Struct>
void fields(Archive& a, Struct& s) {
  using S = std::remove_const_t<Struct>;
  if constexpr (std::same_as<S, Region>)
    a(s.name, s.storage, s.bytes);
  else if constexpr (std::same_as<S, Buffer>)
    a(s.name, s.dtype, s.elements, s.storage, s.region, s.offset);
  else if constexpr (std::same_as<S, Uniform>)
    a(s.name, s.dtype);
  else if constexpr (std::same_as<S, Scalar>)
    a(s.is_uniform, s.value);
  else if constexpr (std::same_as<S, Signature::Argument>)
    a(s.dtype, s.access);
  else if constexpr (std::same_as<S, Signature>)
    a(s.buffers, s.params, s.scratch_bytes);
  else if constexpr (std::same_as<S, Unit>)
    a(s.entry, s.signature, s.kernel, s.object);
  else if constexpr (std::same_as<S, ArgumentSet>)
    a(s.items, s.buffers, s.params);
  else if constexpr (std::same_as<S, Launch>)
    a(s.name, s.unit, s.sets, s.after, s.serial);
  else if constexpr (std::same_as<S, Port>)
    a(s.name, s.buffer, s.shape, s.limit, s.exempt);
  else if constexpr (std::same_as<S, ParameterGradient>)
    a(s.name, s.parameter, s.gradient);
  else {
    static_assert(std::same_as<S, Plan>);
    a(s.name, s.target, s.regions, s.buffers, s.constants, s.uniforms, s.units, s.launches,
      s.preparation, s.arena_bytes, s.scratch_bytes);
    a(s.inputs, s.parameters, s.outputs, s.gradients);
  }
}

template <class T>
constexpr int kEnumCount = 0;
template <>
constexpr int kEnumCount<DType> = static_cast<int>(DType::boolean) + 1;
template <>
constexpr int kEnumCount<Storage> = static_cast<int>(Storage::prepared) + 1;
template <>
constexpr int kEnumCount<kir::Access> = static_cast<int>(kir::Access::read_write) + 1;

class Writer {
 public:
  template <class... Ts>
  void operator()(const Ts&... values) {
    (put(values), ...);
  }

  template <std::integral T>
  void put(T value) {
    for (std::size_t k = 0; k < sizeof(T); ++k)
      bytes.push_back(static_cast<std::byte>(static_cast<std::uint64_t>(value) >> (8 * k)));
  }
  template <class T>
    requires std::is_enum_v<T>
  void put(T value) {
    put(static_cast<std::uint8_t>(value));
  }
  void put(const std::string& text) {
    put(std::uint64_t{text.size()});
    const auto* data = reinterpret_cast<const std::byte*>(text.data());
    bytes.insert(bytes.end(), data, data + text.size());
  }
  void put(const std::vector<std::byte>& raw) {
    put(std::uint64_t{raw.size()});
    bytes.insert(bytes.end(), raw.begin(), raw.end());
  }
  template <class T>
  void put(const std::vector<T>& list) {
    put(std::uint64_t{list.size()});
    for (const T& entry : list) put(entry);
  }
  void put(const Shape& shape) { put(shape.vec()); }
  void put(const std::optional<std::int64_t>& number) {
    put(number.has_value());
    if (number) put(*number);
  }
  void put(const std::optional<kir::Kernel>& kernel) {
    put(kernel ? kir::print(*kernel) : std::string());
  }
  template <class T>
    requires std::is_class_v<T>
  void put(const T& s) {
    fields(*this, s);
  }

  std::vector<std::byte> bytes;
};

class Reader {
 public:
  Reader(std::span<const std::byte> bytes, std::string_view file) : bytes_(bytes), file_(file) {}

  template <class... Ts>
  void operator()(Ts&... values) {
    (get(values), ...);
  }

  [[noreturn]] void fail(const std::string& what) const {
    throw ParseError(fmt::format("{}, byte {}: {}", file_, at_, what));
  }
  std::size_t left() const { return bytes_.size() - at_; }
  std::span<const std::byte> take(std::uint64_t size) {
    if (size > left()) fail(fmt::format("{} bytes expected, {} are left", size, left()));
    at_ += size;
    return bytes_.subspan(at_ - size, size);
  }

  template <std::integral T>
  void get(T& value) {
    std::uint64_t bits = 0;
    const auto raw = take(sizeof(T));
    for (std::size_t k = 0; k < sizeof(T); ++k)
      bits |= std::uint64_t{std::to_integer<std::uint8_t>(raw[k])} << (8 * k);
    if (std::same_as<T, bool> && bits > 1) fail(fmt::format("{} is no truth value", bits));
    value = static_cast<T>(bits);
  }
  template <class T>
    requires std::is_enum_v<T>
  void get(T& value) {
    static_assert(kEnumCount<T> > 0);
    std::uint8_t number = 0;
    get(number);
    if (number >= kEnumCount<T>)
      fail(fmt::format("{} is not one of the {} kinds that there are", number, kEnumCount<T>));
    value = static_cast<T>(number);
  }
  void get(std::string& text) {
    const auto raw = counted();
    text.assign(reinterpret_cast<const char*>(raw.data()), raw.size());
  }
  void get(std::vector<std::byte>& list) {
    const auto raw = counted();
    list.assign(raw.begin(), raw.end());
  }
  // Grows with what has been read: a count that lies runs out of bytes before it takes memory.
  template <class T>
  void get(std::vector<T>& list) {
    std::uint64_t count = 0;
    get(count);
    if (count > left()) fail(fmt::format("a list of {}, {} bytes are left", count, left()));
    for (std::uint64_t k = 0; k < count; ++k) get(list.emplace_back());
  }
  void get(Shape& shape) {
    std::vector<std::int64_t> sizes;
    get(sizes);
    try {
      shape = Shape(sizes);
    } catch (const Error& e) { fail(e.what()); }
  }
  void get(std::optional<std::int64_t>& number) {
    bool is_there = false;
    get(is_there);
    if (is_there) get(number.emplace());
  }
  void get(std::optional<kir::Kernel>& kernel) {
    std::string text;
    get(text);
    if (text.empty()) return;
    try {
      kernel = kir::parse(text);
    } catch (const Error& e) { fail(e.what()); }
  }
  template <class T>
    requires std::is_class_v<T>
  void get(T& s) {
    fields(*this, s);
  }

 private:
  std::span<const std::byte> counted() {
    std::uint64_t size = 0;
    get(size);
    return take(size);
  }

  std::span<const std::byte> bytes_;
  std::string_view file_;
  std::size_t at_ = 0;
};

}  // namespace

std::uint64_t content_hash(std::span<const std::byte> content) {
  std::uint64_t hash = hash_combine(kHashSeed, content.size());
  for (std::size_t begin = 0; begin < content.size(); begin += 8) {
    std::uint64_t word = 0;
    const auto piece = content.subspan(begin, std::min<std::size_t>(8, content.size() - begin));
    for (std::size_t k = 0; k < piece.size(); ++k)
      word |= std::uint64_t{std::to_integer<std::uint8_t>(piece[k])} << (8 * k);
    hash = hash_combine(hash, word);
  }
  return hash;
}

std::vector<std::byte> serialize(const Plan& plan) {
  Writer content;
  content.put(plan);
  Writer file;
  for (const char c : kMagic) file.put(c);
  file(kPlanVersion, std::uint64_t{content.bytes.size()}, content_hash(content.bytes));
  file.bytes.insert(file.bytes.end(), content.bytes.begin(), content.bytes.end());
  return std::move(file.bytes);
}

Plan deserialize(std::span<const std::byte> bytes, std::string_view file) {
  Reader reader(bytes, file);
  const auto magic = reader.take(kMagic.size());
  if (std::string_view(reinterpret_cast<const char*>(magic.data()), magic.size()) != kMagic)
    reader.fail("this is not a plan");
  std::uint32_t version = 0;
  std::uint64_t length = 0, hash = 0;
  reader.get(version);
  if (version != kPlanVersion)
    reader.fail(fmt::format("a plan of version {}, {} is expected", version, kPlanVersion));
  reader(length, hash);
  if (length != reader.left())
    reader.fail(fmt::format("{} bytes of content expected, {} are left", length, reader.left()));
  if (content_hash(bytes.subspan(kHeaderBytes)) != hash)
    reader.fail("the content is damaged: its hash differs");
  Plan plan;
  reader.get(plan);
  if (reader.left() != 0) reader.fail(fmt::format("{} bytes too many", reader.left()));
  try {
    validate(plan);
  } catch (const InternalError& e) { reader.fail(e.what()); }
  return plan;
}

}  // namespace pantala::plan
