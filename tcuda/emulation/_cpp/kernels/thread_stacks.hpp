// The stacks of the threads of a block.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

namespace tcuda {

// Room for the stacks of 1,024 threads, reserved in one piece. Pages that no thread has touched take no memory. Below
// each stack is a page without access, which stops a thread that needs more.
class ThreadStacks {
public:
    static constexpr std::size_t count = 1024;
    // A thread of a GPU has 512 KiB of local memory. The functions that a kernel calls need more.
    static constexpr std::size_t size = std::size_t(576) << 10;

    // Takes stacks that an earlier launch has given back, or reserves new ones. Throws std::bad_alloc.
    static std::unique_ptr<ThreadStacks> take();
    // Keeps the stacks for a later launch. Does nothing without stacks.
    static void give(std::unique_ptr<ThreadStacks> stacks);

    ~ThreadStacks();
    ThreadStacks(const ThreadStacks &) = delete;
    ThreadStacks &operator=(const ThreadStacks &) = delete;

    char *begin() const { return memory_; }
    char *end() const { return memory_ + count * stride; }
    char *bottom(std::size_t place) const { return memory_ + place * stride + guard; }
    // The tops are staggered: tops at the same place of each page would use the same few lines of the cache.
    char *top(std::size_t place) const { return memory_ + (place + 1) * stride - place * 7 % 32 * 128; }
    bool contain(std::uintptr_t address) const {
        return address - reinterpret_cast<std::uintptr_t>(memory_) < count * stride;
    }
    // Whether the address is in a page below a stack.
    bool guards(std::uintptr_t address) const {
        const std::uintptr_t offset = address - reinterpret_cast<std::uintptr_t>(memory_);
        return offset < count * stride && offset % stride < guard;
    }
    // Makes the guard pages of the first `needed` stacks.
    void guard_up_to(std::size_t needed);

private:
#ifdef __aarch64__
    static constexpr std::size_t page = 65536; // the largest of the sizes that a kernel of Linux may have
    static constexpr std::size_t guard = 2 * page;
#else
    static constexpr std::size_t page = 4096;
    static constexpr std::size_t guard = page;
#endif
    static_assert(size % page == 0 && (size + guard) / page % 2 == 1);
    // An odd number of pages. The stacks are used in turn. With a power of two, their pages would be in few sets of the
    // processor's caches.
    static constexpr std::size_t stride = size + guard;

    explicit ThreadStacks(char *memory) : memory_(memory) {}

    char *const memory_;
    std::size_t guarded_ = 0;
};

} // namespace tcuda
