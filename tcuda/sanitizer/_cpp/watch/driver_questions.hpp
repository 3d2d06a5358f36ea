// What the watch asks the driver. The functions are those of libcuda, or functions of a test.
#pragma once

#include "driver/driver.hpp"
#include "driver/libcuda_types.hpp"
#include "sanitizer/_cpp/watch/kernel_questions.hpp"

namespace tcuda::watch {

// Each function returns a status and has the parameters of the function of libcuda that it stands for. A function that
// the driver lacks is null. The driver allows all functions in a callback, and under RelaxedQuestions also during a
// capture, with one exception: `stream_context` invalidates the capture of the stream.
struct DriverQuestions {
    int (*current_device)(int *device) = nullptr;                                       // cuCtxGetDevice
    int (*push_context)(libcuda::Context) = nullptr;                                    // cuCtxPushCurrent_v2
    int (*pop_context)(libcuda::Context *) = nullptr;                                   // cuCtxPopCurrent_v2
    int (*stream_context)(libcuda::Stream, libcuda::Context *) = nullptr;               // cuStreamGetCtx
    int (*stream_flags)(libcuda::Stream, unsigned *flags) = nullptr;                    // cuStreamGetFlags
    int (*capture_info)(libcuda::Stream, int *status, libcuda::CaptureId *) = nullptr;  // cuStreamGetCaptureInfo
    int (*address_range)(libcuda::DevicePointer *begin, std::size_t *size,
                         libcuda::DevicePointer) = nullptr; // cuMemGetAddressRange_v2
    int (*exchange_capture_mode)(int *mode) = nullptr; // cuThreadExchangeStreamCaptureMode
    int (*pointer_attribute)(void *value, int attribute, libcuda::DevicePointer) = nullptr; // cuPointerGetAttribute

    static DriverQuestions from(const FindFunction &find);
    bool complete() const; // whether no question is missing without which the watch cannot work
};

} // namespace tcuda::watch
