#include "sanitizer/_cpp/order/stream_order.hpp"

#include <algorithm>

namespace tcuda::races {
namespace {

// Whether the key is that of a default stream. Default streams exist from the beginning, and are blocking.
bool is_default(Stream key) { return key == 0 || (key & 1) != 0; }

} // namespace

void StreamOrder::create(int device, Stream key, bool blocking) {
    if (is_default(key)) {
        stream(device, key);
        return;
    }
    destroy(device, key);
    add(device, key, blocking);
}

void StreamOrder::destroy(int device, Stream key) {
    const auto known = streams_.find({device, key});
    if (known == streams_.end() || known->second->legacy)
        return;
    const Moment end = moment_of(*known->second);
    Device &owner = device_of(device);
    for (Clock *clock : {&owner.gone, known->second->blocking ? &owner.gone_blocking : nullptr})
        if (clock != nullptr) {
            clock->join(end.before);
            clock->raise(end.slot, end.epoch);
        }
    erase(*known->second);
    streams_.erase(known);
}

OrderedStream &StreamOrder::add(int device, Stream key, bool blocking) {
    auto made = std::make_unique<OrderedStream>();
    made->device = device;
    made->key = key;
    made->blocking = blocking;
    made->legacy = key == 0;
    made->slot = take_slot();
    Device &owner = device_of(device);
    owner.streams.push_back(made.get());
    if (made->legacy) {
        owner.legacy = made.get();
        for (OrderedStream *other : owner.streams)
            if (other->blocking && !other->legacy && !other->dirty) {
                other->dirty = true;
                owner.dirty.push_back(other);
            }
    }
    return *streams_.emplace(Key(device, key), std::move(made)).first->second;
}

void StreamOrder::erase(OrderedStream &stream) {
    Device &owner = device_of(stream.device);
    owner.streams.erase(std::find(owner.streams.begin(), owner.streams.end(), &stream));
    if (stream.dirty)
        owner.dirty.erase(std::find(owner.dirty.begin(), owner.dirty.end(), &stream));
    if (last_ == &stream)
        last_ = nullptr;
    slots_.retire(stream.slot);
}

StreamOrder::Device &StreamOrder::device_of(int device) {
    const auto place = static_cast<std::size_t>(device);
    if (devices_.size() <= place)
        devices_.resize(place + 1);
    return devices_[place];
}

void StreamOrder::join(OrderedStream &stream, const Moment &moment) {
    // Whoever knows an epoch knows all that comes before the epoch.
    if (horizon_of(stream).is_before(moment.slot, moment.epoch))
        return;
    stream.before.join(moment.before);
    stream.before.raise(moment.slot, moment.epoch);
    stream.joined = true;
}

void StreamOrder::settle_with_legacy(OrderedStream &stream) {
    Device &owner = devices_[static_cast<std::size_t>(stream.device)];
    if (stream.legacy) {
        for (OrderedStream *other : owner.dirty) {
            other->dirty = false;
            if (std::exchange(other->joined, false))
                slots_.next(other->slot);
            join(stream, {other->slot, slots_.last(other->slot), other->before});
        }
        owner.dirty.clear();
        stream.joined |= stream.before.join(std::exchange(owner.gone_blocking, Clock()));
    } else if (owner.legacy != nullptr && stream.legacy_seen != owner.legacy_version) {
        stream.legacy_seen = owner.legacy_version;
        OrderedStream &legacy = *owner.legacy;
        if (std::exchange(legacy.joined, false))
            slots_.next(legacy.slot);
        join(stream, {legacy.slot, slots_.last(legacy.slot), legacy.before});
    }
}

void StreamOrder::touch_beside_legacy(OrderedStream &stream) {
    Device &owner = devices_[static_cast<std::size_t>(stream.device)];
    if (stream.legacy) {
        ++owner.legacy_version;
    } else if (owner.legacy != nullptr && !stream.dirty) {
        stream.dirty = true;
        owner.dirty.push_back(&stream);
    }
}

void StreamOrder::record(std::uintptr_t event, OrderedStream &stream) {
    events_[event] = moment_of(stream);
    touch(stream);
}

void StreamOrder::wait_for(std::uintptr_t event, OrderedStream &stream) {
    const auto known = events_.find(event);
    if (known != events_.end())
        wait(stream, known->second);
}

void StreamOrder::finish(const Moment &moment) {
    if (moment.epoch <= host_.of(moment.slot))
        return;
    host_.join(moment.before);
    host_.raise(moment.slot, moment.epoch);
}

void StreamOrder::finish_event(std::uintptr_t event) {
    const auto known = events_.find(event);
    if (known != events_.end())
        finish(known->second);
}

void StreamOrder::finish_device(int device) {
    Device &owner = device_of(device);
    for (OrderedStream *stream : owner.streams)
        finish_stream(*stream);
    host_.join(std::exchange(owner.gone, Clock()));
    owner.gone_blocking = Clock();
}

} // namespace tcuda::races
