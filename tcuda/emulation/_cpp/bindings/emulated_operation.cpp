// Operations on emulated devices that are done in the call that launches them.
#include <nanobind/nanobind.h>

#include <cstddef>

#include "bindings/memory/python_ledger.hpp"
#include "bindings/python/callable.hpp"
#include "bindings/python/checked.hpp"
#include "bindings/python/interned.hpp"
#include "bindings/python/owned.hpp"
#include "bindings/python/python_calls.hpp"
#include "bindings/python/raised.hpp"
#include "emulation/_cpp/bindings/emulated_arrays.hpp"
#include "emulation/_cpp/bindings/emulated_work.hpp"
#include "emulation/_cpp/bindings/quiet_calls.hpp"

namespace nb = nanobind;

namespace tcuda {
namespace {

// The functions and objects of one operation; _core.pyi explains them.
enum Held { function, fallback, kinds, failed, quiet_owner, work_owner, arrays_owner, held_count };

struct EmulatedOperation : Callable<held_count> {
    const QuietCalls *quiet;
    const EmulatedWork *work;
    const EmulatedArrays *arrays;
    Py_ssize_t inputs;
    bool reduces; // whether the function gives one number for one array

    static EmulatedOperation *of(PyObject *object) { return reinterpret_cast<EmulatedOperation *>(object); }
};

constexpr Py_ssize_t most_inputs = 3;

PyObject *shape_name = nullptr, *dtype_name = nullptr, *nbytes_name = nullptr, *out_names = nullptr, *no_axes = nullptr;

// Whether `operand` is a Python scalar whose type alone decides the type of the result.
bool is_scalar(PyObject *operand) {
    if (!PyLong_CheckExact(operand))
        return PyFloat_CheckExact(operand) || PyComplex_CheckExact(operand);
    int overflow = 0;
    PyLong_AsLongLongAndOverflow(operand, &overflow);
    return overflow == 0;
}

// One call. The functions return false if Python must compute the call, or if a Python error is set.
class EmulatedCall {
public:
    EmulatedCall(const EmulatedOperation &operation, const EmulatedWork::Begun &begun)
        : operation_(operation), arrays_(*operation.arrays), begun_(begun) {}

    // For a function of each element.
    bool take_inputs(PyObject *const *inputs) {
        const Owned key(PyTuple_New(operation_.inputs));
        if (!key)
            return false;
        for (Py_ssize_t place = 0; place < operation_.inputs; ++place) {
            PyObject *const kind = take(inputs[place], hosts_[place]);
            if (kind == nullptr)
                return false;
            PyTuple_SetItem(key.get(), place, kind);
        }
        if (ledger_ == nullptr)
            return false;
        dtype_ = PyDict_GetItemWithError(operation_.held[kinds], key.get());
        return dtype_ != nullptr;
    }

    // For a function that gives one number for one array.
    bool take_array(PyObject *input) {
        if (!arrays_.has(input) || !take_memory(input, hosts_[0]) || ledger_ == nullptr)
            return false;
        const Owned kind(PyObject_GetAttr(hosts_[0].get(), dtype_name));
        return kind && PyDict_GetItemWithError(operation_.held[kinds], kind.get()) != nullptr;
    }

    // The output of one call; `given` is null if the call makes the output. Null if that fails.
    PyObject *apply(PyObject *given) {
        EmulatedArrays::Made result;
        if (given == nullptr) {
            if (!make(&result, shape_.get(), dtype_))
                return nullptr;
        } else {
            if (!arrays_.has(given) || !take_shaped(given, result.host))
                return nullptr;
            Py_INCREF(given);
            result.array.set(given);
        }
        PyObject *arguments[most_inputs + 1];
        for (Py_ssize_t place = 0; place < operation_.inputs; ++place)
            arguments[place] = hosts_[place].get();
        arguments[operation_.inputs] = result.host.get();
        const auto count = static_cast<std::size_t>(operation_.inputs);
        const Owned computed(compute(arguments, count, out_names));
        return computed && end(result.bytes) ? result.array.release() : nullptr;
    }

