#pragma once

#include <cstdint>

namespace tcuda {

inline void *host_pointer(std::uintptr_t address) { return reinterpret_cast<void *>(address); }

} // namespace tcuda
