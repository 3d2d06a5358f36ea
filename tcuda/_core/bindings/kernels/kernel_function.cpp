#include "bindings/kernels/kernel_function.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <limits>
#include <memory>
#include <new>

#include "bindings/notes/work_notes.hpp"
#include "bindings/python/callable.hpp"
#include "bindings/python/owned.hpp"
#include "bindings/python/python_calls.hpp"
#include "driver/status.hpp"

namespace tcuda {
namespace {

enum Held { name, parameters_owner, launcher_owner, launch, configure, held_count };

struct KernelFunction : Callable<held_count> {
    const KernelParameters *parameters;
    const KernelLauncher *launcher;
    CurrentStream *current_stream;
};

enum Place { grid, block, args, shared_mem, stream, place_count };

constexpr const char *place_names[place_count] = {"grid", "block", "args", "shared_mem", "stream"};
PyObject *names_of_places[place_count] = {};
PyObject *name_ptr = nullptr, *name_cuda_stream = nullptr;

// The arguments of a call; null for an argument that is not given.
using Given = std::array<PyObject *, place_count>;

// The place of a keyword argument; -1 with a Python error set if no keyword argument has the name.
int place_of(PyObject *keyword) {
    for (int place = 0; place < place_count; ++place)
        if (keyword == names_of_places[place])
            return place;
    for (int place = 0; place < place_count; ++place)
        if (PyUnicode_Compare(keyword, names_of_places[place]) == 0)
            return place;
    PyErr_Format(PyExc_TypeError, "a kernel takes grid, block, args, shared_mem and stream; got the argument %R",
                 keyword);
    return -1;
}

bool read_given(PyObject *const *values, std::size_t count, PyObject *names, Given *given) {
    if (count > place_count) {
        PyErr_Format(PyExc_TypeError,
                     "a kernel takes grid, block, args, shared_mem and stream; got %zu positional arguments: the "
                     "arguments of the kernel itself go into the tuple args",
                     count);
        return false;
    }
    std::copy(values, values + count, given->begin());
    const Py_ssize_t named = names == nullptr ? 0 : PyTuple_Size(names);
    for (Py_ssize_t i = 0; i < named; ++i) {
        PyObject *const keyword = PyTuple_GetItem(names, i);
        const int place = place_of(keyword);
        if (place == -1)
            return false;
        if ((*given)[place] != nullptr) {
            PyErr_Format(PyExc_TypeError, "the argument %R is given twice", keyword);
            return false;
        }
        (*given)[place] = values[count + static_cast<std::size_t>(i)];
    }
    return true;
}

PyObject *new_reference(PyObject *object) {
    Py_INCREF(object);
    return object;
}

// Reads an int from 0 to 2 ** 32 - 1. False if `object` is anything else; then either a Python error is set, or
// `*error` is the type of the error.
bool read_size(PyObject *object, unsigned *size, PyObject **error) {
    const Owned number(PyLong_Check(object) ? new_reference(object) : PyNumber_Index(object));
    *error = number ? PyExc_ValueError : PyExc_TypeError;
    if (!number) {
        if (PyErr_ExceptionMatches(PyExc_TypeError))
            PyErr_Clear();
        return false;
    }
    int overflow = 0;
    const long long value = PyLong_AsLongLongAndOverflow(number.get(), &overflow);
    *size = static_cast<unsigned>(value);
    return overflow == 0 && value >= 0 && value <= std::numeric_limits<unsigned>::max();
}

bool refuse_sizes(const char *what, PyObject *given, PyObject *error) {
    if (!PyErr_Occurred())
        PyErr_Format(error, "%s must be an int, or a tuple of 1 to 3 ints, from 0 to 2 ** 32 - 1; got %R", what, given);
    return false;
}

bool read_sizes(const char *what, PyObject *given, unsigned *sizes) {
    std::fill(sizes, sizes + 3, 1u);
    if (given == nullptr)
        return true;
    PyObject *error = nullptr;
    const bool is_tuple = PyTuple_Check(given);
    if (!is_tuple && !PyList_Check(given))
        return read_size(given, sizes, &error) || refuse_sizes(what, given, error);
    const Py_ssize_t count = is_tuple ? PyTuple_Size(given) : PyList_Size(given);
    if (count < 1 || count > 3)
        return refuse_sizes(what, given, PyExc_ValueError);
    for (Py_ssize_t i = 0; i < count; ++i) {
        // The item of a list is owned, because another thread may change the list.
        const Owned item(is_tuple ? new_reference(PyTuple_GetItem(given, i)) : PySequence_GetItem(given, i));
        if (!item)
            return false;
        if (!read_size(item.get(), sizes + i, &error))
            return refuse_sizes(what, given, error);
    }
    return true;
}

bool read_shape(const Given &given, LaunchShape *shape) {
    if (!read_sizes("grid", given[grid], shape->grid) || !read_sizes("block", given[block], shape->block))
        return false;
    shape->shared = 0;
    PyObject *error = nullptr;
    if (given[shared_mem] == nullptr || read_size(given[shared_mem], &shape->shared, &error))
        return true;
    if (!PyErr_Occurred())
        PyErr_Format(error, "shared_mem must be a number of bytes, an int from 0 to 2 ** 32 - 1; got %R",
                     given[shared_mem]);
    return false;
}

// The arguments of the kernel as a tuple. New reference; null with a Python error set if `given` is neither a tuple nor
// a list.
PyObject *tuple_of(PyObject *given) {
    if (given == nullptr || given == Py_None)
        return PyTuple_New(0);
    if (PyTuple_Check(given)) {
        Py_INCREF(given);
        return given;
    }
    if (PyList_Check(given))
        return PySequence_Tuple(given);
    return PyErr_Format(PyExc_TypeError,
                        "args must be a tuple or a list with the arguments of the kernel; got an object of %R",
                        reinterpret_cast<PyObject *>(Py_TYPE(given)));
}

// Reads the handle of a stream of tcuda, CuPy or torch. False with a Python error set if `given` is no such stream.
bool read_stream(PyObject *given, libcuda::Stream *handle) {
    PyObject *number = PyObject_GetAttr(given, name_ptr);
    if (number == nullptr && PyErr_ExceptionMatches(PyExc_AttributeError)) {
        PyErr_Clear();
        number = PyObject_GetAttr(given, name_cuda_stream);
    }
    if (number == nullptr && PyErr_ExceptionMatches(PyExc_AttributeError)) {
        PyErr_Clear();
        PyErr_Format(PyExc_TypeError,
                     "stream must be a stream of tcuda, CuPy or torch, or None for the current one; "
                     "got an object of %R",
                     reinterpret_cast<PyObject *>(Py_TYPE(given)));
    }
    if (number == nullptr)
        return false;
    *handle = static_cast<libcuda::Stream>(PyLong_AsUnsignedLongLongMask(number));
    Py_DECREF(number);
    return *handle != static_cast<libcuda::Stream>(-1) || !PyErr_Occurred();
}

// Calls `function` with the elements of `values`. Takes over `values`, a new reference or null.
PyObject *call_with(PyObject *function, PyObject *values) {
    if (values == nullptr)
        return nullptr;
    std::array<PyObject *, 6> items{};
    const auto count = static_cast<std::size_t>(PyTuple_Size(values));
    for (std::size_t i = 0; i < count; ++i)
        items[i] = PyTuple_GetItem(values, static_cast<Py_ssize_t>(i));
    PyObject *const result = PyObject_Vectorcall(function, items.data(), count, nullptr);
    Py_DECREF(values);
    return result;
}

// Memory for packed arguments: on the stack for the size that most kernels need, and on the heap for larger sizes.
template <typename Item, std::size_t usual> class Scratch {
public:
    explicit Scratch(std::size_t count) : more_(count > usual ? new Item[count]() : nullptr) {}
    Item *data() { return more_ ? more_.get() : usual_; }

private:
    alignas(16) Item usual_[usual];
    const std::unique_ptr<Item[]> more_;
};

bool repaired(const KernelFunction &self, int status, int attempt, const LaunchShape &shape) {
    const unsigned *const g = shape.grid;
    const unsigned *const b = shape.block;
    return done(call_with(self.held[launch], Py_BuildValue("(ii(III)(III)I)", status, attempt, g[0], g[1], g[2], b[0],
                                                           b[1], b[2], shape.shared)));
}

bool launch_by_driver(const KernelFunction &self, const LaunchShape &shape, PyObject *arguments, PyObject *stream) {
    const KernelParameters &parameters = *self.parameters;
    Scratch<std::byte, 512> buffer(parameters.bytes());
    Scratch<void *, 32> places(parameters.count());
    for (std::size_t i = 0; i < parameters.count(); ++i)
        places.data()[i] = buffer.data() + parameters.list()[i].offset;
    for (int attempt = 0;; ++attempt) {
        int status = invalid_context;
        if (const auto *const loaded = self.launcher->current()) {
            if (!parameters.pack(self.held[name], arguments, loaded->device, buffer.data()))
                return false;
            libcuda::Stream handle;
            if (stream == nullptr)
                handle = static_cast<libcuda::Stream>(self.current_stream());
            else if (!read_stream(stream, &handle))
                return false;
            PyThreadState *const state = PyEval_SaveThread(); // a launch may wait for room in the queue of the stream
            status = self.launcher->launch(*loaded, shape, handle, places.data());
            PyEval_RestoreThread(state);
        }
        if (status == success)
            return true;
        if (!repaired(self, status, attempt, shape))
            return false;
    }
}

bool launch_by_python(const KernelFunction &self, const LaunchShape &shape, PyObject *arguments, PyObject *stream) {
    const KernelParameters &parameters = *self.parameters;
    Scratch<std::byte, 512> buffer(parameters.bytes());
    std::fill_n(buffer.data(), parameters.bytes(), std::byte{0});
    if (!parameters.pack(self.held[name], arguments, -1, buffer.data()))
        return false;
    const unsigned *const g = shape.grid;
    const unsigned *const b = shape.block;
    PyObject *const bytes = PyBytes_FromStringAndSize(reinterpret_cast<const char *>(buffer.data()),
                                                      static_cast<Py_ssize_t>(parameters.bytes()));
    if (bytes == nullptr)
        return false;
    return done(
        call_with(self.held[launch], Py_BuildValue("((III)(III)NOIO)", g[0], g[1], g[2], b[0], b[1], b[2], bytes,
                                                   arguments, shape.shared, stream == nullptr ? Py_None : stream)));
}

bool launched(const KernelFunction &self, const Given &given, PyObject *arguments) {
    LaunchShape shape;
    if (!read_shape(given, &shape))
        return false;
    PyObject *const chosen = given[stream] == Py_None ? nullptr : given[stream];
    return self.launcher != nullptr ? launch_by_driver(self, shape, arguments, chosen)
                                    : launch_by_python(self, shape, arguments, chosen);
}

bool launched_with_notes(const KernelFunction &self, const Given &given, PyObject *arguments) {
    WorkNotes notes;
    notes.may_use(arguments);
    return launched(self, given, arguments);
}

PyObject *call_kernel(PyObject *object, PyObject *const *values, size_t flagged_count, PyObject *names) {
    const auto &self = *reinterpret_cast<KernelFunction *>(object);
    const std::size_t count = flagged_count & ~(std::size_t{1} << (8 * sizeof(std::size_t) - 1));
    Given given{};
    if (!read_given(values, count, names, &given))
        return nullptr;
    PyObject *const arguments = tuple_of(given[args]);
    if (arguments == nullptr)
        return nullptr;
    bool is_launched = false;
    try {
        is_launched =
            are_calls_noted() ? launched_with_notes(self, given, arguments) : launched(self, given, arguments);
    } catch (const std::bad_alloc &) {
        PyErr_NoMemory();
    }
    Py_DECREF(arguments);
    if (!is_launched)
        return nullptr;
    Py_RETURN_NONE;
}

PyObject *represent(PyObject *self) {
    return PyUnicode_FromFormat("<kernel %U>", reinterpret_cast<KernelFunction *>(self)->held[name]);
}

} // namespace

PyObject *make_kernel_function_type() {
    for (int place = 0; place < place_count; ++place)
        if ((names_of_places[place] = PyUnicode_InternFromString(place_names[place])) == nullptr)
            return nullptr;
    name_ptr = PyUnicode_InternFromString("ptr");
    name_cuda_stream = PyUnicode_InternFromString("cuda_stream");
    if (name_ptr == nullptr || name_cuda_stream == nullptr)
        return nullptr;
    using Base = Callable<held_count>;
    return Base::make_type("tcuda._core.KernelFunction", sizeof(KernelFunction),
                           {Base::member("name", name), Base::member("parameters", parameters_owner),
                            Base::member("set_shared_memory_config", configure)},
                           {{Py_tp_repr, reinterpret_cast<void *>(represent)}});
}

PyObject *make_kernel_function(PyObject *type, const KernelFunctionParts &parts) {
    PyObject *const self = Callable<held_count>::make(
        type, call_kernel, {parts.name, parts.parameters_owner, parts.launcher_owner, parts.launch, parts.configure});
    if (self != nullptr) {
        auto *const made = reinterpret_cast<KernelFunction *>(self);
        made->parameters = parts.parameters;
        made->launcher = parts.launcher;
        made->current_stream = parts.current_stream;
    }
    return self;
}

} // namespace tcuda