    // The one number that the only input gives, as an array. Null if that fails.
    PyObject *reduce() {
        PyObject *const input = hosts_[0].get();
        const Owned number(compute(&input, 1, nullptr));
        const Owned dtype(number ? PyObject_GetAttr(number.get(), dtype_name) : nullptr);
        EmulatedArrays::Made result;
        if (!dtype || !make(&result, no_axes, dtype.get()) ||
            PyObject_SetItem(result.host.get(), no_axes, number.get()) != 0)
            return nullptr;
        return end(result.bytes) ? result.array.release() : nullptr;
    }

private:
    // Returns the type of an operand. New reference.
    PyObject *take(PyObject *operand, Owned &host) {
        if (arrays_.has(operand))
            return take_shaped(operand, host) ? PyObject_GetAttr(host.get(), dtype_name) : nullptr;
        if (!is_scalar(operand))
            return nullptr;
        Py_INCREF(operand);
        host.set(operand);
        auto *const kind = reinterpret_cast<PyObject *>(Py_TYPE(operand));
        Py_INCREF(kind);
        return kind;
    }

    bool take_shaped(PyObject *array, Owned &host) {
        if (!take_memory(array, host))
            return false;
        Owned shape(PyObject_GetAttr(host.get(), shape_name));
        if (!shape || (shape_ && PyObject_RichCompareBool(shape_.get(), shape.get(), Py_EQ) != 1))
            return false;
        if (!shape_)
            shape_.set(shape.release());
        return true;
    }

    bool take_memory(PyObject *operand, Owned &host) {
        const EmulatedArray &array = *EmulatedArray::of(operand);
        if (array.host == nullptr || array.memory().device != begun_.device)
            return false;
        ledger_ = array.memory().ledger;
        Py_INCREF(array.host);
        host.set(array.host);
        const long long bytes = taken_integer(PyObject_GetAttr(array.host, nbytes_name));
        bytes_ += bytes;
        return bytes > 0; // an array without elements has no place in memory
    }

    bool make(EmulatedArrays::Made *made, PyObject *shape, PyObject *dtype) const {
        return arrays_.make(made, shape, dtype, *ledger_, begun_.device, begun_.stream);
    }

    // Calls the function of NumPy without its warnings. New reference; null with a Python error set if that fails.
    PyObject *compute(PyObject *const *arguments, std::size_t count, PyObject *names) const {
        PyObject *const computed = operation_.quiet->call(
            [&] { return PyObject_Vectorcall(operation_.held[function], arguments, count, names); });
        if (computed != nullptr)
            return computed;
        translate();
        return nullptr;
    }

    // Lets failed() raise another error in the place of the error that is set.
    void translate() const {
        Owned error(taken_exception());
        PyObject *const arguments[] = {operation_.held[function], error.get()};
        if (done(PyObject_Vectorcall(operation_.held[failed], arguments, 2, nullptr)))
            set_exception(error.release());
    }

    // Ends the work, which has also written `made` bytes of new memory.
    bool end(long long made) const { return operation_.work->end(begun_, bytes_ + made); }

