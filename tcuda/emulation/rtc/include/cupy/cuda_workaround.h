// The part of the standard library that CuPy gives to code without the headers of the host.
#pragma once

#include <limits>
#include <tuple>
#include <type_traits>
#include <utility>
