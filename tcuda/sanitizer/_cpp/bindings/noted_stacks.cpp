#include "sanitizer/_cpp/bindings/noted_stacks.hpp"

#include <atomic>
#include <cstddef>
#include <new>
#include <optional>
#include <stdexcept>

#include "bindings/threads/python_stacks.hpp"
#include "sanitizer/_cpp/bindings/call_slot.hpp"
#include "threads/unwinding.hpp"

namespace nb = nanobind;

namespace tcuda {
namespace {

// A type whose slot for calls was replaced. Such a type is never forgotten: another thread may be about to call the
// function of the slot, and a type that was derived meanwhile has the function for ever.
struct FollowedType {
    PyTypeObject *type;
    CallSlot slot;
};

constexpr std::size_t most_types = 16;
FollowedType followed[most_types];
std::atomic<std::size_t> followed_count{0};
std::atomic<bool> notes_stacks{false};

const FollowedType *followed_type(PyTypeObject *type) {
    const std::size_t count = followed_count.load(std::memory_order_acquire);
    for (std::size_t place = 0; place < count; ++place)
        if (followed[place].type == type)
            return &followed[place];
    for (std::size_t place = 0; place < count; ++place)
        if (PyType_IsSubtype(type, followed[place].type))
            return &followed[place];
    return nullptr;
}

PyObject *call_with_stack(PyObject *object, PyObject *positional, PyObject *named) {
    if (!passes_check(positional, named))
        return nullptr;
    std::optional<StackOfCall> stack;
    try {
        if (notes_stacks.load(std::memory_order_relaxed))
            stack.emplace();
    } catch (const std::bad_alloc &) { // without host memory, another thread is asked for the stack
    }
    Unwinding unwinding; // the linker cannot guard a call through a pointer
    PyObject *const result = followed_type(Py_TYPE(object))->slot.function(object, positional, named);
    unwinding.dismiss();
    return result;
}

} // namespace

void note_stacks_of(nb::handle type) {
    notes_stacks = true;
    auto *const python_type = reinterpret_cast<PyTypeObject *>(type.ptr());
    const FollowedType *known = followed_type(python_type);
    if (known == nullptr || known->type != python_type) {
        const std::size_t count = followed_count.load(std::memory_order_relaxed);
        if (count == most_types)
            throw std::runtime_error("the calls of too many types are followed");
        const CallSlot slot = call_slot_of(type);
        if (slot.function == call_with_stack) // the slot of a followed type, which the type has inherited
            return;
        type.inc_ref();
        followed[count] = {python_type, slot};
        followed_count.store(count + 1, std::memory_order_release);
        known = &followed[count];
    }
    *known->slot.place = reinterpret_cast<void *>(call_with_stack);
}

void stop_noting_stacks() {
    notes_stacks = false;
    const std::size_t count = followed_count.load(std::memory_order_acquire);
    for (std::size_t place = 0; place < count; ++place)
        if (void **const slot = followed[place].slot.place; *slot == reinterpret_cast<void *>(call_with_stack))
            *slot = reinterpret_cast<void *>(followed[place].slot.function); // the function of another library stays
}

} // namespace tcuda
