// Accesses of the host to memory that a device may still use.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace tcuda {

// A range of the host's memory, and which accesses of the host to it are noticed.
struct WatchedRange {
    std::uintptr_t begin, end;
    bool reads; // whether reads are noticed too, and not only writes
};

// Notices the first access of the host to each watched range. The pages of the range are protected, and the handler of
// SIGSEGV gives them free again. So only the whole pages of a range are watched: other memory in the first and the last
// page belongs to somebody else. A system call that uses protected memory gets no signal and fails with EFAULT, unless
// touch() was called before. The child of a fork watches nothing.
//
// There is one watch in a process. Threads may call all functions.
class PageWatch {
public:
    // Called with the address, in the thread that makes the access, before the access. No lock is held. The function
    // may call Python, because the access is no part of code that holds a lock of Python.
    using Seen = void (*)(std::uintptr_t address, bool write);

    // Whether this machine tells reads from writes.
    static bool supported() noexcept;

    // The first address from `address` on at which a page begins.
    static std::uintptr_t page_end(std::uintptr_t address) noexcept;

    // Watches `ranges` in place of the ranges before. Ranges may overlap. Throws std::bad_alloc, or std::system_error
    // if the system refuses the handler; then nothing is watched.
    static void watch(std::vector<WatchedRange> ranges, Seen seen);

    // Watches nothing, and removes the handler.
    static void end() noexcept;

    // Whether anything may be watched now. Takes no lock.
    static bool watches() noexcept;

    // Does to the first watched range that meets an access to [begin, end) what the access would do, and returns the
    // first address; the caller calls the function that is told. Null if there is no such range, or during a pause.
    // Takes a lock only if there may be such a range.
    struct Touch {
        std::uintptr_t address;
        Seen seen;
    };
    static Touch touch(std::uintptr_t begin, std::uintptr_t end, bool write) noexcept;

    // Installs the handler again if the program has installed another one while pages are protected.
    static void keep_handler() noexcept;

    // While an object of this class exists, no access is noticed: the emulated device uses the memory.
    class Pause {
    public:
        Pause() noexcept;
        ~Pause();
        Pause(const Pause &) = delete;
        Pause &operator=(const Pause &) = delete;
    };
};

} // namespace tcuda
