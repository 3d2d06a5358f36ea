#include "bindings/emulated/emulated_arrays.hpp"

#include <cstddef>

#include "bindings/memory/owned_memory.hpp"
#include "bindings/python/owned.hpp"
#include "bindings/python/python_calls.hpp"

namespace nb = nanobind;

namespace tcuda {
namespace {

PyObject *itemsize_name = nullptr, *start_name = nullptr, *stop_name = nullptr, *step_name = nullptr;

constexpr Py_ssize_t most_axes = 32; // each version of NumPy takes as many

// The lengths of the axes of an array, and its size in bytes.
struct Extent {
    Py_ssize_t lengths[most_axes];
    int axes = 0;
    long long bytes = 0;

    // False if the array has no elements, too many axes, or more bytes than there are addresses, or with a Python error
    // set.
    bool read(PyObject *shape, PyObject *dtype) {
        const Py_ssize_t count = PyTuple_Size(shape);
        if (count > most_axes)
            return false;
        axes = static_cast<int>(count);
        bytes = taken_integer(PyObject_GetAttr(dtype, itemsize_name));
        for (Py_ssize_t axis = 0; axis < count && bytes > 0; ++axis) {
            lengths[axis] = PyLong_AsSsize_t(PyTuple_GetItem(shape, axis));
            if (__builtin_mul_overflow(bytes, lengths[axis], &bytes))
                return false;
        }
        return bytes > 0 && !PyErr_Occurred();
    }
};

// Takes over a new reference. Raises the Python error that is set, and returns None if no error is set.
nb::object object_or_none(PyObject *made) {
    if (made != nullptr)
        return nb::steal(made);
    if (PyErr_Occurred())
        nb::raise_python_error();
    return nb::none();
}

} // namespace

EmulatedArrays::EmulatedArrays(nb::object base_class, nb::object memory, nb::object array, nb::object functions)
    : host(base_class.attr("_host")), block(base_class.attr("_block")), base(base_class.attr("_base")),
      memory_(std::move(memory)), numpy_(functions, std::move(array)), type_(nb::none()) {}

bool EmulatedArrays::make(Made *made, PyObject *shape, PyObject *dtype, PythonLedger &ledger, int device,
                      Stream stream) const {
    Extent extent;
    if (!extent.read(shape, dtype))
        return false;
    made->bytes = extent.bytes;
    const auto bytes = static_cast<std::size_t>(extent.bytes);
    const Owned memory(OwnedMemory::make(memory_.ptr(), ledger, device, bytes, stream));
    if (!memory)
        return false;
    auto *const data = reinterpret_cast<void *>(OwnedMemory::of(memory.get())->ptr);
    made->host.set(numpy_.array_over(data, memory.get(), dtype, extent.axes, extent.lengths));
    if (made->host)
        made->array.set(array(made->host.get(), memory.get(), Py_None));
    return static_cast<bool>(made->array);
}

PyObject *EmulatedArrays::slice(PyObject *array, PyObject *slice) const {
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

PyObject *EmulatedArrays::part(PyObject *of, PyObject *host) const {
    const Owned memory(block.of(of)), root(base.of(of));
    if (!memory || !root)
        return nullptr;
    return array(host, memory.get(), root.get() == Py_None ? of : root.get());
}

PyObject *EmulatedArrays::array(PyObject *host_array, PyObject *memory, PyObject *root) const {
    Owned made(PyType_GenericAlloc(reinterpret_cast<PyTypeObject *>(type_.ptr()), 0));
    if (!made || !host.set(made.get(), host_array) || !block.set(made.get(), memory) || !base.set(made.get(), root))
        return nullptr;
    return made.release();
}

void bind_emulated_arrays(nb::module_ &module) {
    itemsize_name = PyUnicode_InternFromString("itemsize");
    start_name = PyUnicode_InternFromString("start");
    stop_name = PyUnicode_InternFromString("stop");
    step_name = PyUnicode_InternFromString("step");
    if (itemsize_name == nullptr || start_name == nullptr || stop_name == nullptr || step_name == nullptr)
        nb::raise_python_error();
    nb::class_<EmulatedArrays>(module, "EmulatedArrays")
        .def(nb::init<nb::object, nb::object, nb::object, nb::object>(), nb::arg("base"), nb::arg("memory"),
             nb::arg("array"), nb::arg("functions"))
        .def("use", &EmulatedArrays::use, nb::arg("type"))
        .def(
            "make",
            [](const EmulatedArrays &self, nb::tuple shape, nb::handle dtype, PythonLedger &ledger, int device,
               Stream stream) {
                EmulatedArrays::Made made;
                self.make(&made, shape.ptr(), dtype.ptr(), ledger, device, stream);
                return object_or_none(made.array.release());
            },
            nb::arg("shape"), nb::arg("dtype"), nb::arg("ledger"), nb::arg("device"), nb::arg("stream"))
        .def(
            "part",
            [](const EmulatedArrays &self, nb::handle of, nb::handle host) {
                return object_or_none(self.part(of.ptr(), host.ptr()));
            },
            nb::arg("of"), nb::arg("host"))
        .def(
            "slice",
            [](const EmulatedArrays &self, nb::handle array, nb::slice slice) {
                return object_or_none(self.slice(array.ptr(), slice.ptr()));
            },
            nb::arg("array"), nb::arg("slice"));
}

} // namespace tcuda
