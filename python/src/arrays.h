// Arrays of Python, NumPy's and whatever speaks DLPack, as elements of the host, and back. Nothing
// is copied but what is said to be.
#pragma once

#include <nanobind/ndarray.h>

#include <functional>

#include "bind.h"
#include "pantala/data.h"
#include "pantala/host_elements.h"
#include "pantala/literal.h"

namespace pantala::python {

// f16 and bf16 are kept in memory only.
inline bool is_half(DType dtype) { return dtype == f16 || dtype == bf16; }

// By the names of the library: "f32". TypeError with the list.
DType dtype_named(std::string_view name);

// Of an array that is read. One that does not lie row by row is copied.
class ReadArray {
 public:
  ReadArray() = default;
  // TypeError, saying what it is for, for what is no array of the CPU or has other elements than
  // the library's.
  ReadArray(nb::handle object, std::string_view what);
  const Shape& shape() const { return shape_; }
  DType dtype() const { return dtype_; }
  const HostElements& elements() const { return elements_; }
  Literal literal() const;
  // Of floats as f16 or bf16, which arrays of the host do not have; TypeError for others.
  Literal rounded_to(DType half, std::string_view what) const;
  data::Array array() const;
  const void* bytes() const { return array_.data(); }

 private:
  nb::ndarray<nb::ro> array_;
  Shape shape_;
  DType dtype_ = f32;
  HostElements elements_;
};

// Of an array that is written to. TypeError for one that is read-only, not row by row, or of
// another type.
HostBuffer written_array(nb::handle object, const Type& type, std::string_view what);

// A new array of this type that `fill` is given; f16 and bf16 become f32.
nb::object new_array(const Type& type, const std::function<void(const HostBuffer&)>& fill);
nb::object to_numpy(const Literal& literal);
nb::object to_numpy(data::Array array);
// Read-only, of memory that `owner` keeps.
nb::object view_of(const Type& type, const void* memory, nb::handle owner);

// (2, 3)
nb::tuple to_tuple(const Shape& shape);

}  // namespace pantala::python
