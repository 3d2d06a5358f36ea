// A move of the addresses of an array to another array of the same layout.
#pragma once

#include <cstdint>

namespace tcuda {

struct AddressMove {
    std::uintptr_t begin, end;             // the addresses that move
    std::uintptr_t offset;                 // what is added to them, modulo 2**64
    std::uintptr_t block_begin, block_end; // the allocation, whose other addresses may reach the array, too

    bool moves(std::uintptr_t address) const { return begin <= address && address < end; }
    bool doubts(std::uintptr_t address) const {
        return block_begin <= address && address < block_end && !moves(address);
    }
};

} // namespace tcuda
