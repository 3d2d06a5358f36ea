#include "bindings/memory/snapshot_dicts.hpp"

#include <nanobind/stl/string.h>

#include <string>
#include <unordered_map>

#include "bindings/python/checked.hpp"
#include "bindings/python/containers.hpp"
#include "bindings/python/interned.hpp"
#include "bindings/threads/python_stacks.hpp"
#include "driver/stream_key.hpp"
#include "threads/published.hpp"

namespace nb = nanobind;

namespace tcuda {
namespace {

// The strings in the dictionaries. All live until the end of the process.
struct Strings {
    // The keys
    nb::object action = interned("action"), active_size = interned("active_size"), addr = interned("addr"),
               address = interned("address"), allocated_size = interned("allocated_size"), blocks = interned("blocks"),
               compile_context = interned("compile_context"), device = interned("device"),
               device_free = interned("device_free"), frames = interned("frames"), is_asleep = interned("is_asleep"),
               is_expandable = interned("is_expandable"), requested_size = interned("requested_size"),
               scope = interned("scope"), segment_pool_id = interned("segment_pool_id"),
               segment_type = interned("segment_type"), size = interned("size"), state = interned("state"),
               stream = interned("stream"), time_us = interned("time_us"), total_size = interned("total_size"),
               user_metadata = interned("user_metadata");

    // Actions
    nb::object alloc = interned("alloc"), free_requested = interned("free_requested"),
               free_completed = interned("free_completed"), segment_alloc = interned("segment_alloc"),
               segment_free = interned("segment_free"), segment_map = interned("segment_map"),
               segment_unmap = interned("segment_unmap"), snapshot = interned("snapshot"), oom = interned("oom");

    // States of blocks, types of segments, and the compile context
    nb::object inactive = interned("inactive"), active_allocated = interned("active_allocated"),
               active_pending_free = interned("active_pending_free"), large = interned("large"),
               small = interned("small"), not_available = interned("N/A");

    const nb::object &of(Action action) const {
        switch (action) {
        case Action::alloc:
            return alloc;
        case Action::free_requested:
            return free_requested;
        case Action::free_completed:
            return free_completed;
        case Action::segment_alloc:
            return segment_alloc;
        case Action::segment_free:
            return segment_free;
        case Action::segment_map:
            return segment_map;
        case Action::segment_unmap:
            return segment_unmap;
        case Action::snapshot:
            return snapshot;
        case Action::oom:
            return oom;
        }
        return not_available;
    }

    const nb::object &of(Block::State state) const {
        switch (state) {
        case Block::State::allocated:
            return active_allocated;
        case Block::State::awaiting_free:
            return active_pending_free;
        default:
            return inactive;
        }
    }
};

const Strings &strings() {
    static Published<const Strings> made;
    return made.get();
}

// The handle of a stream, for the reader of a snapshot.
Stream shown(Stream key) { return (key & 1) == 0 ? key : per_thread_stream; }

constexpr int no_device = -1; // the device of page-locked memory

Block::State state_of(HostBlock::State state) {
    switch (state) {
    case HostBlock::State::allocated:
        return Block::State::allocated;
    case HostBlock::State::doubtful:
    case HostBlock::State::asked:
    case HostBlock::State::held:
        return Block::State::awaiting_free;
    case HostBlock::State::free:
    case HostBlock::State::kept:
    case HostBlock::State::refused:
        break;
    }
    return Block::State::free;
}

// Makes the dictionaries of one snapshot, in which equal stacks share their frames.
class Describer {
public:
    nb::dict segment(int device, const SegmentView &view) {
        std::size_t allocated = 0, active = 0, requested = 0;
        nb::list blocks = new_list();
        for (const BlockView &block : view.blocks) {
            if (block.state == Block::State::allocated)
                allocated += block.size;
            if (block.state != Block::State::free) {
                active += block.size;
                requested += block.requested;
            }
            blocks.append(this->block(block));
        }
        nb::dict made = new_dict();
        made[names_.device] = device;
        made[names_.address] = view.address;
        made[names_.total_size] = view.size;
        made[names_.allocated_size] = allocated;
        made[names_.active_size] = active;
        made[names_.requested_size] = requested;
        made[names_.stream] = shown(view.stream);
        made[names_.segment_type] = view.is_large ? names_.large : names_.small;
        made[names_.segment_pool_id] = nb::make_tuple(view.pool.first, view.pool.second);
        made[names_.is_expandable] = view.expandable;
        if (view.asleep)
            made[names_.is_asleep] = true;
        made[names_.frames] = frames(view.stack);
        made[names_.blocks] = blocks;
        return made;
    }

    nb::dict segment(const HostSegmentView &view) {
        SegmentView shown{view.address, view.size, 0, !view.small, false, common_pool, view.stack, {}};
        for (const HostBlockView &block : view.blocks)
            shown.blocks.push_back({block.address, block.size, block.requested, state_of(block.state), block.stack});
        return segment(no_device, shown);
    }

    nb::dict event(const Occurrence &event) {
        nb::dict made = new_dict();
        made[names_.action] = names_.of(event.action);
        // In the event of a lack of memory, `address` has the number of free bytes of the device.
        made[event.action == Action::oom ? names_.device_free : names_.addr] = event.address;
        made[names_.size] = event.size;
        made[names_.stream] = shown(event.stream);
        made[names_.time_us] = event.microseconds;
        made[names_.compile_context] = names_.not_available;
        made[names_.user_metadata] = event.metadata == nullptr ? std::string() : *event.metadata;
        if (event.scope != nullptr)
            made[names_.scope] = path(event.scope);
        made[names_.frames] = frames(event.stack);
        return made;
    }

private:
    nb::dict block(const BlockView &view) {
        nb::dict made = new_dict();
        made[names_.address] = view.address;
        made[names_.size] = view.size;
        made[names_.requested_size] = view.requested;
        made[names_.state] = names_.of(view.state);
        if (view.scope != nullptr)
            made[names_.scope] = path(view.scope);
        made[names_.frames] = frames(view.stack);
        return made;
    }

    nb::object path(const Scope *scope) {
        nb::object &known = paths_[scope];
        if (!known.is_valid())
            known = nb::cast(scope->path);
        return known;
    }

    nb::object frames(StackId stack) {
        auto &known = frames_[stack];
        if (!known.is_valid())
            known = checked(frames_of(stack));
        return known;
    }

    const Strings &names_ = strings();
    std::unordered_map<StackId, nb::object> frames_;
    std::unordered_map<const Scope *, nb::object> paths_;
};

} // namespace

nb::tuple snapshot_of(Ledger &ledger, std::optional<PoolId> pool, bool traces) {
    Describer describer;
    nb::list segments = new_list(), device_traces = new_list();
    for (int device = 0; device < ledger.devices(); ++device) {
        DeviceLedger &of_device = ledger.of(device);
        nb::list events = new_list();
        if (traces)
            for (const Occurrence &event : of_device.events())
                events.append(describer.event(event));
        for (const SegmentView &view : of_device.snapshot(pool ? &*pool : nullptr))
            segments.append(describer.segment(device, view));
        device_traces.append(events);
    }
    return nb::make_tuple(segments, device_traces);
}

nb::tuple host_snapshot_of(HostAllocator &host) {
    Describer describer;
    nb::list segments = new_list(), events = new_list();
    for (const Occurrence &event : host.events())
        events.append(describer.event(event));
    for (const HostSegmentView &view : host.snapshot())
        segments.append(describer.segment(view));
    return nb::make_tuple(segments, events);
}

} // namespace tcuda
