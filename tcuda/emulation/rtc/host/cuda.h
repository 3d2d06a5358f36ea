// The device language holds everything of this header of CUDA that a kernel can use.
#include "tcuda/device.h"
