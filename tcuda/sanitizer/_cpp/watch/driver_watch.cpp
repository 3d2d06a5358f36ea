#include "sanitizer/_cpp/watch/driver_watch.hpp"

#include <algorithm>
#include <string_view>
#include <type_traits>
#include <utility>

#include "sanitizer/_cpp/watch/relaxed_questions.hpp"
#include "sanitizer/_cpp/watch/use_list.hpp"
#include "sanitizer/_cpp/watch/version.hpp"

namespace tcuda::watch {
namespace {

using races::AccessKind;
using races::Dimension;

// Attributes of a pointer and types of memory in cuda.h
constexpr int attribute_memory_type = 2, attribute_is_managed = 8;
constexpr unsigned memory_type_host = 1;

// The event that stands for the last write of an address by a stream. Handles of events are even numbers.
std::uintptr_t event_of(Address address) { return static_cast<std::uintptr_t>(address) << 1 | 1; }

// A stream and an event that stand for all other processes, as far as they share events with this process. No handle
// has these values.
constexpr Stream other_processes = ~Stream(1);
constexpr std::uintptr_t event_of_others = ~std::uintptr_t(1);

// What is at one end of a copy, after the driver was asked.
enum class At { device, page_locked, pageable, array };

At ask_unified(const DriverQuestions &questions, Address address) {
    const RelaxedQuestions relaxed(questions.exchange_capture_mode);
    unsigned type = 0;
    int managed = 0;
    if (questions.pointer_attribute == nullptr ||
        questions.pointer_attribute(&type, attribute_memory_type, address) != success)
        return At::pageable;
    if (type != memory_type_host)
        return At::device;
    if (questions.pointer_attribute(&managed, attribute_is_managed, address) == success && managed != 0)
        return At::device;
    return At::page_locked;
}

races::RaceDetector::LiveRange live_range(races::RaceDetector &detector, Address address) {
    races::RaceDetector::LiveRange found;
    detector.find_live(&address, 1, &found);
    return found;
}

At where(const CopyEnd &end, races::RaceDetector &detector, const DriverQuestions &questions) {
    switch (end.memory) {
    case CopyEnd::Memory::array:
        return At::array;
    case CopyEnd::Memory::device:
        return At::device;
    default:
        return live_range(detector, end.address).contains(end.address) ? At::device
                                                                       : ask_unified(questions, end.address);
    }
}

bool on_host(At place) { return place == At::page_locked || place == At::pageable; }

// The number of this thread's uses is small and often the same, so their memory is kept.
struct Scratch {
    UseList uses;
    std::vector<Dimension> shape;
};
Scratch &scratch() {
    static thread_local Scratch scratch;
    return scratch;
}

void add_rows(Address address, std::size_t width, std::size_t height, std::size_t pitch, std::size_t depth,
              std::size_t slice, AccessKind kind, std::string_view label, bool page_locked = false) {
    Scratch &mine = scratch();
    mine.shape.clear();
    if (depth != 1)
        mine.shape.push_back({static_cast<std::int64_t>(depth), static_cast<std::int64_t>(slice)});
    if (height != 1)
        mine.shape.push_back({static_cast<std::int64_t>(height), static_cast<std::int64_t>(pitch)});
    mine.shape.push_back({static_cast<std::int64_t>(width), 1});
    mine.uses.add(address, mine.shape, kind, false, label, page_locked);
}

void add_end(const CopyEnd &end, At place, const Copy &copy, AccessKind kind, std::string_view label) {
    // The driver has staged pageable memory before the call returns, so the host may use that memory at once.
    if (place == At::device || place == At::page_locked)
        add_rows(end.address, copy.width, copy.height, end.pitch, copy.depth, end.slice, kind, label,
                 place == At::page_locked);
}

} // namespace

DriverQuestions DriverQuestions::from(const FindFunction &find) {
    DriverQuestions made;
    const auto look_up = [&](auto *&function, const char *name) {
        function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(find(name));
    };
    look_up(made.current_device, "cuCtxGetDevice");
    look_up(made.push_context, "cuCtxPushCurrent_v2");
    look_up(made.pop_context, "cuCtxPopCurrent_v2");
    look_up(made.stream_context, "cuStreamGetCtx");
    look_up(made.stream_flags, "cuStreamGetFlags");
    look_up(made.capture_info, "cuStreamGetCaptureInfo");
    look_up(made.address_range, "cuMemGetAddressRange_v2");
    look_up(made.exchange_capture_mode, "cuThreadExchangeStreamCaptureMode");
    look_up(made.pointer_attribute, "cuPointerGetAttribute");
    return made;
}

bool DriverQuestions::complete() const {
    return current_device != nullptr && push_context != nullptr && pop_context != nullptr &&
           stream_context != nullptr && stream_flags != nullptr && capture_info != nullptr;
}

DriverWatch::DriverWatch(races::RaceDetector &detector, LaunchUses &launches, WatchedGraphs &graphs,
                         const DriverQuestions &questions, StackId (*stack)(), std::function<void(Races &&)> found)
    : detector_(detector), launches_(launches), graphs_(graphs), questions_(questions), stack_(stack),
      found_(std::move(found)), version_(next_version()) {}

// Work

void DriverWatch::launched(CallStream call, const Launch &launch) {
    WatchedStream stream;
    if (!find(call, &stream))
        return;
    // No race names a launch without uses. So the stack is left out, which may take most of the time of a launch.
    if (!launches_.may_use_memory() && !capturing(stream))
        deliver(detector_.work(stream.device, stream.key, launches_.uses_of(launch).name, {nullptr, 0},
                               stack_without_frames));
    else
        work(stream, launches_.uses_of(launch));
}

void DriverWatch::launched_together(const std::vector<std::pair<CallStream, Launch>> &launches) {
    std::vector<races::RaceDetector::DeviceStream> streams;
    std::vector<WatchedStream> watched;
    for (const auto &[call, launch] : launches) {
        WatchedStream stream;
        if (!find(call, &stream))
            return;
        watched.push_back(stream);
        streams.emplace_back(stream.device, stream.key);
    }
    // The kernels begin when all streams have come to them, and later work waits for all of them.
    detector_.work_together(streams, "cooperative launch", {nullptr, 0}, stack_());
    for (std::size_t place = 0; place < watched.size(); ++place)
        work(watched[place], launches_.uses_of(launches[place].second));
    detector_.work_together(streams, "cooperative launch", {nullptr, 0}, stack_());
}

bool DriverWatch::uses_watched_memory(const Copy *copies, std::size_t count) {
    const auto uses = [this](const CopyEnd &end, const Copy &copy) {
        const std::size_t size = (copy.depth - 1) * end.slice + (copy.height - 1) * end.pitch + copy.width;
        return (end.memory == CopyEnd::Memory::host || end.memory == CopyEnd::Memory::unified) &&
               detector_.uses_host_memory(end.address, end.address + size);
    };
    return std::any_of(copies, copies + count, [&](const Copy &copy) {
        return copy.width != 0 && copy.height != 0 && copy.depth != 0 &&
               (uses(copy.source, copy) || uses(copy.target, copy));
    });
}

void DriverWatch::copied(CallStream call, const Copy &copy) { tell_copies(call, &copy, 1); }

void DriverWatch::copied_batch(CallStream call, const std::vector<Copy> &copies) {
    tell_copies(call, copies.data(), copies.size());
}

// What CUDA promises of the host: a copy to pageable memory is complete when the call returns, and so is a blocking
// copy from or to page-locked memory. A blocking copy from pageable memory waits for its stream first, and may be under
// way when the call returns. Other copies do not make the host wait.
void DriverWatch::tell_copies(CallStream call, const Copy *copies, std::size_t count) {
    WatchedStream stream;
    if (!find(call, &stream))
        return;
    scratch().uses.clear();
    bool waits_before = false, waits_after = false;
    for (const Copy *copy = copies; copy != copies + count; ++copy) {
        if (copy->width == 0 || copy->height == 0 || copy->depth == 0)
            continue;
        const At target = where(copy->target, detector_, questions_),
                 source = where(copy->source, detector_, questions_);
        add_end(copy->source, source, *copy, AccessKind::read, "source");
        add_end(copy->target, target, *copy, AccessKind::write, "target");
        waits_after |= target == At::pageable || (copy->blocking && (on_host(target) || source == At::page_locked));
        waits_before |= copy->blocking && source == At::pageable;
    }
    const bool is_captured = capturing(stream);
    if (waits_before && !is_captured)
        synchronized(stream);
    work(stream, {"memcpy", scratch().uses.get()});
    if (waits_after && !is_captured)
        synchronized(stream);
}

void DriverWatch::set(CallStream call, const Fill &fill) {
    WatchedStream stream;
    if (!find(call, &stream))
        return;
    scratch().uses.clear();
    add_rows(fill.target, fill.width, fill.height, fill.pitch, 1, 0, AccessKind::write, "target");
    work(stream, {"memset", scratch().uses.get()});
}

void DriverWatch::host_function_queued(CallStream call) {
    WatchedStream stream;
    if (find(call, &stream))
        work(stream, {races::RaceDetector::host_function, {nullptr, 0}});
}

// The function may begin before the call returns.
void DriverWatch::host_function_about_to_be_queued(CallStream call) { host_may_learn(call); }

void DriverWatch::host_may_learn(CallStream call) {
    WatchedStream stream;
    if (find(call, &stream) && !capturing(stream))
        detector_.host_may_learn(stream.device, stream.key);
}

void DriverWatch::value_about_to_be_written(CallStream call) { host_may_learn(call); }

// The write does not count as an access: streams and the host may look at the value meanwhile.
void DriverWatch::value_written(CallStream call, Address address) {
    WatchedStream stream;
    if (!find(call, &stream) || capturing(stream))
        return;
    detector_.event_recorded(event_of(address), stream.device, stream.key, stack_());
}

void DriverWatch::value_waited(CallStream call, Address address) {
    WatchedStream stream;
    if (!find(call, &stream) || capturing(stream))
        return;
    detector_.event_waited(event_of(address), stream.device, stream.key, stack_());
    detector_.stream_may_wait_for_host(stream.device, stream.key); // the host may write the value
}

// Streams

void DriverWatch::stream_created(libcuda::Context context, Stream handle, bool blocking) {
    std::optional<int> device = device_of(context);
    if (!device)
        return;
    const std::lock_guard lock(mutex_);
    streams_[handle] = {*device, context};
    detector_.stream_created(*device, key_of(handle), blocking);
    changed();
}

void DriverWatch::stream_about_to_be_destroyed(Stream handle) {
    const std::lock_guard lock(mutex_);
    const auto known = streams_.find(handle);
    if (known == streams_.end())
        return;
    detector_.stream_destroyed(known->second.device, handle);
    streams_.erase(known);
    changed();
}

// Work that another thread has queued during the call counts as complete as well. So a race with that work is missed,
// but no right program is accused.
void DriverWatch::stream_synchronized(CallStream call) {
    WatchedStream stream;
    if (find(call, &stream))
        synchronized(stream);
}

void DriverWatch::context_synchronized(libcuda::Context context) {
    if (const auto device = device_of(context))
        detector_.device_synchronized(*device, stack_());
}

void DriverWatch::context_about_to_be_destroyed(libcuda::Context context) {
    const std::lock_guard lock(mutex_);
    for (auto stream = streams_.begin(); stream != streams_.end();) {
        if (stream->second.context == context) {
            detector_.stream_destroyed(stream->second.device, stream->first);
            stream = streams_.erase(stream);
        } else {
            ++stream;
        }
    }
    devices_.erase(context);
    changed();
    detector_.forget_uses_of_host_memory(); // the program cannot wait for the work any more
}

// Events

void DriverWatch::event_shared(libcuda::Event event) {
    const std::lock_guard lock(mutex_);
    if (!std::exchange(others_created_, true))
        detector_.stream_created(0, other_processes, false);
    shared_events_.insert(event);
    shared_count_.store(shared_events_.size(), std::memory_order_release);
}

void DriverWatch::event_recorded(CallStream call, libcuda::Event event) {
    WatchedStream stream;
    if (!find(call, &stream) || capturing(stream))
        return;
    detector_.event_recorded(event, stream.device, stream.key, stack_());
    if (is_shared(event))
        detector_.event_waited(event, 0, other_processes, stack_());
}

void DriverWatch::event_waited(CallStream call, libcuda::Event event) {
    WatchedStream stream;
    if (find(call, &stream) && !capturing(stream))
        detector_.event_waited(known(event), stream.device, stream.key, stack_());
}

void DriverWatch::event_synchronized(libcuda::Event event) { detector_.event_synchronized(known(event), stack_()); }

void DriverWatch::event_about_to_be_destroyed(libcuda::Event event) {
    detector_.event_destroyed(event);
    if (shared_count_.load(std::memory_order_acquire) == 0)
        return;
    const std::lock_guard lock(mutex_);
    shared_events_.erase(event);
    shared_count_.store(shared_events_.size(), std::memory_order_release);
}

// Memory

// The size of memory that is no memory of the ledger is asked.
void DriverWatch::memory_about_to_be_freed(libcuda::Context context, Address address) {
    const auto device = device_of(context);
    if (!device)
        return;
    libcuda::DevicePointer begin = 0;
    std::size_t size = 0;
    if (questions_.address_range == nullptr || questions_.address_range(&begin, &size, address) != success)
        size = 0;
    detector_.memory_unmapped(address, size, *device, false);
}

// The driver orders the uses of memory that the driver hands out again, so accesses before the allocation are
// forgotten. The allocation and the free themselves count as writes: other streams have to wait for the allocation, and
// the free has to wait for other streams.
void DriverWatch::memory_allocated_async(CallStream call, Address address, std::size_t size) {
    WatchedStream stream;
    if (!find(call, &stream) || capturing(stream) || address == 0)
        return;
    const StackId stack = stack_();
    detector_.memory_unmapped(address, size, stream.device, false);
    detector_.memory_allocated(address, size, stream.device, stream.key, stack);
    scratch().uses.clear();
    scratch().uses.add(address, size, AccessKind::write, true, "memory");
    work(stream, {"allocation", scratch().uses.get()});
}

void DriverWatch::memory_about_to_be_freed_async(CallStream call, Address address) {
    WatchedStream stream;
    if (!find(call, &stream) || capturing(stream))
        return;
    const auto memory = live_range(detector_, address);
    if (!memory.contains(address) || memory.begin != address)
        return;
    scratch().uses.clear();
    scratch().uses.add(address, memory.end - address, AccessKind::write, true, "memory");
    work(stream, {"free", scratch().uses.get()});
    detector_.memory_freed(address, stack_());
}

void DriverWatch::host_memory_locked(Address address, std::size_t size, bool own_pages) {
    const std::lock_guard lock(mutex_);
    page_locked_[address] = size;
    detector_.host_registered(address, size);
    if (own_pages)
        detector_.host_memory_allocated(address, size);
}

void DriverWatch::host_memory_about_to_be_unlocked(Address address) {
    const std::lock_guard lock(mutex_);
    const auto known = page_locked_.find(address);
    if (known == page_locked_.end()) { // page-locked before the watch began, so the size is unknown
        detector_.forget_uses_of_host_memory();
        return;
    }
    detector_.host_memory_freed(address);
    detector_.host_unregistered(address);
    detector_.memory_unmapped(address, known->second, 0, false);
    page_locked_.erase(known);
}

// Captures and graphs

void DriverWatch::capture_begun(CallStream call) {
    WatchedStream stream;
    if (find(call, &stream))
        note_capture(capture_of(stream.handle));
}

void DriverWatch::capture_about_to_end(CallStream call) {
    WatchedStream stream;
    if (!find(call, &stream))
        return;
    const CaptureId capture = capture_of(stream.handle);
    if (capture != 0)
        graphs_.capture_ending(stream);
    const std::lock_guard lock(mutex_);
    captures_.erase(capture);
    capture_count_.store(captures_.size(), std::memory_order_release);
}

void DriverWatch::graph_about_to_be_launched(CallStream call, libcuda::GraphExec executable) {
    if (detector_.uses_host_memory() && graphs_.may_call_host(executable))
        host_may_learn(call);
}

void DriverWatch::graph_launched(CallStream call, libcuda::GraphExec executable) {
    WatchedStream stream;
    if (!find(call, &stream))
        return;
    if (capturing(stream)) {
        graphs_.launch_captured(executable, stream, stack_());
        return;
    }
    deliver(graphs_.launched(executable, stream, stack_()));
}

// The parts of a call

std::optional<int> DriverWatch::device_of(libcuda::Context context) {
    {
        const std::lock_guard lock(mutex_);
        const auto known = devices_.find(context);
        if (known != devices_.end())
            return known->second;
    }
    int device = 0;
    libcuda::Context popped = 0;
    const bool pushed = context != 0 && questions_.push_context(context) == success;
    const int status = questions_.current_device(&device);
    if (pushed)
        questions_.pop_context(&popped);
    if (status != success)
        return std::nullopt;
    if (pushed) {
        const std::lock_guard lock(mutex_);
        devices_[context] = device;
    }
    return device;
}

void DriverWatch::changed() { version_.store(next_version(), std::memory_order_release); }

std::optional<DriverWatch::Known> DriverWatch::ask_where(Stream handle) {
    Known made;
    if (questions_.stream_context(handle, &made.context) != success)
        return std::nullopt;
    const auto device = device_of(made.context);
    if (!device)
        return std::nullopt;
    made.device = *device;
    return made;
}

bool DriverWatch::find(CallStream call, WatchedStream *stream) {
    static thread_local Met met;
    const std::uint64_t version = version_.load(std::memory_order_acquire);
    if (met.version == version && met.call.handle == call.handle && met.call.context == call.context) {
        *stream = met.stream;
        return true;
    }
    bool lasting = true;
    if (!find_again(call, stream, &lasting))
        return false;
    if (lasting)
        met = {version, call, *stream};
    return true;
}

bool DriverWatch::find_again(CallStream call, WatchedStream *stream, bool *lasting) {
    const RelaxedQuestions relaxed(questions_.exchange_capture_mode);
    stream->handle = call.handle;
    stream->key = key_of(call.handle);
    if (call.handle <= per_thread_stream) {
        const auto device = device_of(call.context);
        stream->device = device.value_or(0);
        return device.has_value();
    }
    {
        const std::lock_guard lock(mutex_);
        const auto known = streams_.find(call.handle);
        if (known != streams_.end()) {
            stream->device = known->second.device;
            return true;
        }
    }
    if (const CaptureId capture = capture_of(call.handle)) { // a question for its context would invalidate the capture
        note_capture(capture);
        const auto device = device_of(call.context);
        stream->device = device.value_or(0);
        *lasting = false;
        return device.has_value();
    }
    const auto known = ask_where(call.handle);
    unsigned flags = 0;
    if (!known || questions_.stream_flags(call.handle, &flags) != success)
        return false;
    stream->device = known->device;
    const std::lock_guard lock(mutex_);
    // Another thread may have met the stream in the meantime, and the detector may know work of the stream by now.
    if (streams_.emplace(call.handle, *known).second)
        detector_.stream_created(known->device, stream->key, (flags & libcuda::stream_non_blocking) == 0);
    return true;
}

bool DriverWatch::capturing(const WatchedStream &stream) {
    return capture_count_.load(std::memory_order_acquire) != 0 && capture_of(stream.handle) != 0;
}

CaptureId DriverWatch::capture_of(Stream handle) const {
    if (key_of(handle) == 0) // the legacy default stream cannot capture
        return 0;
    int status = libcuda::capture_status_none;
    libcuda::CaptureId capture = 0;
    if (questions_.capture_info(handle, &status, &capture) != success || status == libcuda::capture_status_none)
        return 0;
    return capture;
}

void DriverWatch::note_capture(CaptureId capture) {
    if (capture == 0)
        return;
    const std::lock_guard lock(mutex_);
    captures_.insert(capture);
    capture_count_.store(captures_.size(), std::memory_order_release);
}

bool DriverWatch::is_shared(libcuda::Event event) {
    if (shared_count_.load(std::memory_order_acquire) == 0)
        return false;
    const std::lock_guard lock(mutex_);
    return shared_events_.count(event) != 0;
}

// The event that the detector knows in the place of an event. The last record of a shared event may be another
// process's, and that process may have waited before for every shared event that this process has recorded.
std::uintptr_t DriverWatch::known(libcuda::Event event) {
    if (!is_shared(event))
        return event;
    detector_.event_recorded(event_of_others, 0, other_processes, stack_());
    return event_of_others;
}

void DriverWatch::work(const WatchedStream &stream, const NamedOperation &operation) {
    const StackId stack = stack_();
    if (capturing(stream)) {
        graphs_.captured(stream, operation, stack);
        return;
    }
    deliver(detector_.work(stream.device, stream.key, operation.name, operation.uses, stack));
}

void DriverWatch::synchronized(const WatchedStream &stream) {
    detector_.stream_synchronized(stream.device, stream.key, stack_());
}

void DriverWatch::deliver(Races &&races) {
    if (!races.empty())
        found_(std::move(races));
}

} // namespace tcuda::watch
