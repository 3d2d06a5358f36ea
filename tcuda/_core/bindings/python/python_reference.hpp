// References to Python objects that objects of C++ hold.
#pragma once

#include <nanobind/nanobind.h>

namespace tcuda {

// Drops a reference. After the end of Python there is nothing left to drop.
inline void drop(nanobind::object &object) {
    if (!Py_IsInitialized()) {
        object.release();
        return;
    }
    const nanobind::gil_scoped_acquire lock;
    object.reset();
}

} // namespace tcuda
