// CuPy's arrays in kernels.
#pragma once

#include "tcuda/carray.h"

class float16;
class bfloat16;
