#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <string>
#include <vector>

#include "sanitizer/_cpp/library_calls/interception.hpp"
#include "sanitizer/_cpp/library_calls/thunks.hpp"

namespace nb = nanobind;

namespace tcuda {
namespace {

using library_calls::Interception;

// The lock of Python is given back: the loader's lock, which the interception takes, is held by threads that load a
// module and wait for Python's lock.
void begin(const std::vector<std::string> &modules) {
    const nb::gil_scoped_release released;
    Interception::instance().begin(modules);
}
void end() {
    const nb::gil_scoped_release released;
    Interception::instance().end();
}
void look_again() {
    const nb::gil_scoped_release released;
    Interception::instance().look_again();
}

} // namespace

// Adds the interception of calls of NVIDIA's libraries to the module.
void bind_library_calls(nb::module_ &module) {
    module.def("begin_library_calls", begin, nb::arg("modules") = std::vector<std::string>());
    module.def("end_library_calls", end);
    module.def("look_for_library_calls", look_again);
    module.def("notes_library_calls", [] { return Interception::instance().is_on(); });
    module.def("noting_function", library_calls::noting_function, nb::arg("name"), nb::arg("address"));
}

} // namespace tcuda
