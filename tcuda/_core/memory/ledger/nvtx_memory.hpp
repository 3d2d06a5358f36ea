// The arrays in segments, told to a tool that checks memory, such as compute-sanitizer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>

#include "memory/records/memory_observer.hpp"

namespace tcuda {

// Calls NVTX's extension for memory: each segment is a heap, and each array a region of the heap. The tool then finds
// accesses of the memory between arrays. Without a tool that knows the extension, the observer is not attached.
//
// The declarations of NVTX's types and numbers follow its documentation: https://nvidia.github.io/NVTX.
class NvtxMemory final : public MemoryObserver {
public:
    // Loads the library of the tool at `path`, the value of NVTX_INJECTION64_PATH.
    explicit NvtxMemory(const char *path);
    NvtxMemory(const NvtxMemory &) = delete;
    NvtxMemory &operator=(const NvtxMemory &) = delete;

    bool is_attached() const { return attached_; }

    void memory_mapped(Address address, std::size_t size) noexcept override;
    void memory_allocated(Address address, std::size_t size, int device, Stream stream,
                          StackId stack) noexcept override;
    void memory_freed(Address address, StackId stack) noexcept override;
    void memory_unmapped(Address address, std::size_t size, int device, bool waited) noexcept override;
    void host_memory_allocated(Address, std::size_t) noexcept override {}
    void host_memory_freed(Address) noexcept override {}

private:
    struct Heap {
        std::size_t size;
        void *handle;
    };

    static constexpr std::size_t function_count = 63;

    const Heap *heap_at(Address address) const noexcept;

    template <typename Function> Function *function(std::size_t place) const {
        return reinterpret_cast<Function *>(functions_[place]);
    }

    std::mutex mutex_; // the ledgers of several devices call at the same time
    std::map<Address, Heap> heaps_;
    std::intptr_t functions_[function_count] = {};
    bool attached_ = false;
};

} // namespace tcuda
