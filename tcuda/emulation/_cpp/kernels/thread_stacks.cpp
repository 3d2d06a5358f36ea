#include "emulation/_cpp/kernels/thread_stacks.hpp"

#include <sys/mman.h>

#include <mutex>
#include <new>
#include <utility>

#include "threads/published.hpp"

namespace tcuda {
namespace {

class NoRoom : public std::bad_alloc {
public:
    const char *what() const noexcept override {
        return "A launch on an emulated device reserves 580 MiB of addresses, or 704 MiB on arm64, for the stacks of "
               "the threads of a block, and the system has none left for this process. The stacks take memory only as "
               "far as threads use them. Raise the limit of addresses (ulimit -v).";
    }
};

// One set of stacks is kept, because launches seldom run at the same time. The object is never destroyed, because a
// daemon thread may end a launch after the end of main().
struct Kept {
    std::mutex mutex;
    std::unique_ptr<ThreadStacks> stacks;
};

Kept &kept() {
    static Published<Kept> made;
    return made.get();
}

} // namespace

std::unique_ptr<ThreadStacks> ThreadStacks::take() {
    {
        const std::lock_guard<std::mutex> lock(kept().mutex);
        if (kept().stacks != nullptr)
            return std::move(kept().stacks);
    }
    constexpr int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
    void *memory = mmap(nullptr, count * stride, PROT_READ | PROT_WRITE, flags, -1, 0);
    if (memory == MAP_FAILED)
        throw NoRoom();
    return std::unique_ptr<ThreadStacks>(new ThreadStacks(static_cast<char *>(memory)));
}

void ThreadStacks::give(std::unique_ptr<ThreadStacks> stacks) {
    if (stacks == nullptr)
        return;
    const std::lock_guard<std::mutex> lock(kept().mutex);
    std::swap(kept().stacks, stacks);
}

ThreadStacks::~ThreadStacks() { munmap(memory_, count * stride); }

void ThreadStacks::guard_up_to(std::size_t needed) {
    for (; guarded_ < needed; ++guarded_)
        mprotect(memory_ + guarded_ * stride, guard, PROT_NONE);
}

} // namespace tcuda
