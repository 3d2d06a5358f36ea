#include "bindings/memory/page_locked_memory.hpp"

#include <structmember.h>

#include "bindings/memory/ledger_errors.hpp"
#include "bindings/memory/python_ledger.hpp"
#include "bindings/python/checked.hpp"
#include "bindings/python/interruption.hpp"
#include "bindings/python/owned.hpp"
#include "bindings/python/raised.hpp"
#include "bindings/threads/cpython_functions.hpp"

namespace nb = nanobind;

namespace tcuda {
namespace {

struct PageLockedMemory {
    PyObject_HEAD PyObject *owner; // the ledger that gets the memory back; null without memory
    PythonLedger *ledger;
    HostBlock *block;
    unsigned long long ptr, size, requested;

    static PageLockedMemory *of(PyObject *object) { return reinterpret_cast<PageLockedMemory *>(object); }
};

void dealloc(PyObject *self) {
    PyObject *const error = taken_exception(); // the object may die while an exception is handled
    PageLockedMemory &memory = *PageLockedMemory::of(self);
    if (memory.owner != nullptr && (cpython.is_finalizing == nullptr || !cpython.is_finalizing())) {
        memory.ledger->ledger.host().free(memory.block);
        Interruption::deliver();
    }
    if (error != nullptr)
        set_exception(error);
    PyTypeObject *const type = Py_TYPE(self);
    Py_CLEAR(memory.owner);
    reinterpret_cast<freefunc>(PyType_GetSlot(type, Py_tp_free))(self);
    Py_DECREF(type);
}

// The buffer has the requested size, and not the size of the block.
int get_buffer(PyObject *self, Py_buffer *view, int flags) {
    const PageLockedMemory &memory = *PageLockedMemory::of(self);
    return PyBuffer_FillInfo(view, self, reinterpret_cast<void *>(memory.ptr),
                             static_cast<Py_ssize_t>(memory.requested), 0, flags);
}

PyObject *make_type() {
    static PyMemberDef members[] = {
        {"ptr", T_ULONGLONG, offsetof(PageLockedMemory, ptr), READONLY, nullptr},
        {"size", T_ULONGLONG, offsetof(PageLockedMemory, requested), READONLY, nullptr},
        {"block_size", T_ULONGLONG, offsetof(PageLockedMemory, size), READONLY, nullptr},
        {nullptr, 0, 0, 0, nullptr},
    };
    static PyType_Slot slots[] = {
        {Py_tp_dealloc, reinterpret_cast<void *>(dealloc)},
        {Py_tp_members, members},
        {Py_bf_getbuffer, reinterpret_cast<void *>(get_buffer)},
        {0, nullptr},
    };
    static PyType_Spec spec = {"tcuda._core.PageLockedMemory", sizeof(PageLockedMemory), 0, Py_TPFLAGS_DEFAULT, slots};
    return PyType_FromSpec(&spec);
}

PyTypeObject *type_of_memory = nullptr;

nb::object allocate_page_locked(nb::handle_t<PythonLedger> ledger, std::size_t size) {
    void *address;
    return checked(make_page_locked(ledger.ptr(), size, &address));
}

} // namespace

PyObject *make_page_locked(PyObject *owner, std::size_t size, void **address) {
    Owned made(PyType_GenericAlloc(type_of_memory, 0));
    if (!made)
        return nullptr;
    PageLockedMemory &memory = *PageLockedMemory::of(made.get());
    memory.requested = size;
    *address = nullptr;
    if (size == 0)
        return made.release();
    PythonLedger &ledger = *nb::inst_ptr<PythonLedger>(owner);
    try {
        memory.block = ledger.ledger.host().allocate(size);
    } catch (...) {
        set_error(ledger);
        return nullptr;
    }
    memory.ptr = memory.block->address;
    memory.size = memory.block->size;
    memory.ledger = &ledger;
    Py_INCREF(owner);
    memory.owner = owner;
    *address = reinterpret_cast<void *>(memory.ptr);
    return Interruption::restore() ? nullptr : made.release(); // the end of the object frees the memory
}

void bind_page_locked_memory(nb::module_ &module) {
    PyObject *const type = make_type();
    if (type == nullptr)
        nb::raise_python_error();
    type_of_memory = reinterpret_cast<PyTypeObject *>(type);
    module.attr("PageLockedMemory") = nb::borrow(type);
    module.def("allocate_page_locked", allocate_page_locked, nb::arg("ledger"), nb::arg("size"),
               nb::sig("def allocate_page_locked(ledger: Ledger, size: int) -> PageLockedMemory"),
               "Return new page-locked memory; an object without memory if ``size`` is 0.");
}

} // namespace tcuda
