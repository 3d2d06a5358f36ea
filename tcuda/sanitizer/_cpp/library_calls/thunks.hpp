// Thunks: the functions that stand in the import tables instead of the libraries' functions.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tcuda::library_calls {

// The thunk for `real`, which is the function of the table. The thunk is valid until the process ends, because a thread
// may be in the thunk when the interception ends. Each function has two thunks, because a process may have two versions
// of a library (CuPy's and torch's). Null for the function of a third version.
std::uintptr_t thunk(std::size_t function, std::uintptr_t real);

// How many calls the function has had through thunks.
std::uint64_t calls_of(std::size_t function);

} // namespace tcuda::library_calls
