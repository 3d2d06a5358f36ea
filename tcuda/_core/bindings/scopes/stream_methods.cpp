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
    static PyMethodDef methods[] = {
        {"__enter__", enter, METH_NOARGS, "__enter__($self)\n--\n\n"},
        {"__exit__", nullptr, METH_FASTCALL | METH_KEYWORDS, "__exit__($self, exc_type, exc_val, exc_tb)\n--\n\n"},
        {nullptr, nullptr, 0, nullptr},
    };
    methods[1].ml_meth = exit_scope; // a variable of another file, so the table would need a guard
    static PyType_Slot slots[] = {{Py_tp_methods, methods}, {0, nullptr}};
    static PyType_Spec spec = {"tcuda._core.StreamMethods", 0, 0, base_flags, slots};
    return add_type(module, "StreamMethods", &spec);
}

} // namespace tcuda
