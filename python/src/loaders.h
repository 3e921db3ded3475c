// Data of Python for a trainer: arrays whose items are read in place, and iterations.
#pragma once

#include <memory>

#include "arrays.h"
#include "pantala/data.h"

namespace pantala::python {

// Something of Python that threads without the interpreter's lock keep and give up.
std::shared_ptr<nb::object> kept_object(nb::object object);

// The items of an array, which is neither copied nor to be changed as long as this is there.
std::shared_ptr<const data::ItemSource> source_of(nb::handle array, const std::string& name);

// Takes batches from an object of Python's side of the package (pantala/_data.py): begin(epoch),
// next(), batches(), items(), sizes(), fingerprint().
std::unique_ptr<data::Loader> iteration_loader(nb::object iteration);

// (data, labels, [(name, array), ...])
data::Batch batch_of(nb::handle values);

struct LoaderBox {
  std::unique_ptr<data::Loader> loader;
};

}  // namespace pantala::python
