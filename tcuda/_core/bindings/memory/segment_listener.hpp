// The Python function that hears of segments.
#pragma once

#include <nanobind/nanobind.h>

namespace tcuda {

// Lets Python's main thread call `function` soon after memory of a segment has come from the driver or has gone back.
// A function that replaces another one hears of the later segments. None ends that, before the interpreter ends.
//
// A segment comes and goes under the lock of a ledger, sometimes in a thread of the core, so that the thread itself
// calls no Python.
void listen_to_segments(nanobind::object function);

} // namespace tcuda
