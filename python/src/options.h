// Options that Python's functions hand over by name: each taken into the member that it stands for.
#pragma once

#include <set>

#include "arrays.h"
#include "bind.h"
#include "pantala/error.h"
#include "pantala/options.h"

namespace pantala::python {

class Given {
 public:
  Given(const nb::dict& values, std::string_view what) : values_(values), what_(what) {}

  nb::object find(const char* name) {
    taken_.insert(name);
    return values_.contains(name) ? nb::borrow(values_[name]) : nb::none();
  }
  // Leaves the member as it is where the option is not given or None.
  template <class T>
  Given& take(const char* name, T& member) {
    const nb::object value = find(name);
    if (value.is_none()) return *this;
    if (!nb::try_cast(value, member))
      throw TypeError(what_ + ": " + name + " cannot be " + nb::cast<std::string>(nb::repr(value)));
    return *this;
  }
  // By the names of the values, in their order.
  template <class E>
  Given& choose(const char* name, E& member, const std::vector<std::string>& names) {
    std::string text;
    if (take(name, text); text.empty()) return *this;
    for (std::size_t k = 0; k < names.size(); ++k)
      if (names[k] == text) {
        member = static_cast<E>(k);
        return *this;
      }
    refuse(name, text, names);
  }
  // TypeError with the nearest name unless all have been taken.
  void finish() const;

 private:
  [[noreturn]] void refuse(const char* name, const std::string& text,
                           const std::vector<std::string>& names) const;

  const nb::dict& values_;
  const std::string what_;
  std::set<std::string> taken_;
};

// {"lr": 0.1, "amsgrad": True, "milestones": [1, 2]}
NamedOptions named_options(const nb::dict& values);
nb::object to_python(const OptionValue& value);

}  // namespace pantala::python
