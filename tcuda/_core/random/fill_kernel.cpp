#include "random/fill_kernel.hpp"

#include <dlfcn.h>

#include <stdexcept>
#include <string>

namespace tcuda {
namespace {

constexpr int stream_capture_unsupported = 900;

struct Symbols {
    using Launch = int(std::uintptr_t function, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                       unsigned shared_memory, std::uintptr_t stream, void **arguments, void **extra);
    using IsCapturing = int(std::uintptr_t stream, int *status);

    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    Launch *launch = reinterpret_cast<Launch *>(find("cuLaunchKernel"));
    IsCapturing *is_capturing = reinterpret_cast<IsCapturing *>(find("cuStreamIsCapturing"));

private:
    void *find(const char *name) const {
        void *symbol = library == nullptr ? nullptr : dlsym(library, name);
        if (symbol == nullptr)
            throw std::runtime_error(std::string("libcuda.so.1 cannot be loaded, or has no ") + name);
        return symbol;
    }
};

const Symbols &driver() {
    static const Symbols symbols;
    return symbols;
}

} // namespace

FillKernel::FillKernel(std::uintptr_t function, std::uint64_t itemsize, std::uint64_t lanes, std::uint64_t most_blocks)
    : function_(function), itemsize_(itemsize), passes_(itemsize, lanes, most_blocks) {
    driver();
}

int FillKernel::fill(PhiloxState &state, std::uintptr_t stream, std::uintptr_t out, std::uint64_t size,
                     std::uint64_t first, std::uint64_t second) const {
    int capturing = 0;
    if (const int status = driver().is_capturing(stream, &capturing))
        return status;
    if (capturing != 0)
        return stream_capture_unsupported;
    return state.draw([&](std::uint64_t seed, std::uint64_t &offset) {
        return passes_.each(size, [&](const PhiloxPass &pass) {
            const int status = launch(pass, seed, offset, stream, out, first, second);
            offset += pass.increment;
            return status;
        });
    });
}

int FillKernel::capture(CapturedState &state, std::uintptr_t stream, std::uintptr_t out, std::uint64_t size,
                        std::uint64_t first, std::uint64_t second) const {
    if (const int status = state.join(stream))
        return status;
    return passes_.each(size, [&](const PhiloxPass &pass) {
        return launch(pass, state.words(), state.take(pass.increment), stream, out, first, second);
    });
}

int FillKernel::launch(const PhiloxPass &pass, std::uint64_t state, std::uint64_t offset, std::uintptr_t stream,
                       std::uintptr_t out, std::uint64_t first, std::uint64_t second) const {
    if (pass.size == 0)
        return 0;
    std::uintptr_t part = out + pass.start * itemsize_;
    std::uint64_t elements = pass.size;
    void *arguments[] = {&part, &elements, &state, &offset, &first, &second};
    return driver().launch(function_, static_cast<unsigned>(pass.blocks), 1, 1, philox_block, 1, 1, 0, stream, arguments,
                           nullptr);
}

} // namespace tcuda
