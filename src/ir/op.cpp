#include "ir/op.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "ir/graph_data.h"
#include "pantala/error.h"

namespace pantala::ir {

bool OpDef::is_index(int input) const {
  return std::find(index_inputs.begin(), index_inputs.end(), input) != index_inputs.end();
}

int OpDef::min_inputs() const {
  return static_cast<int>(
      std::count_if(inputs.begin(), inputs.end(), [](const ArgSpec& a) { return !a.optional; }));
}

std::optional<int> OpDef::max_inputs() const {
  if (!inputs.empty() && inputs.back().variadic) return std::nullopt;
  return static_cast<int>(inputs.size());
}

std::optional<std::size_t> OpDef::find_attr(std::string_view attr) const {
  for (std::size_t k = 0; k < attrs.size(); ++k)
    if (attrs[k].name == attr) return k;
  return std::nullopt;
}

std::size_t OpDef::attr_index(std::string_view attr) const {
  if (const std::optional<std::size_t> found = find_attr(attr)) return *found;
  throw InternalError(fmt::format("{} has no attribute '{}'", name, attr));
}

namespace {
std::vector<ArgSpec> parse_arguments(std::string_view text) {
  std::vector<ArgSpec> args;
  std::string word;
  const auto finish = [&] {
    if (word.empty()) return;
    ArgSpec arg{word, false, false};
    if (word.ends_with("...")) {
      arg = {word.substr(0, word.size() - 3), false, true};
    } else if (word.ends_with("?")) {
      arg = {word.substr(0, word.size() - 1), true, false};
    }
    args.push_back(arg);
    word.clear();
  };
  for (const char c : text) {
    if (c == ' ' || c == '(' || c == ')' || c == ',')
      finish();
    else
      word += c;
  }
  finish();
  return args;
}
}  // namespace

void parse_signature(OpDef& op) {
  const std::size_t arrow = op.signature.find("->");
  if (arrow == std::string::npos)
    throw InternalError(fmt::format("op '{}' has no signature", op.name));
  op.inputs = parse_arguments(std::string_view(op.signature).substr(0, arrow));
  for (const ArgSpec& arg : parse_arguments(std::string_view(op.signature).substr(arrow + 2)))
    op.results.push_back(arg.name);
}

void InferContext::fail(const std::string& message) const { throw TypeError(message); }

std::string InferContext::name_of(int i) const {
  const auto last = static_cast<int>(op_.inputs.size()) - 1;
  if (i >= last && last >= 0 && op_.inputs[last].variadic)
    return fmt::format("{}[{}]", op_.inputs[last].name, i - last);
  return op_.inputs[i].name;
}

std::string InferContext::describe_inputs() const {
  std::vector<std::string> parts;
  for (int i = 0; i < count(); ++i) parts.push_back(fmt::format("{} {}", name_of(i), in(i).str()));
  return fmt::format("{}", fmt::join(parts, ", "));
}

void InferContext::require_float(int i) const {
  if (!is_float(in(i).dtype))
    fail(fmt::format("{} must be a float tensor, got {}", name_of(i), in(i).str()));
}
void InferContext::require_integer(int i) const {
  if (!is_integer(in(i).dtype))
    fail(fmt::format("{} must be an integer tensor, got {}", name_of(i), in(i).str()));
}
void InferContext::require_dtype(int i, DType dtype) const {
  if (in(i).dtype != dtype)
    fail(fmt::format("{} must be {}, got {}", name_of(i), dtype_name(dtype), in(i).str()));
}
void InferContext::require_rank(int i, int rank) const {
  if (shape(i).rank() != rank)
    fail(fmt::format("{} must have {} axes, got {}", name_of(i), rank, in(i).str()));
}
void InferContext::require_shape(int i, const Shape& expected) const {
  if (!(shape(i) == expected))
    fail(fmt::format("{} must have shape {}, got {}", name_of(i), expected.str(), in(i).str()));
}
void InferContext::require_same_dtype(int i, int j) const {
  if (in(i).dtype != in(j).dtype)
    fail(fmt::format("dtypes differ: {} {}, {} {}", name_of(i), in(i).str(), name_of(j),
                     in(j).str()));
}

std::int64_t InferContext::axis(std::int64_t axis, int rank) const {
  if (axis < -rank || axis >= rank) {
    const std::string inputs = count() == 0 ? "" : fmt::format(" ({})", describe_inputs());
    if (rank == 0) fail(fmt::format("axis {} given for a scalar{}", axis, inputs));
    fail(fmt::format("axis {} is out of range [{}, {}){}", axis, -rank, rank, inputs));
  }
  return axis < 0 ? axis + rank : axis;
}

Ints InferContext::axes(const Ints& axes, int rank) const {
  Ints result;
  for (const std::int64_t a : axes) result.push_back(axis(a, rank));
  if (axes.empty())
    for (int a = 0; a < rank; ++a) result.push_back(a);
  std::sort(result.begin(), result.end());
  if (std::adjacent_find(result.begin(), result.end()) != result.end())
    fail(
        fmt::format("axes [{}] name one axis twice ({})", fmt::join(axes, ","), describe_inputs()));
  return result;
}

namespace {
// Converts a given value to the kind of the field where nothing is lost.
AttrValue convert(const OpDef& op, const AttrSpec& spec, const AttrValue& given) {
  if (given.index() == spec.default_value.index()) {
    if (!spec.choices.empty()) {
      const std::string& text = std::get<std::string>(given);
      if (std::find(spec.choices.begin(), spec.choices.end(), text) == spec.choices.end())
        throw TypeError(fmt::format("attribute {} must be one of {}, got '{}'", spec.name,
                                    fmt::join(spec.choices, ", "), text));
    }
    return given;
  }
  if (std::holds_alternative<double>(spec.default_value) &&
      std::holds_alternative<std::int64_t>(given))
    return static_cast<double>(std::get<std::int64_t>(given));
  if (std::holds_alternative<Ints>(spec.default_value) &&
      std::holds_alternative<std::int64_t>(given))
    return Ints{std::get<std::int64_t>(given)};
  if (std::holds_alternative<std::int64_t>(spec.default_value) &&
      std::holds_alternative<Ints>(given) && std::get<Ints>(given).size() == 1)
    return std::get<Ints>(given)[0];
  throw TypeError(fmt::format("attribute {} of {} must be {}, got {}", spec.name, op.name,
                              kind_name(spec.default_value), to_text(given)));
}
}  // namespace

AttrValues bind_attributes(const OpDef& op, const NamedAttrs& given) {
  AttrValues values;
  std::vector<bool> set(op.attrs.size());
  for (const AttrSpec& spec : op.attrs) values.push_back(spec.default_value);
  for (const auto& [name, value] : given) {
    const std::optional<std::size_t> found = op.find_attr(name);
    if (!found) {
      std::vector<std::string> names;
      for (const AttrSpec& spec : op.attrs) names.push_back(spec.name);
      throw TypeError(
          fmt::format("{} has no attribute '{}'{}", op.name, name, did_you_mean(name, names)));
    }
    if (set[*found]) throw TypeError(fmt::format("attribute {} is given twice", name));
    set[*found] = true;
    values[*found] = convert(op, op.attrs[*found], value);
  }
  for (std::size_t k = 0; k < op.attrs.size(); ++k)
    if (op.attrs[k].required && !set[k])
      throw TypeError(fmt::format("attribute {} is missing", op.attrs[k].name));
  return values;
}

}  // namespace pantala::ir
