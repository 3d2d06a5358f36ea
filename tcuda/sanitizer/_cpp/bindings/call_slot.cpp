#include "sanitizer/_cpp/bindings/call_slot.hpp"

#include <atomic>
#include <cstddef>
#include <stdexcept>

#include "bindings/python/owned.hpp"
#include "bindings/python/python_calls.hpp"

namespace nb = nanobind;

namespace tcuda {
namespace {

std::atomic<PyObject *> call_check{nullptr};

// The place of a slot in a type object, which is opaque in the stable ABI. The place is the same for all types. Null if
// more than one place, or no place, has the function.
void **place_of_slot(PyTypeObject *type, void *function) {
    constexpr std::size_t first = 4, end = 40; // the slots of all versions of Python are among these words
    void **const words = reinterpret_cast<void **>(type);
    void **found = nullptr;
    for (std::size_t place = first; place < end; ++place) {
        if (words[place] != function)
            continue;
        if (found != nullptr)
            return nullptr;
        found = words + place;
    }
    return found;
}

} // namespace

// The function is kept for ever, because another thread may be about to call the function.
void check_calls(nb::object function) {
    PyObject *const wanted = function.is_none() ? nullptr : function.release().ptr();
    call_check.store(wanted, std::memory_order_release);
}

bool passes_check(PyObject *positional, PyObject *named) {
    PyObject *const check = call_check.load(std::memory_order_acquire);
    if (check == nullptr)
        return true;
    const Owned arguments(PyTuple_Pack(2, positional, named == nullptr ? Py_None : named));
    return arguments && done(call(check, arguments.get()));
}

CallSlot call_slot_of(nb::handle type) {
    auto *const python_type = reinterpret_cast<PyTypeObject *>(type.ptr());
    void *const function = PyType_GetSlot(python_type, Py_tp_call);
    if (function == nullptr && PyErr_Occurred())
        nb::raise_python_error();
    void **const place = function == nullptr ? nullptr : place_of_slot(python_type, function);
    if (place == nullptr)
        throw std::runtime_error("the slot for calls was not found in the type");
    return {place, reinterpret_cast<ternaryfunc>(function)};
}

} // namespace tcuda
