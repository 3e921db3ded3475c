// Items of arrays as bytes: what moves them need not know their type.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "pantala/data.h"

namespace pantala::data {

// TypeError, beginning with `what`, unless there is an axis of items and the shape has as many
// elements as there are.
void check_array(const Array& array, std::string_view what);
// The same for both arrays of a data set, which have equally many items.
void check_dataset(const Dataset& dataset);
// Zeros.
Array make_array(DType dtype, const Shape& shape);

std::span<const std::byte> bytes_of(const Array& array);
std::span<std::byte> bytes_of(Array& array);
// Of one item.
std::size_t item_bytes(const Array& array);

// Items [first, first + count), which must be there.
Batch slice_of(const Batch& batch, std::int64_t first, std::int64_t count);
// The items with these numbers, in this order.
Array take_items(const Array& array, std::span<const std::int64_t> numbers);
// Of a source: each made when it is asked for, or all at once (TypeError if they differ in size).
std::shared_ptr<const ItemSource> select_items(std::shared_ptr<const ItemSource> source,
                                               std::span<const std::int64_t> numbers);
Array take_items(const ItemSource& source, std::span<const std::int64_t> numbers);
// One item; TypeError, naming it, if it is not of the form that the source promised.
Array make_item(const ItemSource& source, std::int64_t number);

}  // namespace pantala::data
