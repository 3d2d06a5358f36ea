#include "driver/green_contexts.hpp"

#include "driver/relaxed_captures.hpp"
#include "driver/status.hpp"

namespace tcuda {

using libcuda::DeviceResource;

GreenContexts::GreenContexts()
    : contexts_(libcuda::calls<libcuda::ContextCalls>()), streams_(libcuda::calls<libcuda::StreamCalls>()),
      captures_(libcuda::calls<libcuda::CaptureCalls>()), calls_(libcuda::calls<libcuda::GreenContextCalls>()) {}

int GreenContexts::create(int device, unsigned *multiprocessors, int scope, unsigned limit,
                          libcuda::GreenContext *made) const {
    libcuda::Device handle = 0;
    if (const int status = contexts_.device_get(&handle, device))
        return status;
    DeviceResource resources[2] = {};
    unsigned count = 0;
    DeviceResource whole{};
    if (const int status = calls_.device_resource(handle, &whole, libcuda::resource_multiprocessors))
        return status;
    if (*multiprocessors == 0) {
        *multiprocessors = whole.multiprocessors.count;
    } else if (*multiprocessors == whole.multiprocessors.count) { // need not be a multiple of the size of a group
        resources[count++] = whole;
    } else {
        unsigned groups = 1;
        if (const int status = calls_.split(&resources[count], &groups, &whole, nullptr, 0, *multiprocessors))
            return status;
        if (groups != 1)
            return libcuda::invalid_resource_configuration;
        *multiprocessors = resources[count++].multiprocessors.count;
    }
    if (scope >= 0) {
        DeviceResource &queues = resources[count];
        if (const int status = calls_.device_resource(handle, &queues, libcuda::resource_work_queues))
            return status;
        queues.work_queues.scope = scope;
        if (limit != 0)
            queues.work_queues.limit = limit;
        ++count;
    }
    libcuda::ResourceDescriptor descriptor = 0;
    if (const int status = calls_.describe(&descriptor, resources, count))
        return status;
    return calls_.create(made, descriptor, handle, libcuda::green_context_default_stream);
}

int GreenContexts::work_queue_concurrency(int device, unsigned *limit) const {
    libcuda::Device handle = 0;
    if (const int status = contexts_.device_get(&handle, device))
        return status;
    DeviceResource queues{};
    const int status = calls_.device_resource(handle, &queues, libcuda::resource_work_queues);
    *limit = queues.work_queues.limit;
    return status;
}

int GreenContexts::create_stream(libcuda::GreenContext context, unsigned flags, int priority, libcuda::Stream *made) {
    const std::lock_guard lock(mutex_);
    std::vector<libcuda::Stream> &streams = made_[context];
    streams.reserve(streams.size() + 1);
    const int status = calls_.create_stream(made, context, flags, priority);
    if (status == success)
        streams.push_back(*made);
    return status;
}

int GreenContexts::destroy(libcuda::GreenContext context) {
    std::vector<libcuda::Stream> streams;
    {
        const std::lock_guard lock(mutex_);
        const auto found = made_.find(context);
        if (found != made_.end()) {
            streams.swap(found->second);
            made_.erase(found);
        }
    }
    const RelaxedCaptures relaxed(captures_); // the object of the context may die during a capture of another stream
    int first = success;
    const auto note = [&first](int status) { first = first == success ? status : first; };
    for (const libcuda::Stream stream : streams) {
        note(streams_.synchronize(stream));
        note(calls_.destroy_stream(stream));
    }
    const std::lock_guard lock(mutex_);
    note(calls_.destroy(context));
    return first;
}

} // namespace tcuda
