// Transfers between CuPy's arrays of several devices. tcuda/_backend/transfers.py has the protocol.
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <map>
#include <mutex>
#include <tuple>
#include <utility>
#include <vector>

#include "bindings/arrays/array_reader.hpp"
#include "bindings/arrays/array_type.hpp"
#include "bindings/scopes/current_stream.hpp"
#include "transfers/transfer.hpp"

namespace tcuda {

// The functions in Python that transfers call.
struct TransferFunctions {
    nanobind::object scalar_type; // scalar_type(dtype): the dtype as the maker of arrays gets it
    nanobind::object reach;       // reach(device, peer): whether the device can use the memory of the peer
    nanobind::object fail;        // fail(status, call): raises the error
    nanobind::object check;       // check(device, stream, other_device, other_stream): refuses a wait in a capture
    nanobind::object load;        // load(device, kind, dtype, count): the CUfunction of a kernel; 0 if there is none
};

class PythonTransfers {
public:
    // `captures` is the list of the captures in progress.
    PythonTransfers(const ArrayType &arrays, nanobind::type_object type, nanobind::type_object pointer,
                    nanobind::handle current_stream, nanobind::list captures, TransferFunctions functions);

    nanobind::object empty(nanobind::handle shape, nanobind::handle dtype, int device);
    void relay(nanobind::handle arrays, nanobind::handle hops);
    void copy_rows(nanobind::handle target, std::size_t target_pitch, nanobind::handle source, std::size_t source_pitch,
                   std::size_t width, std::size_t rows);
    void upload(nanobind::handle targets, nanobind::handle addresses);
    // Packs the first arrays, which together have at least `full` bytes, or all. None, with nothing done, unless these
    // are two or more arrays in C order on `device`.
    nanobind::object pack(nanobind::handle arrays, int device, std::uint64_t full);
    nanobind::object views(nanobind::handle flat, nanobind::handle like, nanobind::handle offsets);
    // False, with nothing done, if the core has no kernel for the sum.
    bool add(nanobind::handle out, nanobind::handle inputs, bool release);

private:
    class Call;
    using Kernel = std::tuple<int, int, PyObject *, int>;

    // Raises a Python error if a device is out of range, or if the question fails.
    bool reaches(int device, int peer);
    // The function of a kernel; 0 if there is none.
    libcuda::Function function(int device, int kind, nanobind::handle dtype, int count);
    // The kernel that packs so many arrays.
    PackKernel pack_kernel(int device, std::size_t arrays);
    // The most blocks of an addition of arrays of so many bytes.
    unsigned addition_blocks(int device, std::uint64_t bytes);
    // The dtype as the maker of arrays gets it. Borrowed reference.
    PyObject *made_as(PyObject *dtype);
    // A new array in C order, in the memory at `offset` bytes behind `pointer`.
    nanobind::object array_at(PyObject *pointer, std::uint64_t offset, PyObject *shape, PyObject *dtype);

    const ArrayType &arrays_;
    ArrayReader reader_;
    CurrentStream *const current_stream_;
    const nanobind::list captures_;
    const TransferFunctions functions_;
    TransferDevices devices_;
    // These change only under Python's lock.
    std::vector<std::pair<nanobind::object, nanobind::object>> scalar_types_; // by dtype
    std::map<Kernel, std::pair<libcuda::Function, nanobind::object>> kernels_; // with the dtype
};

} // namespace tcuda
