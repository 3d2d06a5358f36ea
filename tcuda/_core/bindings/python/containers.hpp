// New containers of Python. nanobind's own constructors of them do not say that there is no memory.
#pragma once

#include "bindings/python/checked.hpp"

namespace tcuda {

inline nanobind::dict new_dict() { return checked<nanobind::dict>(PyDict_New()); }

inline nanobind::list new_list(Py_ssize_t size = 0) { return checked<nanobind::list>(PyList_New(size)); }

} // namespace tcuda
