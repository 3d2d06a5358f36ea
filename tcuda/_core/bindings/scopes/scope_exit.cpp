#include "bindings/scopes/scope_exit.hpp"

#include "bindings/python/python_calls.hpp"
#include "bindings/python/retry.hpp"

namespace tcuda {
namespace {

void undo(const EnteredScope &scope, const RuntimeCalls &calls, Raised &raised) {
    if (scope.stream_source == nullptr) {
        enter_device_with_retries(raised, calls, scope.device);
        return;
    }
    enter_device_with_retries(raised, calls, scope.stream_device);
    exit_stream_with_retries(raised, calls);
    // CuPy goes back to its own stack, which set_stream() does not change. torch goes back to the stream that was
    // current.
    enter_stream_with_retries(raised, calls, scope.stream_target);
    if (scope.device != scope.stream_device) {
        enter_device_with_retries(raised, calls, scope.device);
        enter_stream_with_retries(raised, calls, scope.stream_source);
    }
}

PyObject *leave(PyObject *owner) {
    EnteredScope scope;
    if (!take_left(owner, &scope))
        Py_RETURN_NONE;
    Raised raised;
    const FoundCalls calls;
    if (!calls) {
        forget(scope);
        return nullptr;
    }
    undo_abandoned(*calls, raised);
    undo(scope, *calls, raised);
    undo_abandoned(*calls, raised);
    forget(scope);
    return none_unless(raised);
}

PyObject *exit(PyObject *self, PyObject *const *, Py_ssize_t count, PyObject *names) {
    const Py_ssize_t given = count + (names == nullptr ? 0 : PyTuple_Size(names));
    if (given != 3)
        return PyErr_Format(PyExc_TypeError, "__exit__() takes 3 arguments, but %zd were given", given);
    return leave(self);
}

} // namespace

void enter_device_with_retries(Raised &raised, const RuntimeCalls &calls, long long device) {
    retry(raised, [&] {
        const long long current = calls.current_device();
        if (current == -1 && PyErr_Occurred())
            return false;
        return current == device || calls.make_current(device);
    });
}

void enter_stream_with_retries(Raised &raised, const RuntimeCalls &calls, PyObject *stream) {
    retry(raised, [&] {
        PyObject *const current = call(calls.current_stream);
        const bool is_current = current == stream;
        Py_XDECREF(current);
        return current != nullptr && (is_current || done(call(calls.use_stream, stream)));
    });
}

void exit_stream_with_retries(Raised &raised, const RuntimeCalls &calls) {
    retry(raised, [&] { return done(call(calls.exit_stream)); });
}

void undo_abandoned_on_top(const RuntimeCalls &calls, Raised &raised) {
    EnteredScope top;
    while (take_abandoned(&top)) {
        undo(top, calls, raised);
        forget(top);
    }
}

PyObject *none_unless(Raised &raised) {
    if (raised.set_again())
        return nullptr;
    Py_RETURN_NONE;
}

void set_scope_methods(ScopeMethods &methods, PyCFunction enter, const char *exit_text) {
    methods[0] = {"__enter__", enter, METH_NOARGS, "__enter__($self)\n--\n\n"};
    methods[1] = {"__exit__", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(exit)),
                  METH_FASTCALL | METH_KEYWORDS, exit_text};
    methods[2] = {nullptr, nullptr, 0, nullptr};
}

} // namespace tcuda
