#include "bindings/driver/python_cuda_driver.hpp"

#include <nanobind/nanobind.h>

#include "bindings/threads/python_lock.hpp"

namespace tcuda {
namespace {

template <typename Call> int waiting(Call call) {
    if (!holds_python_lock())
        return call();
    const nanobind::gil_scoped_release release;
    return call();
}

} // namespace

int PythonCudaDriver::synchronize(int device, Event event) {
    return waiting([&] { return CudaDriver::synchronize(device, event); });
}

int PythonCudaDriver::synchronize_stream(int device, Stream stream) {
    return waiting([&] { return CudaDriver::synchronize_stream(device, stream); });
}

int PythonCudaDriver::synchronize_device(int device) {
    return waiting([&] { return CudaDriver::synchronize_device(device); });
}

} // namespace tcuda