    const EmulatedOperation &operation_;
    const EmulatedArrays &arrays_;
    const EmulatedWork::Begun &begun_;
    Owned hosts_[most_inputs]; // the inputs, with NumPy arrays in the places of arrays
    Owned shape_;
    PythonLedger *ledger_ = nullptr; // null if the last array is not in memory of the ledger
    PyObject *dtype_ = nullptr;
    long long bytes_ = 0;
};

// New reference. Null if Python must compute the call, or if a Python error is set.
PyObject *computed(const EmulatedOperation &operation, PyObject *const *args, Py_ssize_t count) {
    if (count < operation.inputs || count > operation.inputs + (operation.reduces ? 0 : 1))
        return nullptr;
    EmulatedWork::Begun begun;
    if (!operation.work->begin(&begun))
        return nullptr;
    EmulatedCall call(operation, begun);
    if (operation.reduces)
        return call.take_array(args[0]) ? call.reduce() : nullptr;
    return call.take_inputs(args) ? call.apply(count > operation.inputs ? args[operation.inputs] : nullptr) : nullptr;
}

PyObject *call_operation(PyObject *self, PyObject *const *args, size_t flagged_count, PyObject *names) {
    const EmulatedOperation &operation = *EmulatedOperation::of(self);
    PyObject *const result = names == nullptr ? computed(operation, args, PyVectorcall_NARGS(flagged_count)) : nullptr;
    if (result != nullptr || PyErr_Occurred())
        return result;
    return PyObject_Vectorcall(operation.held[fallback], args, flagged_count, names);
}

} // namespace

// Adds the function emulated_operation() to the module. The function returns a callable without a Python frame for a
// universal function of NumPy. The callable computes calls with arrays of one shape, small numbers and at most one
// output, whose types were seen before, and hands all other calls to `fallback`.
void bind_emulated_operation(nb::module_ &module) {
    shape_name = interned("shape").release().ptr();
    dtype_name = interned("dtype").release().ptr();
    nbytes_name = interned("nbytes").release().ptr();
    out_names = nb::make_tuple(interned("out")).release().ptr();
    no_axes = nb::make_tuple().release().ptr();
    module.def(
        "emulated_operation",
        [type = checked(Callable<held_count>::make_type("tcuda._core.EmulatedOperation", sizeof(EmulatedOperation)))](
            nb::object function, Py_ssize_t inputs, bool reduces, nb::object fallback, nb::dict kinds,
            nb::object failed, const QuietCalls &quiet, const EmulatedWork &work, const EmulatedArrays &arrays) {
            if (inputs > most_inputs)
                throw nb::value_error("emulated_operation() takes functions of at most three inputs");
            nb::object made = checked(
                Callable<held_count>::make(type.ptr(), call_operation,
                                           {function.ptr(), fallback.ptr(), kinds.ptr(), failed.ptr(),
                                            nb::find(quiet).ptr(), nb::find(work).ptr(), nb::find(arrays).ptr()}));
            EmulatedOperation &self = *EmulatedOperation::of(made.ptr());
            self.quiet = &quiet;
            self.work = &work;
            self.arrays = &arrays;
            self.inputs = inputs;
            self.reduces = reduces;
            return made;
        },
        nb::arg("function"), nb::arg("inputs"), nb::arg("reduces"), nb::arg("fallback"), nb::arg("kinds"),
        nb::arg("failed"), nb::arg("quiet"), nb::arg("work"), nb::arg("arrays"),
        nb::sig("def emulated_operation(function: Callable[..., Any], inputs: int, reduces: bool, fallback: "
                "Callable[..., Any], kinds: dict[Any, Any], failed: Callable[[Callable[..., Any], Exception], "
                "object], quiet: QuietCalls, work: EmulatedWork, arrays: EmulatedArrays) -> Callable[..., Any]"),
        R"(
    Return a callable that applies a function to arrays of emulated devices, in the call.

    Args:
        function: The function of NumPy arrays.
        inputs: The number of inputs. One more argument of the callable is the output, which becomes ``out``.
        reduces: Whether the function gives one number for one array; a function of each element otherwise.
        fallback: Called with the same arguments where the callable cannot compute.
        kinds: For a function of each element, the dtype of the output by the dtypes of the inputs. A Python scalar has
            its type in place of a dtype. For another function, the dtypes of the input.
        failed: Called with ``function`` and its error, in whose place the function may raise another error.
        quiet: Calls ``function``.
        work: Begins and ends the work.
        arrays: The arrays.)");
}

} // namespace tcuda
