#include "driver/cuda_devices.hpp"

#include <stdexcept>

#include "driver/status.hpp"

namespace tcuda {

CudaDevices::CudaDevices() : contexts_(libcuda::calls<libcuda::ContextCalls>()) {
    int count = 0;
    if (contexts_.init(0) != success || contexts_.device_count(&count) != success)
        throw std::runtime_error("libcuda.so.1 finds no device");
    devices_.resize(static_cast<std::size_t>(count));
}

CudaDevice &CudaDevices::of(int index) {
    const std::lock_guard lock(mutex_);
    auto &known = devices_.at(static_cast<std::size_t>(index));
    if (known == nullptr) {
        known = found(index);
        if (when_found_)
            when_found_(*known);
    }
    return *known;
}

std::unique_ptr<CudaDevice> CudaDevices::found(int index) const {
    auto made = std::make_unique<CudaDevice>();
    if (contexts_.device_get(&made->handle, index) != success ||
        contexts_.retain_primary(&made->context, made->handle) != success)
        throw std::runtime_error("the device has no context");
    int virtual_memory = 0, rdma = 0, descriptors = 0;
    contexts_.device_attribute(&virtual_memory, libcuda::attribute_virtual_memory, made->handle);
    contexts_.device_attribute(&rdma, libcuda::attribute_rdma_with_virtual, made->handle);
    contexts_.device_attribute(&descriptors, libcuda::attribute_file_descriptors, made->handle);
    made->virtual_memory = virtual_memory != 0;
    made->exportable = descriptors != 0;
    made->properties.type = libcuda::allocation_type_pinned;
    made->properties.location = {libcuda::location_type_device, made->handle};
    made->properties.gpu_direct_rdma = rdma != 0;
    // cudaDeviceEnablePeerAccess() does not reach mapped memory: peers get access when the memory is mapped.
    for (int other = 0; other < static_cast<int>(devices_.size()); ++other) {
        libcuda::Device handle;
        int can = other == index;
        if (contexts_.device_get(&handle, other) == success &&
            (can != 0 || (contexts_.can_access_peer(&can, handle, made->handle) == success && can != 0)))
            made->access.push_back({{libcuda::location_type_device, handle}, libcuda::access_read_write});
    }
    return made;
}

} // namespace tcuda
