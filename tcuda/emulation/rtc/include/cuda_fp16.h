// Half precision: the types and functions of cuda_fp16.h.
#pragma once

#include "tcuda/device.h"
#include "tcuda/small_float.h"

#define TCUDA_SMALL_FLOAT __half
#define TCUDA_SMALL_FLOAT_PAIR __half2
#define TCUDA_SMALL_FLOAT_WORD half
#define TCUDA_SMALL_FLOAT_FORMAT 10, 15
#include "tcuda/small_float_types.h"
#include "tcuda/small_float_functions.h"
#undef TCUDA_SMALL_FLOAT
#undef TCUDA_SMALL_FLOAT_PAIR
#undef TCUDA_SMALL_FLOAT_WORD
#undef TCUDA_SMALL_FLOAT_FORMAT

using half = __half;
using half2 = __half2;
using __nv_half = __half;
using __nv_half2 = __half2;
using nv_half = __half;
using nv_half2 = __half2;
using __nv_half_raw = __half_raw;
using __nv_half2_raw = __half2_raw;

namespace tcuda {

template <>
struct KindOf<__half> {
    static constexpr char value = 'f';
};

}  // namespace tcuda
