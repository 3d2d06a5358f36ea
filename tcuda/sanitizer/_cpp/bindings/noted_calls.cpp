#include "sanitizer/_cpp/bindings/noted_calls.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "bindings/notes/work_notes.hpp"
#include "bindings/python/interruption.hpp"
#include "bindings/python/owned.hpp"
#include "bindings/python/python_calls.hpp"
#include "bindings/threads/python_stacks.hpp"
#include "sanitizer/_cpp/bindings/call_slot.hpp"
#include "sanitizer/_cpp/bindings/use_reader.hpp"
#include "sanitizer/_cpp/watch/call_notes.hpp"
#include "threads/published.hpp"
#include "threads/unwinding.hpp"

namespace nb = nanobind;

namespace tcuda {
namespace {

using Names = std::shared_ptr<const std::vector<std::string>>;

// The memory of an array that a call was given before. To read the attributes of an array takes most of the time of a
// note, and an array keeps its memory: a program can change the shape of an array, and then the elements stay the same.
struct KnownArray {
    nb::object reference; // a weak reference, which tells whether the array is still alive
    std::shared_ptr<const races::Region> region; // null if the memory is not known
    unsigned sightings = 0;
};

// The calls of one type. Each call that is in progress shares the object.
struct NotedType {
    nb::object type, array_type, pointer_type, prepare;
    void **slot = nullptr;
    ternaryfunc original = nullptr;
    std::mutex mutex; // of the names and of the arrays; no Python code runs while a thread has the mutex
    std::unordered_map<std::uintptr_t, Names> names; // by the handle of the kernel
    std::unordered_map<PyObject *, KnownArray> arrays;
};

using Shared = std::shared_ptr<NotedType>;

constexpr std::size_t most_known_arrays = 4096;

ternaryfunc last_original = nullptr; // the slot that was replaced last

// Not destroyed at the end of the process, where Python's objects are gone.
struct Noted {
    std::mutex mutex;
    Shared type;
};
Noted &noted() {
    static Published<Noted> made;
    return made.get();
}

Shared noted_type() {
    const std::lock_guard lock(noted().mutex);
    return noted().type;
}

// The names of the attributes, which are never destroyed.
struct Attributes {
    nb::object data = nb::steal(PyUnicode_InternFromString("data")), ptr = nb::steal(PyUnicode_InternFromString("ptr")),
               mem = nb::steal(PyUnicode_InternFromString("mem")), size = nb::steal(PyUnicode_InternFromString("size")),
               itemsize = nb::steal(PyUnicode_InternFromString("itemsize")),
               shape = nb::steal(PyUnicode_InternFromString("shape")),
               strides = nb::steal(PyUnicode_InternFromString("strides")),
               args = nb::steal(PyUnicode_InternFromString("args"));
};

const Attributes &attributes() {
    static Published<const Attributes> made;
    return made.get();
}

bool read_number(PyObject *object, const nb::object &name, long long *number) {
    *number = taken_integer(PyObject_GetAttr(object, name.ptr()));
    return *number != -1 || PyErr_Occurred() == nullptr;
}

bool read_address(PyObject *object, Address *address) {
    const Owned number(PyObject_GetAttr(object, attributes().ptr.ptr()));
    if (!number)
        return false;
    *address = PyLong_AsUnsignedLongLongMask(number.get());
    return PyErr_Occurred() == nullptr;
}

bool read_array(PyObject *array, races::Region *region) {
    const Attributes &name = attributes();
    Address address;
    long long itemsize;
    const Owned data(PyObject_GetAttr(array, name.data.ptr()));
    const Owned counts(data ? PyObject_GetAttr(array, name.shape.ptr()) : nullptr);
    const Owned strides(counts ? PyObject_GetAttr(array, name.strides.ptr()) : nullptr);
    if (!strides || !read_address(data.get(), &address) || !read_number(array, name.itemsize, &itemsize))
        return false;
    if (!PyTuple_Check(counts.get()) || !PyTuple_Check(strides.get()) ||
        PyTuple_Size(counts.get()) != PyTuple_Size(strides.get()) || itemsize < 0)
        return false;
    std::vector<races::Dimension> shape(static_cast<std::size_t>(PyTuple_Size(counts.get())));
    for (std::size_t axis = 0; axis < shape.size(); ++axis) {
        const auto place = static_cast<Py_ssize_t>(axis);
        shape[axis] = {PyLong_AsLongLong(PyTuple_GetItem(counts.get(), place)),
                       PyLong_AsLongLong(PyTuple_GetItem(strides.get(), place))};
    }
    if (PyErr_Occurred())
        return false;
    region->set(address, static_cast<std::size_t>(itemsize), shape);
    return true;
}

// The memory from the pointer to the end of the memory that the pointer is of.
bool read_pointer(PyObject *pointer, races::Region *region) {
    const Attributes &name = attributes();
    Address address, begin;
    long long size;
    const Owned memory(PyObject_GetAttr(pointer, name.mem.ptr()));
    if (!memory || !read_address(pointer, &address) || !read_address(memory.get(), &begin) ||
        !read_number(memory.get(), name.size, &size))
        return false;
    if (size < 0 || address < begin || address - begin >= static_cast<std::uint64_t>(size))
        return false;
    region->set(address, static_cast<std::size_t>(begin + static_cast<std::uint64_t>(size) - address), {});
    return true;
}

// Whether the weak reference refers to the object, and the object is alive.
bool refers_to(PyObject *reference, PyObject *object) {
#if PY_VERSION_HEX >= 0x030D0000
    PyObject *referred = nullptr;
    if (PyWeakref_GetRef(reference, &referred) != 1)
        return false;
    const Owned held(referred);
    return referred == object;
#else
    return PyWeakref_GetObject(reference) == object;
#endif
}

bool find_known(NotedType &type, PyObject *array, races::Region *region) {
    nb::object reference;
    std::shared_ptr<const races::Region> known;
    {
        const std::lock_guard lock(type.mutex);
        const auto found = type.arrays.find(array);
        if (found == type.arrays.end() || found->second.region == nullptr)
            return false;
        reference = found->second.reference;
        known = found->second.region;
    }
    if (!refers_to(reference.ptr(), array))
        return false;
    *region = *known;
    return true;
}

// Keeps the region when an array is seen for the second time at an address. A third time means that the kept array is
// gone: each array at the address lives for one call only, so no region is kept for the address any more.
void keep_known(NotedType &type, PyObject *array, const races::Region &region) {
    constexpr unsigned kept_at = 2;
    KnownArray made; // takes the contents of the entry before, so that the objects end without the mutex
    decltype(type.arrays) dropped;
    unsigned sightings;
    {
        const std::lock_guard lock(type.mutex);
        if (type.arrays.size() >= most_known_arrays)
            dropped.swap(type.arrays);
        KnownArray &known = type.arrays[array];
        sightings = known.sightings = std::min(known.sightings + 1, kept_at + 1);
        if (sightings > kept_at) {
            std::swap(known.region, made.region);
            std::swap(known.reference, made.reference);
        }
    }
    if (sightings != kept_at)
        return;
    made.reference = nb::steal(PyWeakref_NewRef(array, nullptr));
    if (!made.reference.is_valid())
        return; // the caller clears the error
    made.region = std::make_shared<const races::Region>(region);
    const std::lock_guard lock(type.mutex);
    KnownArray &known = type.arrays[array];
    std::swap(known.region, made.region);
    std::swap(known.reference, made.reference);
}

bool read_known_array(NotedType &type, PyObject *array, races::Region *region) {
    if (find_known(type, array, region))
        return true;
    if (!read_array(array, region))
        return false;
    keep_known(type, array, *region);
    return true;
}

// Whether `object` is an array whose memory was read. Anything that cannot be read is not noted.
// `is_new`: no earlier call can have had the array.
bool read_memory(NotedType &type, PyObject *object, races::Region *region, bool is_new = false) {
    bool is_read = false;
    if (PyObject_IsInstance(object, type.array_type.ptr()) == 1)
        is_read = is_new ? read_array(object, region) : read_known_array(type, object, region);
    else if (PyObject_IsInstance(object, type.pointer_type.ptr()) == 1)
        is_read = read_pointer(object, region);
    if (PyErr_Occurred())
        PyErr_Clear();
    return is_read;
}

// The names of the parameters of the kernel `function`; null if they are unknown.
Names names_of(NotedType &type, PyObject *function) {
    Address handle;
    if (!read_address(function, &handle)) {
        PyErr_Clear();
        return {};
    }
    {
        const std::lock_guard lock(type.mutex);
        const auto known = type.names.find(handle);
        if (known != type.names.end())
            return known->second;
    }
    std::vector<std::string> names;
    const Owned made(call(type.prepare.ptr(), function));
    if (made && PyTuple_Check(made.get())) {
        for (Py_ssize_t place = 0; place < PyTuple_Size(made.get()); ++place) {
            std::string_view text;
            if (read_text(PyTuple_GetItem(made.get(), place), "a name", &text))
                names.emplace_back(text);
        }
    }
    if (PyErr_Occurred() && !Interruption::deliver_error())
        PyErr_WriteUnraisable(type.prepare.ptr()); // the call itself does not need the preparation
    const auto kept = std::make_shared<const std::vector<std::string>>(std::move(names));
    const std::lock_guard lock(type.mutex);
    type.names.insert_or_assign(handle, kept);
    return kept;
}

// The arguments of the kernel, a borrowed reference; null if there are none.
PyObject *kernel_arguments(PyObject *positional, PyObject *named) {
    if (PyTuple_Size(positional) > 2)
        return PyTuple_GetItem(positional, 2);
    return named != nullptr ? PyDict_GetItemWithError(named, attributes().args.ptr()) : nullptr;
}

void note_tuple(NotedType &type, PyObject *arguments, const Names &names, watch::CallNotes *notes) {
    const Py_ssize_t count = PyTuple_Size(arguments);
    notes->memory.reserve(notes->memory.size() + static_cast<std::size_t>(count));
    for (Py_ssize_t place = 0; place < count; ++place) {
        watch::NotedMemory &memory = notes->memory.emplace_back();
        if (!read_memory(type, PyTuple_GetItem(arguments, place), &memory.region))
            notes->memory.pop_back();
        else if (names != nullptr && static_cast<std::size_t>(place) < names->size())
            memory.label = (*names)[static_cast<std::size_t>(place)];
    }
}

void note_arguments(NotedType &type, PyObject *function, PyObject *positional, PyObject *named,
                    watch::CallNotes *notes) {
    PyObject *const given = kernel_arguments(positional, named);
    if (given == nullptr || (!PyTuple_Check(given) && !PyList_Check(given))) {
        PyErr_Clear();
        return;
    }
    const Names names = names_of(type, function);
    const Owned arguments(PySequence_Tuple(given)); // another thread may change a list
    if (!arguments) {
        PyErr_Clear();
        return;
    }
    note_tuple(type, arguments.get(), names, notes);
}

PyObject *call_original(ternaryfunc original, PyObject *function, PyObject *positional, PyObject *named) {
    Unwinding unwinding; // the linker cannot guard a call through a pointer
    PyObject *const result = original(function, positional, named);
    unwinding.dismiss();
    return result;
}

PyObject *call_noted(PyObject *function, PyObject *positional, PyObject *named) {
    const Shared type = noted_type();
    if (type == nullptr) // the slot was read before it was put back
        return call_original(last_original, function, positional, named);
    if (!passes_check(positional, named))
        return nullptr;
    watch::CallNotes notes;
    std::optional<StackOfCall> stack;
    try {
        note_arguments(*type, function, positional, named, &notes);
        stack.emplace();
    } catch (const std::bad_alloc &) {
        notes.memory.clear();
    }
    const watch::NotesScope scope(notes);
    return call_original(type->original, function, positional, named);
}

// The notes of a kernel that the core launches.
class CoreNoteTaker : public NoteTaker {
public:
    void add(std::uint64_t address, std::uint64_t bytes, bool is_written) override {
        watch::NotedMemory memory;
        memory.region.set(address, bytes, {});
        keep(std::move(memory), is_written);
    }

