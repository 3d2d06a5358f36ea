#include "driver/imported_access.hpp"

#include <vector>

#include "driver/status.hpp"

namespace tcuda {

int ImportedAccess::add(const libcuda::MemoryCalls &memory, const CudaDevice &owner, libcuda::DevicePointer address,
                        std::size_t size) {
    const std::lock_guard lock(mutex_);
    std::vector<libcuda::AccessDescription> access;
    for (const libcuda::AccessDescription &one : owner.access)
        if (one.location.id == owner.handle || is_active(one.location.id))
            access.push_back(one);
    const auto added = pieces_.insert_or_assign(address, Piece{size, &owner}).first;
    const int status = memory.set_access(address, size, access.data(), access.size());
    if (status != success)
        pieces_.erase(added);
    return status;
}

void ImportedAccess::remove(libcuda::DevicePointer address) {
    const std::lock_guard lock(mutex_);
    pieces_.erase(address);
}

void ImportedAccess::allow(const libcuda::MemoryCalls &memory, const CudaDevice &device) {
    const std::lock_guard lock(mutex_);
    for (const auto &[address, piece] : pieces_)
        for (const libcuda::AccessDescription &one : piece.owner->access)
            if (one.location.id == device.handle && piece.owner != &device)
                memory.set_access(address, piece.size, &one, 1);
}

bool ImportedAccess::is_active(libcuda::Device device) const {
    unsigned flags = 0;
    int active = 0;
    return contexts_.primary_state(device, &flags, &active) != success || active != 0;
}

} // namespace tcuda
