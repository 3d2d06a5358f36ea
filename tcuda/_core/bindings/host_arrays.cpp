#include "bindings/host_arrays.hpp"

#include <cstddef>

#include "bindings/owned.hpp"
#include "bindings/owned_memory.hpp"
#include "bindings/python_calls.hpp"
#include "threads/unwinding.hpp"

namespace nb = nanobind;

namespace tcuda {
namespace {

PyObject *itemsize_name = nullptr;

// The bytes of an array; 0 if there are more bytes than addresses; -1 with a Python error set if that fails.
long long bytes_of(PyObject *shape, PyObject *dtype) {
    long long bytes = taken_integer(PyObject_GetAttr(dtype, itemsize_name));
    const Py_ssize_t axes = PyTuple_Size(shape);
    for (Py_ssize_t axis = 0; axis < axes && bytes > 0; ++axis)
        if (__builtin_mul_overflow(bytes, PyLong_AsLongLong(PyTuple_GetItem(shape, axis)), &bytes))
            return 0;
    return PyErr_Occurred() ? -1 : bytes;
}

// Takes over a new reference. Raises the Python error that is set, and returns None if no error is set.
nb::object object_or_none(PyObject *made) {
    if (made != nullptr)
        return nb::steal(made);
    if (PyErr_Occurred())
        nb::raise_python_error();
    return nb::none();
}

} // namespace

HostArrays::HostArrays(nb::object base_class, nb::object memory, nb::object array)
    : host(base_class.attr("_host")), block(base_class.attr("_block")), base(base_class.attr("_base")),
      host_(base_class.attr("_host")), block_(base_class.attr("_block")), base_(base_class.attr("_base")),
      memory_(std::move(memory)), numpy_array_(std::move(array)),
      set_(reinterpret_cast<descrsetfunc>(PyType_GetSlot(Py_TYPE(host_.ptr()), Py_tp_descr_set))), type_(nb::none()) {}

PyObject *HostArrays::make(PyObject *shape, PyObject *dtype, PythonLedger &ledger, int device, Stream stream) const {
    const long long bytes = bytes_of(shape, dtype);
    if (bytes <= 0)
        return nullptr;
    const Owned memory(OwnedMemory::make(memory_.ptr(), ledger, device, static_cast<std::size_t>(bytes), stream));
    if (!memory)
        return nullptr;
    PyObject *const arguments[] = {shape, dtype, memory.get()};
    const Owned made(PyObject_Vectorcall(numpy_array_.ptr(), arguments, 3, nullptr));
    return made ? array(made.get(), memory.get(), Py_None) : nullptr;
}

PyObject *HostArrays::part(PyObject *of, PyObject *host) const {
    const Owned memory(block.of(of)), root(base.of(of));
    if (!memory || !root)
        return nullptr;
    return array(host, memory.get(), root.get() == Py_None ? of : root.get());
}

PyObject *HostArrays::array(PyObject *host, PyObject *block, PyObject *base) const {
    Owned made(PyType_GenericAlloc(reinterpret_cast<PyTypeObject *>(type_.ptr()), 0));
    if (!made || !set(made.get(), host_, host) || !set(made.get(), block_, block) || !set(made.get(), base_, base))
        return nullptr;
    return made.release();
}

bool HostArrays::set(PyObject *array, nb::handle member, PyObject *value) const {
    Unwinding unwinding; // the linker cannot guard a call through a pointer
    const int status = set_(member.ptr(), array, value);
    unwinding.dismiss();
    return status == 0;
}

void bind_host_arrays(nb::module_ &module) {
    itemsize_name = PyUnicode_InternFromString("itemsize");
    if (itemsize_name == nullptr)
        nb::raise_python_error();
    nb::class_<HostArrays>(module, "HostArrays")
        .def(nb::init<nb::object, nb::object, nb::object>(), nb::arg("base"), nb::arg("memory"), nb::arg("array"))
        .def("use", &HostArrays::use, nb::arg("type"))
        .def(
            "make",
            [](const HostArrays &self, nb::tuple shape, nb::handle dtype, PythonLedger &ledger, int device,
               Stream stream) {
                return object_or_none(self.make(shape.ptr(), dtype.ptr(), ledger, device, stream));
            },
            nb::arg("shape"), nb::arg("dtype"), nb::arg("ledger"), nb::arg("device"), nb::arg("stream"))
        .def(
            "part",
            [](const HostArrays &self, nb::handle of, nb::handle host) {
                return object_or_none(self.part(of.ptr(), host.ptr()));
            },
            nb::arg("of"), nb::arg("host"));
}

} // namespace tcuda
