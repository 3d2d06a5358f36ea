#include "sanitizer/_cpp/cupti/watched_calls.hpp"

#include "sanitizer/_cpp/cupti/call_parameters.hpp"

namespace tcuda::cupti {

void load_module(const SeenCall &call) {
    const auto &loaded = call.as<ModuleLoad>();
    call.watch.launches().module_loaded(*loaded.module, loaded.image);
}

void load_module_file(const SeenCall &call) {
    call.watch.launches().module_loaded(*call.as<ModuleLoad>().module, nullptr);
}

void unload_module(const SeenCall &call) { call.watch.launches().module_unloaded(call.as<ModuleUnload>().module); }

} // namespace tcuda::cupti
