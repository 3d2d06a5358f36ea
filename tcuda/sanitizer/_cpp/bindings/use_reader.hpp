// The uses of memory that Python describes by tuples.
#pragma once

#include <Python.h>

#include <string_view>
#include <vector>

#include "sanitizer/_cpp/order/race_detector.hpp"

namespace tcuda {

// The text of a str, which lives as long as the str. False, with a Python error set, if `text` is no str.
bool read_text(PyObject *text, const char *noun, std::string_view *read);

// Reads a tuple of (address, itemsize, shape, strides, kind, label) or (address, itemsize, shape, strides, kind, label,
// confidence). The labels live as long as the tuple. False, with a Python error set, if that fails.
bool read_uses(PyObject *tuple, std::vector<races::RaceDetector::NamedUse> *uses);

// As read_uses(), but the vector only grows: `*count` says how many uses there are.
bool read_uses(PyObject *tuple, std::vector<races::RaceDetector::NamedUse> *uses, std::size_t *count);

} // namespace tcuda
