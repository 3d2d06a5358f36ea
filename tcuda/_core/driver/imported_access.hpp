// The access of devices to memory that was imported from other processes.
//
// The driver takes 1.5 ms or more for each further device that gets access to a piece. So a piece is accessible only to
// its own device and to the devices with an active primary context. A device whose context becomes active later gets
// access when the core first uses the device.
#pragma once

#include <cstddef>
#include <map>
#include <mutex>

#include "driver/cuda_devices.hpp"
#include "driver/libcuda.hpp"

namespace tcuda {

class ImportedAccess {
public:
    explicit ImportedAccess(const libcuda::ContextCalls &contexts) : contexts_(contexts) {}

    // Makes memory accessible that is mapped on `owner`. Returns a status. Throws std::bad_alloc.
    int add(const libcuda::MemoryCalls &memory, const CudaDevice &owner, libcuda::DevicePointer address,
            std::size_t size);

    // Forgets the memory at `address`, if there is any, before the memory is unmapped.
    void remove(libcuda::DevicePointer address);

    // Makes all memory accessible to `device`, whose context is active from now on. A failure is not reported: the
    // driver reports an access that is not possible.
    void allow(const libcuda::MemoryCalls &memory, const CudaDevice &device);

private:
    struct Piece {
        std::size_t size;
        const CudaDevice *owner;
    };

    bool is_active(libcuda::Device device) const;

    const libcuda::ContextCalls &contexts_;
    // Guards `pieces_`, and is held during the calls of libcuda. So a device whose context becomes active meanwhile is
    // seen by add(), or sees the piece in allow().
    std::mutex mutex_;
    std::map<libcuda::DevicePointer, Piece> pieces_;
};

} // namespace tcuda
