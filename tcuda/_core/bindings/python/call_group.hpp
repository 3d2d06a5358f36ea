// A group of calls, as NCCL has: a function starts the group, another function ends the group.
#pragma once

#include <nanobind/nanobind.h>

#include <cstddef>
#include <utility>
#include <vector>

#include "bindings/python/owned.hpp"
#include "bindings/python/python_calls.hpp"

namespace tcuda {

class CallGroup {
public:
    CallGroup(nanobind::object start, nanobind::object end) : start_(std::move(start)), end_(std::move(end)) {}

    // Calls `call` once for each item of the first of `columns`. An argument is the item of a column that is a tuple,
    // and is any other column itself. Between the start and the end, the thread runs no bytecode of Python, if the
    // functions are written in C. If a call fails, the group is ended, and the error of the call is raised.
    void run(nanobind::handle call, nanobind::tuple columns) const {
        const auto width = static_cast<std::size_t>(PyTuple_Size(columns.ptr()));
        PyObject *const first = width != 0 ? PyTuple_GetItem(columns.ptr(), 0) : nullptr;
        if (first == nullptr || !PyTuple_CheckExact(first))
            throw nanobind::type_error("the first column must be a tuple");
        const auto calls = static_cast<std::size_t>(PyTuple_Size(first));
        std::vector<PyObject *> arguments(calls * width); // borrowed: the tuples keep the arguments alive
        for (std::size_t column = 0; column < width; ++column) {
            PyObject *const given = PyTuple_GetItem(columns.ptr(), static_cast<Py_ssize_t>(column));
            const bool is_tuple = PyTuple_CheckExact(given);
            if (is_tuple && static_cast<std::size_t>(PyTuple_Size(given)) != calls)
                throw nanobind::value_error("the columns must have the same length");
            for (std::size_t row = 0; row < calls; ++row)
                arguments[row * width + column] =
                    is_tuple ? PyTuple_GetItem(given, static_cast<Py_ssize_t>(row)) : given;
        }
        if (!done(tcuda::call(start_.ptr())))
            nanobind::raise_python_error();
        for (std::size_t row = 0; row < calls; ++row)
            if (!done(PyObject_Vectorcall(call.ptr(), &arguments[row * width], width, nullptr))) {
                end_after_error();
                nanobind::raise_python_error();
            }
        if (!done(tcuda::call(end_.ptr())))
            nanobind::raise_python_error();
    }

private:
    // Ends the group and keeps the Python error that is set. NCCL tells the error of the call again at the end.
    void end_after_error() const {
        const nanobind::error_scope kept;
        if (!done(tcuda::call(end_.ptr())))
            PyErr_Clear();
    }

    const nanobind::object start_, end_;
};

} // namespace tcuda
