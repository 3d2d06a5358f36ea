#include "bindings/host_arrays.hpp"

#include <cstddef>

#include "bindings/owned.hpp"
#include "bindings/owned_memory.hpp"
#include "bindings/python_calls.hpp"
#include "threads/unwinding.hpp"

namespace nb = nanobind;

namespace tcuda {
namespace {

PyObject *itemsize_name = nullptr, *start_name = nullptr, *stop_name = nullptr, *step_name = nullptr;

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

bool HostArrays::make(Made *made, PyObject *shape, PyObject *dtype, PythonLedger &ledger, int device,
                      Stream stream) const {
    made->bytes = bytes_of(shape, dtype);
    if (made->bytes <= 0)
        return false;
    const auto bytes = static_cast<std::size_t>(made->bytes);
    const Owned memory(OwnedMemory::make(memory_.ptr(), ledger, device, bytes, stream));
    if (!memory)
        return false;
    PyObject *const arguments[] = {shape, dtype, memory.get()};
    made->host.set(PyObject_Vectorcall(numpy_array_.ptr(), arguments, 3, nullptr));
    if (made->host)
        made->array.set(array(made->host.get(), memory.get(), Py_None));
    return static_cast<bool>(made->array);
}

PyObject *HostArrays::slice(PyObject *array, PyObject *slice) const {
    for (PyObject *const name : {start_name, stop_name, step_name}) {
        const Owned end(PyObject_GetAttr(slice, name));
        if (!end)
            return nullptr;
        int overflow = 0;
        if (PyLong_CheckExact(end.get()))
            PyLong_AsLongLongAndOverflow(end.get(), &overflow);
        if (overflow != 0)
            return nullptr;
    }
    const Owned whole(host.of(array));
    const Owned selected(whole ? PyObject_GetItem(whole.get(), slice) : nullptr);
    return selected ? part(array, selected.get()) : nullptr;
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
    start_name = PyUnicode_InternFromString("start");
    stop_name = PyUnicode_InternFromString("stop");
    step_name = PyUnicode_InternFromString("step");
    if (itemsize_name == nullptr || start_name == nullptr || stop_name == nullptr || step_name == nullptr)
        nb::raise_python_error();
    nb::class_<HostArrays>(module, "HostArrays")
        .def(nb::init<nb::object, nb::object, nb::object>(), nb::arg("base"), nb::arg("memory"), nb::arg("array"))
        .def("use", &HostArrays::use, nb::arg("type"))
        .def(
            "make",
            [](const HostArrays &self, nb::tuple shape, nb::handle dtype, PythonLedger &ledger, int device,
               Stream stream) {
                HostArrays::Made made;
                self.make(&made, shape.ptr(), dtype.ptr(), ledger, device, stream);
                return object_or_none(made.array.release());
            },
            nb::arg("shape"), nb::arg("dtype"), nb::arg("ledger"), nb::arg("device"), nb::arg("stream"))
        .def(
            "part",
            [](const HostArrays &self, nb::handle of, nb::handle host) {
                return object_or_none(self.part(of.ptr(), host.ptr()));
            },
            nb::arg("of"), nb::arg("host"))
        .def(
            "slice",
            [](const HostArrays &self, nb::handle array, nb::slice slice) {
                return object_or_none(self.slice(array.ptr(), slice.ptr()));
            },
            nb::arg("array"), nb::arg("slice"));
}

} // namespace tcuda
