// What the calls of the driver mean for the race detector.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "driver/stream_key.hpp"
#include "sanitizer/_cpp/order/race_detector.hpp"
#include "sanitizer/_cpp/watch/driver_questions.hpp"
#include "sanitizer/_cpp/watch/launch_uses.hpp"
#include "sanitizer/_cpp/watch/watched_graphs.hpp"

namespace tcuda::watch {

// A stream as a call names it, and the context that is current in the thread. The handles 0, 1 and 2 mean the default
// streams, as in stream_key.hpp. In a call of the per-thread variants, 0 means the stream 2: per_thread() translates.
struct CallStream {
    libcuda::Context context = 0;
    Stream handle = 0;
};
inline Stream per_thread(Stream handle) { return handle == 0 ? per_thread_stream : handle; }

// One end of a copy.
struct CopyEnd {
    enum class Memory {
        device,
        host,    // of the host; the watch finds out whether the memory is page-locked
        unified, // any of these; the driver knows by the address
        array    // a CUarray, which the watch does not know
    };
    Memory memory = Memory::device;
    Address address = 0;
    std::size_t pitch = 0; // bytes from row to row
    std::size_t slice = 0; // bytes from slice to slice
};

struct Copy {
    CopyEnd target, source;
    std::size_t width = 0; // bytes
    std::size_t height = 1, depth = 1;
    bool blocking = false; // whether the function is not asynchronous
};

struct Fill {
    Address target = 0;
    std::size_t width = 0; // bytes
    std::size_t height = 1;
    std::size_t pitch = 0; // bytes from row to row
};

// Tells a detector what the program does with the driver. Any thread may call any function; the lock rules are in
// DESIGN.md. Nothing of Python is called, apart from the functions that the constructor gets.
//
// Each function is called after the driver has made the call, if the call has succeeded, except for the functions that
// say "about to". If one call returns before another call begins, then the watch learns of the first call first, so
// the order of the calls is right. But a handle or an address that is given back can be handed out again, to another
// thread, before the call returns. So the watch learns of such a call before the call.
class DriverWatch {
public:
    using Races = races::RaceDetector::Races;

    // `detector`, `launches`, `graphs` and `questions` must outlive the watch. `stack` returns the stack of the thread.
    // `found` gets new races in the thread of the operation that made them, with no lock held.
    DriverWatch(races::RaceDetector &detector, LaunchUses &launches, WatchedGraphs &graphs,
                const DriverQuestions &questions, StackId (*stack)(), std::function<void(Races &&)> found);
    DriverWatch(const DriverWatch &) = delete;
    DriverWatch &operator=(const DriverWatch &) = delete;

    // Work
    void launched(CallStream, const Launch &);
    // A cooperative launch on several devices: the streams wait for each other.
    void launched_together(const std::vector<std::pair<CallStream, Launch>> &);
    // Whether a copy that is about to begin uses page-locked memory of work in progress. The driver may make the copy
    // by the processor, perhaps in a thread that blocks signals, so no page of that memory may be protected meanwhile.
    bool uses_watched_memory(const Copy *copies, std::size_t count);
    void copied(CallStream, const Copy &);
    void copied_batch(CallStream, const std::vector<Copy> &); // in any order
    void set(CallStream, const Fill &);
    void host_function_about_to_be_queued(CallStream);
    void host_function_queued(CallStream);
    // A stream writes a value, or waits for a value. The wait comes after the last write of the address by a stream.
    void value_about_to_be_written(CallStream);
    void value_written(CallStream, Address);
    void value_waited(CallStream, Address);

    // Streams
    void stream_created(libcuda::Context, Stream handle, bool blocking);
    void stream_about_to_be_destroyed(Stream handle);
    void stream_synchronized(CallStream); // also a query that finds the stream idle
    void context_synchronized(libcuda::Context);
    void context_about_to_be_destroyed(libcuda::Context);

    // Events
    void event_shared(libcuda::Event); // created for other processes, or opened from another process
    void event_recorded(CallStream, libcuda::Event);
    void event_waited(CallStream, libcuda::Event);
    void event_synchronized(libcuda::Event); // also a query that finds the event complete
    void event_about_to_be_destroyed(libcuda::Event);

    // Memory. Memory that a library takes by other calls, such as the workspaces of cuBLAS, is not known to the
    // detector: such a library may use its memory on several streams, and may know that this is right.
    void memory_about_to_be_freed(libcuda::Context, Address);
    void memory_freed(libcuda::Context context) {
        context_synchronized(context);
    } // the driver has waited for the device
    void memory_allocated_async(CallStream, Address, std::size_t size);
    void memory_about_to_be_freed_async(CallStream, Address);
    // Memory was registered, or was allocated and has pages of its own.
    void host_memory_locked(Address, std::size_t size, bool own_pages);
    void host_memory_about_to_be_unlocked(Address);

    // Captures and graphs
    void capture_begun(CallStream);
    void capture_about_to_end(CallStream);
    void capture_not_ended(CallStream stream) { capture_begun(stream); } // the call has failed
    void graph_about_to_be_launched(CallStream, libcuda::GraphExec);
    void graph_launched(CallStream, libcuda::GraphExec);

    // Graphs and modules: calls that have no meaning for the watch itself
    WatchedGraphs &graphs() { return graphs_; }
    LaunchUses &launches() { return launches_; }

private:
    struct Known {
        int device = 0;
        libcuda::Context context = 0;
    };
    struct Met {
        std::uint64_t version = 0;
        CallStream call;
        WatchedStream stream;
    };

    std::optional<int> device_of(libcuda::Context);
    std::optional<Known> ask_where(Stream handle);
    bool find(CallStream, WatchedStream *);
    // `lasting` is set to false if the watch must ask again at the next call.
    bool find_again(CallStream, WatchedStream *, bool *lasting);
    bool capturing(const WatchedStream &);
    CaptureId capture_of(Stream handle) const;
    void note_capture(CaptureId);
    void changed();

    void host_may_learn(CallStream);
    void tell_copies(CallStream, const Copy *copies, std::size_t count);
    bool is_shared(libcuda::Event);
    std::uintptr_t known(libcuda::Event);
    void work(const WatchedStream &, const NamedOperation &);
    void synchronized(const WatchedStream &);
    void deliver(Races &&);

    races::RaceDetector &detector_;
    LaunchUses &launches_;
    WatchedGraphs &graphs_;
    const DriverQuestions &questions_;
    StackId (*const stack_)();
    const std::function<void(Races &&)> found_;

    // The detector is called under the mutex, the driver and the readers are not.
    std::mutex mutex_;
    std::unordered_map<libcuda::Context, int> devices_;
    std::unordered_map<Stream, Known> streams_; // all but the default streams, by handle
    std::unordered_set<CaptureId> captures_;    // the captures in progress
    std::unordered_map<Address, std::size_t> page_locked_;
    std::unordered_set<libcuda::Event> shared_events_; // with other processes
    bool others_created_ = false;
    std::atomic<std::size_t> capture_count_{0}; // of `captures_`
    std::atomic<std::size_t> shared_count_{0};  // of `shared_events_`
    std::atomic<std::uint64_t> version_;        // changes whenever the streams that threads remember are out of date
};

} // namespace tcuda::watch
