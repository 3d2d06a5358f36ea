#include "bindings/scopes/runtime_calls.hpp"

#include <new>
#include <utility>

namespace tcuda {
namespace {

PyObject *finder = nullptr;

} // namespace

const RuntimeCalls *FoundCalls::find(RuntimeCalls *found) {
    PyObject *answer = call(finder);
    if (answer == nullptr)
        return nullptr;
    PyObject *members;
    int keep;
    if (!PyArg_ParseTuple(answer, "Op", &members, &keep) ||
        !PyArg_ParseTuple(members, "OOOOOOO", &found->get_device, &found->set_device, &found->current_stream,
                          &found->use_stream, &found->enter_stream, &found->exit_stream, &found->default_stream)) {
        Py_DECREF(answer);
        return nullptr;
    }
    Py_INCREF(members);
    Py_DECREF(answer);
    found->members = members;
    found->default_handle = taken_integer(PyObject_GetAttrString(found->default_stream, "ptr"));
    if (PyErr_Occurred()) {
        Py_DECREF(members);
        return nullptr;
    }
    if (!keep)
        return found;
    kept_ = new (std::nothrow) RuntimeCalls(*found);
    return kept_ == nullptr ? found : kept_;
}

bool RuntimeCalls::make_current(long long device) const {
    PyObject *const index = PyLong_FromLongLong(device);
    const bool made = index != nullptr && done(call(set_device, index));
    Py_XDECREF(index);
    return made;
}

void find_calls_by(PyObject *function) {
    Py_INCREF(function);
    Py_XDECREF(std::exchange(finder, function));
}

} // namespace tcuda
