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
    module.def("find_calls_by", [](nb::object function) { find_calls_by(function.ptr()); }, nb::arg("function"));
    module.def("forget_scopes", forget_scopes);
}

} // namespace tcuda
