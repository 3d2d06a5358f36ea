#include "bindings/memory/owned_library_source.hpp"

#include "bindings/python/python_reference.hpp"

namespace nb = nanobind;

namespace tcuda {

OwnedLibrarySource::~OwnedLibrarySource() { drop(owner_); }

void OwnedLibrarySource::report(const char *text) noexcept {
    if (!Py_IsInitialized()) {
        LibrarySource::report(text);
        return;
    }
    const nb::gil_scoped_acquire lock;
    const nb::error_scope before; // the caller may be handling an error
    PyErr_SetString(PyExc_RuntimeError, text);
    PyErr_WriteUnraisable(owner_.ptr());
}

} // namespace tcuda
