#include "sanitizer/_cpp/cupti/watched_calls.hpp"

#include "sanitizer/_cpp/cupti/call_parameters.hpp"

namespace tcuda::cupti {

void create_event(const SeenCall &call) {
    const auto &made = call.as<EventCreate>();
    if ((made.flags & event_interprocess) != 0)
        call.watch.event_shared(*made.event);
}

void open_event(const SeenCall &call) { call.watch.event_shared(*call.as<EventCreate>().event); }

void record_event(const SeenCall &call) {
    const auto &record = call.as<EventRecord>();
    call.watch.event_recorded(call.stream(record.stream), record.event);
}

void synchronize_event(const SeenCall &call) { call.watch.event_synchronized(call.as<OnEvent>().event); }

// The time between two events is known once both are complete.
void measure_events(const SeenCall &call) {
    const auto &events = call.as<EventElapsedTime>();
    call.watch.event_synchronized(events.start);
    call.watch.event_synchronized(events.end);
}

void destroy_event(const SeenCall &call) { call.watch.event_about_to_be_destroyed(call.as<OnEvent>().event); }

} // namespace tcuda::cupti
