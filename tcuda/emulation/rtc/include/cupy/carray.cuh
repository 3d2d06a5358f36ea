// CuPy's arrays in kernels.
#pragma once

#include "tcuda/carray.h"
