#include "bindings/memory/owned_memory.hpp"

#include <structmember.h>

#include <utility>

#include "bindings/memory/ledger_errors.hpp"
#include "bindings/memory/python_relief.hpp"
#include "bindings/python/checked.hpp"
#include "bindings/python/owned.hpp"
#include "bindings/python/python_type.hpp"
#include "bindings/python/raised.hpp"
#include "bindings/threads/cpython_functions.hpp"
#include "driver/stream_key.hpp"

namespace nb = nanobind;

namespace tcuda {

PyObject *OwnedMemory::make(PyObject *type, PythonLedger &ledger, int device, std::size_t size, Stream stream) {
    Owned made(PyType_GenericAlloc(reinterpret_cast<PyTypeObject *>(type), 0));
    if (!made)
        return nullptr;
    OwnedMemory &memory = *of(made.get());
    memory.device = device;
    memory.requested = size;
    if (size == 0)
        return made.release();
    std::size_t block_size = 0;
    try {
        PythonRelief relief(ledger);
        memory.ptr = ledger.ledger.allocate(device, size, key_of(stream), &block_size, &relief);
    } catch (...) {
        set_error(ledger);
        return nullptr;
    }
    memory.size = block_size;
    memory.ledger = &ledger;
    memory.owner = nb::find(ledger).inc_ref().ptr();
    return Interruption::restore() ? nullptr : made.release(); // the end of the object frees the memory
}

void OwnedMemory::free() {
    if (owner == nullptr || ptr == 0)
        return;
    const auto address = static_cast<Address>(std::exchange(ptr, 0));
    size = 0;
    if (cpython.is_finalizing != nullptr && cpython.is_finalizing())
        return;
    ledger->ledger.free(address);
    Interruption::deliver();
}

namespace {

void dealloc(PyObject *self) {
    PyObject *const error = taken_exception(); // the object may die while an exception is handled
    OwnedMemory::of(self)->free();
    if (error != nullptr)
        set_exception(error);
    PyTypeObject *const type = Py_TYPE(self);
    Py_CLEAR(OwnedMemory::of(self)->owner);
    reinterpret_cast<freefunc>(PyType_GetSlot(type, Py_tp_free))(self);
    Py_DECREF(type);
}

PyObject *free_now(PyObject *self, PyObject *) {
    OwnedMemory::of(self)->free();
    Py_RETURN_NONE;
}

int get_buffer(PyObject *self, Py_buffer *view, int flags) {
    const OwnedMemory &memory = *OwnedMemory::of(self);
    return PyBuffer_FillInfo(view, self, reinterpret_cast<void *>(memory.ptr), static_cast<Py_ssize_t>(memory.size), 0,
                             flags);
}

PyObject *make_type() {
    static PyMethodDef methods[] = {{"free", free_now, METH_NOARGS, nullptr}, {nullptr, nullptr, 0, nullptr}};
    static PyMemberDef members[] = {
        {"ptr", T_ULONGLONG, offsetof(OwnedMemory, ptr), 0, nullptr},
        {"size", T_ULONGLONG, offsetof(OwnedMemory, size), 0, nullptr},
        {"requested", T_ULONGLONG, offsetof(OwnedMemory, requested), 0, nullptr},
        {"device", T_INT, offsetof(OwnedMemory, device), 0, nullptr},
        {nullptr, 0, 0, 0, nullptr},
    };
    static PyType_Slot slots[] = {
        {Py_tp_dealloc, reinterpret_cast<void *>(dealloc)},
        {Py_tp_methods, methods},
        {Py_tp_members, members},
        {Py_bf_getbuffer, reinterpret_cast<void *>(get_buffer)},
        {0, nullptr},
    };
    static PyType_Spec spec = {"tcuda._core.OwnedMemory", sizeof(OwnedMemory), 0, base_flags, slots};
    return PyType_FromSpec(&spec);
}

nb::object allocate_memory(nb::handle type, PythonLedger &ledger, int device, std::size_t size, Stream stream) {
    return checked(OwnedMemory::make(type.ptr(), ledger, device, size, stream));
}

} // namespace

void bind_owned_memory(nb::module_ &module) {
    module.attr("OwnedMemory") = checked(make_type());
    module.def(
        "allocate_memory", allocate_memory, nb::arg("type"), nb::arg("ledger"), nb::arg("device"), nb::arg("size"),
        nb::arg("stream"),
        nb::sig("def allocate_memory(type: type[_Memory], ledger: Ledger, device: int, size: int, stream: int) -> "
                "_Memory"),
        "Return an object of ``type`` with new memory for ``stream``; an object without memory if ``size`` is 0.");
}

} // namespace tcuda
