#include "sanitizer/_cpp/cupti/watched_calls.hpp"

#include <utility>
#include <vector>

#include "sanitizer/_cpp/cupti/call_parameters.hpp"

namespace tcuda::cupti {

using watch::CallStream;
using watch::Launch;

namespace {

template <typename Parameters> Launch launch_of(const SeenCall &call, const Parameters &launch, void **extra) {
    Launch made{launch.function, call.symbol, launch.parameters, extra, {}};
    made.set_sizes(launch.grid, launch.block);
    return made;
}

} // namespace

void launch_kernel(const SeenCall &call) {
    const auto &launch = call.as<LaunchKernel>();
    call.watch.launched(call.stream(launch.stream), launch_of(call, launch, launch.extra));
}

void launch_cooperative(const SeenCall &call) {
    const auto &launch = call.as<LaunchKernel>();
    call.watch.launched(call.stream(launch.stream), launch_of(call, launch, nullptr)); // the list has no `extra`
}

void launch_configured(const SeenCall &call) {
    const auto &launch = call.as<LaunchKernelEx>();
    if (launch.configuration == nullptr)
        return;
    Launch made{launch.function, call.symbol, launch.parameters, launch.extra, {}};
    made.set_sizes(launch.configuration->grid, launch.configuration->block);
    call.watch.launched(call.stream(launch.configuration->stream), made);
}

void launch_on_devices(const SeenCall &call) {
    const auto &all = call.as<LaunchCooperativeMultiDevice>();
    std::vector<std::pair<CallStream, Launch>> launches;
    for (unsigned place = 0; place < all.count; ++place) {
        const LaunchParameters &launch = all.launches[place];
        launches.emplace_back(call.stream(launch.stream), launch_of(call, launch, nullptr));
    }
    call.watch.launched_together(launches);
}

void queue_host_function(const SeenCall &call) {
    const watch::CallStream stream = call.stream(call.as<OnStream>().stream);
    if (call.entered)
        call.watch.host_function_about_to_be_queued(stream);
    else
        call.watch.host_function_queued(stream);
}

} // namespace tcuda::cupti
