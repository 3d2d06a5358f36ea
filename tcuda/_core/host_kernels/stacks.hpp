// The stacks of the threads of a block.
#pragma once

#include <cstddef>
#include <memory>

namespace tcuda {

// Room for the stacks of 1,024 threads, reserved in one piece. Pages that no thread has touched take no memory. An
// unmapped page below each stack stops a thread that needs more.
class Stacks {
public:
    static constexpr std::size_t count = 1024;
    static constexpr std::size_t size = std::size_t(256) << 10;

    // Takes stacks that an earlier launch has given back, or reserves new ones. Throws std::bad_alloc.
    static std::unique_ptr<Stacks> take();
    // Keeps the stacks for a later launch.
    static void give(std::unique_ptr<Stacks> stacks);

    ~Stacks();
    Stacks(const Stacks &) = delete;
    Stacks &operator=(const Stacks &) = delete;

    char *begin() const { return memory_; }
    char *end() const { return memory_ + count * size; }
    char *bottom(std::size_t place) const { return memory_ + place * size + guard; }
    // The tops are staggered: tops at the same place of each stack would use the same few lines of the cache.
    char *top(std::size_t place) const { return memory_ + (place + 1) * size - place * 7 % 32 * 128; }
    // Makes the guard pages of the first `needed` stacks.
    void guard_up_to(std::size_t needed);

private:
    static constexpr std::size_t guard = 4096;

    explicit Stacks(char *memory) : memory_(memory) {}

    char *const memory_;
    std::size_t guarded_ = 0;
};

} // namespace tcuda
