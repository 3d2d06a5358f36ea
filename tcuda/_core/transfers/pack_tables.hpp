// The tables of the kernel that copies many arrays into one. A table is the only parameter of a launch.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "driver/status.hpp"

namespace tcuda {

// An array, and its place in the flat array.
struct PackedArray {
    std::uint64_t source, bytes, offset;
};

// tcuda/_cupy/transfers.cuh has the same struct and the same numbers. A block copies one piece of one array.
template <std::size_t capacity> struct PackTable {
    std::uint64_t target;
    std::uint32_t count, blocks;
    std::uint64_t sources[capacity];
    std::uint32_t offsets[capacity]; // from `target`
    std::uint32_t bytes[capacity];
    std::uint32_t first_blocks[capacity];
};

constexpr std::size_t small_capacity = 204;   // for 4,096 bytes of parameters, which every device takes
constexpr std::size_t large_capacity = 1637;  // for 32,764 bytes of parameters
constexpr std::uint32_t bytes_of_block = 16 << 10;
constexpr unsigned pack_threads = 256;
constexpr std::uint64_t packed_unit = 16; // the places of packed arrays are multiples of this number of bytes

static_assert(sizeof(PackTable<small_capacity>) <= 4096 && sizeof(PackTable<large_capacity>) <= 32764);

// Fills as many tables as the arrays need, and calls `launch(table)` with each, until a call returns a failure. Returns
// a status.
template <std::size_t capacity, typename Launch>
int each_table(PackTable<capacity> &table, std::uint64_t target, const std::vector<PackedArray> &arrays,
               Launch launch) {
    constexpr std::uint64_t most_bytes = std::uint64_t(1) << 31; // of one entry, so that offsets need 32 bits
    table.target = target;
    table.count = table.blocks = 0;
    const auto flush = [&] {
        const int status = table.count == 0 ? success : launch(table);
        table.count = table.blocks = 0;
        return status;
    };
    for (const PackedArray &array : arrays)
        for (std::uint64_t begin = 0; begin < array.bytes;) {
            const std::uint64_t bytes = std::min(array.bytes - begin, most_bytes);
            const std::uint64_t place = target + array.offset + begin;
            if (table.count == capacity || place < table.target || place - table.target + bytes > 2 * most_bytes - 1)
                if (const int status = flush())
                    return status;
            if (table.count == 0)
                table.target = place;
            table.sources[table.count] = array.source + begin;
            table.offsets[table.count] = static_cast<std::uint32_t>(place - table.target);
            table.bytes[table.count] = static_cast<std::uint32_t>(bytes);
            table.first_blocks[table.count] = table.blocks;
            table.blocks += static_cast<std::uint32_t>((bytes + bytes_of_block - 1) / bytes_of_block);
            ++table.count;
            begin += bytes;
        }
    return flush();
}

} // namespace tcuda
