// An event in the history of a device's memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "driver/driver.hpp"
#include "memory/records/scope.hpp"
#include "memory/records/stack_id.hpp"

namespace tcuda {

enum class Action : std::uint8_t {
    alloc,
    free_requested,
    free_completed,
    segment_alloc,
    segment_free,
    segment_map,
    segment_unmap,
    snapshot,
    oom,
};
constexpr std::size_t actions = 9;

// A text that the user attaches to events; null for "". Events share the text.
using Metadata = std::shared_ptr<const std::string>;

struct Occurrence {
    Action action;
    Address address;
    std::size_t size;
    Stream stream;
    std::int64_t microseconds; // since the epoch
    StackId stack;
    Metadata metadata; // the text that was set at that time
    const Scope *scope; // of the array, or of the allocation that has caused the event; null outside of all scopes
};

} // namespace tcuda
