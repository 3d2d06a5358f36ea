// The calls that take and give back memory of devices and page-locked memory.
#pragma once

#include "races/cupti/seen_call.hpp"

namespace tcuda::cupti {

void free(const SeenCall &);
void allocate_async(const SeenCall &);
void allocate_from_pool_async(const SeenCall &);
void free_async(const SeenCall &);
void allocate_host(const SeenCall &);
void register_host(const SeenCall &);
void release_host(const SeenCall &);

} // namespace tcuda::cupti
