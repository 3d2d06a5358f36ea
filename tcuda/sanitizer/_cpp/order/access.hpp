#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "memory/records/stack_id.hpp"
#include "sanitizer/_cpp/order/allocation.hpp"
#include "sanitizer/_cpp/order/clock.hpp"
#include "sanitizer/_cpp/order/region.hpp"

namespace tcuda::races {

enum class AccessKind : std::uint8_t { read = 1, write = 2, both = 3 };

inline bool writes(AccessKind kind) { return kind != AccessKind::read; }

using NameId = std::uint32_t; // the number of a text in Names

// Work that the detector learned of.
struct Operation {
    NameId name = 0;
    StackId stack = 0;
    StackId launch_stack = 0; // of the launch, for a node of a graph
    std::uint64_t number = 0;
    int device = -1; // -1 for the host
    Stream stream = 0;
    Slot slot = no_slot;
    Epoch epoch = 0;
};

class SureBytes;

// What an operation does with a region.
struct Use {
    Region region;
    AccessKind kind = AccessKind::read;
    bool possible = false; // whether the operation may leave the region alone
    bool page_locked = false; // whether the region is known to be page-locked memory of the host
    NameId label = 0;      // the name of the argument
    std::shared_ptr<SureBytes> sure; // of a possible use: the bytes of the operation that are certain; may be null
};

// A use by an operation that is in the map of accesses. `users` counts the places in the map.
struct Access {
    Operation operation;
    Use use;
    Allocation *allocation = nullptr;
    std::size_t users = 0;
};

} // namespace tcuda::races
