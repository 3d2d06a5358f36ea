// The class `bfloat16` of CuPy's kernels.
#pragma once

#include <cuda_bf16.h>

#define TCUDA_CLASS bfloat16
#define TCUDA_OTHER_CLASS float16
#define TCUDA_NUMBER __nv_bfloat16
#define TCUDA_NUMBER_RAW __nv_bfloat16_raw
#define TCUDA_TO_BITS __bfloat16_as_ushort
#define TCUDA_FROM_BITS __ushort_as_bfloat16
#define TCUDA_EXPLICIT  // as in CuPy, a bfloat16 is made of the number without a cast
#define TCUDA_INFINITY 0x7f80
#define TCUDA_CLASS_KIND 'g'
#include "tcuda/cupy_small_float.cuh"
