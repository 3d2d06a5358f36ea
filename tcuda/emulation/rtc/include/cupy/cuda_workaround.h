// The part of the standard library that CuPy gives to code without the headers of the host.
#pragma once

#include <cuda/std/limits>
#include <cuda/std/type_traits>
#include <cuda/std/utility>

namespace std {

// The names of the host's own headers go before these names.
using namespace ::cuda::std;

}  // namespace std
