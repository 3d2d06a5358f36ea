// The calls for streams, and for all streams of a context.
#pragma once

#include "races/cupti/seen_call.hpp"

namespace tcuda::cupti {

void write_value(const SeenCall &);
void wait_for_value(const SeenCall &);
void create_stream(const SeenCall &);
void destroy_stream(const SeenCall &);
void synchronize_stream(const SeenCall &);
void wait_for_event(const SeenCall &);
void synchronize_context(const SeenCall &);
void synchronize_named_context(const SeenCall &);

} // namespace tcuda::cupti
