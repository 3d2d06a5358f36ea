#include "bindings/scopes/stream_entry.hpp"

#include "bindings/python/python_calls.hpp"
#include "bindings/scopes/scope_exit.hpp"

namespace tcuda {
namespace {

PyObject *name_ptr = nullptr, *name_device_id = nullptr;

} // namespace

bool enter_stream(PyObject *owner, PyObject *stream, PreviousStreams *previous) {
    const FoundCalls found;
    if (!found)
        return false;
    const RuntimeCalls &calls = *found;
    Raised raised;
    undo_abandoned(calls, raised);
    if (raised.set_again())
        return false;
    const long long index = taken_integer(PyObject_GetAttr(stream, name_device_id));
    if (index == -1 && PyErr_Occurred())
        return false;
    const long long handle = taken_integer(PyObject_GetAttr(stream, name_ptr));
    if (handle == -1 && PyErr_Occurred())
        return false;
    const long long device = calls.current_device();
    if (device == -1 && PyErr_Occurred())
        return false;
    PyObject *const source = call(calls.current_stream);
    if (source == nullptr)
        return false;
    PyObject *target = source;
    Py_INCREF(target);
    // CuPy compares streams by identity, so a default stream is entered as the object that the runtime has for it.
    PyObject *const entered = handle == calls.default_handle ? calls.default_stream : stream;
    bool is_current = device == index;
    if (!is_current && calls.make_current(index)) {
        Py_DECREF(target);
        target = call(calls.current_stream);
        is_current = target != nullptr;
    }
    Py_INCREF(owner);
    if (is_current && done(call(calls.enter_stream, entered))) {
        *previous = {source, target, device};
        if (note_entered({owner, false, device, source, target, index}))
            return true;
        raised.take();
        exit_stream_with_retries(raised, calls);
        enter_stream_with_retries(raised, calls, target);
    }
    if (PyErr_Occurred())
        raised.take();
    enter_device_with_retries(raised, calls, device);
    Py_DECREF(owner);
    Py_DECREF(source);
    Py_XDECREF(target);
    raised.set_again();
    return false;
}

bool prepare_stream_entry() {
    name_ptr = PyUnicode_InternFromString("ptr");
    name_device_id = PyUnicode_InternFromString("device_id");
    return name_ptr != nullptr && name_device_id != nullptr;
}

} // namespace tcuda
