// The loads and stores of a kernel.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "sanitizer/_cpp/kernel_uses/ptx_operation.hpp"
#include "sanitizer/_cpp/kernel_uses/ptx_regions.hpp"
#include "sanitizer/_cpp/kernel_uses/ptx_values.hpp"

namespace tcuda::kernel_uses::ptx {

// Finds the regions at an address, and loads and stores there.
class KernelMemory {
public:
    // A load from any place of a space takes a step for each region.
    KernelMemory(Values &values, Regions &regions, std::size_t &steps);

    Value load(Value address, Space space, std::int64_t offset, unsigned bytes);
    // Returns whether something changed.
    bool store(Value address, Space space, std::int64_t offset, unsigned bytes, Value value, bool is_certain);
    // Another place of the kernel, or another function, may have stored something in local memory.
    void forget_stored() { stored_.clear(); }

    // The region at an address; no_region if the address is none of a region, or of several.
    std::uint32_t region_at(const Sum &sum) const;
    // Stands for all local memory.
    std::uint32_t unknown_local() const { return unknown_local_; }

private:
    // A value that was just stored in local memory.
    struct Stored {
        std::uint32_t region;
        std::int64_t offset;
        unsigned bytes;
        Value value;
    };

    static bool is_in(Region::Kind kind, Space space);

    Values &values_;
    Regions &regions_;
    std::size_t &steps_;
    const std::uint32_t unknown_shared_, unknown_local_;
    std::vector<Stored> stored_; // since the last place to which a branch may go
};

} // namespace tcuda::kernel_uses::ptx
