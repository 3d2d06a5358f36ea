// What the opcode of a PTX instruction means for the flow of pointers.
#pragma once

#include <cstdint>
#include <string_view>

#include "sanitizer/_cpp/kernel_uses/kernel_use.hpp"

namespace tcuda::kernel_uses::ptx {

enum class Space : std::uint8_t { generic, global, shared, local, constant, parameter };

enum class Act : std::uint8_t {
    nothing,     // no register and no memory
    no_pointers, // the results are no pointers
    move,       // the result is the operand
    narrow,     // the result is a part of the operand
    sum,
    blend,      // `xor`: the result may be one of the operands
    joint,      // `or`, bfi: the result may be put together from parts too
    difference, //
    opposite,   // `neg`, `not`
    multiply_add,
    mask,   // `and`
    mix,    // the result is computed from all operands
    choice, // the result is one of the operands
    prepare_global, // cvta.global, cvta.to.global: the operand is a pointer to global memory
    allocate,       // alloca
    load,
    store,
    exchange, // atom
    reduce,   // red
    copy,     // cp.async: from the second address to the first
    opaque,   // memory that cannot be followed, such as textures
    map,      // memory of a tensor map, whose address is an operand in brackets
    call,
    branch,
};

struct Operation {
    Act act = Act::mix;
    unsigned bytes = 8; // of each element that is moved
    bool is_known = true;
    // The memory at the first and the second address, in the order of the operands.
    struct Memory {
        Space space = Space::generic;
        Kind kind = Kind::none;
    } memory[2];
};

Operation operation_of(std::string_view opcode);

} // namespace tcuda::kernel_uses::ptx
