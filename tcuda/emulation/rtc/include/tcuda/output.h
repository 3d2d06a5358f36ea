// printf of a kernel.
#pragma once

#include "tcuda/launch.h"

#define printf tcuda::print
