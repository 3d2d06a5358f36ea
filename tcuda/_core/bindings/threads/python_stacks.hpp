// Python stacks, which the core names by numbers.
#pragma once

#include <Python.h>

#include <chrono>

#include "memory/allocator/block.hpp"

namespace tcuda {

// The stack of the Python code that runs in this thread; stack_without_frames if the thread runs no Python code. The
// code objects of a noted stack stay alive until the end of the process. So the table grows all the time in a program
// that makes new code all the time.
StackId note_python_stack();

// The same for another thread, which must stay where it is meanwhile. The caller holds Python's lock.
StackId note_stack_of(PyThreadState *thread);

// The stack of this thread for a callback of the driver, which may run in a thread that has given Python's lock back.
// Runs no Python code, and waits for Python's lock at most for the patience of begin_stack_notes(). The result is
// stack_without_frames if the wait was in vain. Without the lock, the result is so before begin_stack_notes() too, and
// after the end of the interpreter has begun.
StackId note_any_stack() noexcept;

// While an object of this class exists and the thread does not hold Python's lock, note_any_stack() gives the stack at
// the construction of the object. The class is for calls that give the lock back and run no Python code: asking another
// thread for the stack takes several times as long. The caller holds the lock.
class StackOfCall {
public:
    StackOfCall();
    ~StackOfCall();
    StackOfCall(const StackOfCall &) = delete;
    StackOfCall &operator=(const StackOfCall &) = delete;

private:
    const StackId before_;
};

// Begins and ends the time in which note_any_stack() notes stacks without Python's lock. Counted. The caller holds the
// lock.
void begin_stack_notes(std::chrono::milliseconds patience = std::chrono::milliseconds(100));
void end_stack_notes();

// A list of {"name", "filename", "line"}, innermost first. New reference; null with a Python error set if that fails.
PyObject *frames_of(StackId stack);

} // namespace tcuda
