// Initialisers: how a parameter or a state gets its first value. The numbers come from a
// counter-based generator keyed by (seed, name), so they depend neither on the order of creation
// nor on the device, and are rounded to the dtype.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "pantala/literal.h"

namespace pantala {

struct Initializer {
  enum class Kind : std::uint8_t {
    zeros,
    ones,
    constant,
    uniform,
    normal,
    truncated_normal,
    xavier_uniform,
    xavier_normal,
    kaiming_uniform,
    kaiming_normal,
    orthogonal,
    data
  };
  Kind kind = Kind::zeros;
  // constant: value; uniform: low; normal: mean; xavier, orthogonal: gain; kaiming: slope
  double a = 0;
  double b = 0;                         // uniform: high; normal: standard deviation
  double low = -2, high = 2;            // truncated_normal: bounds
  std::shared_ptr<const Literal> data;  // Kind::data

  friend bool operator==(const Initializer& x, const Initializer& y);
};

namespace init {
Initializer zeros();
Initializer ones();
Initializer constant(double value);
Initializer uniform(double low = 0, double high = 1);
Initializer normal(double mean = 0, double std = 1);
Initializer truncated_normal(double mean = 0, double std = 1, double low = -2, double high = 2);
Initializer xavier_uniform(double gain = 1);
Initializer xavier_normal(double gain = 1);
// Fan-in mode with the gain of a leaky ReLU of the given slope, as PyTorch's default.
Initializer kaiming_uniform(double slope = 0);
Initializer kaiming_normal(double slope = 0);
Initializer orthogonal(double gain = 1);
Initializer from_data(Literal values);

// The first value of the leaf `name`. TypeError where the shape does not fit the initialiser.
Literal make(const Initializer& init, const Type& type, std::string_view name, std::uint64_t seed);
// Elements that feed one output, and that one input feeds: [out, in, ...] as PyTorch counts.
struct Fans {
  std::int64_t in = 1, out = 1;
};
Fans fans(const Shape& shape);
}  // namespace init

// kaiming_uniform(2.23606797749979) and back; `data` prints its values.
std::string to_text(const Initializer& init);

}  // namespace pantala
