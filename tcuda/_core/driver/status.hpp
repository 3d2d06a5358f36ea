// The statuses of CUDA that the core acts on or returns. The driver's numbers are those of the CUDA runtime.
#pragma once

namespace tcuda {

constexpr int success = 0;
constexpr int invalid_value = 1;
constexpr int out_of_memory = 2;
constexpr int invalid_device = 101;
constexpr int invalid_context = 201;
constexpr int invalid_handle = 400;
constexpr int illegal_state = 401;
constexpr int not_ready = 600;
constexpr int not_supported = 801;
constexpr int capture_unsupported = 900; // the call is not permitted while the stream is capturing
constexpr int capture_invalidated = 901; // an earlier call has invalidated the capture
constexpr int capture_implicit = 906;    // the call would make the default stream depend on a capture
constexpr int unknown_error = 999;

} // namespace tcuda
