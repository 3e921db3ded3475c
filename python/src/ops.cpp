// The op table, as plain Python data, and building nodes by name: all functions of ops that users
// see are written from these two (pantala/_generate.py).
#include "pantala/ops.h"

#include "arrays.h"
#include "bind.h"
#include "ir/graph_data.h"
#include "ops/table.h"
#include "pantala/error.h"
#include "place.h"

namespace pantala::python {

namespace {

using ir::AttrSpec;
using ir::AttrValue;
using ir::OpDef;

constexpr std::string_view kKinds[] = {"bool", "int",   "float",       "str",
                                       "ints", "dtype", "initializer", "literal"};

nb::object default_of(const AttrSpec& attr) {
  if (attr.required) return nb::none();
  return std::visit(
      []<class T>(const T& value) -> nb::object {
        if constexpr (std::is_same_v<T, DType>)
          return nb::cast(dtype_name(value));
        else if constexpr (std::is_same_v<T, Initializer> || std::is_same_v<T, ir::LiteralPtr>)
          return nb::none();
        else
          return nb::cast(value);
      },
      attr.default_value);
}

nb::dict described(const AttrSpec& attr) {
  nb::dict entry;
  entry["name"] = attr.name;
  entry["kind"] = kKinds[attr.default_value.index()];
  entry["required"] = attr.required;
  entry["default"] = default_of(attr);
  entry["choices"] = attr.choices;
  entry["doc"] = attr.doc;
  return entry;
}

nb::dict described(const OpDef& op) {
  nb::list inputs, attributes;
  for (const ir::ArgSpec& input : op.inputs)
    inputs.append(nb::make_tuple(input.name, input.optional, input.variadic));
  for (const AttrSpec& attr : op.attrs) attributes.append(described(attr));
  nb::dict entry;
  entry["name"] = op.name;
  entry["family"] = op.family;
  entry["doc"] = op.doc;
  entry["signature"] = op.signature;
  entry["leaf"] = op.leaf || op.family == "leaf";
  entry["inputs"] = inputs;
  entry["results"] = op.results;
  entry["attributes"] = attributes;
  return entry;
}

ir::Ints ints_of(nb::handle value) {
  if (nb::isinstance<nb::int_>(value)) return {nb::cast<std::int64_t>(value)};
  return nb::cast<ir::Ints>(value);
}

// As the attribute's kind says; what is no such value is left as it is for the op's own error.
AttrValue value_of(const AttrSpec& spec, nb::handle value) {
  if (std::holds_alternative<DType>(spec.default_value) && nb::isinstance<nb::str>(value))
    return dtype_named(nb::cast<std::string>(value));
  if (std::holds_alternative<ir::Ints>(spec.default_value)) return ints_of(value);
  if (nb::isinstance<nb::bool_>(value)) return nb::cast<bool>(value);
  if (std::holds_alternative<double>(spec.default_value) && PyNumber_Check(value.ptr()))
    return nb::cast<double>(nb::float_(value));
  if (PyIndex_Check(value.ptr())) return nb::cast<std::int64_t>(nb::int_(value));
  if (nb::isinstance<nb::float_>(value)) return nb::cast<double>(value);
  if (nb::isinstance<nb::str>(value)) return nb::cast<std::string>(value);
  return ints_of(value);
}

ir::NamedAttrs attributes_of(const OpDef& op, const nb::dict& given) {
  ir::NamedAttrs attributes;
  for (const auto& [key, value] : given) {
    const auto name = nb::cast<std::string>(key);
    const std::optional<std::size_t> index = op.find_attr(name);
    if (!index) throw InternalError(op.name + " has no attribute " + name);
    try {
      attributes.emplace_back(name, value_of(op.attrs[*index], value));
    } catch (const nb::cast_error&) {
      throw TypeError(op.name + ": " + name + " must be " +
                      std::string(ir::kind_name(op.attrs[*index].default_value)) + ", got " +
                      nb::cast<std::string>(nb::repr(value)));
    }
  }
  return attributes;
}

std::vector<Operand> operands_of(const nb::list& inputs, const Where& where) {
  std::vector<Operand> operands;
  for (const nb::handle input : inputs) {
    if (nb::isinstance<Tensor>(input))
      operands.emplace_back(nb::cast<const Tensor&>(input), where);
    else
      operands.emplace_back(nb::cast<double>(input), where);
  }
  return operands;
}

std::vector<Tensor> apply(std::string_view name, const nb::list& inputs, const nb::dict& given) {
  const OpDef& op = ops::table().get(name);
  const Where where = python_place();
  const ir::NamedAttrs named = attributes_of(op, given);
  ir::AttrValues attributes;
  try {
    attributes = ir::bind_attributes(op, named);
  } catch (const TypeError& error) {
    ir::throw_type_error(op.name, ir::provenance(where), error.what());
  }
  return ops::apply(op, operands_of(inputs, where), std::move(attributes));
}

// Of an op without inputs, and of one that draws: the counters of the graph are its inputs, and its
// stream is the next free one.
std::vector<Tensor> draw(Graph& graph, std::string_view name, const nb::list& inputs,
                         nb::dict given) {
  const Where where = python_place();
  nb::list all;
  for (const nb::handle input : inputs) all.append(input);
  const OpDef& op = ops::table().get(name);
  if (op.find_attr("stream")) {
    given["stream"] = graph.data()->next_stream();
    all.append(nb::cast(graph.rng_seed()));
    all.append(nb::cast(graph.rng_draw()));
    return apply(name, all, given);
  }
  return graph.data()->append(op, {}, ir::bind_attributes(op, attributes_of(op, given)),
                              ir::provenance(where));
}

}  // namespace

void bind_ops(nb::module_& m) {
  m.def("op_table", [] {
    nb::list list;
    for (const OpDef* op : ops::table().all()) list.append(described(*op));
    return list;
  });
  m.def("apply", apply);
  m.def("draw", draw);
  m.def("loss_parts", [](const Tensor& loss) {
    const LossParts parts = loss_parts(loss);
    return std::pair(parts.sum, parts.weight);
  });
}

}  // namespace pantala::python
