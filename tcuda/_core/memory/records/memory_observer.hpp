#pragma once

#include <cstddef>

#include "driver/driver.hpp"
#include "memory/records/stack_id.hpp"

namespace tcuda {

// Gets to know what happens to the memory of a device. The functions are called under the lock of the device's ledger,
// so they take no lock of another ledger, and call neither Python nor a driver. Streams are keys that key_of() has
// made.
class MemoryObserver {
public:
    // The allocator has taken a segment whose arrays no graph uses after their end.
    virtual void memory_mapped(Address, std::size_t) noexcept {}
    virtual void memory_allocated(Address address, std::size_t size, int device, Stream stream,
                                  StackId stack) noexcept = 0;
    virtual void memory_freed(Address address, StackId stack) noexcept = 0;
    // The memory is no longer the process's. `waited`: the driver has waited for all work of the device before.
    virtual void memory_unmapped(Address address, std::size_t size, int device, bool waited) noexcept = 0;
    // The allocator of page-locked memory of the host has handed out a block whose pages belong to this block alone,
    // and the block is free again. `size` is what the program has asked for.
    virtual void host_memory_allocated(Address address, std::size_t size) noexcept = 0;
    virtual void host_memory_freed(Address address) noexcept = 0;

protected:
    ~MemoryObserver() = default;
};

} // namespace tcuda
