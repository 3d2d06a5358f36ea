// The calls that fill memory.
#pragma once

#include <cstddef>

#include "sanitizer/_cpp/cupti/call_parameters.hpp"
#include "sanitizer/_cpp/cupti/seen_call.hpp"

namespace tcuda::cupti {

template <typename Value, bool blocking> void set_items(const SeenCall &call) {
    const auto &set = call.as<Set<Value>>();
    call.watch.set(stream_of<Set<Value>>(call, blocking),
                   {static_cast<Address>(set.target), set.count * sizeof(Value)});
}

template <typename Value, bool blocking> void set_rows(const SeenCall &call) {
    const auto &set = call.as<SetRows<Value>>();
    call.watch.set(stream_of<SetRows<Value>>(call, blocking),
                   {static_cast<Address>(set.target), set.width * sizeof(Value), set.height, set.pitch});
}

} // namespace tcuda::cupti
