#include "emulation/_cpp/bindings/emulated_arrays.hpp"

#include <structmember.h>

#include <cstddef>

#include "bindings/python/interned.hpp"
#include "bindings/python/python_calls.hpp"
#include "bindings/python/python_type.hpp"

namespace nb = nanobind;

namespace tcuda {
namespace {

PyObject *array_type = nullptr;
PyObject *itemsize_name = nullptr, *start_name = nullptr, *stop_name = nullptr, *step_name = nullptr;

constexpr Py_ssize_t most_axes = 32; // each version of NumPy takes as many

// The lengths of the axes of an array, and its size in bytes.
struct Extent {
    Py_ssize_t lengths[most_axes];
    int axes = 0;
    long long bytes = 0;

    // `shape` is an exact int, or an exact tuple of them. False if Python must read the shape, if the array has no
    // elements, or more bytes than there are addresses, or with a Python error set.
    bool read(PyObject *shape, PyObject *dtype) {
        bytes = taken_integer(PyObject_GetAttr(dtype, itemsize_name));
        if (bytes <= 0)
            return false;
        if (PyLong_CheckExact(shape))
            return add(shape);
        if (!PyTuple_CheckExact(shape) || PyTuple_Size(shape) > most_axes)
            return false;
        for (Py_ssize_t axis = 0; axis < PyTuple_Size(shape); ++axis)
            if (!add(PyTuple_GetItem(shape, axis)))
                return false;
        return true;
    }

private:
    bool add(PyObject *length) {
        int overflow = 0;
        const long long number = PyLong_CheckExact(length) ? PyLong_AsLongLongAndOverflow(length, &overflow) : 0;
        if (number <= 0 || overflow != 0)
            return false;
        lengths[axes++] = static_cast<Py_ssize_t>(number);
        return !__builtin_mul_overflow(bytes, number, &bytes);
    }
};

// Takes over a new reference. Raises the Python error that is set, and returns None if no error is set.
nb::object object_or_none(PyObject *made) {
    if (made == nullptr && PyErr_Occurred())
        nb::raise_python_error();
    return made == nullptr ? nb::none() : nb::steal(made);
}

// A new array of `type`. `base` may be null. New reference; null with a Python error set if that fails.
PyObject *array_of(PyObject *type, PyObject *host, PyObject *block, PyObject *base) {
    PyObject *const made = PyType_GenericAlloc(reinterpret_cast<PyTypeObject *>(type), 0);
    if (made == nullptr)
        return nullptr;
    for (PyObject *const member : {host, block, base})
        Py_XINCREF(member);
    EmulatedArray &array = *EmulatedArray::of(made);
    array.host = host;
    array.block = block;
    array.base = base;
    return made;
}

// A view of `of`, an array. `host` is the NumPy array over the elements of the view.
PyObject *part_of(PyObject *type, PyObject *of, PyObject *host) {
    const EmulatedArray &whole = *EmulatedArray::of(of);
    return array_of(type, host, whole.block, whole.base == nullptr || whole.base == Py_None ? of : whole.base);
}

// The class method EmulatedArray._part_of().
PyObject *call_part_of(PyObject *type, PyObject *args) {
    PyObject *of = nullptr, *host = nullptr;
    return PyArg_ParseTuple(args, "O!O:_part_of", array_type, &of, &host) ? part_of(type, of, host) : nullptr;
}

int traverse(PyObject *self, visitproc visit, void *arg) {
    const EmulatedArray &array = *EmulatedArray::of(self);
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(array.host);
    Py_VISIT(array.block);
    Py_VISIT(array.base);
    return 0;
}

int clear(PyObject *self) {
    EmulatedArray &array = *EmulatedArray::of(self);
    Py_CLEAR(array.host);
    Py_CLEAR(array.block);
    Py_CLEAR(array.base);
    return 0;
}

PyObject *make_type() {
    static PyMethodDef methods[] = {{"_part_of", call_part_of, METH_VARARGS | METH_CLASS, nullptr},
                                    {nullptr, nullptr, 0, nullptr}};
    static PyMemberDef members[] = {
        {"_host", T_OBJECT_EX, offsetof(EmulatedArray, host), 0, nullptr},
        {"_block", T_OBJECT_EX, offsetof(EmulatedArray, block), 0, nullptr},
        {"_base", T_OBJECT, offsetof(EmulatedArray, base), 0, nullptr},
        {nullptr, 0, 0, 0, nullptr},
    };
    static PyType_Slot slots[] = {
        {Py_tp_dealloc, reinterpret_cast<void *>(deallocate<clear>)},
        {Py_tp_traverse, reinterpret_cast<void *>(traverse)},
        {Py_tp_clear, reinterpret_cast<void *>(clear)},
        {Py_tp_methods, methods},
        {Py_tp_members, members},
        {0, nullptr},
    };
    static PyType_Spec spec = {"tcuda._core.EmulatedArray", sizeof(EmulatedArray), 0, base_flags | Py_TPFLAGS_HAVE_GC,
                               slots};
    return PyType_FromSpec(&spec);
}

} // namespace

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
        made->array.set(array_of(type_.ptr(), made->host.get(), memory.get(), nullptr));
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
    PyObject *const whole = EmulatedArray::of(array)->host;
    if (whole == nullptr)
        PyErr_SetString(PyExc_AttributeError, "the array was never initialised");
    const Owned selected(whole == nullptr ? nullptr : PyObject_GetItem(whole, slice));
    return selected ? part_of(type_.ptr(), array, selected.get()) : nullptr;
}

