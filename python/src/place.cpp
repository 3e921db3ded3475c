#include "place.h"

#include <bit>
#include <map>
#include <memory>
#include <utility>

#include "bind.h"
#include "pantala/error.h"

namespace pantala::python {

namespace {

// What std::source_location points to: the form that the compilers' __builtin_source_location has
// (GCC and Clang agree on it). bind_place() checks it before it is relied on.
struct Pointed {
  const char* file;
  const char* function;
  unsigned line, column;
};
static_assert(sizeof(std::source_location) == sizeof(const Pointed*));

// Places live as long as the process: graphs keep their texts. There are as many as the user's
// program has lines that build graphs.
Where where(const std::string& file, unsigned line) {
  static auto& places =
      *new std::map<std::pair<std::string, unsigned>, std::unique_ptr<const Pointed>>;
  const auto [place, is_new] = places.try_emplace({file, line});
  if (is_new) place->second.reset(new Pointed{place->first.first.c_str(), "", line, 0});
  return std::bit_cast<std::source_location>(static_cast<const Pointed*>(place->second.get()));
}

// The folder of the package's own Python files, whose frames are passed over.
std::string& package_folder() {
  static auto& folder = *new std::string;
  return folder;
}

nb::object attribute(nb::handle object, const char* name) {
  return nb::steal(PyObject_GetAttrString(object.ptr(), name));
}

struct FilePlace {
  std::string file;
  unsigned line = 0;
};
FilePlace file_place() {
  nb::object frame = nb::borrow(reinterpret_cast<PyObject*>(PyEval_GetFrame()));
  while (frame.is_valid() && !frame.is_none()) {
    const nb::object code = attribute(frame, "f_code");
    const nb::object name = attribute(code, "co_filename");
    std::string file = nb::cast<std::string>(name);
    if (package_folder().empty() || !file.starts_with(package_folder())) {
      const int line = PyFrame_GetLineNumber(reinterpret_cast<PyFrameObject*>(frame.ptr()));
      return {std::move(file), static_cast<unsigned>(line > 0 ? line : 0)};
    }
    frame = attribute(frame, "f_back");
  }
  return {};
}

}  // namespace

Where python_place() {
  const FilePlace place = file_place();
  return where(place.file, place.line);
}

std::string place_text() {
  const FilePlace place = file_place();
  if (place.file.empty()) return "";
  return place.file.substr(place.file.rfind('/') + 1) + ":" + std::to_string(place.line);
}

void bind_place(nb::module_& m) {
  const Where made = where("place.py", 41);
  if (std::string_view(made.file_name()) != "place.py" || made.line() != 41)
    throw InternalError("the compiler's source locations have another form than place.cpp expects");
  m.def("set_package_folder", [](const std::string& folder) { package_folder() = folder; });
  m.def("place", place_text);
}

}  // namespace pantala::python
