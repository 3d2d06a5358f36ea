// The stacks of calls that give Python's lock back and then queue work.
#pragma once

#include <nanobind/nanobind.h>

namespace tcuda {

// Notes the stack when an object of the type is called: without Python's lock, a callback of the driver would have to
// ask another thread for the stack. A second call for the same type does nothing. Throws std::runtime_error if the
// calls of the type cannot be followed, or if there are too many types. Two threads must not call these functions at
// the same time.
void note_stacks_of(nanobind::handle type);
// Ends the notes for all types.
void stop_noting_stacks();

} // namespace tcuda
