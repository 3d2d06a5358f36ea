#include <math_constants.h>
