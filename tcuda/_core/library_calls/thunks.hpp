// The functions that stand in the import tables instead of the libraries' functions.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tcuda::library_calls {

// Our function in place of `real`, which is the function of the table. Our function is valid for as long as the process
// lives: a thread may be in it while the interception ends. Null if there is none left: a process may have two versions
// of a library (CuPy's and torch's), and each has its own functions, but no more than two.
std::uintptr_t thunk(std::size_t function, std::uintptr_t real);

// How many calls the function has had through our functions.
std::uint64_t calls_of(std::size_t function);

} // namespace tcuda::library_calls
