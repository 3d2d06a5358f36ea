#include "sanitizer/_cpp/cupti/watched_calls.hpp"

#include "sanitizer/_cpp/cupti/call_parameters.hpp"

namespace tcuda::cupti {
namespace {

template <typename Parameters> void allocate(const SeenCall &call) {
    const auto &made = call.as<Parameters>();
    call.watch.memory_allocated_async(call.stream(made.stream), *made.address, made.size);
}

} // namespace

void free(const SeenCall &call) {
    const libcuda::DevicePointer address = call.as<Free>().address;
    if (address == 0) // libraries make this call to get a context; by CUDA's documentation, the call does nothing else
        return;
    if (call.entered)
        call.watch.memory_about_to_be_freed(call.context, address);
    else
        call.watch.memory_freed(call.context);
}

void allocate_async(const SeenCall &call) { allocate<AllocateAsync>(call); }

void allocate_from_pool_async(const SeenCall &call) { allocate<AllocateFromPoolAsync>(call); }

void free_async(const SeenCall &call) {
    const auto &freed = call.as<FreeAsync>();
    call.watch.memory_about_to_be_freed_async(call.stream(freed.stream), freed.address);
}

void allocate_host(const SeenCall &call) {
    const auto &made = call.as<AllocateHost>();
    call.watch.host_memory_locked(reinterpret_cast<Address>(*made.address), made.size, true);
}

void register_host(const SeenCall &call) {
    const auto &made = call.as<RegisterHost>();
    call.watch.host_memory_locked(reinterpret_cast<Address>(made.address), made.size, false);
}

void release_host(const SeenCall &call) {
    call.watch.host_memory_about_to_be_unlocked(reinterpret_cast<Address>(call.as<ReleaseHost>().address));
}

} // namespace tcuda::cupti