    void add_array(PyObject *array, bool is_written) override {
        const Shared type = noted_type();
        watch::NotedMemory memory;
        if (type != nullptr && read_memory(*type, array, &memory.region, is_written))
            keep(std::move(memory), is_written);
        else
            notes_.exclusive = false;
    }

    void add_arguments(PyObject *arguments) override {
        notes_.exclusive = false;
        if (const Shared type = noted_type())
            note_tuple(*type, arguments, {}, &notes_);
    }

private:
    void keep(watch::NotedMemory memory, bool is_written) {
        memory.kind = is_written ? kernel_uses::Kind::write : kernel_uses::Kind::read;
        memory.kind_known = true;
        notes_.memory.push_back(std::move(memory));
    }

    watch::CallNotes notes_{{}, {}, true, nullptr};
    const watch::NotesScope scope_{notes_}; // ends before the notes
};

} // namespace

void note_calls(nb::handle type, nb::handle array_type, nb::handle pointer_type, nb::handle prepare) {
    const CallSlot slot = call_slot_of(type);
    attributes();
    const auto made = std::make_shared<NotedType>();
    made->type = nb::borrow(type);
    made->array_type = nb::borrow(array_type);
    made->pointer_type = nb::borrow(pointer_type);
    made->prepare = nb::borrow(prepare);
    made->slot = slot.place;
    made->original = slot.function;
    const std::lock_guard lock(noted().mutex);
    if (noted().type != nullptr)
        throw std::runtime_error("the calls of a type are noted already");
    noted().type = made;
    last_original = made->original;
    new_note_taker = []() -> std::unique_ptr<NoteTaker> { return std::make_unique<CoreNoteTaker>(); };
    *slot.place = reinterpret_cast<void *>(call_noted);
}

void stop_noting_calls() {
    Shared ended; // the references to Python's objects end without the mutex
    const std::lock_guard lock(noted().mutex);
    ended.swap(noted().type);
    new_note_taker = nullptr;
    if (ended != nullptr && *ended->slot == reinterpret_cast<void *>(call_noted))
        *ended->slot =
            reinterpret_cast<void *>(ended->original); // another library may have replaced the slot meanwhile
}

void forget_prepared_calls() {
    const Shared type = noted_type();
    if (type == nullptr)
        return;
    const std::lock_guard lock(type->mutex);
    type->names.clear();
}

} // namespace tcuda
