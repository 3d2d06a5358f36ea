// The atomic functions that CuPy adds to those of CUDA.
#pragma once

#include "tcuda/device.h"

TCUDA_AT_CALLER inline long long atomicAdd(long long *address, long long value) {
    return ::tcuda::atomically(address, ::tcuda::abi::Scope::device, [=](long long old) { return old + value; });
}
#define TCUDA_ATOMIC(name, type, function) \
    TCUDA_AT_CALLER inline type name(type *address, type value) { \
        return ::tcuda::atomically(address, ::tcuda::abi::Scope::device, [=](type old) { return function(value, old); }); \
    }
TCUDA_ATOMIC(atomicMin, float, __builtin_fminf)
TCUDA_ATOMIC(atomicMin, double, __builtin_fmin)
TCUDA_ATOMIC(atomicMax, float, __builtin_fmaxf)
TCUDA_ATOMIC(atomicMax, double, __builtin_fmax)
#undef TCUDA_ATOMIC
