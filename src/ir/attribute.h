// Attributes: the compile-time arguments of an op. An op declares a plain struct with a `fields`
// function that names each member; names, defaults, documentation, hashing, printing and parsing
// are all derived from it. A node stores the values in the order of the fields. Doubles compare by
// bits: -0 is not +0.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "pantala/dtype.h"
#include "pantala/init.h"
#include "pantala/literal.h"

namespace pantala::ir {

using Ints = std::vector<std::int64_t>;
using LiteralPtr = std::shared_ptr<const Literal>;
using AttrValue =
    std::variant<bool, std::int64_t, double, std::string, Ints, DType, Initializer, LiteralPtr>;
using AttrValues = std::vector<AttrValue>;

bool equal_bits(const AttrValue& a, const AttrValue& b);
std::uint64_t hash_of(const AttrValue& value);
std::string to_text(const AttrValue& value);

// What a field's type is called in documentation and messages.
std::string_view kind_name(const AttrValue& value);

struct AttrSpec {
  std::string name;
  AttrValue default_value;  // also tells the kind
  bool required = false;    // the text form and importers must give it
  std::string doc;
  std::vector<std::string> choices;  // for enumerations, which are stored as their name
};

// Enumerations are stored as text: specialise with the names in the order of the values.
template <class E>
struct EnumNames;

template <class T>
AttrValue to_value(const T& field) {
  if constexpr (std::is_enum_v<T> && !std::is_same_v<T, DType>) {
    return std::string(EnumNames<T>::names[static_cast<std::size_t>(field)]);
  } else {
    return AttrValue(field);
  }
}

template <class T>
void from_value(const AttrValue& value, T& field) {
  if constexpr (std::is_enum_v<T> && !std::is_same_v<T, DType>) {
    const auto& text = std::get<std::string>(value);
    for (std::size_t k = 0; k < std::size(EnumNames<T>::names); ++k)
      if (text == EnumNames<T>::names[k]) field = static_cast<T>(k);
  } else {
    field = std::get<T>(value);
  }
}

struct NoAttrs {
  static void fields(auto&&, auto&&) {}
};

// Flags of a field, beside its name and documentation.
enum class Field { optional, required };

template <class Attrs>
AttrValues to_values(const Attrs& attrs) {
  AttrValues values;
  Attrs::fields([&](std::string_view, const auto& field, std::string_view,
                    auto...) { values.push_back(to_value(field)); },
                attrs);
  return values;
}

template <class Attrs>
Attrs from_values(const AttrValues& values) {
  Attrs attrs;
  std::size_t k = 0;
  Attrs::fields([&](std::string_view, auto& field, std::string_view,
                    auto...) { from_value(values[k++], field); },
                attrs);
  return attrs;
}

template <class Attrs>
std::vector<AttrSpec> specs_of() {
  std::vector<AttrSpec> specs;
  const Attrs defaults;
  Attrs::fields(
      [&]<class T>(std::string_view name, const T& field, std::string_view doc, auto... flags) {
        AttrSpec spec{std::string(name),
                      to_value(field),
                      ((flags == Field::required) || ...),
                      std::string(doc),
                      {}};
        if constexpr (std::is_enum_v<T> && !std::is_same_v<T, DType>)
          spec.choices.assign(std::begin(EnumNames<T>::names), std::end(EnumNames<T>::names));
        specs.push_back(std::move(spec));
      },
      defaults);
  return specs;
}

}  // namespace pantala::ir
