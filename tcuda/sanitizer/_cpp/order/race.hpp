// What a report of a race says.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sanitizer/_cpp/order/access.hpp"
#include "sanitizer/_cpp/order/recent_step.hpp"

namespace tcuda::races {

// One of the two accesses of a race.
struct RaceAccess {
    std::string operation, label;
    AccessKind kind;
    bool possible;
    int device; // -1 for the host
    Stream stream;
    Address address;
    std::size_t itemsize;
    std::vector<Dimension> shape;
    StackId stack, launch_stack;
    std::uint64_t number;
};

struct RaceAllocation {
    Address address;
    std::size_t size;
    int device;
    Stream stream;
    StackId stack;
    std::optional<StackId> freed_stack; // once the memory is freed
};

struct Race {
    RaceAccess previous, current;
    Address overlap_begin, overlap_end;
    bool use_after_free;
    bool is_overlap_exact; // otherwise the regions may have no byte in common, and both accesses are possible
    std::optional<RaceAllocation> allocation, previous_allocation;
    std::vector<RecentStep> recent; // when the race was found, oldest first
    mutable std::atomic<std::uint64_t> count{1}; // how often the race was found

    // "read after write", for instance.
    std::string kind() const {
        const auto name = [](AccessKind kind) { return writes(kind) ? "write" : "read"; };
        return std::string(name(current.kind)) + " after " + name(previous.kind);
    }
};

} // namespace tcuda::races
