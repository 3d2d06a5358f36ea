// The calls that load and unload modules and libraries.
#pragma once

#include "races/cupti/seen_call.hpp"

namespace tcuda::cupti {

void load_module(const SeenCall &); // from an image in memory
void load_module_file(const SeenCall &);
void unload_module(const SeenCall &);

} // namespace tcuda::cupti
