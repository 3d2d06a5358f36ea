#include "transfers/transfer.hpp"

#include <algorithm>
#include <memory>

#include "driver/stream_key.hpp"

namespace tcuda {

Transfer::Transfer(TransferDevices &devices, WaitGuard *guard, bool side_streams)
    : devices_(devices), guard_(guard), side_streams_(side_streams), streams_(libcuda::calls<libcuda::StreamCalls>()),
      calls_(libcuda::calls<libcuda::TransferCalls>()) {
    devices_.contexts().get_current(&before_);
    current_ = before_;
}

Transfer::~Transfer() {
    for (const Record &record : records_)
        devices_.give_event(record.place.device, record.event);
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

bool Transfer::close() {
    for (const Lane &lane : lanes_)
        if (!wait(lane.place, lane.side))
            return false;
    if (status_ == success)
        lanes_.clear();
    return status_ == success && !is_refused_;
}

bool Transfer::wait(const Place *waiting, std::size_t count, const Place &awaited) {
    const Place *const end = waiting + count;
    const auto is_other = [&](const Place &place) { return !(place == awaited); };
    if (std::none_of(waiting, end, is_other))
        return status_ == success && !is_refused_;
    const auto known =
        std::find_if(records_.begin(), records_.end(), [&](const Record &record) { return record.place == awaited; });
    const bool is_recorded = known != records_.end();
    if (is_recorded ? status_ != success || is_refused_ : !enter(awaited.device))
        return false;
    if (guard_ != nullptr)
        for (const Place *place = waiting; place != end; ++place)
            if (is_other(*place) && !guard_->allows(*place, awaited)) {
                is_refused_ = true;
                return false;
            }
    libcuda::Event event = 0;
    bool is_done = true;
    if (is_recorded)
        event = known->event;
    else if (!take_record(awaited, &event))
        return false;
    for (const Place *place = waiting; is_done && place != end; ++place)
        if (is_other(*place))
            is_done = enter(place->device) && done(calls_.wait_event(place->stream, event, 0), "cuStreamWaitEvent");
    if (!is_recorded)
        devices_.give_event(awaited.device, event);
    return is_done;
}

bool Transfer::record(const Place &place) {
    for (const Record &known : records_)
        if (known.place == place)
            return status_ == success && !is_refused_;
    libcuda::Event event = 0;
    if (!enter(place.device) || !take_record(place, &event))
        return false;
    records_.push_back({place, event});
    return true;
}

bool Transfer::take_record(const Place &place, libcuda::Event *event) {
    if (!done(devices_.take_event(place.device, event), "cuEventCreate"))
        return false;
    if (done(streams_.event_record(*event, place.stream), "cuEventRecord"))
        return true;
    devices_.give_event(place.device, *event);
    return false;
}

bool Transfer::enter_for_work(const Place &lane) {
    const auto known =
        std::find_if(records_.begin(), records_.end(), [&](const Record &record) { return record.place == lane; });
    if (known != records_.end()) {
        devices_.give_event(lane.device, known->event);
        records_.erase(known);
    }
    return enter(lane.device);
}

bool Transfer::copy(const Place &lane, const End &target, const End &source, std::size_t bytes) {
    if (!enter_for_work(lane))
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
           done(calls_.copy_peer(target.address, there, source.address, here, bytes, lane.stream),
                "cuMemcpyPeerAsync");
}

bool Transfer::upload(const End &target, const void *source, std::size_t bytes, libcuda::Event mark) {
    const libcuda::Stream stream = target.place.stream;
    return enter_for_work(target.place) &&
           done(calls_.upload(target.address, source, bytes, stream), "cuMemcpyHtoDAsync") &&
           done(streams_.event_record(mark, stream), "cuEventRecord");
}

bool Transfer::copy_rows(const Place &lane, const End &target, std::size_t target_pitch, const End &source,
                         std::size_t source_pitch, std::size_t width, std::size_t rows) {
    if (!enter_for_work(lane))
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
    return enter_for_work(lane) && done(devices_.launch()(function, shape, lane.stream, arguments), "cuLaunchKernel");
}

bool Transfer::send(const std::vector<Copy> &copies, const Place &source) {
    const auto is_same = [&](const Place &place) { return place == source; };
    const auto has = [&](std::size_t begin, std::size_t end, const Place &place) {
        return std::any_of(copies.begin() + static_cast<std::ptrdiff_t>(begin),
                           copies.begin() + static_cast<std::ptrdiff_t>(end),
                           [&](const Copy &copy) { return copy.target.place == place; });
    };
    Place lane = source;
    for (std::size_t i = 0; i < copies.size(); ++i) {
        const Place &target = copies[i].target.place;
        if (is_same(target)) { // the work of one stream needs no lane
            if (!copy(source, copies[i].target, {source, copies[i].source}, copies[i].bytes))
                return false;
            continue;
        }
        if (!open(source, &lane) || (!has(0, i, target) && !wait(lane, target)) ||
            !copy(lane, copies[i].target, {source, copies[i].source}, copies[i].bytes))
            return false;
        if (i + 1 == copies.size()) {
            if (!finish(lane, {target}))
                return false;
        } else if (!has(i + 1, copies.size(), target) && !wait(target, lane)) {
            return false;
        }
    }
    return close();
}

bool Transfer::send(const std::vector<End> &targets, const End &source, std::uint64_t bytes) {
    std::vector<Copy> copies;
    copies.reserve(targets.size());
    for (const End &target : targets)
        copies.push_back({target, source.address, bytes});
    return send(copies, source.place);
}

bool Transfer::join(const std::vector<Piece> &pieces, const Place &target, const std::vector<Place> &others) {
    std::vector<Place> lanes(others.size(), target);
    for (std::size_t i = 0; i < others.size(); ++i)
        if (!open(others[i], &lanes[i]))
            return false;
    if (!wait(lanes.data(), lanes.size(), target))
        return false;
    for (const bool is_far : {true, false}) // the copies between devices take longest
        for (const Piece &piece : pieces) {
            const auto found = std::find(others.begin(), others.end(), piece.source.place);
            if ((found != others.end()) != is_far)
                continue;
            const Place lane = is_far ? lanes[static_cast<std::size_t>(found - others.begin())] : target;
            if (!copy(lane, {target, piece.target}, piece.source, piece.bytes))
                return false;
        }
    return std::all_of(lanes.begin(), lanes.end(), [&](const Place &lane) { return finish(lane, {target}); });
}

bool Transfer::add(const Place &place, const std::vector<Place> &peers, libcuda::Function function, unsigned blocks,
                   unsigned threads, void **arguments, bool releases) {
    if (peers.empty()) // the work of one stream needs no lane
        return launch(place, function, blocks, threads, arguments);
    Place lane;
    return open(place, &lane) &&
           std::all_of(peers.begin(), peers.end(), [&](const Place &peer) { return wait(lane, peer); }) &&
           launch(lane, function, blocks, threads, arguments) &&
           (releases ? finish(lane, peers) : finish(lane));
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
