#include "bindings/memory/cupy_face.hpp"

#include <atomic>
#include <memory>
#include <new>

#include "bindings/memory/block_allocator.hpp"
#include "bindings/memory/ledger_errors.hpp"
#include "bindings/memory/python_relief.hpp"
#include "bindings/scopes/current_stream.hpp"
#include "driver/stream_key.hpp"

namespace nb = nanobind;

namespace tcuda {
namespace {

// The parameter that CuPy hands to the functions.
struct CupyFace {
    PythonLedger &self;
    CurrentStream *current_stream;
    nb::object refuse; // None where the functions are not those of a pool's segments
    nb::object begin;  // None where the functions are those of a pool's segments
    std::unique_ptr<std::atomic<bool>[]> begun; // by device

    DeviceLedger &ledger_of(int device) const { return self.ledger.of(device); }
    static const CupyFace &of(void *param) { return *static_cast<const CupyFace *>(param); }
};

// The driver's calls of the ledger do not begin CUDA's runtime, which is slow in each call until it has begun.
void begin_runtime(const CupyFace &face, int device) {
    if (device < 0 || device >= face.self.ledger.devices())
        return;
    std::atomic<bool> &begun = face.begun[static_cast<std::size_t>(device)];
    if (begun.load(std::memory_order_relaxed))
        return;
    face.begin(device);
    begun.store(true, std::memory_order_relaxed);
}

// An exception of C++ reaches the caller of CuPy as the Python error that is set.
void *allocate(void *param, std::size_t size, int device) {
    const CupyFace &face = CupyFace::of(param);
    try {
        begin_runtime(face, device);
        const Stream stream = key_of(static_cast<Stream>(face.current_stream()));
        std::size_t block_size = size;
        PythonRelief relief(face.self);
        const Address address = face.self.ledger.allocate(device, size, stream, &block_size, &relief);
        if (block_size != size)
            larger_block() = block_size;
        return reinterpret_cast<void *>(address);
    } catch (...) {
        set_error(face.self);
        throw std::bad_alloc();
    }
}

void free(void *param, void *address, int device) {
    CupyFace::of(param).ledger_of(device).free(reinterpret_cast<Address>(address));
}

void *allocate_segment(void *param, std::size_t size, int device) {
    const CupyFace &face = CupyFace::of(param);
    try {
        const Address address = face.ledger_of(device).allocate_segment(size);
        if (address != 0)
            return reinterpret_cast<void *>(address);
        face.refuse();
        PyErr_SetString(PyExc_SystemError, "a failure of the ledger raised nothing");
    } catch (...) {
        set_error(face.self);
    }
    throw std::bad_alloc();
}

void free_segment(void *param, void *address, int device) {
    CupyFace::of(param).ledger_of(device).free_segment(reinterpret_cast<Address>(address));
}

using Allocate = void *(void *param, std::size_t size, int device);
using Free = void(void *param, void *address, int device);

nb::tuple addresses(PythonLedger &ledger, nb::handle current_stream, nb::object refuse, nb::object begin,
                    Allocate *allocate, Free *free) {
    CurrentStream *const function = current_stream_in(current_stream);
    auto begun = std::make_unique<std::atomic<bool>[]>(static_cast<std::size_t>(ledger.ledger.devices()));
    auto *const face = new CupyFace{ledger, function, std::move(refuse), std::move(begin),
                                    std::move(begun)}; // lives for ever, like the ledger
    nb::find(ledger).inc_ref();
    return nb::make_tuple(reinterpret_cast<std::uintptr_t>(face), reinterpret_cast<std::uintptr_t>(allocate),
                          reinterpret_cast<std::uintptr_t>(free));
}

} // namespace

nb::tuple cupy_functions(PythonLedger &ledger, nb::handle current_stream, nb::object begin) {
    return addresses(ledger, current_stream, nb::none(), std::move(begin), allocate, free);
}

nb::tuple cupy_segment_functions(PythonLedger &ledger, nb::handle current_stream, nb::object refuse) {
    return addresses(ledger, current_stream, std::move(refuse), nb::none(), allocate_segment, free_segment);
}

} // namespace tcuda
