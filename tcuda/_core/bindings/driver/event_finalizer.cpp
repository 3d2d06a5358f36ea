#include <Python.h>

#include "bindings/python/interruption.hpp"
#include "bindings/python/python_type.hpp"
#include "bindings/python/raised.hpp"

namespace tcuda {
namespace {

PyObject *handle_name = nullptr, *release_name = nullptr;

// A subclass may leave out Event.__new__; then the event has no handle, and nothing has to be released.
bool has_cuda_event(PyObject *event) {
    PyObject *const handle = PyObject_GetAttr(event, handle_name);
    if (handle == nullptr) {
        PyErr_Clear();
        return false;
    }
    const bool created = PyObject_IsTrue(handle) == 1;
    Py_DECREF(handle);
    return created;
}

void finalize(PyObject *event) {
    PyObject *const error = taken_exception(); // the event may die while an exception is handled
    if (has_cuda_event(event)) {
        PyObject *const result = PyObject_VectorcallMethod(release_name, &event, 1, nullptr);
        if (result == nullptr && !Interruption::deliver_error())
            PyErr_WriteUnraisable(event);
        Py_XDECREF(result);
    }
    if (error != nullptr)
        set_exception(error);
}

} // namespace

// Adds the type EventFinalizer to the module: a base of `tcuda.Event`. When an event dies that has a CUDA event, the
// finalizer calls `_release()` of the event. An event without a CUDA event enters no Python frame. False with a Python
// error set if that fails.
bool add_event_finalizer(PyObject *module) {
    handle_name = PyUnicode_InternFromString("cuda_event");
    release_name = PyUnicode_InternFromString("_release");
    if (handle_name == nullptr || release_name == nullptr)
        return false;
    static PyType_Slot slots[] = {{Py_tp_finalize, reinterpret_cast<void *>(finalize)}, {0, nullptr}};
    static PyType_Spec spec = {"tcuda._core.EventFinalizer", 0, 0, base_flags, slots};
    return add_type(module, "EventFinalizer", &spec);
}

} // namespace tcuda
