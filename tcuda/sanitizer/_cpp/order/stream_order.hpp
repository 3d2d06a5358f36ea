// Which work comes before which: the clocks of the host, of streams, of events and of graphs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

#include "driver/stream_key.hpp"
#include "sanitizer/_cpp/order/clock.hpp"
#include "sanitizer/_cpp/order/slots.hpp"

namespace tcuda::races {

// A stream that the detector knows.
struct OrderedStream {
    int device = 0;
    Stream key = 0; // as key_of() makes it
    bool blocking = true;
    bool legacy = false;
    Slot slot = 0;
    Clock before;
    bool joined = false;        // since the last epoch, `before` has changed
    bool dirty = false;         // the legacy default stream has not seen the last work of the stream
    std::uint64_t legacy_seen = 0; // the version of the legacy default stream that the stream has waited for
};

// A stream that no call has announced counts as a blocking stream.
class StreamOrder {
public:
    // The stream of a key, which is made if it is new.
    OrderedStream &stream(int device, Stream key) {
        if (last_ != nullptr && last_->key == key && last_->device == device)
            return *last_;
        const auto known = streams_.find({device, key});
        last_ = known != streams_.end() ? known->second.get() : &add(device, key, true);
        return *last_;
    }
    // A handle that is created again is another stream. A default stream stays the same stream.
    void create(int device, Stream key, bool blocking);
    // The legacy default stream is never destroyed. The per-thread default stream ends with its thread.
    void destroy(int device, Stream key);

    // Begins an operation in the stream: waits for what the stream has to wait for, and takes the next epoch.
    Epoch begin(OrderedStream &stream) {
        settle(stream);
        stream.joined = false;
        touch(stream);
        return slots_.next(stream.slot);
    }

    // The stream as it is now. Later changes of the stream have later epochs.
    Moment moment_of(OrderedStream &stream) {
        settle(stream);
        if (std::exchange(stream.joined, false))
            slots_.next(stream.slot);
        return {stream.slot, slots_.last(stream.slot), stream.before};
    }

    // Lets later work of the stream come after the moment.
    void wait(OrderedStream &stream, const Moment &moment) {
        settle(stream);
        join(stream, moment);
        touch(stream);
    }

    void record(std::uintptr_t event, OrderedStream &stream);
    void wait_for(std::uintptr_t event, OrderedStream &stream);
    void forget_event(std::uintptr_t event) { events_.erase(event); }

    // Lets the host know the moment, the last record of an event, all work of a stream, or all work of a device.
    void finish(const Moment &moment);
    void finish_event(std::uintptr_t event);
    void finish_stream(OrderedStream &stream) { finish(moment_of(stream)); }
    void finish_device(int device);

    // What comes before everything that begins in the stream now, after the clock in the slot, or on the host.
    Horizon horizon_of(const OrderedStream &stream) const { return {stream.slot, stream.before, host_}; }
    Horizon horizon_of(Slot slot, const Clock &clock) const { return {slot, clock, host_}; }
    Horizon host_horizon() const { return {no_slot, nothing_, host_}; }
    Horizon horizon_of_host_work(Slot slot) const { return {slot, nothing_, host_}; }

    Slot take_slot() { return slots_.take(host_); }
    void retire_slot(Slot slot) { slots_.retire(slot); }
    Epoch last(Slot slot) const { return slots_.last(slot); }
    Epoch next(Slot slot) { return slots_.next(slot); }
    void advance(Slot slot, Epoch count) { slots_.advance(slot, count); }

    std::size_t slots() const { return slots_.size(); }
    std::size_t events() const { return events_.size(); }

private:
    using Key = std::pair<int, Stream>; // the device and the key of a stream
    struct Hash {
        std::size_t operator()(const Key &key) const {
            return (key.second >> 1 ^ static_cast<std::size_t>(key.first)) * 0x9E3779B97F4A7C15ull >> 16;
        }
    };
    struct Device {
        std::vector<OrderedStream *> streams;
        OrderedStream *legacy = nullptr;
        std::uint64_t legacy_version = 0;    // counts the changes of the legacy default stream
        std::vector<OrderedStream *> dirty;  // the blocking streams that the legacy default stream has to look at
        Clock gone, gone_blocking;           // the work of destroyed streams
    };

    OrderedStream &add(int device, Stream key, bool blocking);
    void erase(OrderedStream &stream);
    Device &device_of(int device);
    void join(OrderedStream &stream, const Moment &moment);

    // The legacy default stream and the blocking streams wait for each other. A stream does so when it is next used.
    void settle(OrderedStream &stream) {
        if (stream.blocking)
            settle_with_legacy(stream);
    }
    void settle_with_legacy(OrderedStream &stream);
    void touch(OrderedStream &stream) {
        if (stream.blocking)
            touch_beside_legacy(stream);
    }
    void touch_beside_legacy(OrderedStream &stream);

    Slots slots_;
    Clock host_;
    const Clock nothing_{};
    std::vector<Device> devices_;
    std::unordered_map<Key, std::unique_ptr<OrderedStream>, Hash> streams_;
    OrderedStream *last_ = nullptr; // the stream that was asked for last
    std::unordered_map<std::uintptr_t, Moment> events_;
};

} // namespace tcuda::races
