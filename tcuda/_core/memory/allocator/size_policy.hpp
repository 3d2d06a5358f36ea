#pragma once

#include <algorithm>
#include <cstddef>

#include "memory/allocator/block.hpp"
#include "memory/allocator/pool.hpp"
#include "memory/allocator/segment.hpp"
#include "memory/allocator/settings.hpp"
#include "memory/allocator/sizes.hpp"

namespace tcuda {

// The choice of the block for a request, by torch's rules and the settings.
class SizePolicy {
public:
    explicit SizePolicy(const Settings &settings) : settings_(settings) {}

    // The number of bytes, a multiple of the unit, that each block has behind the bytes for the request.
    void set_padding(std::size_t padding) { padding_ = padding; }

    // The size of the block for a request: a multiple of the unit; 0 if the request is larger than largest_request.
    std::size_t rounded(std::size_t size) const {
        return size > largest_request ? 0 : without_padding(size) + padding_;
    }

    // Whether a free block that is large enough may serve a request. A block that is no larger than a new segment
    // always may, so that an allocation finds the segment that it has just taken from the driver.
    bool suits(const Block *block, std::size_t size) const {
        if (block->size < settings_.max_split_size || block->segment->expandable || block->size <= segment_size(size))
            return true;
        return size >= settings_.max_split_size && block->size - size < settings_.max_non_split_rounding;
    }

    // Whether the rest of the block becomes a free block of its own.
    bool should_split(const Block *block, std::size_t size) const {
        const std::size_t rest = block->size - size;
        if (!block->pool->split)
            return false;
        if (block->segment->expandable || !block->is_large)
            return rest >= unit;
        return rest > small_limit && size < settings_.max_split_size;
    }

private:
    std::size_t without_padding(std::size_t size) const {
        if (size <= unit)
            return unit;
        constexpr unsigned power_of_mib = 20;
        const unsigned power = log2_floor(size);
        const std::size_t last = settings_.roundup_power2_divisions.size() - 1;
        const std::size_t range = power < power_of_mib ? 0 : std::min<std::size_t>(power - power_of_mib, last);
        const std::size_t divisions = settings_.roundup_power2_divisions[range];
        if (divisions > 1 && size > unit * divisions)
            return round_up(round_up(size, std::max((std::size_t(1) << power) / divisions, std::size_t(1))), unit);
        return round_up(size, unit);
    }

    const Settings &settings_;
    std::size_t padding_ = 0;
};

} // namespace tcuda
