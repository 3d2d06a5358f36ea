#include "cupti/module_calls.hpp"

#include <cstddef>
#include <cstdint>
#include <vector>

#include "cupti/call_parameters.hpp"

namespace tcuda::cupti {
namespace {

// The cubins that the driver has loaded in the current call of this thread.
struct LoadingCall {
    bool active = false;
    std::vector<std::uint32_t> cubins;
};
LoadingCall &loading_call() {
    static thread_local LoadingCall loading;
    return loading;
}

template <bool is_library, bool has_image> void load(const SeenCall &call) {
    LoadingCall &loading = loading_call();
    if (call.entered) {
        loading.active = true;
        loading.cubins.clear();
        return;
    }
    loading.active = false;
    if (call.failed)
        return;
    const auto &loaded = call.as<ModuleLoad>();
    call.watch.launches().module_loaded({*loaded.module, is_library, has_image ? loaded.image : nullptr,
                                         loading.cubins.data(), loading.cubins.size()});
}

} // namespace

void load_module(const SeenCall &call) { load<false, true>(call); }

void load_module_file(const SeenCall &call) { load<false, false>(call); }

void load_library(const SeenCall &call) { load<true, true>(call); }

void load_library_file(const SeenCall &call) { load<true, false>(call); }

void unload_module(const SeenCall &call) { call.watch.launches().module_unloaded(call.as<ModuleUnload>().module); }

void tell_cubin(watch::DriverWatch &watch, const ModuleDescription &module) {
    LoadingCall &loading = loading_call();
    if (loading.active)
        loading.cubins.push_back(module.number);
    watch.launches().cubin_loaded(
        {module.number, reinterpret_cast<const std::byte *>(module.cubin), module.cubin_size});
}

} // namespace tcuda::cupti
