#include "bindings/python/cleanup_on_error.hpp"

#include "bindings/python/callable.hpp"
#include "bindings/python/interruption.hpp"
#include "bindings/python/python_calls.hpp"
#include "bindings/python/raised.hpp"
#include "bindings/python/retry.hpp"

namespace tcuda {
namespace {

using CleanupOnError = Callable<2>;
enum Held { function, mend };

PyObject *method_type = nullptr; // types.MethodType

PyObject *call(PyObject *self, PyObject *const *args, size_t flagged_count, PyObject *names) {
    PyObject *const *const held = CleanupOnError::of(self)->held;
    if (PyVectorcall_NARGS(flagged_count) == 0) {
        PyErr_SetString(PyExc_TypeError, "a method needs an object");
        return nullptr;
    }
    PyObject *const first = args[0];
    PyObject *const result = PyObject_Vectorcall(held[function], args, flagged_count, names);
    if (result != nullptr)
        return result;
    Raised raised;
    raised.take();
    retry(raised, [&] { return done(tcuda::call(held[mend], first)); });
    raised.set_again();
    return nullptr;
}

PyObject *call_finalizing(PyObject *self, PyObject *const *args, size_t flagged_count, PyObject *names) {
    PyObject *const result = PyObject_Vectorcall(CleanupOnError::of(self)->held[function], args, flagged_count, names);
    if (result != nullptr || !Interruption::deliver_error())
        return result;
    Py_RETURN_NONE;
}

PyObject *get(PyObject *self, PyObject *object, PyObject *) {
    if (object == nullptr) {
        Py_INCREF(self);
        return self;
    }
    PyObject *const arguments[] = {self, object};
    return PyObject_Vectorcall(method_type, arguments, 2, nullptr);
}

// An attribute of the function. `name` is the closure of the getter.
PyObject *attribute(PyObject *self, void *name) {
    return PyObject_GetAttrString(CleanupOnError::of(self)->held[function], static_cast<const char *>(name));
}

} // namespace

PyObject *make_cleanup_on_error_type() {
    static char names[][13] = {"__doc__", "__module__", "__name__", "__qualname__"};
    static PyGetSetDef attributes[] = {
        {names[0], attribute, nullptr, nullptr, names[0]}, {names[1], attribute, nullptr, nullptr, names[1]},
        {names[2], attribute, nullptr, nullptr, names[2]}, {names[3], attribute, nullptr, nullptr, names[3]},
        {nullptr, nullptr, nullptr, nullptr, nullptr},
    };
    PyObject *types = PyImport_ImportModule("types");
    method_type = types == nullptr ? nullptr : PyObject_GetAttrString(types, "MethodType");
    Py_XDECREF(types);
    if (method_type == nullptr)
        return nullptr;
    return CleanupOnError::make_type(
        "tcuda._core.CleanupOnError", sizeof(CleanupOnError), {CleanupOnError::member("__wrapped__", function)},
        {{Py_tp_descr_get, reinterpret_cast<void *>(get)}, {Py_tp_getset, attributes}}, Py_TPFLAGS_METHOD_DESCRIPTOR);
}

PyObject *make_cleanup_on_error(PyObject *type, PyObject *function, PyObject *mend) {
    return CleanupOnError::make(type, call, {function, mend});
}

PyObject *make_finalizing(PyObject *type, PyObject *function) {
    return CleanupOnError::make(type, call_finalizing, {function, Py_None});
}

} // namespace tcuda
