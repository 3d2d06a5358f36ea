// The unwinding of a thread that Python ends.
//
// A daemon thread that asks for Python's lock while the interpreter ends is ended by Python: before Python 3.14, with
// pthread_exit(). glibc carries out pthread_exit() as a forced unwinding of the stack. Such an unwinding runs the
// destructors of every frame of C++ without Python's lock, and ends the whole process where it meets a function that is
// `noexcept`, or a handler of all exceptions. So such a thread stops below all frames of the core, and waits there for
// the end of the process. Python 3.14 lets its threads do the same.
#pragma once

#include <dlfcn.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "threads/published.hpp"

namespace tcuda {

// Guards a call from which such an unwinding may come. The destructor stops the thread. A handler could not: C++ has no
// room for the handler of a forced unwinding while the thread handles an exception.
class Unwinding {
public:
    struct Exceptions {};

    // Guards a call that throws no exceptions of C++.
    Unwinding() = default;
    // Guards a call that may throw exceptions of C++. The exceptions pass.
    explicit Unwinding(Exceptions) : passes_exceptions_(true) {}
    ~Unwinding() {
        if (!dismissed_ && (!passes_exceptions_ || may_end_this_thread()))
            for (;;)
                pause();
    }
    Unwinding(const Unwinding &) = delete;
    Unwinding &operator=(const Unwinding &) = delete;

    // The call has returned.
    void dismiss() { dismissed_ = true; }

private:
    // Whether Python is ending threads, and this thread is not the main one. std::uncaught_exceptions() cannot tell an
    // exception from the end of a thread: it does not count the exceptions of a library with its own C++ runtime.
    static bool may_end_this_thread() {
        using IsFinalizing = int();
        static Published<IsFinalizing *const> found;
        IsFinalizing *const is_finalizing = found.get([] {
            void *const known = dlsym(RTLD_DEFAULT, "Py_IsFinalizing"); // public since Python 3.13
            void *const older = known != nullptr ? known : dlsym(RTLD_DEFAULT, "_Py_IsFinalizing");
            return new auto(reinterpret_cast<IsFinalizing *>(older));
        });
        return is_finalizing != nullptr && is_finalizing() != 0 && syscall(SYS_gettid) != getpid();
    }

    const bool passes_exceptions_ = false;
    bool dismissed_ = false;
};

} // namespace tcuda
