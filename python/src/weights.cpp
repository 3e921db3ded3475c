// Tensors by name, outside of sessions.
#include "pantala/weights.h"

#include <cstring>

#include "arrays.h"
#include "bind.h"

namespace pantala::python {

namespace {

// An array of its own type; f16 and bf16 become f32.
nb::object array_of(const Weights& weights, std::string_view name) {
  const Type& type = weights.type(name);
  const std::span<const std::byte> bytes = weights.bytes(name);
  const auto fill = [&](const HostBuffer& into) {
    std::visit(
        [&](const auto& span) {
          if (!bytes.empty()) std::memcpy(span.data(), bytes.data(), bytes.size());
        },
        into);
  };
  if (type.dtype == f16 || type.dtype == bf16) return to_numpy(weights.read(name));
  return new_array(type, fill);
}

void set(Weights& weights, const std::string& name, nb::handle values) {
  const ReadArray array(values, "'" + name + "'");
  const Type type{array.dtype(), array.shape()};
  const auto* first = static_cast<const std::byte*>(array.bytes());
  const auto count = static_cast<std::size_t>(type.shape.numel() * dtype_bytes(type.dtype));
  weights.set(name, type, std::vector<std::byte>(first, first + count));
}

}  // namespace

void bind_weights(nb::module_& m) {
  nb::class_<Weights>(m, "Weights")
      .def(nb::init<>())
      .def_static("open",
                  [](const std::string& path) {
                    const nb::gil_scoped_release others_run;
                    return Weights::open(path);
                  })
      .def("save",
           [](const Weights& weights, const std::string& path, std::uint64_t max_shard_bytes) {
             const nb::gil_scoped_release others_run;
             weights.save(path, {.max_shard_bytes = max_shard_bytes});
           })
      .def("names", &Weights::names)
      .def("contains", &Weights::contains)
      .def("type",
           [](const Weights& weights, std::string_view name) {
             const Type& type = weights.type(name);
             return nb::make_tuple(dtype_name(type.dtype), to_tuple(type.shape));
           })
      .def("get", array_of)
      .def("set", set)
      .def("set_literal", [](Weights& weights, const std::string& name,
                             const Literal& value) { weights.set(name, value); })
      .def("erase", &Weights::erase)
      .def("rename", &Weights::rename)
      .def("metadata", [](const Weights& weights) { return weights.metadata(); })
      .def("set_metadata", &Weights::set_metadata)
      .def("copy", [](const Weights& weights) { return Weights(weights); });
}

}  // namespace pantala::python
