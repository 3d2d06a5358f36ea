// Memory of which only the parts that are used take memory of the machine.
#pragma once

#include <cstddef>

namespace tcuda {

class ReservedMemory {
public:
    // The bytes are 0. Throws std::bad_alloc.
    explicit ReservedMemory(std::size_t bytes);
    ~ReservedMemory();
    ReservedMemory(const ReservedMemory &) = delete;
    ReservedMemory &operator=(const ReservedMemory &) = delete;

    void *begin() const { return memory_; }
    // Lets the machine give much of a part at once, which is the most expensive step of its use.
    void use_large_pages(std::size_t offset, std::size_t bytes) const;

private:
    const std::size_t bytes_;
    void *memory_;
};

} // namespace tcuda
