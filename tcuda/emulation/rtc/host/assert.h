// A source may include this header again after a change of NDEBUG.
#include "tcuda/assertion.h"
