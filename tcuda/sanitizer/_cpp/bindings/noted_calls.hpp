// Notes of the arrays that a program gives to a kernel, around each call of an object of one Python type.
#pragma once

#include <nanobind/nanobind.h>

namespace tcuda {

// `type` is cupy.cuda.Function, whose objects are called as `function(grid, block, args, ...)`. From now on each call
// notes the arrays among `args`, which are of `array_type` or `pointer_type`. Before the first call of an object,
// `prepare(object)` is called, which returns the names of the kernel's parameters as a tuple of str. The kernels that
// the core itself launches are noted too (work_notes.hpp).
//
// The slot of the type is replaced, because Cython's types have no attribute that could be replaced. Raises a
// RuntimeError if the slot cannot be found, or if the calls of another type are noted.
void note_calls(nanobind::handle type, nanobind::handle array_type, nanobind::handle pointer_type,
                nanobind::handle prepare);

// Puts the type's own slot back. Calls that are in progress end with their notes.
void stop_noting_calls();

// Forgets which objects were prepared, so that `prepare` is called again for all objects.
void forget_prepared_calls();

} // namespace tcuda
