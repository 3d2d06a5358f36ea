// The device language, and the headers with which the source of each elementwise or reduction kernel begins.
#pragma once

#include "tcuda/device.h"

#include <cupy/complex.cuh>
#include <cupy/carray.cuh>
#include <cupy/atomics.cuh>
#include <cupy/math_constants.h>
#include <cupy/float16.cuh>
