#include "block_allocator.hpp"

#include <structmember.h>

#include <utility>

namespace tcuda {
namespace {

struct BlockAllocator {
    PyObject_HEAD
    vectorcallfunc vectorcall;
    PyObject *allocate;
    PyObject *memory, *size; // descriptors, and what they do: to look up the attributes takes twice the time
    descrgetfunc get_memory;
    descrsetfunc set_size;
};

BlockAllocator *as_allocator(PyObject *object) { return reinterpret_cast<BlockAllocator *>(object); }

// Takes what larger_block() is set to in a call. Within the call a finalizer may allocate too, by another call.
class LargerBlock {
public:
    LargerBlock() : place_(larger_block()), before_(std::exchange(place_, 0)) {}
    ~LargerBlock() { place_ = before_; }
    LargerBlock(const LargerBlock &) = delete;
    LargerBlock &operator=(const LargerBlock &) = delete;

    std::size_t size() const { return place_; }

private:
    std::size_t &place_;
    const std::size_t before_;
};

bool note_size(BlockAllocator *self, PyObject *pointer, std::size_t size) {
    PyObject *memory = self->get_memory(self->memory, pointer, reinterpret_cast<PyObject *>(Py_TYPE(pointer)));
    PyObject *number = memory == nullptr ? nullptr : PyLong_FromSize_t(size);
    const bool noted = number != nullptr && self->set_size(self->size, memory, number) == 0;
    Py_XDECREF(number);
    Py_XDECREF(memory);
    return noted;
}

PyObject *call(PyObject *self, PyObject *const *args, size_t flagged_count, PyObject *names) {
    BlockAllocator *allocator = as_allocator(self);
    const LargerBlock larger;
    PyObject *pointer = PyObject_Vectorcall(allocator->allocate, args, flagged_count, names);
    if (pointer != nullptr && larger.size() != 0 && !note_size(allocator, pointer, larger.size()))
        Py_CLEAR(pointer);
    return pointer;
}

int traverse(PyObject *self, visitproc visit, void *arg) {
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(as_allocator(self)->allocate);
    Py_VISIT(as_allocator(self)->memory);
    Py_VISIT(as_allocator(self)->size);
    return 0;
}

int clear(PyObject *self) {
    Py_CLEAR(as_allocator(self)->allocate);
    Py_CLEAR(as_allocator(self)->memory);
    Py_CLEAR(as_allocator(self)->size);
    return 0;
}

void deallocate(PyObject *self) {
    PyTypeObject *type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    clear(self);
    reinterpret_cast<freefunc>(PyType_GetSlot(type, Py_tp_free))(self);
    Py_DECREF(type);
}

} // namespace

std::size_t &larger_block() {
    static thread_local std::size_t size = 0;
    return size;
}

PyObject *make_block_allocator_type() {
    static PyMemberDef members[] = {
        {"__vectorcalloffset__", T_PYSSIZET, offsetof(BlockAllocator, vectorcall), READONLY, nullptr},
        {"__wrapped__", T_OBJECT_EX, offsetof(BlockAllocator, allocate), READONLY, nullptr},
        {nullptr, 0, 0, 0, nullptr},
    };
    static PyType_Slot slots[] = {
        {Py_tp_dealloc, reinterpret_cast<void *>(deallocate)},
        {Py_tp_traverse, reinterpret_cast<void *>(traverse)},
        {Py_tp_clear, reinterpret_cast<void *>(clear)},
        {Py_tp_call, reinterpret_cast<void *>(PyVectorcall_Call)},
        {Py_tp_members, members},
        {0, nullptr},
    };
    static PyType_Spec spec = {
        "tcuda._core.BlockAllocator",
        sizeof(BlockAllocator),
        0,
        Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_DISALLOW_INSTANTIATION,
        slots,
    };
    return PyType_FromSpec(&spec);
}

PyObject *make_block_allocator(PyObject *type, PyObject *allocate, PyObject *memory, PyObject *size) {
    const auto get = reinterpret_cast<descrgetfunc>(PyType_GetSlot(Py_TYPE(memory), Py_tp_descr_get));
    const auto set = reinterpret_cast<descrsetfunc>(PyType_GetSlot(Py_TYPE(size), Py_tp_descr_set));
    if (get == nullptr || set == nullptr) {
        PyErr_SetString(PyExc_TypeError, "block_allocator() takes the descriptors of two attributes");
        return nullptr;
    }
    PyObject *self = PyType_GenericAlloc(reinterpret_cast<PyTypeObject *>(type), 0);
    if (self == nullptr)
        return nullptr;
    Py_INCREF(allocate);
    Py_INCREF(memory);
    Py_INCREF(size);
    BlockAllocator *allocator = as_allocator(self);
    allocator->allocate = allocate;
    allocator->memory = memory;
    allocator->size = size;
    allocator->get_memory = get;
    allocator->set_size = set;
    allocator->vectorcall = call;
    return self;
}

} // namespace tcuda
