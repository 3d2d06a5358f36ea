// The calls for events.
#pragma once

#include "races/cupti/seen_call.hpp"

namespace tcuda::cupti {

void create_event(const SeenCall &);
void open_event(const SeenCall &);
void record_event(const SeenCall &);
void synchronize_event(const SeenCall &);
void measure_events(const SeenCall &);
void destroy_event(const SeenCall &);

} // namespace tcuda::cupti
