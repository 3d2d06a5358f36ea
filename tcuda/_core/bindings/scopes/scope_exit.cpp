#include "bindings/scope_exit.hpp"

#include "bindings/insistence.hpp"
#include "bindings/python_calls.hpp"

namespace tcuda {
namespace {

void undo(const EnteredScope &scope, const RuntimeCalls &calls, Raised &raised) {
    if (scope.stream_source == nullptr) {
        insist_on_device(raised, calls, scope.device);
        return;
    }
    insist_on_device(raised, calls, scope.stream_device);
    insist_on_exit(raised, calls);
    // CuPy goes back to its own stack, which set_stream() does not change. torch goes back to the stream that was
    // current.
    insist_on_stream(raised, calls, scope.stream_target);
    if (scope.device != scope.stream_device) {
        insist_on_device(raised, calls, scope.device);
        insist_on_stream(raised, calls, scope.stream_source);
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

void insist_on_device(Raised &raised, const RuntimeCalls &calls, long long device) {
    insist(raised, [&] {
        const long long current = calls.current_device();
        if (current == -1 && PyErr_Occurred())
            return false;
        return current == device || calls.make_current(device);
    });
}

void insist_on_stream(Raised &raised, const RuntimeCalls &calls, PyObject *stream) {
    insist(raised, [&] {
        PyObject *const current = call(calls.current_stream);
        const bool is_current = current == stream;
        Py_XDECREF(current);
        return current != nullptr && (is_current || done(call(calls.use_stream, stream)));
    });
}

void insist_on_exit(Raised &raised, const RuntimeCalls &calls) {
    insist(raised, [&] { return done(call(calls.exit_stream)); });
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

const PyCFunction exit_scope = reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(exit));

} // namespace tcuda
