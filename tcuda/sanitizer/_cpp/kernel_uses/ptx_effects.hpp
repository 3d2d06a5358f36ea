// What the instructions of a kernel do, apart from what they do to registers.
#pragma once

#include <utility>
#include <vector>

#include "sanitizer/_cpp/kernel_uses/ptx_flow.hpp"

namespace tcuda::kernel_uses::ptx {

// An address of an instruction and what the instruction does there.
struct Access {
    Value address;
    Space space;
    Kind kind;
};

// What the instructions of a kernel do, with the values that are known at the end.
struct Effects {
    std::vector<Access> accesses;
    std::vector<Value> global;    // converted to addresses of global memory
    std::vector<Value> stored;    // stored in memory that is not followed
    std::vector<Value> published; // stored in variables of the module
    std::vector<Value> given;     // given to functions whose text is not known
    std::vector<std::pair<Value, Kind>> maps; // addresses of tensor maps
    bool has_opaque = false;      // accesses that cannot be followed, of memory that may be anywhere
};

// The flow has run.
Effects effects_of(Flow &flow);

} // namespace tcuda::kernel_uses::ptx
