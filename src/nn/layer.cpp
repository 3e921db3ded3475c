#include "nn/layer.h"

#include <fmt/format.h>

#include <cmath>

#include "base/text.h"
#include "pantala/error.h"

namespace pantala::nn {

namespace {
// Checks what must hold before there is a graph to put the scope on.
const Tensor& checked(std::string_view kind, std::string_view name, const Operand& x) {
  ir::Provenance place = ir::provenance(x.where());
  if (x.is_tensor()) place = x.tensor().graph()->effective(place);
  if (name.empty()) ir::throw_type_error(kind, place, "a layer's name cannot be empty");
  place.label = name;
  if (!x.is_tensor())
    ir::throw_type_error(kind, place, "x must be a tensor, not a number or an empty handle");
  return x.tensor();
}

ir::Provenance labelled(const Where& where, const std::string& label) {
  ir::Provenance place = ir::provenance(where);
  place.label = label;
  return place;
}
}  // namespace

Layer::Layer(std::string_view kind, std::string_view name, const Operand& x)
    : kind_(kind),
      name_(name),
      where_(x.where()),
      x_(checked(kind, name, x)),
      graph_(x_.graph()),
      scope_(*x_.graph(), labelled(where_, name_)) {}

// A shape that is too large is reported like any other mistake in the call.
Shape Layer::checked_shape(const IntList& sizes) const {
  try {
    return Shape(sizes);
  } catch (const TypeError& error) { fail(error.what()); }
}

Tensor Layer::parameter(std::string_view suffix, const IntList& sizes, const Initializer& init,
                        std::optional<DType> dtype) {
  return graph_.parameter(part(suffix), checked_shape(sizes), init, dtype.value_or(x_.dtype()),
                          where_);
}

Tensor Layer::state(std::string_view suffix, const IntList& sizes, const Initializer& init,
                    DType dtype) {
  return graph_.state(part(suffix), checked_shape(sizes), init, dtype, where_);
}

void Layer::fail(const std::string& message) const {
  ir::throw_type_error(kind_, graph_.data()->effective(ir::provenance(where_)), message);
}

void Layer::require_positive(std::int64_t value, std::string_view what) const {
  if (value <= 0) fail(fmt::format("{} must be positive, got {}", what, value));
}

void Layer::require_float() const {
  if (!is_float(x_.dtype())) fail(fmt::format("x must be floats, got {}", x_.type().str()));
}

void Layer::require_rank(int rank, std::string_view axes) const {
  if (x_.rank() != rank)
    fail(fmt::format("x must have {} axes {}, got {}", rank, axes, x_.type().str()));
}

void Layer::require_eps(double eps) const {
  if (!(eps >= 0) || !std::isfinite(eps))
    fail(fmt::format("eps must be finite and not negative, got {}", exact(eps)));
}

void Layer::require_probability(double value, std::string_view what) const {
  if (!(value >= 0 && value <= 1)) fail(no_probability(value, what));
}

std::string no_probability(double value, std::string_view what) {
  return fmt::format("{} must be between 0 and 1, got {}", what, exact(value));
}

Initializer default_weight_init() { return init::kaiming_uniform(std::sqrt(5.0)); }

Initializer default_bias_init(std::int64_t fan_in) {
  const double bound = fan_in > 0 ? 1 / std::sqrt(static_cast<double>(fan_in)) : 0;
  return init::uniform(-bound, bound);
}

}  // namespace pantala::nn
