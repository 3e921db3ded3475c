#include "ir/attribute.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <bit>

#include "base/hash.h"
#include "base/text.h"
#include "ir/init_kinds.h"

namespace pantala {

namespace init {
namespace {
using Kind = Initializer::Kind;
constexpr KindInfo kKinds[] = {
    {Kind::zeros, "zeros", 0},
    {Kind::ones, "ones", 0},
    {Kind::constant, "constant", 1},
    {Kind::uniform, "uniform", 2},
    {Kind::normal, "normal", 2},
    {Kind::truncated_normal, "truncated_normal", 4},
    {Kind::xavier_uniform, "xavier_uniform", 1},
    {Kind::xavier_normal, "xavier_normal", 1},
    {Kind::kaiming_uniform, "kaiming_uniform", 1},
    {Kind::kaiming_normal, "kaiming_normal", 1},
    {Kind::orthogonal, "orthogonal", 1},
    {Kind::data, "data", 0},
};
}  // namespace
std::span<const KindInfo> kinds() { return kKinds; }
std::string_view kind_text(Kind kind) { return kKinds[static_cast<std::size_t>(kind)].name; }
}  // namespace init

std::string to_text(const Initializer& i) {
  const init::KindInfo& info = init::kinds()[static_cast<std::size_t>(i.kind)];
  if (i.kind == Initializer::Kind::data)
    return fmt::format("data({})", ir::to_text(ir::AttrValue(i.data)));
  if (info.arguments == 0) return std::string(info.name);
  const double all[] = {i.a, i.b, i.low, i.high};
  std::string text = fmt::format("{}({}", info.name, exact(all[0]));
  for (int k = 1; k < info.arguments; ++k) text += fmt::format(",{}", exact(all[k]));
  return text + ")";
}

namespace ir {

bool equal_bits(const AttrValue& a, const AttrValue& b) {
  if (a.index() != b.index()) return false;
  if (const double* x = std::get_if<double>(&a))
    return hash_double(*x) == hash_double(std::get<double>(b));
  if (const LiteralPtr* x = std::get_if<LiteralPtr>(&a)) {
    const LiteralPtr& y = std::get<LiteralPtr>(b);
    return *x == y || (*x && y && **x == *y);
  }
  return a == b;
}

std::uint64_t hash_of(const AttrValue& value) {
  const auto one = [](const auto& v) -> std::uint64_t {
    using T = std::decay_t<decltype(v)>;
    if constexpr (std::is_same_v<T, double>)
      return hash_double(v);
    else if constexpr (std::is_same_v<T, std::string>)
      return fnv1a(v);
    else if constexpr (std::is_same_v<T, Initializer>)
      return fnv1a(pantala::to_text(v));
    else if constexpr (std::is_same_v<T, LiteralPtr>)
      return v ? v->hash() : 0;
    else if constexpr (std::is_same_v<T, Ints>) {
      std::uint64_t hash = v.size();
      for (const std::int64_t x : v) hash = hash_combine(hash, static_cast<std::uint64_t>(x));
      return hash;
    } else
      return static_cast<std::uint64_t>(v);
  };
  return hash_combine(value.index(), std::visit(one, value));
}

namespace {
std::string literal_text(const LiteralPtr& literal) {
  if (!literal) return "none";
  std::string text = literal->type().str() + " [";
  for (std::int64_t k = 0; k < literal->numel(); ++k) {
    if (k > 0) text += ",";
    text += literal->is_float() ? exact(literal->f()[k]) : fmt::format("{}", literal->i()[k]);
  }
  return text + "]";
}
}  // namespace

std::string to_text(const AttrValue& value) {
  const auto one = [](const auto& v) -> std::string {
    using T = std::decay_t<decltype(v)>;
    if constexpr (std::is_same_v<T, bool>)
      return v ? "true" : "false";
    else if constexpr (std::is_same_v<T, std::int64_t>)
      return fmt::format("{}", v);
    else if constexpr (std::is_same_v<T, double>)
      return exact(v);
    else if constexpr (std::is_same_v<T, std::string>)
      return in_quotes(v);
    else if constexpr (std::is_same_v<T, Ints>)
      return fmt::format("[{}]", fmt::join(v, ","));
    else if constexpr (std::is_same_v<T, DType>)
      return std::string(dtype_name(v));
    else if constexpr (std::is_same_v<T, Initializer>)
      return pantala::to_text(v);
    else
      return literal_text(v);
  };
  return std::visit(one, value);
}

std::string_view kind_name(const AttrValue& value) {
  static constexpr std::string_view kNames[] = {
      "a bool",  "an integer",     "a number", "a string", "a list of integers",
      "a dtype", "an initialiser", "a tensor"};
  return kNames[value.index()];
}

}  // namespace ir
}  // namespace pantala
