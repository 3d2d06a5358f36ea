#include "bindings/memory/python_source.hpp"

#include "bindings/python/python_reference.hpp"

namespace nb = nanobind;

namespace tcuda {

PythonSource::~PythonSource() { drop(pool_); }

Address PythonSource::allocate(std::size_t size, int device, Stream stream, void **token) {
    const nb::gil_scoped_acquire lock;
    try {
        nb::object memory = pool_.attr("allocate")(size, device, stream);
        const auto address = nb::cast<Address>(memory.attr("ptr"));
        if (address != 0)
            *token = memory.release().ptr();
        return address;
    } catch (nb::python_error &error) {
        if (!error.matches(PyExc_MemoryError))
            throw;
        return 0;
    }
}

void PythonSource::free(Address, std::size_t, int, Stream, void *token) noexcept {
    if (!Py_IsInitialized())
        return;
    const nb::gil_scoped_acquire lock;
    nb::object(nb::steal(static_cast<PyObject *>(token))).reset();
}

void PythonSource::empty_cache(int device) {
    const nb::gil_scoped_acquire lock;
    pool_.attr("empty_cache")(device);
}

} // namespace tcuda
