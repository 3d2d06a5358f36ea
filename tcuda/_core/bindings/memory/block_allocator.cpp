#include "bindings/memory/block_allocator.hpp"

#include <utility>

#include "bindings/python/callable.hpp"

namespace tcuda {
namespace {

enum Held { allocate, memory, size };

struct BlockAllocator : Callable<3> {
    // The functions of the two descriptors. A look-up of the attributes takes twice the time.
    descrgetfunc get_memory;
    descrsetfunc set_size;
};

// The value that larger_block() gets during one call. A finalizer may make another call during this call, so the value
// from before is set again at the end.
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

bool note_size(BlockAllocator *self, PyObject *pointer, std::size_t bytes) {
    PyObject *block = self->get_memory(self->held[memory], pointer, reinterpret_cast<PyObject *>(Py_TYPE(pointer)));
    PyObject *number = block == nullptr ? nullptr : PyLong_FromSize_t(bytes);
    const bool noted = number != nullptr && self->set_size(self->held[size], block, number) == 0;
    Py_XDECREF(number);
    Py_XDECREF(block);
    return noted;
}

PyObject *call(PyObject *self, PyObject *const *args, size_t flagged_count, PyObject *names) {
    auto *const allocator = reinterpret_cast<BlockAllocator *>(self);
    const LargerBlock larger;
    PyObject *pointer = PyObject_Vectorcall(allocator->held[allocate], args, flagged_count, names);
    if (pointer != nullptr && larger.size() != 0 && !note_size(allocator, pointer, larger.size()))
        Py_CLEAR(pointer);
    return pointer;
}

} // namespace

std::size_t &larger_block() {
    static thread_local std::size_t bytes = 0;
    return bytes;
}

PyObject *make_block_allocator_type() {
    using Base = Callable<3>;
    return Base::make_type("tcuda._core.BlockAllocator", sizeof(BlockAllocator),
                           {Base::member("__wrapped__", allocate)});
}

PyObject *make_block_allocator(PyObject *type, PyObject *allocate, PyObject *memory, PyObject *size) {
    const auto get = reinterpret_cast<descrgetfunc>(PyType_GetSlot(Py_TYPE(memory), Py_tp_descr_get));
    const auto set = reinterpret_cast<descrsetfunc>(PyType_GetSlot(Py_TYPE(size), Py_tp_descr_set));
    if (get == nullptr || set == nullptr) {
        PyErr_SetString(PyExc_TypeError, "block_allocator() takes the descriptors of two attributes");
        return nullptr;
    }
    PyObject *self = Callable<3>::make(type, call, {allocate, memory, size});
    if (self != nullptr) {
        reinterpret_cast<BlockAllocator *>(self)->get_memory = get;
        reinterpret_cast<BlockAllocator *>(self)->set_size = set;
    }
    return self;
}

} // namespace tcuda
