// Strings of Python that are made once: the keys of dictionaries.
#pragma once

#include "bindings/python/checked.hpp"

namespace tcuda {

inline nanobind::object interned(const char *text) { return checked(PyUnicode_InternFromString(text)); }

} // namespace tcuda
