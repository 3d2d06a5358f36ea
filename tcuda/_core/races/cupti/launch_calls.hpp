// The calls that launch kernels and functions of the host.
#pragma once

#include "races/cupti/seen_call.hpp"

namespace tcuda::cupti {

void launch_kernel(const SeenCall &);
void launch_cooperative(const SeenCall &);
void launch_configured(const SeenCall &);
void launch_on_devices(const SeenCall &);
void queue_host_function(const SeenCall &);

} // namespace tcuda::cupti
