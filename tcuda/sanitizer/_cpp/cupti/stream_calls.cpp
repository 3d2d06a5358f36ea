#include "sanitizer/_cpp/cupti/watched_calls.hpp"

#include "driver/libcuda_types.hpp"
#include "sanitizer/_cpp/cupti/call_parameters.hpp"

namespace tcuda::cupti {

void write_value(const SeenCall &call) {
    const auto &write = call.as<StreamValue>();
    if (call.entered)
        call.watch.value_about_to_be_written(call.stream(write.stream));
    else
        call.watch.value_written(call.stream(write.stream), write.address);
}

void wait_for_value(const SeenCall &call) {
    const auto &wait = call.as<StreamValue>();
    call.watch.value_waited(call.stream(wait.stream), wait.address);
}

void create_stream(const SeenCall &call) {
    const auto &made = call.as<StreamCreate>();
    call.watch.stream_created(call.context, *made.stream, (made.flags & libcuda::stream_non_blocking) == 0);
}

void destroy_stream(const SeenCall &call) { call.watch.stream_about_to_be_destroyed(call.as<OnStream>().stream); }

void synchronize_stream(const SeenCall &call) {
    call.watch.stream_synchronized(call.stream(call.as<OnStream>().stream));
}

void wait_for_event(const SeenCall &call) {
    const auto &wait = call.as<StreamWaitEvent>();
    call.watch.event_waited(call.stream(wait.stream), wait.event);
}

void synchronize_context(const SeenCall &call) { call.watch.context_synchronized(call.context); }

void synchronize_named_context(const SeenCall &call) {
    const libcuda::Context context = call.as<ContextSynchronize>().context;
    call.watch.context_synchronized(context != 0 ? context : call.context);
}

} // namespace tcuda::cupti
