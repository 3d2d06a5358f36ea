// Exceptions of Python that the core cannot hand on where they are raised.
#pragma once

#include <nanobind/nanobind.h>

namespace tcuda {

// Python code that the core calls in the middle of its work may be interrupted: by what a signal handler raises (as
// KeyboardInterrupt), by what another thread raises in this one, by a lack of memory. The core finishes its work first.
// Until then the exception is kept, by thread, and further ones have the one before as their context.
//
// Lock rule: all functions need Python's lock.
class Interruption {
public:
    // Python code that runs while this lives may call the core again: what was kept before is none of its business.
    Interruption();
    ~Interruption();
    Interruption(const Interruption &) = delete;
    Interruption &operator=(const Interruption &) = delete;

    static bool pending();
    static void keep(const nanobind::python_error &error);

    // Raises what was kept, if anything was.
    static void raise_if_any();
    // Sets what was kept as the Python error, and returns whether there was anything.
    static bool restore() noexcept;
    // For calls that raise nothing, such as frees: lets the code that runs next in this thread raise what was kept. Where
    // that is impossible, it is told of as an exception in a destructor is.
    static void deliver() noexcept;

private:
    PyObject *const before_;
};

} // namespace tcuda
