// The detector of races between accesses that no order relates.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "memory/records/memory_observer.hpp"
#include "sanitizer/_cpp/order/access_map.hpp"
#include "sanitizer/_cpp/order/allocations.hpp"
#include "sanitizer/_cpp/order/graph_plan.hpp"
#include "sanitizer/_cpp/order/names.hpp"
#include "sanitizer/_cpp/order/page_locked.hpp"
#include "sanitizer/_cpp/order/race.hpp"
#include "sanitizer/_cpp/order/race_table.hpp"
#include "sanitizer/_cpp/order/recent_steps.hpp"
#include "sanitizer/_cpp/order/searches.hpp"
#include "sanitizer/_cpp/order/stream_order.hpp"

namespace tcuda::races {

// Any thread may call any function. Lock rule: `mutex_` is a leaf. Nothing of Python, of a driver or of a ledger is
// called under it, so a ledger may call the detector under its own lock. Streams are keys that key_of() has made.
class RaceDetector final : public MemoryObserver {
public:
    using Races = std::vector<std::shared_ptr<const Race>>; // only races that were not found before

    // A use as the caller describes it.
    struct NamedUse {
        Use use;
        std::string_view label;
    };
    // The uses of an operation. The detector takes their regions over, and leaves other regions there, whose memory the
    // caller can use again.
    struct NamedUses {
        NamedUse *first;
        std::size_t count;
        NamedUse *begin() const { return first; }
        NamedUse *end() const { return first + count; }
    };
    struct NamedNode {
        std::string_view name;
        StackId stack;
        std::vector<NamedUse> uses;
        std::vector<std::size_t> dependencies;
    };
    using DeviceStream = std::pair<int, Stream>;

    // The name of an operation that calls a function of the host.
    static constexpr std::string_view host_function = "host function";

    // Streams
    void stream_created(int device, Stream stream, bool blocking);
    void stream_destroyed(int device, Stream stream);
    void stream_synchronized(int device, Stream stream, StackId stack);
    void device_synchronized(int device, StackId stack);

    // Events
    void event_recorded(std::uintptr_t event, int device, Stream stream, StackId stack);
    void event_waited(std::uintptr_t event, int device, Stream stream, StackId stack);
    void event_synchronized(std::uintptr_t event, StackId stack);
    void event_destroyed(std::uintptr_t event);

    // Work
    Races work(int device, Stream stream, std::string_view name, NamedUses uses, StackId stack);
    // An operation on several streams that wait for each other.
    Races work_together(const std::vector<DeviceStream> &streams, std::string_view name, NamedUses uses, StackId stack);
    Races host_access(std::string_view name, NamedUses uses, StackId stack);
    // Work of the host that goes on after begin_host_work(), until end_host_work(). The work comes after the operations
    // that the host knows to be complete, and no operation comes after the work.
    struct HostWork {
        Slot slot = no_slot;
        Epoch epoch = 0;
        Races found;
    };
    HostWork begin_host_work(std::string_view name, NamedUses uses, StackId stack);
    void end_host_work(const HostWork &work);

    // Graphs. Throws std::out_of_range if a dependency is no earlier node.
    std::unique_ptr<GraphPlan> add_graph(const std::vector<NamedNode> &nodes);
    void remove_graph(const GraphPlan &graph) noexcept;
    // Replaces the accesses of a node for the next launches. Throws std::out_of_range if there is no such node.
    void set_node(GraphPlan &graph, std::size_t place, NamedUses uses);
    // Lets the launches of `graph` come after the launches of `before`: both stand for one executable graph.
    void follow(GraphPlan &graph, const GraphPlan &before);
    Races launch(GraphPlan &graph, int device, Stream stream, StackId stack);

    // Memory. A size of 0 stands for the allocation that begins at the address.
    void memory_allocated(Address address, std::size_t size, int device, Stream stream,
                          StackId stack) noexcept override;
    void memory_freed(Address address, StackId stack) noexcept override;
    void memory_unmapped(Address address, std::size_t size, int device, bool waited) noexcept override;

    // Whether an allocation was ever told. Before that, find_live() finds none.
    bool knows_memory() const { return knows_memory_.load(std::memory_order_acquire); }

    // The bytes of an allocation; no bytes if there is none.
    struct LiveRange {
        Address begin = 0, end = 0;
        bool contains(Address address) const { return address - begin < end - begin; }
    };
    // Finds the allocation around each of the addresses. An allocation that is freed counts as none.
    void find_live(const Address *addresses, std::size_t count, LiveRange *found);

    // Page-locked memory of the host. From now on, `seen` hears of accesses of the host to page-locked memory that
    // operations still use, as page_watch.hpp says; null ends that. `seen` is called without the mutex.
    void watch_host(PageWatch::Seen seen);
    void forget_watch_of_host() { host_seen_.store(nullptr); } // in the child of a fork
    void host_registered(Address address, std::size_t size);
    void host_unregistered(Address address);
    void host_memory_allocated(Address address, std::size_t size) noexcept override;
    void host_memory_freed(Address address) noexcept override;
    // The host may learn without a wait that the earlier work of the stream is complete, for example from a function
    // that the stream calls. So accesses of the host to the memory of that work are no mistakes.
    void host_may_learn(int device, Stream stream);
    // Later work of the stream may wait for the host, which may use the memory of that work until then.
    void stream_may_wait_for_host(int device, Stream stream);
    void forget_uses_of_host_memory();
    // Whether operations still use page-locked memory: any, or that of a range.
    bool uses_host_memory();
    bool uses_host_memory(Address begin, Address end);
    // Whether the memory at an address is page-locked memory that the detector learned of.
    bool knows_page_locked(Address address);
    // The ranges of page-locked memory that operations still use.
    std::vector<WatchedRange> ranges_in_use();

    // Reports
    struct Sizes {
        std::size_t operations, intervals, accesses, slots, events, races, allocations;
    };
    Sizes sizes();
    std::uint64_t operations(); // since the beginning
    std::vector<RecentStep> recent();
    Races races();
    void forget_races();

private:
    using Kind = RecentStep::Kind;

    Operation operation_in(OrderedStream &stream, std::string_view name, StackId stack);
    void note(Kind kind, NameId name, int device, Stream stream, StackId stack, const std::uintptr_t *event = nullptr,
              bool whole_device = false);
    Use &numbered(NamedUse &named);
    void check(const Operation &operation, Use &use, const Horizon &horizon, Races &found);
    void settle_page_locked();
    void called_host(const Operation &operation, const Horizon &horizon);
    void update_watch_of_host() noexcept;
    void found_race(const Access &previous, const Access &current, Races &found);
    void report(const Access &previous, const Access &current, Races &found);
    RaceAccess described(const Access &access) const;

    std::atomic<bool> knows_memory_{false}; // is read without the mutex
    std::mutex mutex_;
    Names names_;
    const NameId host_function_ = names_.number(host_function);
    StreamOrder order_;
    Allocations allocations_;
    AccessMap accesses_{allocations_};
    PageLocked page_locked_;
    std::atomic<PageWatch::Seen> host_seen_{nullptr};
    RaceTable races_;
    Searches searches_;
    RecentSteps recent_;
    std::uint64_t operations_ = 0;
    Use of_node_; // a copy of the use that is checked now, if the use belongs to a graph
    std::vector<const Access *> raced_; // the accesses that race with the access that is checked now
};

} // namespace tcuda::races
