#include "host_kernels/stacks.hpp"

#include <sys/mman.h>

#include <mutex>
#include <new>
#include <utility>

namespace tcuda {
namespace {

std::mutex kept_mutex;
std::unique_ptr<Stacks> kept; // one set: launches seldom run at the same time

} // namespace

std::unique_ptr<Stacks> Stacks::take() {
    {
        const std::lock_guard<std::mutex> lock(kept_mutex);
        if (kept != nullptr)
            return std::move(kept);
    }
    void *memory = mmap(nullptr, count * size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED)
        throw std::bad_alloc();
    return std::unique_ptr<Stacks>(new Stacks(static_cast<char *>(memory)));
}

void Stacks::give(std::unique_ptr<Stacks> stacks) {
    const std::lock_guard<std::mutex> lock(kept_mutex);
    std::swap(kept, stacks);
}

Stacks::~Stacks() { munmap(memory_, count * size); }

void Stacks::guard_up_to(std::size_t needed) {
    for (; guarded_ < needed; ++guarded_)
        mprotect(memory_ + guarded_ * size, guard, PROT_NONE);
}

} // namespace tcuda
