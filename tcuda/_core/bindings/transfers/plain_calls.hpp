// The functions of tcuda.comm for plain arguments, each in one call: checks, new arrays, and the work of the devices.
// tcuda/_backend/transfers.py has the protocol.
#pragma once

#include <nanobind/nanobind.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "bindings/python/owned.hpp"
#include "bindings/transfers/python_transfers.hpp"

namespace tcuda {

// A function returns None, with nothing done, if its arguments are not plain. The functions in Python then do the work,
// or raise the error. Arguments are plain if sequences are lists or tuples, devices are integers that devices have, arrays
// are in C order and exactly of CuPy's type, and no capture is in progress.
class PlainCalls {
public:
    // `allocate` is CuPy's function that returns new memory of the current device.
    PlainCalls(PythonTransfers &transfers, nanobind::object allocate)
        : transfers_(transfers), allocate_(std::move(allocate)) {}

    // An array of fewer than `small` bytes reaches several devices fastest by one copy after the other.
    nanobind::object broadcast(nanobind::handle tensor, nanobind::handle devices, std::size_t small);
    nanobind::object scatter(nanobind::handle tensor, nanobind::handle devices);
    nanobind::object gather(nanobind::handle tensors, nanobind::handle destination);
    nanobind::object reduce_add(nanobind::handle inputs, nanobind::handle destination, std::size_t small);
    nanobind::object broadcast_coalesced(nanobind::handle tensors, nanobind::handle devices,
                                         nanobind::handle buffer_size, std::size_t small);
    nanobind::object reduce_add_coalesced(nanobind::handle inputs, nanobind::handle destination,
                                          nanobind::handle buffer_size, std::size_t small);
    // Where the elements of the arrays of a collective are. Captures do not matter, because nothing is launched.
    nanobind::object places(nanobind::handle inputs, nanobind::handle outputs) const;

private:
    class Call;
    class Group;
    // A plain array.
    struct Array {
        ArrayMemory memory;
        nanobind::object shape, dtype;
    };
    using Arrays = std::vector<Array>;

    bool is_usable() const;
    // The device in `number`; nothing unless it is the integer of a device.
    std::optional<int> device_in(PyObject *number) const;
    std::optional<std::vector<int>> devices_in(nanobind::handle devices) const;
    // False unless `object` is a plain array. Raises a Python error if reading fails.
    bool read(PyObject *object, Array *array) const;
    // Whether two arrays have the same dtype, and the same shape.
    static bool are_alike(const Array &one, const Array &other);

    PythonTransfers &transfers_; // the binding keeps the object alive
    const nanobind::object allocate_;
};

} // namespace tcuda
