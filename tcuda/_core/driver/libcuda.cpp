#include "driver/libcuda.hpp"

#include <dlfcn.h>

#include <atomic>
#include <stdexcept>
#include <string>

namespace tcuda::libcuda {
namespace {

void *open() {
    void *const opened = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (opened == nullptr)
        throw std::runtime_error(std::string("libcuda.so.1 cannot be loaded: ") + dlerror());
    return opened;
}

void *library() {
    static std::atomic<void *> opened{nullptr}; // after a failure, the next call tries again
    if (opened.load() == nullptr)
        opened = open(); // the same handle in all threads
    return opened;
}

} // namespace

void *find(const char *name) {
    void *const function = dlsym(library(), name);
    if (function == nullptr)
        throw std::runtime_error(std::string("libcuda.so.1 has no ") + name + ": the driver is too old");
    return function;
}

} // namespace tcuda::libcuda
