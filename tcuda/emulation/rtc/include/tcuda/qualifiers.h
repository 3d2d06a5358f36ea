// The qualifiers of CUDA C++ and the macros by which sources recognise a device compiler.
#pragma once

#include "tcuda/freestanding.h"

#define __CUDACC__ 1
#define __CUDACC_RTC__ 1
#define __CUDA_ARCH__ 900
#define __CUDA_ARCH_LIST__ 900
#define __CUDACC_VER_MAJOR__ 12
#define __CUDACC_VER_MINOR__ 8
#define __CUDACC_VER_BUILD__ 0
#define __TCUDA_EMULATED__ 1

#define __global__
#define __device__
#define __host__
// The pages of these variables have no other variables, so that the core can keep kernels from writing there. The
// compiler would not put constants of C++ beside other variables, so each declaration has a section of its own.
#define __constant__ __attribute__((section(TCUDA_CONSTANTS(__COUNTER__)), aligned(4096)))
#define TCUDA_CONSTANTS(number) TCUDA_CONSTANTS_(number)
#define TCUDA_CONSTANTS_(number) "tcuda_constant_" #number
#define __managed__
// The threads of a block run on one thread of the operating system, so a static variable is shared by the block.
#ifdef TCUDA_RACES // The compiler leaves out the writes of a variable that nothing reads.
#define __shared__ static __attribute__((used))
#else
#define __shared__ static
#endif
#define __grid_constant__
#define __launch_bounds__(...)
#define __cluster_dims__(...)
#define __maxnreg__(...)
#define __forceinline__ inline __attribute__((always_inline))
#define __noinline__ __attribute__((noinline))
#define __inline_hint__
#define __align__(n) __attribute__((aligned(n)))
#define __builtin_align__(n) __attribute__((aligned(n)))
// Leaves out the checks of the alignment of references. The caller has checked an address when the caller makes the
// reference. With the checks, local objects would stay in memory.
#define TCUDA_ANY_ALIGNMENT __attribute__((no_sanitize("alignment")))
#define __nv_pure__ __attribute__((pure))
#define __cdecl

#ifndef __clang__
#define __builtin_assume(condition) ((void)0)
#endif
#define __assume(condition) ((void)0)

// The headers of the GNU library define std::abs for floating-point numbers. The overloads of math.h take their place.
#define _GLIBCXX_BITS_STD_ABS_H 1
