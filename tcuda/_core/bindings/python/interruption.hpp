// Python exceptions that the core has to keep before it can raise them.
#pragma once

#include <nanobind/nanobind.h>

namespace tcuda {

// An exception may interrupt Python code that the core calls in the middle of its work. A signal handler raises
// KeyboardInterrupt, another thread raises an exception in this thread, or memory is short. The core finishes its work
// first. Until then each thread keeps its exception. The context of a further exception is the exception before.
//
// Lock rule: all functions need Python's lock.
class Interruption {
public:
    // Sets the kept exception aside while the object lives. Python code that runs meanwhile may call the core again,
    // and must not see that exception.
    Interruption();
    ~Interruption();
    Interruption(const Interruption &) = delete;
    Interruption &operator=(const Interruption &) = delete;

    static bool pending();
    static void keep(const nanobind::python_error &error);

    // Raises the kept exception, if there is one.
    static void raise_if_any();
    // Sets the kept exception as the Python error. False if there is none.
    static bool restore() noexcept;
    // For calls that raise nothing, such as frees: lets the code that runs next in this thread raise the kept
    // exception. Where that is impossible, Python reports the exception as an exception in a destructor.
    static void deliver() noexcept;
    // For code that runs where Python drops exceptions, such as a destructor: if the Python error is one that has
    // nothing to do with the code, such as KeyboardInterrupt, clears the error and lets the code that runs next raise
    // it. False if the Python error stays.
    static bool deliver_error() noexcept;

private:
    PyObject *const before_;
};

} // namespace tcuda
