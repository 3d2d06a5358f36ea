#include "emulation/_cpp/kernels/races/reserved_memory.hpp"

#include <sys/mman.h>

#include <cstdint>
#include <new>

namespace tcuda {

ReservedMemory::ReservedMemory(std::size_t bytes) : bytes_(bytes) {
    memory_ = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory_ == MAP_FAILED)
        throw std::bad_alloc();
}

ReservedMemory::~ReservedMemory() { munmap(memory_, bytes_); }

void ReservedMemory::use_large_pages(std::size_t offset, std::size_t bytes) const {
    constexpr std::uintptr_t page = 2u << 20;
    const std::uintptr_t begin = reinterpret_cast<std::uintptr_t>(memory_) + offset, end = begin + bytes;
    const std::uintptr_t first = (begin + page - 1) / page * page, last = end / page * page;
    if (first < last) // The shadow is right without large pages too, so a failure has no consequence.
        madvise(reinterpret_cast<void *>(first), last - first, MADV_HUGEPAGE);
}

} // namespace tcuda
