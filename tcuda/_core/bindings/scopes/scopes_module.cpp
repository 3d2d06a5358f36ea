// The context managers of the current device and of the current stream.
//
// Rule: no Python code runs between a change of what is current and the note of that change. The calls of an emulated
// runtime are the exception. Each of them either makes its change or raises. So an exception from a signal handler
// leaves nothing half done.
#include <nanobind/nanobind.h>

#include "bindings/scopes/device_scope.hpp"
#include "bindings/scopes/runtime_calls.hpp"
#include "bindings/scopes/stream_entry.hpp"
#include "bindings/scopes/stream_scope.hpp"
#include "bindings/scopes/thread_scopes.hpp"

namespace nb = nanobind;

namespace tcuda {

bool add_stream_methods(PyObject *); // in stream_methods.cpp

namespace {

// Called in a forked child.
void forget_scopes() {
    FoundCalls::forget();
    forget_entered();
}

} // namespace

// Adds the types of scopes, and the functions that connect them with the runtime, to the module.
void bind_scopes(nb::module_ &module) {
    if (!prepare_stream_entry() || !add_device_scope(module.ptr()) || !add_stream_scope(module.ptr()) ||
        !add_stream_methods(module.ptr()))
        nb::raise_python_error();
    module.def(
        "find_calls_by", [](nb::object function) { find_calls_by(function.ptr()); }, nb::arg("function"),
        nb::sig("def find_calls_by(function: Callable[[], tuple[tuple[Any, ...], bool]]) -> None"), R"(
    Let scopes find the calls of the runtime by ``function``.

    Args:
        function: A function that initialises the runtime. The function returns a tuple of ``getDevice``, ``setDevice``,
            ``currentStream``, ``useStream``, ``enterStream``, ``exitStream`` and ``defaultStream``, and whether the
            calls may be kept.)");
    module.def("forget_scopes", forget_scopes,
               "Forget the calls of the runtime, and the scopes of all threads; for a forked child.");
}

} // namespace tcuda
