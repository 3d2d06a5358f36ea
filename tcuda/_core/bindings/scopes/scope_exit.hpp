// The way back from scopes: what was current before becomes current again.
#pragma once

#include <Python.h>

#include "bindings/python/raised.hpp"
#include "bindings/scopes/runtime_calls.hpp"
#include "bindings/scopes/thread_scopes.hpp"

namespace tcuda {

// Steps of the way back. `raised` takes the exceptions of each step.
void enter_device_with_retries(Raised &raised, const RuntimeCalls &calls, long long device);
void enter_stream_with_retries(Raised &raised, const RuntimeCalls &calls, PyObject *stream);
void exit_stream_with_retries(Raised &raised, const RuntimeCalls &calls);

// Goes back from the scopes on top of this thread's stack that other threads have left. Abandoned scopes are rare, so
// the look at the stack, which needs its lock, is left out where there are none.
void undo_abandoned_on_top(const RuntimeCalls &calls, Raised &raised);
inline void undo_abandoned(const RuntimeCalls &calls, Raised &raised) {
    if (abandoned_scopes.load(std::memory_order_relaxed) != 0)
        undo_abandoned_on_top(calls, raised);
}

// None, or null with the exception set that was taken.
PyObject *none_unless(Raised &raised);

// The methods of a kind of scope: __enter__ and __exit__. `exit_text` is the signature of __exit__, which does not use
// its arguments.
using ScopeMethods = PyMethodDef[3];
void set_scope_methods(ScopeMethods &methods, PyCFunction enter,
                       const char *exit_text = "__exit__($self, type, value, traceback)\n--\n\n");

} // namespace tcuda
