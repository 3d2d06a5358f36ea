#include "bindings/cupy_face.hpp"

#include <new>

#include "bindings/block_allocator.hpp"
#include "bindings/current_stream.hpp"
#include "bindings/ledger_errors.hpp"
#include "driver/stream_key.hpp"

namespace nb = nanobind;

namespace tcuda {
namespace {

// The parameter that CuPy hands to the functions.
struct CupyFace {
    PythonLedger &self;
    CurrentStream *current_stream;
    nb::object refuse; // None where the functions are not those of a pool's segments

    DeviceLedger &ledger_of(int device) const { return self.ledger.of(device); }
    static const CupyFace &of(void *param) { return *static_cast<const CupyFace *>(param); }
};

// An exception of C++ reaches the caller of CuPy as the Python error that is set.
void *allocate(void *param, std::size_t size, int device) {
    const CupyFace &face = CupyFace::of(param);
    try {
        const Stream stream = key_of(static_cast<Stream>(face.current_stream()));
        std::size_t block_size = size;
        const Address address = face.self.ledger.allocate(device, size, stream, &block_size);
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

nb::tuple addresses(PythonLedger &ledger, nb::handle current_stream, nb::object refuse, Allocate *allocate,
                    Free *free) {
    CurrentStream *const function = current_stream_in(current_stream);
    auto *const face = new CupyFace{ledger, function, std::move(refuse)}; // lives for ever, like the ledger
    nb::find(ledger).inc_ref();
    return nb::make_tuple(reinterpret_cast<std::uintptr_t>(face), reinterpret_cast<std::uintptr_t>(allocate),
                          reinterpret_cast<std::uintptr_t>(free));
}

} // namespace

nb::tuple cupy_functions(PythonLedger &ledger, nb::handle current_stream) {
    return addresses(ledger, current_stream, nb::none(), allocate, free);
}

nb::tuple cupy_segment_functions(PythonLedger &ledger, nb::handle current_stream, nb::object refuse) {
    return addresses(ledger, current_stream, std::move(refuse), allocate_segment, free_segment);
}

} // namespace tcuda
