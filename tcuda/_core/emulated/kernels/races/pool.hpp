// Objects that are known by numbers, and do not move.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace tcuda {

// An object keeps its place, so no growth copies objects.
template <typename Object> class Pool {
public:
    Object &operator[](std::uint32_t number) { return chunks_[number / chunk][number % chunk]; }
    const Object &operator[](std::uint32_t number) const { return chunks_[number / chunk][number % chunk]; }

    // The number of an object, which may have the contents of an object that was given back.
    std::uint32_t take() {
        if (!free_.empty()) {
            const std::uint32_t number = free_.back();
            free_.pop_back();
            return number;
        }
        if (used_ % chunk == 0)
            chunks_.emplace_back(new Object[chunk]);
        return used_++;
    }
    void give_back(std::uint32_t number) { free_.push_back(number); }

private:
    static constexpr std::uint32_t chunk = 4096;

    std::vector<std::unique_ptr<Object[]>> chunks_;
    std::uint32_t used_ = 0;
    std::vector<std::uint32_t> free_;
};

} // namespace tcuda
