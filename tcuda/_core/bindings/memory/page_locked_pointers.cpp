#include "bindings/memory/page_locked_pointers.hpp"

#include "bindings/memory/page_locked_memory.hpp"
#include "bindings/python/callable.hpp"
#include "bindings/python/owned.hpp"

namespace tcuda {
namespace {

using Pointers = Callable<3>;
enum Held { ledger, pointer, zero };

PyObject *call(PyObject *self, PyObject *const *args, size_t flagged_count, PyObject *names) {
    if (PyVectorcall_NARGS(flagged_count) != 1 || names != nullptr) {
        PyErr_SetString(PyExc_TypeError, "an allocator takes one argument, the number of bytes");
        return nullptr;
    }
    const std::size_t size = PyLong_AsSize_t(args[0]);
    if (size == static_cast<std::size_t>(-1) && PyErr_Occurred())
        return nullptr;
    PyObject *const *const held = Pointers::of(self)->held;
    void *address;
    const Owned memory(make_page_locked(held[ledger], size, &address));
    if (!memory)
        return nullptr;
    PyObject *const arguments[] = {memory.get(), held[zero]};
    return PyObject_Vectorcall(held[pointer], arguments, 2, nullptr);
}

} // namespace

PyObject *make_page_locked_pointers_type() {
    return Pointers::make_type("tcuda._core.PageLockedPointers", sizeof(Pointers));
}

PyObject *make_page_locked_pointers(PyObject *type, PyObject *ledger, PyObject *pointer) {
    const Owned zero(PyLong_FromLong(0));
    return zero ? Pointers::make(type, call, {ledger, pointer, zero.get()}) : nullptr;
}

} // namespace tcuda
