// The slot for the calls of a type, whose function can be replaced.
#pragma once

#include <Python.h>
#include <nanobind/nanobind.h>

namespace tcuda {

struct CallSlot {
    void **place;
    ternaryfunc function; // the function in the slot now
};

// Throws std::runtime_error if the slot is not found beyond doubt.
CallSlot call_slot_of(nanobind::handle type);

} // namespace tcuda
