// Contexts with a share of the multiprocessors and the work queues of a device, and their streams.
#pragma once

#include <mutex>
#include <unordered_map>
#include <vector>

#include "driver/libcuda.hpp"

namespace tcuda {

// Every call returns a status. The primary context of the device must exist.
//
// The driver forbids two threads to use one green context at the same time, so a mutex guards all calls that take one.
class GreenContexts {
public:
    // Throws std::runtime_error where there is no driver, or one older than that of CUDA 12.5.
    GreenContexts();

    // Makes a context with at least `multiprocessors` multiprocessors, which becomes the true number; 0 means all.
    //   scope: the sharing scope of the work queues; negative for none, as drivers before 13.1 know no work queues.
    //   limit: the streams of the work queues that may work at the same time; 0 for the driver's own limit.
    int create(int device, unsigned *multiprocessors, int scope, unsigned limit, libcuda::GreenContext *made) const;

    // The streams with concurrent work for which a driver of CUDA 13.1 or later has work queues.
    int work_queue_concurrency(int device, unsigned *limit) const;

    // Makes a stream, which ends with the context. May throw std::bad_alloc.
    int create_stream(libcuda::GreenContext context, unsigned flags, int priority, libcuda::Stream *made);

    // Waits for the streams of the context, and destroys the streams and the context. The first failure is returned,
    // and ends nothing.
    int destroy(libcuda::GreenContext context);

private:
    const libcuda::ContextCalls &contexts_;
    const libcuda::StreamCalls &streams_;
    const libcuda::CaptureCalls &captures_;
    const libcuda::GreenContextCalls &calls_;
    std::mutex mutex_; // guards the streams, too
    std::unordered_map<libcuda::GreenContext, std::vector<libcuda::Stream>> made_;
};

} // namespace tcuda
