#pragma once

#include <cstdint>

namespace tcuda {

// The number of a Python stack that the history has noted. 0 stands for no stack.
using StackId = std::uint32_t;
constexpr StackId stack_without_frames = 1; // the stack of a thread that runs no Python code

} // namespace tcuda
