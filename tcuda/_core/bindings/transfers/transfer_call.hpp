// One call of Python that works on the arrays of several devices.
#pragma once

#include <nanobind/nanobind.h>

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "bindings/python/owned.hpp"
#include "bindings/python/python_calls.hpp"
#include "bindings/races/noted_calls.hpp"
#include "bindings/transfers/python_transfers.hpp"
#include "transfers/transfer.hpp"

namespace tcuda {

inline void require(bool is_done) {
    if (!is_done)
        nanobind::raise_python_error();
}

inline long long integer(PyObject *number) {
    const long long value = PyLong_AsLongLong(number);
    require(value != -1 || !PyErr_Occurred());
    return value;
}

// The items of a sequence.
class Items {
public:
    explicit Items(nanobind::handle sequence) : tuple_(PySequence_Tuple(sequence.ptr())) {
        require(static_cast<bool>(tuple_));
        size_ = PyTuple_Size(tuple_.get());
    }

    Py_ssize_t size() const { return size_; }
    // Borrowed reference
    PyObject *operator[](Py_ssize_t place) const { return PyTuple_GetItem(tuple_.get(), place); }
    long long integer_at(Py_ssize_t place) const { return integer((*this)[place]); }

private:
    const Owned tuple_;
    Py_ssize_t size_;
};

inline void require_same_size(const Items &first, const Items &second) {
    if (first.size() != second.size())
        throw nanobind::value_error("the sequences must have the same length");
}

inline nanobind::object new_list(Py_ssize_t size) {
    PyObject *const list = PyList_New(size);
    require(list != nullptr);
    return nanobind::steal(list);
}

// A new tuple: the shape with another length of the first axis.
inline nanobind::object shape_of_part(const Items &shape, PyObject *length) {
    nanobind::object made = nanobind::steal(PyTuple_New(shape.size()));
    require(made.is_valid());
    for (Py_ssize_t axis = 0; axis < shape.size(); ++axis) {
        PyObject *const number = axis == 0 ? length : shape[axis];
        Py_INCREF(number);
        require(PyTuple_SetItem(made.ptr(), axis, number) == 0);
    }
    return made;
}

// The view source[begin:end].
inline nanobind::object part_of(nanobind::handle source, std::uint64_t begin, std::uint64_t end) {
    const Owned first(PyLong_FromUnsignedLongLong(begin)), last(PyLong_FromUnsignedLongLong(end));
    const Owned slice(first && last ? PySlice_New(first.get(), last.get(), Py_None) : nullptr);
    nanobind::object part = nanobind::steal(slice ? PyObject_GetItem(source.ptr(), slice.get()) : nullptr);
    require(part.is_valid());
    return part;
}

// One call: the work, and the current stream of each device.
class PythonTransfers::Call : public WaitGuard {
public:
    explicit Call(PythonTransfers &owner)
        : owner_(owner), is_capturing_(PyList_Size(owner.captures_.ptr()) > 0),
          // A race detector names the streams of the program, and would name a side stream too.
          work_(owner.devices_, is_capturing_ ? this : nullptr, !are_calls_noted()) {}

    // The current stream of `device`, whose context becomes current.
    Place place(int device) {
        if (!work_.enter(device))
            raise();
        for (const Place &known : places_)
            if (known.device == device)
                return known;
        const auto stream = owner_.current_stream_();
        require(stream != -1 || !PyErr_Occurred());
        places_.push_back({device, static_cast<libcuda::Stream>(stream)});
        return places_.back();
    }

    // The current stream of `device`, for which place() has been called. Leaves the context as it is.
    Place known_place(int device) const {
        return *std::find_if(places_.begin(), places_.end(),
                             [&](const Place &known) { return known.device == device; });
    }

    // A new array on `device`.
    nanobind::object make(PyObject *shape, PyObject *dtype, int device) {
        place(device);
        PyObject *const made = owner_.arrays_.maker.make(shape, dtype);
        require(made != nullptr);
        return nanobind::steal(made);
    }

    // Calls `function(work)` without Python's lock, and raises an error if the result is false. Then no copy is under
    // way.
    template <typename Function> void run(Function function) {
        if (is_capturing_) {
            if (!function(work_))
                raise();
            return;
        }
        bool is_done;
        {
            const nanobind::gil_scoped_release release; // the calls may wait for room in the queues of the streams
            is_done = function(work_);
            if (!is_done)
                work_.settle(places_);
        }
        if (!is_done)
            raise();
    }

    bool allows(const Place &waiting, const Place &awaited) override {
        const Owned numbers[] = {Owned(PyLong_FromLong(waiting.device)), Owned(PyLong_FromSize_t(waiting.stream)),
                                 Owned(PyLong_FromLong(awaited.device)), Owned(PyLong_FromSize_t(awaited.stream))};
        PyObject *arguments[4];
        for (int place = 0; place < 4; ++place)
            if ((arguments[place] = numbers[place].get()) == nullptr)
                return false;
        return done(PyObject_Vectorcall(owner_.functions_.check.ptr(), arguments, 4, nullptr));
    }

private:
    [[noreturn]] void raise() {
        if (!PyErr_Occurred()) {
            owner_.functions_.fail(work_.status(), work_.failed_call());
            PyErr_SetString(PyExc_SystemError, "a failure of the driver raised nothing");
        }
        nanobind::raise_python_error();
    }

    PythonTransfers &owner_;
    const bool is_capturing_;
    Transfer work_;
    std::vector<Place> places_;
};

} // namespace tcuda
