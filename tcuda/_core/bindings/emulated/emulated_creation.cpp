#include "bindings/emulated/emulated_creation.hpp"

#include "bindings/emulated/emulated_arrays.hpp"
#include "bindings/emulated/emulated_work.hpp"
#include "bindings/memory/python_ledger.hpp"
#include "bindings/python/callable.hpp"
#include "bindings/python/owned.hpp"
#include "bindings/python/python_calls.hpp"

namespace nb = nanobind;

namespace tcuda {
namespace {

// The functions and objects of one callable; _core.pyi explains them.
enum Held { fallback, dtypes, ordinary, find_ledger, work_owner, arrays_owner, held_count };

struct EmulatedCreation : Callable<held_count> {
    const EmulatedWork *work;
    const EmulatedArrays *arrays;

    static EmulatedCreation *of(PyObject *object) { return reinterpret_cast<EmulatedCreation *>(object); }
};

constexpr Py_ssize_t most_axes = 32; // each supported version of NumPy takes as many

// Whether `length` is an exact int that is a length of an axis.
bool is_length(PyObject *length) {
    int overflow = 0;
    return PyLong_CheckExact(length) && PyLong_AsLongLongAndOverflow(length, &overflow) >= 0 && overflow == 0;
}

// The lengths of the axes as a tuple. New reference. Null if Python must read them, or if a Python error is set.
PyObject *lengths_of(PyObject *shape) {
    if (is_length(shape)) {
        PyObject *const lengths = PyTuple_New(1);
        if (lengths != nullptr) {
            Py_INCREF(shape);
            PyTuple_SetItem(lengths, 0, shape);
        }
        return lengths;
    }
    if (!PyTuple_CheckExact(shape) || PyTuple_Size(shape) > most_axes)
        return nullptr;
    for (Py_ssize_t axis = 0; axis < PyTuple_Size(shape); ++axis)
        if (!is_length(PyTuple_GetItem(shape, axis)))
            return nullptr;
    Py_INCREF(shape);
    return shape;
}

// New reference. Null if Python must make the array, or if a Python error is set.
PyObject *created(const EmulatedCreation &creation, PyObject *const *args, Py_ssize_t count) {
    if (count < 1 || count > 2)
        return nullptr;
    PyObject *dtype = creation.held[ordinary];
    if (count == 2) {
        dtype = PyDict_GetItemWithError(creation.held[dtypes], args[1]);
        if (dtype == nullptr && PyErr_Occurred() && PyErr_ExceptionMatches(PyExc_TypeError))
            PyErr_Clear(); // a list that describes a dtype has no hash
        if (dtype == Py_None)
            dtype = args[1];
    }
    const Owned shape(dtype == nullptr ? nullptr : lengths_of(args[0]));
    EmulatedWork::Begun begun;
    if (!shape || !creation.work->begin(&begun))
        return nullptr;
    const Owned ledger(call(creation.held[find_ledger]));
    if (!ledger)
        return nullptr;
    EmulatedArrays::Made made;
    auto &memory = *nb::inst_ptr<PythonLedger>(nb::handle(ledger.get()));
    return creation.arrays->make(&made, shape.get(), dtype, memory, begun.device, begun.stream) ? made.array.release()
                                                                                               : nullptr;
}

PyObject *call_creation(PyObject *self, PyObject *const *args, size_t flagged_count, PyObject *names) {
    const EmulatedCreation &creation = *EmulatedCreation::of(self);
    PyObject *const made = names == nullptr ? created(creation, args, PyVectorcall_NARGS(flagged_count)) : nullptr;
    if (made != nullptr || PyErr_Occurred())
        return made;
    return PyObject_Vectorcall(creation.held[fallback], args, flagged_count, names);
}

} // namespace

void bind_emulated_creation(nb::module_ &module) {
    PyObject *const type = Callable<held_count>::make_type("tcuda._core.EmulatedCreation", sizeof(EmulatedCreation));
    if (type == nullptr)
        nb::raise_python_error();
    module.def(
        "emulated_creation",
        [type = nb::steal(type)](nb::object fallback, nb::dict dtypes, nb::object ordinary, nb::object ledger,
                                 const EmulatedWork &work, const EmulatedArrays &arrays) {
            PyObject *const self = Callable<held_count>::make(
                type.ptr(), call_creation,
                {fallback.ptr(), dtypes.ptr(), ordinary.ptr(), ledger.ptr(), nb::find(work).ptr(),
                 nb::find(arrays).ptr()});
            if (self == nullptr)
                nb::raise_python_error();
            EmulatedCreation::of(self)->work = &work;
            EmulatedCreation::of(self)->arrays = &arrays;
            return nb::steal(self);
        },
        nb::arg("fallback"), nb::arg("dtypes"), nb::arg("ordinary"), nb::arg("ledger"), nb::arg("work"),
        nb::arg("arrays"));
}

} // namespace tcuda
