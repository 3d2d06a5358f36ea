// The brain floating-point format: the types and functions of cuda_bf16.h.
#pragma once

#include "tcuda/device.h"
#include "tcuda/small_float.h"

#define TCUDA_SMALL_FLOAT __nv_bfloat16
#define TCUDA_SMALL_FLOAT_PAIR __nv_bfloat162
#define TCUDA_SMALL_FLOAT_WORD bfloat16
#define TCUDA_SMALL_FLOAT_FORMAT 7, 127
#include "tcuda/small_float_types.h"
#include "tcuda/small_float_functions.h"
#undef TCUDA_SMALL_FLOAT
#undef TCUDA_SMALL_FLOAT_PAIR
#undef TCUDA_SMALL_FLOAT_WORD
#undef TCUDA_SMALL_FLOAT_FORMAT

using nv_bfloat16 = __nv_bfloat16;
using nv_bfloat162 = __nv_bfloat162;

namespace tcuda {

template <>
struct KindOf<__nv_bfloat16> {
    static constexpr char value = 'g';
};

}  // namespace tcuda