PyObject *EmulatedArrays::create(PyObject *shape, PyObject *named, PyObject *find_ledger,
                                 const EmulatedWork &work) const {
    PyObject *dtype = PyDict_GetItemWithError(dtypes_.ptr(), named);
    if (dtype == nullptr && PyErr_Occurred() && PyErr_ExceptionMatches(PyExc_TypeError))
        PyErr_Clear(); // a list that describes a dtype has no hash
    if (dtype == Py_None)
        dtype = named;
    EmulatedWork::Begun begun;
    const Owned ledger(dtype != nullptr && work.begin(&begun) ? call(find_ledger) : nullptr);
    Made made;
    const bool is_made = ledger && make(&made, shape, dtype, *nb::inst_ptr<PythonLedger>(nb::handle(ledger.get())),
                                        begun.device, begun.stream);
    return is_made ? made.array.release() : nullptr;
}

void bind_emulated_arrays(nb::module_ &module) {
    itemsize_name = interned("itemsize").release().ptr();
    start_name = interned("start").release().ptr();
    stop_name = interned("stop").release().ptr();
    step_name = interned("step").release().ptr();
    array_type = make_type();
    if (array_type == nullptr)
        nb::raise_python_error();
    module.attr("EmulatedArray") = nb::handle(array_type);
    nb::class_<EmulatedArrays>(module, "EmulatedArrays", R"(
    Makes arrays of emulated devices.

    Args:
        memory: The class of the memory, a subclass of :class:`OwnedMemory`.
        array: The class of NumPy's arrays.
        functions: The capsule of NumPy's C functions.
        dtypes: The dtypes by the objects that name them; None for a dtype itself.)")
        .def(nb::init<nb::object, nb::object, nb::object, nb::dict>(), nb::arg("memory"), nb::arg("array"),
             nb::arg("functions"), nb::arg("dtypes"),
             nb::sig(
                 "def __init__(self, memory: type[OwnedMemory], array: type[Any], functions: object, dtypes: dict[Any, "
                 "numpy.dtype[Any] | None]) -> None"))
        .def("use", &EmulatedArrays::use, nb::arg("type"), nb::sig("def use(self, type: type[EmulatedArray]) -> None"),
             "Make arrays of the class ``type``.")
        .def(
            "slice",
            [](const EmulatedArrays &self, nb::handle array, nb::slice slice) {
                if (!PyObject_TypeCheck(array.ptr(), reinterpret_cast<PyTypeObject *>(array_type)))
                    throw nb::type_error("slice() takes an array of an emulated device");
                return object_or_none(self.slice(array.ptr(), slice.ptr()));
            },
            nb::arg("array"), nb::arg("slice"), nb::sig("def slice(self, array: EmulatedArray, slice: slice) -> Any"),
            "Return ``array[slice]``; None if an end of the slice does not fit into 64 bits.")
        .def(
            "create",
            [](const EmulatedArrays &self, nb::handle shape, nb::handle dtype, nb::handle ledger,
               const EmulatedWork &work) {
                return object_or_none(self.create(shape.ptr(), dtype.ptr(), ledger.ptr(), work));
            },
            nb::arg("shape").none(), nb::arg("dtype").none(), nb::arg("ledger"), nb::arg("work"),
            nb::sig(
                "def create(self, shape: object, dtype: object, ledger: Callable[[], Ledger], work: EmulatedWork) -> "
                "Any"),
            R"(
        Return a new array in row-major order, on the current stream.

        Args:
            shape: The shape.
            dtype: The dtype, or an object that names the dtype.
            ledger: A function that returns the ledger.
            work: Finds the current device and the current stream.

        Returns:
            The array; None if Python must read an argument, if the array has no elements or does not fit into memory,
            or if work is not done at once.)");
}

} // namespace tcuda
