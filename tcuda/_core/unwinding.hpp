// The unwinding of a thread that Python ends.
//
// A daemon thread that asks for Python's lock while the interpreter ends is ended by Python, before 3.14 with
// pthread_exit(). glibc carries that out as a forced unwinding of the stack: it runs the destructors of every frame of
// C++, without Python's lock, and where it meets a function that is `noexcept`, or a handler of everything, it ends the
// whole process. So such a thread stops below all frames of the core, and waits for the end of the process, as Python
// 3.14 lets it.
#pragma once

#include <unistd.h>

#include <exception>

namespace tcuda {

// Stands around a call from which such an unwinding may come. Its destructor, and not a handler, stops the thread: C++
// has no room for the handler of a forced unwinding while the thread handles an exception.
class Unwinding {
public:
    // Around what throws no exceptions of C++ ...
    Unwinding() = default;
    // ... and around what may: given std::uncaught_exceptions(), they pass.
    explicit Unwinding(int exceptions) : exceptions_(exceptions) {}
    ~Unwinding() {
        if (!dismissed_ && (exceptions_ < 0 || std::uncaught_exceptions() == exceptions_))
            for (;;)
                pause();
    }
    Unwinding(const Unwinding &) = delete;
    Unwinding &operator=(const Unwinding &) = delete;

    // The call has returned.
    void dismiss() { dismissed_ = true; }

private:
    const int exceptions_ = -1;
    bool dismissed_ = false;
};

} // namespace tcuda
