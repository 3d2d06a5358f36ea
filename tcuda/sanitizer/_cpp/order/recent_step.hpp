#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "driver/driver.hpp"
#include "memory/records/stack_id.hpp"

namespace tcuda::races {

// Something that the program did lately: work, or a call that orders work.
struct RecentStep {
    enum class Kind : std::uint8_t { work, record, wait, sync };
    Kind kind = Kind::work;
    std::uint64_t number = 0;
    int device = -1; // -1 for the host
    Stream stream = 0;
    bool whole_device = false; // a wait for all streams of the device
    std::string name;
    std::optional<std::uintptr_t> event;
    StackId stack = 0;
};

} // namespace tcuda::races
