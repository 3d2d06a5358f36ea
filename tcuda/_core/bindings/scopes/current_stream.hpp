// CuPy's C function that returns the stream on which CuPy launches in this thread.
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>

namespace tcuda {

using CurrentStream = std::intptr_t();

// The function in a capsule that CuPy has made. Raises a Python error if the object is no capsule.
inline CurrentStream *current_stream_in(nanobind::handle capsule) {
    auto *const function = PyCapsule_GetPointer(capsule.ptr(), PyCapsule_GetName(capsule.ptr()));
    if (function == nullptr)
        nanobind::raise_python_error();
    return reinterpret_cast<CurrentStream *>(function);
}

} // namespace tcuda
