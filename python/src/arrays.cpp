#include "arrays.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <memory>

#include "base/text.h"
#include "pantala/error.h"

namespace pantala::python {

namespace {

using nb::dlpack::dtype_code;

struct Kind {
  DType dtype;
  dtype_code code;
  std::uint8_t bits;
};
// Those that the host's elements have.
constexpr Kind kKinds[] = {{f32, dtype_code::Float, 32}, {f64, dtype_code::Float, 64},
                           {i32, dtype_code::Int, 32},   {i64, dtype_code::Int, 64},
                           {u8, dtype_code::UInt, 8},    {boolean, dtype_code::Bool, 8}};

std::optional<DType> dtype_of(const nb::dlpack::dtype& given) {
  for (const Kind& kind : kKinds)
    if (given.code == static_cast<std::uint8_t>(kind.code) && given.bits == kind.bits &&
        given.lanes == 1)
      return kind.dtype;
  return {};
}

nb::dlpack::dtype dlpack_type(DType dtype) {
  for (const Kind& kind : kKinds)
    if (kind.dtype == dtype) return {static_cast<std::uint8_t>(kind.code), kind.bits, 1};
  throw InternalError(fmt::format("arrays of {} are not made", dtype_name(dtype)));
}

// What Python calls the type of an object, and the type of its elements.
std::string described(nb::handle object) {
  const auto text_of = [](const nb::object& value) {
    return nb::cast<std::string>(nb::steal(PyObject_Str(value.ptr())));
  };
  std::string text = text_of(object.type().attr("__name__"));
  if (nb::hasattr(object, "dtype")) text += " of " + text_of(object.attr("dtype"));
  return text;
}

Shape shape_of(const auto& array) {
  std::vector<std::int64_t> sizes;
  for (std::size_t k = 0; k < array.ndim(); ++k)
    sizes.push_back(static_cast<std::int64_t>(array.shape(k)));
  return Shape(sizes);
}

bool is_contiguous(const auto& array) {
  std::int64_t expected = 1;
  for (std::size_t k = array.ndim(); k-- > 0;) {
    if (array.shape(k) == 0) return true;
    if (array.shape(k) != 1 && array.stride(k) != expected) return false;
    expected *= static_cast<std::int64_t>(array.shape(k));
  }
  return true;
}

// Calls f with a null pointer of the C++ type of the elements.
template <class F>
auto with_type(DType dtype, F&& f) {
  switch (dtype) {
    case DType::f64:
      return f(static_cast<double*>(nullptr));
    case DType::i32:
      return f(static_cast<std::int32_t*>(nullptr));
    case DType::i64:
      return f(static_cast<std::int64_t*>(nullptr));
    case DType::u8:
      return f(static_cast<std::uint8_t*>(nullptr));
    case DType::boolean:
      return f(static_cast<bool*>(nullptr));
    default:
      return f(static_cast<float*>(nullptr));
  }
}

template <class Variant>
Variant elements(DType dtype, auto* data, std::size_t count) {
  return with_type(dtype, [&]<class T>(T*) -> Variant {
    using Element =
        std::conditional_t<std::is_const_v<std::remove_pointer_t<decltype(data)>>, const T, T>;
    return std::span<Element>(static_cast<Element*>(data), count);
  });
}

DType array_type(DType dtype) { return is_half(dtype) ? f32 : dtype; }

nb::object numpy_array(DType dtype, const Shape& shape, void* data, nb::handle owner) {
  std::vector<std::size_t> sizes(shape.begin(), shape.end());
  return nb::cast(
      nb::ndarray<nb::numpy>(data, sizes.size(), sizes.data(), owner, nullptr, dlpack_type(dtype)));
}

template <class T>
nb::object adopt(std::vector<T> values, DType dtype, const Shape& shape) {
  auto kept = std::make_unique<std::vector<T>>(std::move(values));
  void* const data = kept->data();
  const nb::capsule owner(kept.release(),
                          [](void* p) noexcept { delete static_cast<std::vector<T>*>(p); });
  return numpy_array(dtype, shape, data, owner);
}

}  // namespace

DType dtype_named(std::string_view name) {
  if (const std::optional<DType> dtype = parse_dtype(name)) return *dtype;
  const std::vector<std::string> names = {"f32", "f64", "f16", "bf16", "i32", "i64", "u8", "bool"};
  throw TypeError(fmt::format("'{}' is no dtype{}", name, did_you_mean(name, names)));
}

ReadArray::ReadArray(nb::handle object, std::string_view what) {
  if (!nb::try_cast(object, array_, false)) {
    PyErr_Clear();
    throw TypeError(
        fmt::format("{}: a {} is no array that can be read here; NumPy arrays and what "
                    "speaks DLPack are taken",
                    what, described(object)));
  }
  if (array_.device_type() != nb::device::cpu::value)
    throw TypeError(
        fmt::format("{}: the array lies on another device; move it to the CPU first", what));
  const std::optional<DType> dtype = dtype_of(array_.dtype());
  if (!dtype)
    throw TypeError(fmt::format(
        "{}: a {} has elements of a type that is not taken; f32, f64, i32, i64, u8 and bool are",
        what, described(object)));
  dtype_ = *dtype;
  shape_ = shape_of(array_);
  if (array_.data() == nullptr && shape_.numel() > 0)
    throw TypeError(
        fmt::format("{}: the elements of this {} are not in memory", what, described(object)));
  if (!is_contiguous(array_)) {
    const nb::object copied = nb::module_::import_("numpy").attr("ascontiguousarray")(object);
    array_ = nb::cast<nb::ndarray<nb::ro>>(copied);
  }
  elements_ = python::elements<HostElements>(dtype_, array_.data(),
                                             static_cast<std::size_t>(shape_.numel()));
}

Literal ReadArray::literal() const {
  return std::visit(
      [&](const auto& values) {
        using T = std::decay_t<decltype(values[0])>;
        if constexpr (std::is_floating_point_v<T>)
          return Literal::floats(shape_, {values.begin(), values.end()}, dtype_);
        else
          return Literal::ints(shape_, {values.begin(), values.end()}, dtype_);
      },
      elements_);
}

Literal ReadArray::rounded_to(DType half, std::string_view what) const {
  if (!is_float(dtype_))
    throw TypeError(fmt::format("{} is {}, got {}", what, dtype_name(half), dtype_name(dtype_)));
  std::vector<double> values = literal().f();
  for (double& value : values) value = round_to(half, value);
  return Literal::floats(shape_, std::move(values), half);
}

data::Array ReadArray::array() const {
  return std::visit(
      [&]<class T>(std::span<const T> values) -> data::Array {
        if constexpr (std::is_same_v<T, bool>)
          return {shape_, std::vector<std::uint8_t>(values.begin(), values.end())};
        else
          return {shape_, std::vector<T>(values.begin(), values.end())};
      },
      elements_);
}

HostBuffer written_array(nb::handle object, const Type& type, std::string_view what) {
  const ReadArray read(object, what);
  if (read.dtype() != array_type(type.dtype) || !(read.shape() == type.shape))
    throw TypeError(fmt::format("{}: `out` must be {}, got {}", what,
                                Type{array_type(type.dtype), type.shape}.str(),
                                Type{read.dtype(), read.shape()}.str()));
  nb::ndarray<> array;
  if (!nb::try_cast(object, array, false)) {
    PyErr_Clear();
    throw TypeError(fmt::format("{}: `out` is read-only", what));
  }
  if (!is_contiguous(array))
    throw TypeError(fmt::format("{}: `out` must lie row by row (C order)", what));
  return elements<HostBuffer>(read.dtype(), array.data(),
                              static_cast<std::size_t>(type.shape.numel()));
}

nb::object new_array(const Type& type, const std::function<void(const HostBuffer&)>& fill) {
  const DType dtype = array_type(type.dtype);
  const auto count = static_cast<std::size_t>(type.shape.numel());
  std::unique_ptr<std::byte[]> memory(
      new std::byte[count * static_cast<std::size_t>(dtype_bytes(dtype)) + 1]);
  fill(elements<HostBuffer>(dtype, static_cast<void*>(memory.get()), count));
  void* const data = memory.get();
  const nb::capsule owner(memory.release(),
                          [](void* p) noexcept { delete[] static_cast<std::byte*>(p); });
  return numpy_array(dtype, type.shape, data, owner);
}

nb::object to_numpy(const Literal& literal) {
  return new_array(literal.type(), [&](const HostBuffer& buffer) {
    std::visit(
        [&]<class T>(std::span<T> out) {
          if (literal.is_float())
            std::transform(literal.f().begin(), literal.f().end(), out.begin(),
                           [](double v) { return static_cast<T>(v); });
          else
            std::transform(literal.i().begin(), literal.i().end(), out.begin(),
                           [](std::int64_t v) { return static_cast<T>(v); });
        },
        buffer);
  });
}

nb::object to_numpy(data::Array array) {
  const DType dtype = array.dtype();
  return std::visit([&](auto& values) { return adopt(std::move(values), dtype, array.shape); },
                    array.values);
}

nb::object view_of(const Type& type, const void* memory, nb::handle owner) {
  std::vector<std::size_t> sizes(type.shape.begin(), type.shape.end());
  return nb::cast(nb::ndarray<nb::numpy, nb::ro>(memory, sizes.size(), sizes.data(), owner, nullptr,
                                                 dlpack_type(type.dtype)));
}

nb::tuple to_tuple(const Shape& shape) { return nb::tuple(nb::cast(shape.vec())); }

void bind_arrays(nb::module_& m) {
  nb::class_<Literal>(m, "Literal");
  m.def("literal", [](nb::handle array) { return ReadArray(array, "literal").literal(); });
  m.def("literal_array", [](const Literal& literal) { return to_numpy(literal); });
}

}  // namespace pantala::python
