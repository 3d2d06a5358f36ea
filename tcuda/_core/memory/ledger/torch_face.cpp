// Functions with the signatures of torch's pluggable allocator. torch loads this library and finds them by name.
#include "memory/ledger/torch_face.hpp"

#include <atomic>

namespace tcuda {
namespace {

std::atomic<Shared *> shared{nullptr};

} // namespace

void share(Shared *with_torch) { shared.store(with_torch); }

} // namespace tcuda

#define TCUDA_EXPORTED extern "C" __attribute__((visibility("default")))

// torch does not check the result for null, so a lack of memory is an exception. torch makes it a RuntimeError.
TCUDA_EXPORTED void *tcuda_torch_malloc(std::ptrdiff_t size, int device, void *stream) {
    return tcuda::shared.load()->allocate(static_cast<std::size_t>(size), device,
                                          reinterpret_cast<tcuda::Stream>(stream));
}

TCUDA_EXPORTED void tcuda_torch_free(void *address, std::ptrdiff_t, int device, void *) {
    tcuda::shared.load()->free(reinterpret_cast<tcuda::Address>(address), device);
}

TCUDA_EXPORTED void tcuda_torch_record_stream(void *address, void *stream) {
    tcuda::shared.load()->record_stream(reinterpret_cast<tcuda::Address>(address),
                                        reinterpret_cast<tcuda::Stream>(stream));
}
