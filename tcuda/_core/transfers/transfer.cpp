#include "transfers/transfer.hpp"

namespace tcuda {

Transfer::Transfer(TransferDevices &devices, WaitGuard *guard)
    : devices_(devices), guard_(guard), streams_(libcuda::calls<libcuda::StreamCalls>()),
      calls_(libcuda::calls<libcuda::TransferCalls>()) {
    devices_.contexts().get_current(&before_);
    current_ = before_;
}

Transfer::~Transfer() {
    if (current_ != before_)
        devices_.contexts().set_current(before_);
}

bool Transfer::enter(int device) {
    if (status_ != success || is_refused_)
        return false;
    if (device == device_)
        return true;
    libcuda::Context context = 0;
    if (!done(devices_.context(device, &context), "cuDevicePrimaryCtxRetain"))
        return false;
    if (context != current_ && !done(devices_.contexts().set_current(context), "cuCtxSetCurrent"))
        return false;
    current_ = context;
    device_ = device;
    return true;
}

bool Transfer::wait(const Place &waiting, const Place &awaited) {
    if (waiting.device == awaited.device && waiting.stream == awaited.stream)
        return status_ == success && !is_refused_;
    if (!enter(awaited.device))
        return false;
    if (guard_ != nullptr && !guard_->allows(waiting, awaited)) {
        is_refused_ = true;
        return false;
    }
    libcuda::Event event = 0;
    if (!done(devices_.take_event(awaited.device, &event), "cuEventCreate"))
        return false;
    const bool is_done = done(streams_.event_record(event, awaited.stream), "cuEventRecord") &&
                         enter(waiting.device) &&
                         done(calls_.wait_event(waiting.stream, event, 0), "cuStreamWaitEvent");
    devices_.give_event(awaited.device, event);
    return is_done;
}

bool Transfer::copy(const End &target, const End &source, std::size_t bytes) {
    if (!enter(source.place.device))
        return false;
    const libcuda::Stream stream = source.place.stream;
    if (bytes == 0)
        return true;
    if (guard_ != nullptr || target.place.device == source.place.device) // a graph gets a node of addresses alone
        return done(calls_.copy(target.address, source.address, bytes, stream), "cuMemcpyAsync");
    libcuda::Context context = 0;
    return done(devices_.context(target.place.device, &context), "cuDevicePrimaryCtxRetain") &&
           done(calls_.copy_peer(target.address, context, source.address, current_, bytes, stream),
                "cuMemcpyPeerAsync");
}

bool Transfer::copy_rows(const End &target, std::size_t target_pitch, const End &source, std::size_t source_pitch,
                         std::size_t width, std::size_t rows) {
    if (!enter(source.place.device))
        return false;
    if (width == 0 || rows == 0)
        return true;
    libcuda::RowCopy copy{};
    copy.source.memory_type = copy.target.memory_type = libcuda::memory_type_unified;
    copy.source.device = source.address;
    copy.source.pitch = source_pitch;
    copy.target.device = target.address;
    copy.target.pitch = target_pitch;
    copy.width = width;
    copy.height = rows;
    return done(calls_.copy_rows(&copy, source.place.stream), "cuMemcpy2DAsync");
}

bool Transfer::launch(const Place &place, libcuda::Function function, unsigned blocks, unsigned threads,
                      void **arguments) {
    const LaunchShape shape = {{blocks, 1, 1}, {threads, 1, 1}, 0};
    return enter(place.device) && 
           done(devices_.launch()(function, shape, place.stream, arguments), "cuLaunchKernel");
}

void Transfer::settle(const Place &place) {
    libcuda::Context context = 0;
    if (guard_ != nullptr || devices_.context(place.device, &context) != success ||
        devices_.contexts().set_current(context) != success)
        return;
    current_ = context;
    device_ = place.device;
    streams_.synchronize(place.stream);
}

} // namespace tcuda
