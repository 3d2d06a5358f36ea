#include "memory/ledger/nvtx_memory.hpp"

#include <dlfcn.h>

namespace tcuda {
namespace {

constexpr std::uint16_t nvtx_version = 3, memory_extension = 1, memory_version = 0x0102;
constexpr std::uint32_t sub_allocator = 1, virtual_address = 1, pointer = 1;

// The places of the functions of the extension.
enum Place : std::size_t { heap_register = 0, heap_unregister = 1, regions_register = 3, regions_unregister = 5 };

struct FunctionTable {
    std::size_t id, count;
    std::intptr_t *functions;
};

struct Module {
    std::uint16_t version, size, module, module_version;
    std::size_t table_count;
    FunctionTable *tables;
    std::intptr_t (*export_function)(std::uint32_t);
    const void *information;
};

struct VirtualRange {
    std::size_t size;
    const void *address;
};

struct HeapDescription {
    std::uint16_t version, size;
    std::uint32_t reserved, usage, type;
    std::size_t range_size;
    const VirtualRange *range;
    std::uint32_t category, message_type;
    const void *message;
};

struct NewRegions {
    std::uint16_t version, size;
    std::uint32_t type;
    void *heap;
    std::size_t count, element_size;
    const VirtualRange *ranges;
    void **handles;
};

struct OldRegions {
    std::uint16_t version, size;
    std::uint32_t type;
    std::size_t count, element_size;
    const void *const *addresses;
};

using Initialize = int(Module *);
using RegisterHeap = void *(void *domain, const HeapDescription *);
using UnregisterHeap = void(void *domain, void *heap);
using RegisterRegions = void(void *domain, const NewRegions *);
using UnregisterRegions = void(void *domain, const OldRegions *);

const void *in_memory(Address address) { return reinterpret_cast<const void *>(address); }

} // namespace

NvtxMemory::NvtxMemory(const char *path) {
    // The library stays loaded, because the tool uses the library, too.
    void *const library = dlopen(path, RTLD_LAZY);
    if (library == nullptr)
        return;
    auto *const initialize = reinterpret_cast<Initialize *>(dlsym(library, "InitializeInjectionNvtxExtension"));
    FunctionTable table{1, function_count, functions_};
    Module module{nvtx_version, sizeof(Module), memory_extension, memory_version, 1, &table, nullptr, nullptr};
    attached_ = initialize != nullptr && initialize(&module) != 0 && functions_[heap_register] != 0 &&
                functions_[heap_unregister] != 0 && functions_[regions_register] != 0 &&
                functions_[regions_unregister] != 0;
}

void NvtxMemory::memory_mapped(Address address, std::size_t size) noexcept {
    const std::lock_guard<std::mutex> lock(mutex_);
    const VirtualRange range{size, in_memory(address)};
    const HeapDescription description{
        memory_version, sizeof(HeapDescription), 0, sub_allocator, virtual_address, sizeof(VirtualRange), &range, 0, 0,
        nullptr};
    void *const handle = function<RegisterHeap>(heap_register)(nullptr, &description);
    try {
        heaps_[address] = {size, handle};
    } catch (...) { // The host lacks memory. A heap without known arrays would make each access look wrong.
        function<UnregisterHeap>(heap_unregister)(nullptr, handle);
    }
}

void NvtxMemory::memory_allocated(Address address, std::size_t size, int, Stream, StackId) noexcept {
    const std::lock_guard<std::mutex> lock(mutex_);
    const Heap *const heap = heap_at(address);
    if (heap == nullptr)
        return;
    const VirtualRange range{size, in_memory(address)};
    void *region = nullptr;
    const NewRegions regions{
        memory_version, sizeof(NewRegions), virtual_address, heap->handle, 1, sizeof(VirtualRange), &range, &region};
    function<RegisterRegions>(regions_register)(nullptr, &regions);
}

void NvtxMemory::memory_freed(Address address, StackId) noexcept {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (heap_at(address) == nullptr)
        return;
    const void *const freed = in_memory(address);
    const OldRegions regions{memory_version, sizeof(OldRegions), pointer, 1, sizeof(freed), &freed};
    function<UnregisterRegions>(regions_unregister)(nullptr, &regions);
}

void NvtxMemory::memory_unmapped(Address address, std::size_t, int, bool) noexcept {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto found = heaps_.find(address);
    if (found == heaps_.end())
        return;
    function<UnregisterHeap>(heap_unregister)(nullptr, found->second.handle);
    heaps_.erase(found);
}

const NvtxMemory::Heap *NvtxMemory::heap_at(Address address) const noexcept {
    auto after = heaps_.upper_bound(address);
    if (after == heaps_.begin())
        return nullptr;
    const auto &[begin, heap] = *--after;
    return address < begin + heap.size ? &heap : nullptr;
}

} // namespace tcuda
