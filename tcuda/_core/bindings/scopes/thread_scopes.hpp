// The scopes that threads are in. Each thread has a stack of its own.
//
// A thread can leave a scope of another thread: the end of a generator does, if the generator is closed in another
// thread. Such a scope is abandoned. Nothing changes in the thread that leaves the scope. The thread that entered the
// scope goes back from it when it next enters or leaves a scope.
//
// Lock rule: the lock of the stacks is held only while no Python code can run.
#pragma once

#include <Python.h>

#include <atomic>
#include <cstddef>

namespace tcuda {

struct EnteredScope {
    PyObject *owner;         // the context manager
    bool abandoned;          // another thread has left the scope
    long long device;        // the device that was current before
    PyObject *stream_source; // the stream that was current before on that device; null if no stream was entered
    PyObject *stream_target; // the stream that was current before on the device of the entered stream
    long long stream_device; // the device of the entered stream
};

// Puts the scope on the stack of this thread, which takes over the references. False with a MemoryError set, and the
// references still the caller's, if that fails.
bool note_entered(const EnteredScope &scope);

// Takes the latest scope of `owner` off the stack of this thread. If there is none, marks the scope of `owner` in
// another thread as abandoned, and returns false.
bool take_left(PyObject *owner, EnteredScope *taken);

// The number of abandoned scopes on the stacks of all threads. The lock of the stacks guards changes.
inline std::atomic<std::size_t> abandoned_scopes{0};

// Takes the scope on top of the stack of this thread if another thread has left it.
bool take_abandoned(EnteredScope *taken);

// Drops the references of a scope that was taken.
void forget(const EnteredScope &scope);

// In a forked child: forgets the scopes of all threads.
void forget_entered();

} // namespace tcuda
