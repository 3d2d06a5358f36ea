#include "host_kernels/stacks.hpp"

#include <sys/mman.h>

#include <mutex>
#include <new>
#include <utility>

namespace tcuda {
namespace {

// One set of stacks is kept, because launches seldom run at the same time. The object is never destroyed, because a
// daemon thread may end a launch after the end of main().
struct Kept {
    std::mutex mutex;
    std::unique_ptr<Stacks> stacks;
};

Kept &kept() {
    static auto *const made = new Kept;
    return *made;
}

} // namespace

std::unique_ptr<Stacks> Stacks::take() {
    {
        const std::lock_guard<std::mutex> lock(kept().mutex);
        if (kept().stacks != nullptr)
            return std::move(kept().stacks);
    }
    constexpr int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
    void *memory = mmap(nullptr, count * stride, PROT_READ | PROT_WRITE, flags, -1, 0);
    if (memory == MAP_FAILED)
        throw std::bad_alloc();
    return std::unique_ptr<Stacks>(new Stacks(static_cast<char *>(memory)));
}

void Stacks::give(std::unique_ptr<Stacks> stacks) {
    if (stacks == nullptr)
        return;
    const std::lock_guard<std::mutex> lock(kept().mutex);
    std::swap(kept().stacks, stacks);
}

Stacks::~Stacks() { munmap(memory_, count * stride); }

void Stacks::guard_up_to(std::size_t needed) {
    for (; guarded_ < needed; ++guarded_)
        mprotect(memory_ + guarded_ * stride, guard, PROT_NONE);
}

} // namespace tcuda
