#include "transfers/transfer.hpp"

#include <algorithm>
#include <memory>
#include <utility>

#include "driver/stream_key.hpp"

namespace tcuda {

Transfer::Transfer(TransferDevices &devices, WaitGuard *guard, bool side_streams)
    : devices_(devices), guard_(guard), side_streams_(side_streams), streams_(libcuda::calls<libcuda::StreamCalls>()),
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

bool Transfer::open(const Place &place, Place *lane) {
    *lane = place;
    const bool is_legacy = place.stream == 0 || place.stream == legacy_stream;
    if (guard_ != nullptr || !side_streams_ || !is_legacy)
        return status_ == success && !is_refused_;
    for (const Lane &known : lanes_)
        if (known.place == place) {
            *lane = known.side;
            return status_ == success;
        }
    libcuda::Stream side = 0;
    if (!enter(place.device) || !done(devices_.side_stream(place.device, &side), "cuStreamCreate"))
        return false;
    *lane = {place.device, side};
    lanes_.push_back({place, *lane});
    return wait(*lane, place);
}

bool Transfer::finish(const Place &lane, const std::vector<Place> &others) {
    const auto found =
        std::find_if(lanes_.begin(), lanes_.end(), [&](const Lane &known) { return known.side == lane; });
    if (found == lanes_.end())
        return wait(others.data(), others.size(), lane);
    std::vector<Place> waiting{found->place}; // first, because its context is current
    for (const Place &other : others)
        if (!(other == found->place))
            waiting.push_back(other);
    if (!wait(waiting.data(), waiting.size(), lane))
        return false;
    lanes_.erase(found);
    return true;
}

bool Transfer::wait(const Place *waiting, std::size_t count, const Place &awaited) {
    const Place *const end = waiting + count;
    const auto is_other = [&](const Place &place) { return !(place == awaited); };
    if (std::none_of(waiting, end, is_other))
        return status_ == success && !is_refused_;
    if (!enter(awaited.device))
        return false;
    if (guard_ != nullptr)
        for (const Place *place = waiting; place != end; ++place)
            if (is_other(*place) && !guard_->allows(*place, awaited)) {
                is_refused_ = true;
                return false;
            }
    libcuda::Event event = 0;
    if (!done(devices_.take_event(awaited.device, &event), "cuEventCreate"))
        return false;
    bool is_done = done(streams_.event_record(event, awaited.stream), "cuEventRecord");
    for (const Place *place = waiting; is_done && place != end; ++place)
        if (is_other(*place))
            is_done = enter(place->device) && done(calls_.wait_event(place->stream, event, 0), "cuStreamWaitEvent");
    devices_.give_event(awaited.device, event);
    return is_done;
}

bool Transfer::copy(const Place &lane, const End &target, const End &source, std::size_t bytes) {
    if (!enter(lane.device))
        return false;
    if (bytes == 0)
        return true;
    const int from = source.place.device, to = target.place.device;
    // A copy of addresses alone is as fast, and is the only kind that a graph takes. The other kind serves devices that
    // cannot access each other.
    if (guard_ != nullptr || from == to || devices_.access(from, to) == 1)
        return done(calls_.copy(target.address, source.address, bytes, lane.stream), "cuMemcpyAsync");
    libcuda::Context here = 0, there = 0;
    return done(devices_.context(from, &here), "cuDevicePrimaryCtxRetain") &&
           done(devices_.context(to, &there), "cuDevicePrimaryCtxRetain") &&
           done(calls_.copy_peer(target.address, there, source.address, here, bytes, lane.stream), "cuMemcpyPeerAsync");
}

bool Transfer::upload(const End &target, const void *source, std::size_t bytes) {
    if (bytes == 0)
        return enter(target.place.device);
    return enter(target.place.device) &&
           done(calls_.upload(target.address, source, bytes, target.place.stream), "cuMemcpyHtoDAsync");
}

bool Transfer::copy_rows(const Place &lane, const End &target, std::size_t target_pitch, const End &source,
                         std::size_t source_pitch, std::size_t width, std::size_t rows) {
    if (!enter(lane.device))
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
    return done(calls_.copy_rows(&copy, lane.stream), "cuMemcpy2DAsync");
}

bool Transfer::pack(const Place &lane, const PackKernel &kernel, std::uint64_t target,
                    const std::vector<PackedArray> &arrays) {
    const auto launch_with = [&](auto &table) {
        void *arguments[] = {&table};
        return launch(lane, kernel.function, table.blocks, pack_threads, arguments) ? success : status_;
    };
    if (kernel.is_large) {
        const auto table = std::make_unique<PackTable<large_capacity>>();
        return each_table(*table, target, arrays, launch_with) == success;
    }
    PackTable<small_capacity> table;
    return each_table(table, target, arrays, launch_with) == success;
}

bool Transfer::launch(const Place &lane, libcuda::Function function, unsigned blocks, unsigned threads,
                      void **arguments) {
    const LaunchShape shape = {{blocks, 1, 1}, {threads, 1, 1}, 0};
    return enter(lane.device) && done(devices_.launch()(function, shape, lane.stream, arguments), "cuLaunchKernel");
}

namespace {

bool overlap(const End &one, std::uint64_t bytes, const End &other, std::uint64_t other_bytes) {
    return one.address < other.address + other_bytes && other.address < one.address + bytes;
}

// Whether no other copy reads or writes what the copy writes, or writes what the copy reads.
bool is_apart(const std::vector<Copy> &copies, std::size_t place) {
    const Copy &one = copies[place];
    return std::all_of(copies.begin(), copies.end(), [&](const Copy &other) {
        return &other == &one || !(overlap(one.target, one.bytes, other.source, other.bytes) ||
                                   overlap(one.target, one.bytes, other.target, other.bytes) ||
                                   overlap(one.source, one.bytes, other.target, other.bytes));
    });
}

} // namespace

bool Transfer::relay(const std::vector<Copy> &copies) {
    struct Link {
        Place source, target;
        std::size_t last; // the last copy from the source to the target
        bool is_ordered;  // whether the source has waited for the target; true within a stream
    };
    std::vector<Link> links;
    const auto link_of = [&](const Copy &copy) {
        return std::find_if(links.begin(), links.end(), [&](const Link &link) {
            return link.source == copy.source.place && link.target == copy.target.place;
        });
    };
    for (std::size_t i = 0; i < copies.size(); ++i) {
        const auto known = link_of(copies[i]);
        if (known == links.end())
            links.push_back(
                {copies[i].source.place, copies[i].target.place, i, copies[i].source.place == copies[i].target.place});
        else
            known->last = i;
    }
    // Whether the copy `i` or a later copy is from the stream to another stream.
    const auto leaves = [&](const Place &place, std::size_t i) {
        return std::any_of(links.begin(), links.end(), [&](const Link &link) {
            return link.source == place && link.last >= i && !(link.target == place);
        });
    };
    // Whether the copy `i` or a later copy reads memory of the stream, which may be a copy within the stream.
    const auto is_read = [&](const Place &place, std::size_t i) {
        return std::any_of(links.begin(), links.end(),
                           [&](const Link &link) { return link.source == place && link.last >= i; });
    };
    // Copies of several streams for one target, also of the target's own stream, overlap, because the other streams
    // wait for the target before the first copy.
    for (const Link &first : links) {
        const auto is_alike = [&](const Link &link) { return link.target == first.target; };
        if (first.is_ordered || std::count_if(links.begin(), links.end(), is_alike) < 2)
            continue;
        std::vector<Place> lanes;
        for (Link &link : links)
            if (is_alike(link) && !link.is_ordered) {
                lanes.emplace_back();
                if (!open(link.source, &lanes.back()))
                    return false;
                link.is_ordered = true;
            }
        if (!wait(lanes.data(), lanes.size(), first.target))
            return false;
    }
    // A copy within a stream that no other copy concerns is made when the stream is about to wait for a copy that
    // arrives: of two copies of 2 MiB, the one that arrives then does not take 10 microseconds longer on an H200.
    std::vector<const Copy *> postponed;
    const auto make_postponed = [&](const Place &place) {
        for (const Copy *&each : postponed) {
            if (each == nullptr || !(each->source.place == place))
                continue;
            const Copy &made = *std::exchange(each, nullptr);
            if (!copy(place, made.target, made.source, made.bytes))
                return false;
        }
        return true;
    };
    for (std::size_t i = 0; i < copies.size(); ++i) {
        const Place &source = copies[i].source.place, &target = copies[i].target.place;
        if (source == target && is_apart(copies, i)) {
            postponed.push_back(&copies[i]);
            continue;
        }
        Place lane = source, next = target;
        if (leaves(source, i) && !open(source, &lane)) // the work of one stream needs no lane
            return false;
        const auto link = link_of(copies[i]);
        if (!link->is_ordered && !wait(lane, target))
            return false;
        if (!copy(lane, copies[i].target, copies[i].source, copies[i].bytes))
            return false;
        if (source == target)
            continue;
        link->is_ordered = true;
        const bool moves_on = leaves(target, i);
        if ((moves_on && !open(target, &next)) || !make_postponed(target))
            return false;
        if (!leaves(source, i + 1)) {
            if (!finish(lane, {next}))
                return false;
        } else if ((is_read(target, i) || link->last == i) && !wait(next, lane)) {
            return false;
        }
    }
    return std::all_of(copies.begin(), copies.end(),
                       [&](const Copy &each) { return make_postponed(each.source.place); });
}

bool Transfer::add(const Place &place, const std::vector<Place> &peers, libcuda::Function function, unsigned blocks,
                   unsigned threads, void **arguments, bool releases) {
    if (peers.empty()) // the work of one stream needs no lane
        return launch(place, function, blocks, threads, arguments);
    Place lane;
    return open(place, &lane) &&
           std::all_of(peers.begin(), peers.end(), [&](const Place &peer) { return wait(lane, peer); }) &&
           launch(lane, function, blocks, threads, arguments) && (releases ? finish(lane, peers) : finish(lane));
}

void Transfer::settle(const std::vector<Place> &places) {
    if (guard_ != nullptr)
        return;
    for (const Lane &lane : lanes_)
        settle(lane.side);
    for (const Place &place : places)
        settle(place);
}

void Transfer::settle(const Place &place) {
    libcuda::Context context = 0;
    if (devices_.context(place.device, &context) != success || devices_.contexts().set_current(context) != success)
        return;
    current_ = context;
    device_ = place.device;
    streams_.synchronize(place.stream);
}

} // namespace tcuda
