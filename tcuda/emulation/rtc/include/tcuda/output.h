// printf of a kernel.
#pragma once

#include "tcuda/launch.h"

// printf is a template, so that a source which includes the host's <stdio.h> compiles as well.
template <class... Arguments>
inline int printf(const char *format, Arguments... arguments) {
    return ::tcuda::print(format, arguments...);
}
