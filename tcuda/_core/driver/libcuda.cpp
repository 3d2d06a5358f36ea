#include "driver/libcuda.hpp"

#include <dlfcn.h>

#include <stdexcept>
#include <string>

namespace tcuda::libcuda {
namespace {

// A failure leaves the static variable of library() unset, so the next call tries again.
void *open() {
    void *const opened = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (opened == nullptr)
        throw std::runtime_error(std::string("libcuda.so.1 cannot be loaded: ") + dlerror());
    return opened;
}

void *library() {
    static void *const opened = open();
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
