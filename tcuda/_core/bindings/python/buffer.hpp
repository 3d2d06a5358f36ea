// The buffer of a Python object.
#pragma once

#include <nanobind/nanobind.h>

#include <cstddef>

namespace tcuda {

// Holds the bytes of an object while it lives. The buffer is empty if the object has none, or if its bytes are not
// contiguous.
class Buffer {
public:
    Buffer(nanobind::handle object, int flags) : found_(PyObject_GetBuffer(object.ptr(), &view_, flags) == 0) {
        if (found_)
            return;
        // Any other exception has another cause, such as a signal handler.
        if (!PyErr_ExceptionMatches(PyExc_TypeError) && !PyErr_ExceptionMatches(PyExc_BufferError) &&
            !PyErr_ExceptionMatches(PyExc_ValueError))
            nanobind::raise_python_error();
        PyErr_Clear();
    }
    ~Buffer() {
        if (found_)
            PyBuffer_Release(&view_);
    }
    Buffer(const Buffer &) = delete;
    Buffer &operator=(const Buffer &) = delete;

    bool has(std::size_t bytes) const { return found_ && view_.len == static_cast<Py_ssize_t>(bytes); }
    void *data() const { return view_.buf; }
    const char *format() const { return view_.format == nullptr ? "B" : view_.format; }

private:
    Py_buffer view_;
    const bool found_;
};

} // namespace tcuda
