#include "transfers/transfer_devices.hpp"

#include <stdexcept>

#include "driver/status.hpp"

namespace tcuda {

TransferDevices::TransferDevices()
    : streams_(libcuda::calls<libcuda::StreamCalls>()), calls_(libcuda::calls<libcuda::TransferCalls>()) {
    int count = 0;
    if (contexts().device_count(&count) != success)
        throw std::runtime_error("libcuda.so.1 does not count the devices");
    for (int device = 0; device < count; ++device)
        spares_.push_back(std::make_unique<Spares>());
    access_ = std::vector<std::atomic<signed char>>(spares_.size() * spares_.size());
    for (auto &each : access_)
        each = -1;
}

int TransferDevices::context(int device, libcuda::Context *context) {
    if (device < 0 || device >= count())
        return invalid_device;
    try {
        *context = devices_.of(device).context;
    } catch (const std::runtime_error &) {
        return invalid_device;
    }
    return success;
}

int TransferDevices::multiprocessors(int device) {
    libcuda::Context context = 0;
    int number = 0;
    if (this->context(device, &context) != success)
        return 1; // the work that follows needs the context, and fails with a status
    const int status =
        contexts().device_attribute(&number, libcuda::attribute_multiprocessors, devices_.of(device).handle);
    return status == success && number > 0 ? number : 1;
}

int TransferDevices::side_stream(int device, libcuda::Stream *stream) {
    Spares &spares = *spares_[static_cast<std::size_t>(device)];
    if ((*stream = spares.side_stream.load(std::memory_order_acquire)) != 0)
        return success;
    const std::lock_guard lock(spares.mutex);
    if ((*stream = spares.side_stream.load(std::memory_order_relaxed)) != 0)
        return success;
    const int status = calls_.stream_create(stream, libcuda::stream_non_blocking);
    if (status == success)
        spares.side_stream.store(*stream, std::memory_order_release);
    return status;
}

int TransferDevices::take_event(int device, libcuda::Event *event) {
    Spares &spares = *spares_[static_cast<std::size_t>(device)];
    {
        const std::lock_guard lock(spares.mutex);
        if (!spares.events.empty()) {
            *event = spares.events.back();
            spares.events.pop_back();
            return success;
        }
    }
    return streams_.event_create(event, libcuda::event_disable_timing);
}

void TransferDevices::give_event(int device, libcuda::Event event) {
    Spares &spares = *spares_[static_cast<std::size_t>(device)];
    const std::lock_guard lock(spares.mutex);
    spares.events.push_back(event);
}

} // namespace tcuda
