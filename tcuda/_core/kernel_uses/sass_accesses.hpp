// The instructions that use memory.
#pragma once

#include <cstdint>

#include "kernel_uses/sass_memory.hpp"
#include "kernel_uses/sass_record.hpp"
#include "kernel_uses/sass_thread.hpp"

namespace tcuda::kernel_uses {

// Records the accesses to memory of the program, and knows what the kernel keeps in its own memory.
class SassAccesses {
public:
    SassAccesses(SassThread &thread, SassRecord &record)
        : thread_(thread), record_(record), sets_(thread.sets()), parameters_(thread.parameters()) {}

    void use(const Instruction &instruction, const MemoryUse &use);
    // Whether the kernel's own memory may hold more than at the last call.
    bool take_change();

private:
    struct Address {
        SassValue low;
        Origins high = 0;
    };

    Address address_of(const Operand &operand);
    // What an instruction stores: all of its operands behind the address.
    Origins stored(const Instruction &instruction, const MemoryUse &use, unsigned pieces);
    // Whether the address is that of a known place of the stack.
    bool is_slot(const SassValue &address);
    void use_stack(const Instruction &instruction, const MemoryUse &use, const SassValue &address, unsigned width,
                   unsigned pieces, SassValue *loaded);
    // The kernel gives the address of a tensor map: of a parameter, or of memory whose map is unknown.
    void use_map(const MemoryUse &use, const SassValue &address);
    // Returns what the instruction may load.
    Origins use_address(const Instruction &instruction, const MemoryUse &use, const Address &address, unsigned pieces,
                        SassValue *exact, bool &has_exact);
    // Anywhere in the stack.
    void store_loosely(Origins data);
    void keep(Origins &kept, Origins more);

    SassThread &thread_;
    SassRecord &record_;
    OriginSets &sets_;
    const SassParameters &parameters_;
    // What any thread may have stored into shared memory, into the stack, and into the stack at an unknown place.
    Origins shared_ = 0, stack_ = 0, loose_stack_ = 0;
    bool stored_loosely_ = false, shared_changed_ = false;
};

} // namespace tcuda::kernel_uses
