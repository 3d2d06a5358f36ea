#include "bindings/kernels/elementwise_call.hpp"

#include <algorithm>
#include <cstdint>

#include "bindings/kernels/elementwise_state.hpp"
#include "bindings/notes/work_notes.hpp"
#include "bindings/python/callable.hpp"
#include "bindings/python/python_calls.hpp"
#include "kernels/elementwise_loop.hpp"

namespace nb = nanobind;

namespace tcuda {
namespace {

PyObject *transpose_name = nullptr, *reduce_name = nullptr;

enum Held { fallback, state, held_count };

struct ElementwiseCall : Callable<held_count> {
    const ElementwiseState *learned;

    static ElementwiseCall *of(PyObject *object) { return reinterpret_cast<ElementwiseCall *>(object); }
};

// The number of elements; -1 with a Python error set if that fails.
long long size_of(PyObject *shape) {
    long long size = 1;
    const Py_ssize_t axes = PyTuple_Size(shape);
    for (Py_ssize_t axis = 0; axis < axes; ++axis) {
        const long long length = PyLong_AsLongLong(PyTuple_GetItem(shape, axis));
        if (length == -1 && PyErr_Occurred())
            return -1;
        size *= length;
    }
    return size;
}

// Reads a tuple of at most `most` integers. Returns the number of integers; -1 if Python must compute the call, or if a
// Python error is set.
int read_integers(PyObject *tuple, long long *to, int most) {
    const Py_ssize_t count = PyTuple_Size(tuple);
    if (count > most)
        return -1;
    for (Py_ssize_t place = 0; place < count; ++place) {
        to[place] = PyLong_AsLongLong(PyTuple_GetItem(tuple, place));
        if (to[place] == -1 && PyErr_Occurred())
            return -1;
    }
    return static_cast<int>(count);
}

// New reference to a tuple of the integers that `of` returns; null with a Python error set if that fails.
template <typename Of> PyObject *tuple_of(int count, Of of) {
    PyObject *const tuple = PyTuple_New(count);
    for (int place = 0; tuple != nullptr && place < count; ++place) {
        PyObject *const number = PyLong_FromLongLong(of(place));
        if (number == nullptr) {
            Py_DECREF(tuple);
            return nullptr;
        }
        PyTuple_SetItem(tuple, place, number);
    }
    return tuple;
}

// One call. The functions return false if Python must compute the call, or if a Python error is set.
class FastCall {
public:
    FastCall(const ElementwiseState &state, const LearnedKernels *learned)
        : state_(state), arrays_(state.arrays()), learned_(learned) {}

    bool take_scalars(PyObject *const *values, PyObject *names) {
        std::copy(state_.defaults().begin(), state_.defaults().end(), scalars_);
        const Py_ssize_t given = names == nullptr ? 0 : PyTuple_Size(names);
        for (Py_ssize_t place = 0; place < given; ++place) {
            const std::ptrdiff_t found = state_.place_of(PyTuple_GetItem(names, place));
            if (found < 0 || !scalars_[found].read(values[place]))
                return false;
        }
        return true;
    }

    bool take_inputs(PyObject *const *inputs, std::size_t count) {
        count_ = count;
        PyObject *dtypes[ElementwiseState::most_inputs];
        for (std::size_t place = 0; place < count; ++place) {
            if (!arrays_.addresses.has(inputs[place]))
                return false;
            const Owned dtype(arrays_.dtype.of(inputs[place]));
            if (!dtype)
                return false;
            dtypes[place] = dtype.get(); // is only compared, so needs no reference
        }
        if (!find(dtypes))
            return false;
        for (std::size_t place = 0; place < count; ++place)
            if (!take_shape(inputs[place]) || !take_address(inputs[place], &addresses_[place]))
                return false;
        return is_even_ || plan(inputs);
    }

    bool make_outputs() {
        for (std::size_t place = 0; place < state_.outputs(); ++place) {
            outputs_[place].set(arrays_.maker.make(shape_.get(), learned_->result.ptr()));
            if (!outputs_[place] || !take_address(outputs_[place].get(), &addresses_[count_ + place]))
                return false;
        }
        return true;
    }

