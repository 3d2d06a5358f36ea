// The memory of the Fourier transforms that a plan of cuFFT makes.
#pragma once

#include <optional>

#include "sanitizer/_cpp/library_calls/known_memory.hpp"
#include "sanitizer/_cpp/library_calls/signature.hpp"

namespace tcuda::library_calls {

// The transform of a call that makes a plan; nothing if its form is unknown.
std::optional<PlannedTransform> transform_of(Extra call, Values values);

} // namespace tcuda::library_calls
