// Objects that are known by numbers, and do not move.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <type_traits>
#include <vector>

namespace tcuda {

// An object keeps its place, so no growth copies objects. An object that is not in use has the number of another one.
template <typename Object> class Pool {
public:
    static constexpr std::uint32_t none = ~std::uint32_t(0);

    Object &operator[](std::uint32_t number) { return chunks_[number / chunk][number % chunk]; }
    const Object &operator[](std::uint32_t number) const { return chunks_[number / chunk][number % chunk]; }

    // The number of an object with any contents.
    std::uint32_t take() {
        const std::uint32_t number = take_again();
        if (number != none)
            return number;
        if (used_ % chunk == 0)
            chunks_.emplace_back(new Object[chunk]);
        return used_++;
    }
    // The same, without new memory; or else `none`.
    std::uint32_t take_again() {
        const std::uint32_t number = free_;
        if (number != none)
            std::memcpy(&free_, &(*this)[number], sizeof free_);
        return number;
    }
    void give_back(std::uint32_t number) {
        std::memcpy(static_cast<void *>(&(*this)[number]), &free_, sizeof free_);
        free_ = number;
    }

private:
    static_assert(sizeof(Object) >= sizeof(std::uint32_t) && std::is_trivially_copyable_v<Object>);
    static constexpr std::uint32_t chunk = 4096;

    std::vector<std::unique_ptr<Object[]>> chunks_;
    std::uint32_t used_ = 0, free_ = none;
};

} // namespace tcuda
