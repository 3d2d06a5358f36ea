// The functions that stand in the import tables instead of the libraries' functions.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tcuda::library_calls {

// Our function in place of the function of the table. The function is valid for as long as the process lives: a thread
// may be in it while the interception ends.
std::uintptr_t thunk(std::size_t function);

// Lets our function call `real`. False if our function calls another function already: two versions of a library are
// loaded, and our function stands for one of them.
bool connect(std::size_t function, std::uintptr_t real);

// How many calls our function has had.
std::uint64_t calls_of(std::size_t function);

} // namespace tcuda::library_calls
