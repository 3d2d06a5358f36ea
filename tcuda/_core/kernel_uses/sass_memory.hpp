// The kinds of instructions that use memory.
#pragma once

#include <optional>

#include "kernel_uses/kernel_use.hpp"
#include "kernel_uses/sass_instruction.hpp"

namespace tcuda::kernel_uses {

enum class Space {
    any,    // an address that may point to any memory
    shared, // memory of the thread block
    stack,  // memory of the thread
    map,    // the address of a tensor map, which holds the address of the memory
    none,   // the instruction only names an address
};

struct MemoryUse {
    Space space = Space::none;
    Kind kind = Kind::none;
    const Operand *address = nullptr;
    bool to_shared = false; // whether the instruction also writes to shared memory what was read
    bool unknown = false;   // whether the instruction may use other memory as well
};

// None if the instruction uses no memory.
std::optional<MemoryUse> memory_use_of(const Instruction &instruction);

// How many bits an instruction moves for each thread.
unsigned width_of(const Instruction &instruction);

} // namespace tcuda::kernel_uses
