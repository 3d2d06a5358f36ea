#include "bindings/python/interruption.hpp"

#include <sys/syscall.h>
#include <unistd.h>

#include <utility>

#include "bindings/python/raised.hpp"

namespace nb = nanobind;

namespace tcuda {
namespace {

thread_local PyObject *kept = nullptr;

// Python runs signal handlers and pending calls in the main thread.
bool is_main_thread() { return syscall(SYS_gettid) == getpid(); }

int raise_later(void *error) {
    set_exception(static_cast<PyObject *>(error));
    return -1;
}

// Python can make a thread raise an exception of a class, but no exception object. False if the exception has
// arguments, which its class alone would lose.
bool raise_type_later(PyObject *error) {
    PyObject *arguments = PyObject_GetAttrString(error, "args");
    const bool says_nothing = arguments != nullptr && PyTuple_Check(arguments) && PyTuple_Size(arguments) == 0;
    Py_XDECREF(arguments);
    if (!says_nothing) {
        PyErr_Clear();
        return false;
    }
    return PyThreadState_SetAsyncExc(PyThread_get_thread_ident(), reinterpret_cast<PyObject *>(Py_TYPE(error))) == 1;
}

} // namespace

Interruption::Interruption() : before_(std::exchange(kept, nullptr)) {}

Interruption::~Interruption() {
    deliver();
    kept = before_;
}

bool Interruption::pending() { return kept != nullptr; }

void Interruption::keep(const nb::python_error &error) {
    PyObject *value = error.value().inc_ref().ptr();
    kept = kept == nullptr ? value : with_context(value, kept);
}

void Interruption::raise_if_any() {
    if (restore())
        nb::raise_python_error();
}

bool Interruption::restore() noexcept {
    if (kept == nullptr)
        return false;
    set_exception(std::exchange(kept, nullptr));
    return true;
}

void Interruption::deliver() noexcept {
    if (kept == nullptr)
        return;
    PyObject *const error = std::exchange(kept, nullptr);
    const nb::error_scope before; // the caller may be handling an error
    if (is_main_thread() && Py_AddPendingCall(raise_later, error) == 0)
        return;
    if (!is_main_thread() && raise_type_later(error)) {
        Py_DECREF(error);
        return;
    }
    set_exception(error);
    PyErr_WriteUnraisable(nullptr);
}

bool Interruption::deliver_error() noexcept {
    if (PyErr_Occurred() == nullptr || PyErr_ExceptionMatches(PyExc_Exception))
        return false;
    const Interruption aside; // delivers at its end
    keep(nb::python_error());
    return true;
}

} // namespace tcuda
