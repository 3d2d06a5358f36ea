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
    module.def("begin_library_calls", begin, nb::arg("modules") = std::vector<std::string>(),
               nb::sig("def begin_library_calls(modules: Sequence[str]=()) -> None"), R"(
    Note what the calls of NVIDIA's libraries read and write.

    CuPy's and PyTorch's modules call the libraries through their import tables. The entries of these tables lead to
    functions of the core until :func:`end_library_calls` has been called as often as this function. A module that is
    loaded later is found by :func:`look_for_library_calls`.

    Args:
        modules: Parts of the paths of other modules whose calls are noted too.)");
    module.def("end_library_calls", end,
               "End what :func:`begin_library_calls` began: the last end restores the import tables.");
    module.def("look_for_library_calls", look_again,
               "Find the modules that were loaded since the last look, if calls of libraries are noted.");
    module.def(
        "notes_library_calls", [] { return Interception::instance().is_on(); },
        "Return whether somebody wants the notes of libraries' calls.");
    module.def("noting_function", library_calls::noting_function, nb::arg("name"), nb::arg("address"), R"(
    Return the address of a function that notes the memory and calls a function of NVIDIA's libraries.

    Args:
        name: The name of the library's function.
        address: The address of the library's function. The result is this address if the function is not known.)");
}

} // namespace tcuda
