#include <Python.h>

#include "bindings/python/python_type.hpp"
#include "bindings/scopes/scope_exit.hpp"
#include "bindings/scopes/stream_entry.hpp"

namespace tcuda {
namespace {

PyObject *enter(PyObject *self, PyObject *) {
    PreviousStreams previous;
    if (!enter_stream(self, self, &previous))
        return nullptr;
    Py_INCREF(self);
    return self;
}

} // namespace

// Adds the type StreamMethods to the module: a base of `tcuda.Stream`, which lets a stream itself be a scope. False
// with a Python error set if that fails.
bool add_stream_methods(PyObject *module) {
    static ScopeMethods methods;
    set_scope_methods(methods, enter, "__exit__($self, exc_type, exc_val, exc_tb)\n--\n\n");
    static PyType_Slot slots[] = {{Py_tp_methods, methods}, {0, nullptr}};
    static PyType_Spec spec = {"tcuda._core.StreamMethods", 0, 0, base_flags, slots};
    return add_type(module, "StreamMethods", &spec);
}

} // namespace tcuda
