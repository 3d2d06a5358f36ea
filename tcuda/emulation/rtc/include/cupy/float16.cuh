// The class `float16` of CuPy's kernels.
#pragma once

#include <cuda_fp16.h>

#define TCUDA_CLASS float16
#define TCUDA_OTHER_CLASS bfloat16
#define TCUDA_NUMBER __half
#define TCUDA_NUMBER_RAW __half_raw
#define TCUDA_TO_BITS __half_as_ushort
#define TCUDA_FROM_BITS __ushort_as_half
#define TCUDA_EXPLICIT explicit
#define TCUDA_INFINITY 0x7c00
#define TCUDA_CLASS_KIND 'f'
#include "tcuda/cupy_small_float.cuh"
