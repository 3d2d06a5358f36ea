// The device language of CUDA C++ for the C++ compiler of the machine.
// The run-time compiler includes this header before every source.
//
// The functions that the compiler calls are the same in all modules. Most compilations take them from an object file,
// which is compiled once: TCUDA_SUPPORT_ONLY is defined for this object file, and TCUDA_SUPPORT_APART for the modules
// that are linked with it. Without these macros, a module has all by itself.
#pragma once

#include "tcuda/qualifiers.h"
#include "tcuda/operators.h"
#include "tcuda/vector_types.h"

#include "tcuda/launch.h"
#include "tcuda/elements.h"

#include "tcuda/assertion.h"
#include "tcuda/checks.h"
#include "tcuda/memory.h"
#include "tcuda/heap.h"
#include "tcuda/output.h"
#ifndef TCUDA_SUPPORT_ONLY
#include "tcuda/clock.h"
#include "tcuda/integers.h"
#include "tcuda/packed_integers.h"
#include "tcuda/conversions.h"
#include "tcuda/special_functions.h"
#include "tcuda/atomics.h"
#include "tcuda/warp.h"
#endif

// The compiler would carry out the calls of a source itself, and would not tell the checks about them.
#define __builtin_memcpy(...) ::memcpy(__VA_ARGS__)
#define __builtin_memmove(...) ::memmove(__VA_ARGS__)
#define __builtin_memset(...) ::memset(__VA_ARGS__)
#define __builtin_memcmp(...) ::memcmp(__VA_ARGS__)
