// The part of the standard library that CuPy gives to code without the headers of the host.
#pragma once

#include <cuda/std/limits>
#include <cuda/std/type_traits>
#include <cuda/std/utility>

namespace std {

// A name that the host's own headers define in std hides the name from cuda::std.
using namespace ::cuda::std;

}  // namespace std