    bool launch() {
        if (size_ == 0)
            return true;
        const bool is_strided = !is_even_ && !loop_.is_contiguous();
        void *arguments[2 + ElementwiseState::most_inputs + ElementwiseState::most_outputs +
                        ElementwiseState::most_scalars];
        void **next = arguments;
        *next++ = &size_;
        if (is_strided)
            *next++ = const_cast<ElementwiseLoop::Layout *>(&loop_.layout());
        for (std::size_t place = 0; place < count_ + state_.outputs(); ++place)
            *next++ = &addresses_[place];
        for (std::size_t place = 0; place < state_.defaults().size(); ++place)
            *next++ = &scalars_[place].value;
        const libcuda::Stream stream = state_.current_stream();
        const nb::gil_scoped_release release; // a launch may wait for room in the queue of the stream
        return learned_->kernels.launch(is_strided, static_cast<std::uint64_t>(size_), stream, arguments) == success;
    }

    // Notes that the kernel reads the inputs, writes the outputs, and uses no other memory.
    bool launch_with_notes(PyObject *const *inputs) {
        WorkNotes notes;
        for (std::size_t place = 0; place < count_; ++place)
            notes.reads_array(inputs[place]);
        for (std::size_t place = 0; place < state_.outputs(); ++place)
            notes.writes_array(outputs_[place].get());
        return launch();
    }

    // Gives the outputs the axes of the inputs.
    bool transpose() {
        if (is_even_ || !loop_.is_transposed())
            return true;
        const Owned axes(tuple_of(loop_.axes(), [this](int axis) { return loop_.place_of(axis); }));
        for (std::size_t place = 0; axes && place < state_.outputs(); ++place) {
            PyObject *const arguments[] = {outputs_[place].get(), axes.get()};
            outputs_[place].set(PyObject_VectorcallMethod(transpose_name, arguments, 2, nullptr));
            if (!outputs_[place])
                return false;
        }
        return static_cast<bool>(axes);
    }

    // New reference; null with a Python error set if that fails.
    PyObject *result() {
        if (state_.outputs() == 1)
            return outputs_[0].release();
        PyObject *const tuple = PyTuple_New(static_cast<Py_ssize_t>(state_.outputs()));
        for (std::size_t place = 0; tuple != nullptr && place < state_.outputs(); ++place)
            PyTuple_SetItem(tuple, static_cast<Py_ssize_t>(place), outputs_[place].release());
        return tuple;
    }

private:
    bool find(PyObject *const *dtypes) {
        for (; learned_ != nullptr; learned_ = learned_->next)
            if (matches(dtypes) && learned_->kernels.are_current())
                return true;
        return false;
    }

    bool matches(PyObject *const *dtypes) const {
        if (learned_->dtypes.size() != count_)
            return false;
        for (std::size_t place = 0; place < count_; ++place)
            if (learned_->dtypes[place].ptr() != dtypes[place])
                return false;
        for (std::size_t place = 0; place < learned_->kinds.size(); ++place)
            if (learned_->kinds[place] != scalars_[place].kind)
                return false;
        return true;
    }

    // Finds out whether all inputs are contiguous and of one shape.
    bool take_shape(PyObject *input) {
        if (!is_even_)
            return true;
        const Owned contiguous(arrays_.c_contiguous.of(input));
        if (!contiguous)
            return false;
        is_even_ = contiguous.get() == Py_True;
        if (shape_ && is_vector_ && is_even_) {
            // Reading both numbers takes less time than reading a shape.
            const long long axes = taken_integer(arrays_.ndim.of(input));
            const long long size = axes == 1 ? taken_integer(arrays_.size.of(input)) : axes;
            is_even_ = axes == 1 && size == size_;
            return size != -1; // no array has -1 axes or elements
        }
        Owned shape(arrays_.shape.of(input));
        if (!shape || !PyTuple_CheckExact(shape.get()))
            return false;
        if (shape_) {
            const int same = PyObject_RichCompareBool(shape.get(), shape_.get(), Py_EQ);
            is_even_ = is_even_ && same == 1;
            return same >= 0;
        }
        shape_.set(shape.release());
        is_vector_ = PyTuple_Size(shape_.get()) == 1;
        size_ = size_of(shape_.get());
        return size_ >= 0;
    }

    // Plans the loop over inputs with strides, and sets `shape_` to the shape in which outputs are made.
    bool plan(PyObject *const *inputs) {
        bool have_axes = false, have_none = false;
        for (std::size_t place = 0; place < count_; ++place) {
            const Owned shape(arrays_.shape.of(inputs[place])), strides(arrays_.strides.of(inputs[place]));
            if (!shape || !strides || !PyTuple_CheckExact(shape.get()) || !PyTuple_CheckExact(strides.get()))
                return false;
            long long lengths[ElementwiseLoop::most_axes], steps[ElementwiseLoop::most_axes];
            const int axes = read_integers(shape.get(), lengths, ElementwiseLoop::most_axes);
            if (axes < 0 || read_integers(strides.get(), steps, axes) != axes ||
                !loop_.add(axes, lengths, steps, learned_->itemsizes[place]))
                return false;
            (axes == 0 ? have_none : have_axes) = true;
        }
        // If only some inputs have axes, the dtype of the outputs depends on which ones, and Python has the rules.
        if ((have_axes && have_none && !learned_->is_one_dtype) || !loop_.plan())
            return false;
        size_ = loop_.size();
        shape_.set(tuple_of(loop_.axes(), [this](int axis) { return loop_.made(axis); }));
        return static_cast<bool>(shape_);
    }

