#pragma once

#include "driver/libcuda_types.hpp"

namespace tcuda::watch {

// For the lifetime of the object, captures forbid this thread no questions. The driver may load a kernel to answer a
// question, and would otherwise invalidate the capture. A question for the context of a capturing stream invalidates
// the capture all the same.
class RelaxedQuestions {
public:
    using Exchange = int(int *mode); // cuThreadExchangeStreamCaptureMode

    // `exchange` is null if the driver lacks the function.
    explicit RelaxedQuestions(Exchange *exchange) : exchange_(exchange) { change(); }
    ~RelaxedQuestions() { change(); }
    RelaxedQuestions(const RelaxedQuestions &) = delete;
    RelaxedQuestions &operator=(const RelaxedQuestions &) = delete;

private:
    void change() {
        if (exchange_ != nullptr)
            exchange_(&mode_);
    }

    Exchange *const exchange_;
    int mode_ = libcuda::capture_mode_relaxed; // the thread's own mode after the constructor
};

} // namespace tcuda::watch
