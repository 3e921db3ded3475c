// Errors of C++ as Python's exceptions. The classes are Python's (pantala/errors.py), each also of
// the built-in class that fits; the package hands them over when it is imported.
#include "errors.h"

#include <exception>
#include <new>

#include "bind.h"
#include "pantala/cancelled.h"
#include "pantala/trainer.h"
#include "place.h"

namespace pantala::python {

namespace {

nb::object& classes() {
  static auto& dictionary = *new nb::object;
  return dictionary;
}

void raise(const char* name, std::string message) {
  const std::string place = place_text();
  // Graphs put the place behind the op; whatever else went wrong is told with it in front.
  if (!place.empty() && message.find(place) == std::string::npos) message = place + ": " + message;
  nb::object made = classes()[name](nb::str(message.data(), message.size()));
  made.attr("place") = place;
  PyErr_SetObject(made.type().ptr(), made.ptr());
}

void translate(const std::exception_ptr& thrown, void*) {
  try {
    std::rethrow_exception(thrown);
  } catch (const ThreadError& e) { raise("ThreadError", e.what()); } catch (const ClosedError& e) {
    raise("ClosedError", e.what());
  } catch (const DivergenceError& e) {
    raise("DivergenceError", e.what());
  } catch (const CancelledError& e) {
    raise("CancelledError", e.what());
  } catch (const TypeError& e) { raise("TypeError", e.what()); } catch (const ValueError& e) {
    raise("ValueError", e.what());
  } catch (const ParseError& e) {
    raise("ParseError", e.what());
  } catch (const UnsupportedError& e) {
    raise("UnsupportedError", e.what());
  } catch (const IoError& e) { raise("IoError", e.what()); } catch (const DeviceError& e) {
    raise("DeviceError", e.what());
  } catch (const InternalError& e) { raise("InternalError", e.what()); } catch (const Error& e) {
    raise("Error", e.what());
  } catch (const std::bad_alloc&) { raise("MemoryError", "there is not enough memory"); }
}

}  // namespace

void bind_errors(nb::module_& m) {
  m.def("set_errors", [](nb::dict given) { classes() = std::move(given); });
  nb::register_exception_translator(translate);
}

}  // namespace pantala::python