    bool take_address(PyObject *array, std::uint64_t *address) const {
        return arrays_.addresses.find_on(learned_->kernels.device(), array, address);
    }

    const ElementwiseState &state_;
    const ArrayType &arrays_;
    const LearnedKernels *learned_;
    std::size_t count_ = 0;
    Owned shape_;         // the shape in which outputs are made
    bool is_vector_ = false; // whether the first input has one axis
    bool is_even_ = true;    // whether all inputs are contiguous and of one shape
    ElementwiseLoop loop_; // is filled if the inputs are not even
    long long size_ = 0;
    std::uint64_t addresses_[ElementwiseState::most_inputs + ElementwiseState::most_outputs];
    ElementwiseScalar scalars_[ElementwiseState::most_scalars];
    Owned outputs_[ElementwiseState::most_outputs];
};

// New reference. Null if Python must compute the call, or if a Python error is set.
PyObject *computed(const ElementwiseState &state, PyObject *const *args, Py_ssize_t count, PyObject *names) {
    const LearnedKernels *const learned = state.first();
    if (learned == nullptr || count < 1 || static_cast<std::size_t>(count) > ElementwiseState::most_inputs)
        return nullptr;
    FastCall fast(state, learned);
    const bool is_computed = fast.take_scalars(args + count, names) &&
                             fast.take_inputs(args, static_cast<std::size_t>(count)) && fast.make_outputs() &&
                             (are_calls_noted() ? fast.launch_with_notes(args) : fast.launch()) && fast.transpose();
    return is_computed ? fast.result() : nullptr;
}

PyObject *call(PyObject *self, PyObject *const *args, size_t flagged_count, PyObject *names) {
    const ElementwiseCall &called = *ElementwiseCall::of(self);
    PyObject *const result = computed(*called.learned, args, PyVectorcall_NARGS(flagged_count), names);
    if (result != nullptr || PyErr_Occurred())
        return result;
    return PyObject_Vectorcall(called.held[fallback], args, flagged_count, names);
}

// The object has the attributes of the function in Python.
PyObject *attribute(PyObject *self, PyObject *name) {
    PyObject *const own = PyObject_GenericGetAttr(self, name);
    if (own != nullptr || !PyErr_ExceptionMatches(PyExc_AttributeError))
        return own;
    PyErr_Clear();
    return PyObject_GetAttr(ElementwiseCall::of(self)->held[fallback], name);
}

PyObject *reduced(PyObject *self, PyObject *) {
    return PyObject_VectorcallMethod(reduce_name, &ElementwiseCall::of(self)->held[fallback], 1, nullptr);
}

PyObject *represented(PyObject *self) { return PyObject_Repr(ElementwiseCall::of(self)->held[fallback]); }

} // namespace

PyObject *make_elementwise_call_type() {
    using Base = Callable<held_count>;
    transpose_name = PyUnicode_InternFromString("transpose");
    reduce_name = PyUnicode_InternFromString("__reduce__");
    if (transpose_name == nullptr || reduce_name == nullptr)
        return nullptr;
    static PyMethodDef methods[] = {{"__reduce__", reduced, METH_NOARGS, nullptr}, {nullptr, nullptr, 0, nullptr}};
    return Base::make_type("tcuda._core.ElementwiseCall", sizeof(ElementwiseCall),
                           {Base::member("__wrapped__", fallback)},
                           {{Py_tp_getattro, reinterpret_cast<void *>(attribute)},
                            {Py_tp_methods, methods},
                            {Py_tp_repr, reinterpret_cast<void *>(represented)}});
}

PyObject *make_elementwise_call(PyObject *type, PyObject *fallback, PyObject *state) {
    PyObject *const self = Callable<held_count>::make(type, call, {fallback, state});
    if (self != nullptr)
        ElementwiseCall::of(self)->learned = nb::inst_ptr<ElementwiseState>(nb::handle(state));
    return self;
}

} // namespace tcuda
