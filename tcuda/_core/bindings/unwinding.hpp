// The unwinding of a thread that Python ends.
//
// A daemon thread that asks for Python's lock while the interpreter ends is ended by Python, before 3.14 with
// pthread_exit(). glibc carries that out as a forced unwinding of the stack: it runs the destructors of every frame of
// C++, without Python's lock, and where it meets a function that is `noexcept`, or a handler of everything, it ends the
// whole process. So such a thread stops below all frames of the core, and waits for the end of the process, as Python
// 3.14 lets it.
#pragma once

#include <dlfcn.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace tcuda {

// Stands around a call from which such an unwinding may come. Its destructor, and not a handler, stops the thread: C++
// has no room for the handler of a forced unwinding while the thread handles an exception.
class Unwinding {
public:
    struct Exceptions {};

    // Around what throws no exceptions of C++ ...
    Unwinding() = default;
    // ... and around what may: they pass.
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
    // Whether Python ends threads, and this is not the main one. std::uncaught_exceptions() would not tell exceptions
    // from the end of a thread: a library may have a C++ runtime of its own, whose exceptions that does not count.
    static bool may_end_this_thread() {
        using IsFinalizing = int();
        static auto *const known = reinterpret_cast<IsFinalizing *>(dlsym(RTLD_DEFAULT, "Py_IsFinalizing"));
        static auto *const older = reinterpret_cast<IsFinalizing *>(dlsym(RTLD_DEFAULT, "_Py_IsFinalizing"));
        IsFinalizing *const is_finalizing = known != nullptr ? known : older; // public since Python 3.13
        return is_finalizing != nullptr && is_finalizing() != 0 && syscall(SYS_gettid) != getpid();
    }

    const bool passes_exceptions_ = false;
    bool dismissed_ = false;
};

} // namespace tcuda
