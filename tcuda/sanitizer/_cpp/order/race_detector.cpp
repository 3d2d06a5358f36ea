#include "sanitizer/_cpp/order/race_detector.hpp"

#include <algorithm>
#include <exception>
#include <new>

namespace tcuda::races {

// Streams

void RaceDetector::stream_created(int device, Stream stream, bool blocking) {
    const std::lock_guard lock(mutex_);
    order_.create(device, stream, blocking);
}

void RaceDetector::stream_destroyed(int device, Stream stream) {
    const std::lock_guard lock(mutex_);
    order_.destroy(device, stream);
}

void RaceDetector::stream_synchronized(int device, Stream stream, StackId stack) {
    const std::lock_guard lock(mutex_);
    order_.finish_stream(order_.stream(device, stream));
    settle_page_locked();
    note(Kind::sync, 0, device, stream, stack);
}

void RaceDetector::device_synchronized(int device, StackId stack) {
    const std::lock_guard lock(mutex_);
    order_.finish_device(device);
    settle_page_locked();
    note(Kind::sync, 0, device, 0, stack, nullptr, true);
}

// Events

void RaceDetector::event_recorded(std::uintptr_t event, int device, Stream stream, StackId stack) {
    const std::lock_guard lock(mutex_);
    order_.record(event, order_.stream(device, stream));
    note(Kind::record, 0, device, stream, stack, &event);
}

void RaceDetector::event_waited(std::uintptr_t event, int device, Stream stream, StackId stack) {
    const std::lock_guard lock(mutex_);
    order_.wait_for(event, order_.stream(device, stream));
    note(Kind::wait, 0, device, stream, stack, &event);
}

void RaceDetector::event_synchronized(std::uintptr_t event, StackId stack) {
    const std::lock_guard lock(mutex_);
    order_.finish_event(event);
    settle_page_locked();
    note(Kind::sync, 0, -1, 0, stack, &event);
}

void RaceDetector::event_destroyed(std::uintptr_t event) {
    const std::lock_guard lock(mutex_);
    order_.forget_event(event);
}

// Work

RaceDetector::Races RaceDetector::work(int device, Stream stream, std::string_view name, NamedUses uses,
                                       StackId stack) {
    const std::lock_guard lock(mutex_);
    Races found;
    OrderedStream &ordered = order_.stream(device, stream);
    const Operation operation = operation_in(ordered, name, stack);
    for (NamedUse &named : uses)
        check(operation, numbered(named), order_.horizon_of(ordered), found);
    if (operation.name == host_function_)
        called_host(operation, order_.horizon_of(ordered));
    update_watch_of_host();
    return found;
}

RaceDetector::Races RaceDetector::work_together(const std::vector<DeviceStream> &streams, std::string_view name,
                                                NamedUses uses, StackId stack) {
    const std::lock_guard lock(mutex_);
    Races found;
    if (streams.empty())
        return found;
    OrderedStream &first = order_.stream(streams.front().first, streams.front().second);
    for (const auto &[device, stream] : streams)
        order_.wait(first, order_.moment_of(order_.stream(device, stream)));
    const Operation operation = operation_in(first, name, stack);
    for (NamedUse &named : uses)
        check(operation, numbered(named), order_.horizon_of(first), found);
    const Moment end = order_.moment_of(first);
    for (const auto &[device, stream] : streams)
        order_.wait(order_.stream(device, stream), end);
    if (operation.name == host_function_)
        called_host(operation, order_.horizon_of(first));
    update_watch_of_host();
    return found;
}

RaceDetector::Races RaceDetector::host_access(std::string_view name, NamedUses uses, StackId stack) {
    const std::lock_guard lock(mutex_);
    Races found;
    Operation operation;
    operation.name = names_.number(name);
    operation.stack = stack;
    operation.number = ++operations_;
    for (NamedUse &named : uses) {
        Access *const access = accesses_.make(operation, numbered(named));
        raced_.clear();
        accesses_.look(access, order_.host_horizon(),
                       [&](const Access *previous) { found_race(*previous, *access, found); });
    }
    return found;
}

RaceDetector::HostWork RaceDetector::begin_host_work(std::string_view name, NamedUses uses, StackId stack) {
    const std::lock_guard lock(mutex_);
    HostWork work;
    work.slot = order_.take_slot();
    work.epoch = order_.next(work.slot);
    Operation operation;
    operation.name = names_.number(name);
    operation.stack = stack;
    operation.number = ++operations_;
    operation.slot = work.slot;
    operation.epoch = work.epoch;
    for (NamedUse &named : uses) {
        Access *const access = accesses_.make(operation, numbered(named));
        raced_.clear();
        accesses_.add(access, order_.horizon_of_host_work(work.slot),
                      [&](const Access *previous) { found_race(*previous, *access, work.found); });
    }
    return work;
}

void RaceDetector::end_host_work(const HostWork &work) {
    const std::lock_guard lock(mutex_);
    order_.finish({work.slot, work.epoch, Clock()});
    order_.retire_slot(work.slot);
}

// Graphs

std::unique_ptr<GraphPlan> RaceDetector::add_graph(const std::vector<NamedNode> &nodes) {
    const std::lock_guard lock(mutex_);
    std::vector<GraphNode> numbered_nodes;
    for (const NamedNode &node : nodes) {
        GraphNode made{names_.number(node.name), node.stack, {}, node.dependencies};
        for (const NamedUse &named : node.uses) {
            made.uses.push_back(named.use);
            made.uses.back().label = names_.number(named.label);
        }
        numbered_nodes.push_back(std::move(made));
    }
    auto plan = std::make_unique<GraphPlan>(std::move(numbered_nodes));
    plan->slots.reserve(plan->lengths().size());
    for (std::size_t chain = 0; chain < plan->lengths().size(); ++chain)
        plan->slots.push_back(order_.take_slot());
    return plan;
}

void RaceDetector::remove_graph(const GraphPlan &graph) noexcept {
    const std::lock_guard lock(mutex_);
    for (const Slot slot : graph.slots)
        order_.retire_slot(slot);
}

void RaceDetector::set_node(GraphPlan &graph, std::size_t place, NamedUses uses) {
    const std::lock_guard lock(mutex_);
    std::vector<Use> made;
    for (NamedUse &named : uses)
        made.push_back(numbered(named));
    graph.set_uses(place, std::move(made));
}

void RaceDetector::follow(GraphPlan &graph, const GraphPlan &before) {
    const std::lock_guard lock(mutex_);
    graph.end = before.end;
}

RaceDetector::Races RaceDetector::launch(GraphPlan &graph, int device, Stream stream, StackId stack) {
    const std::lock_guard lock(mutex_);
    Races found;
    OrderedStream &ordered = order_.stream(device, stream);
    order_.wait(ordered, graph.end); // the launches of one executable graph come one after another
    const Operation launched = operation_in(ordered, "graph", stack);
    const std::vector<Slot> &slots = graph.slots;
    Clock clock = ordered.before;
    clock.raise(launched.slot, launched.epoch);
    std::vector<Epoch> begins;
    for (const Slot slot : slots) {
        begins.push_back(order_.last(slot));
        clock.raise(slot, begins.back());
    }
    Operation operation = launched;
    operation.launch_stack = stack;
    for (const GraphPlan::Node &node : graph.nodes()) {
        for (const auto &[chain, place] : node.after)
            clock.set(slots[chain], begins[chain] + place);
        operation.name = node.name;
        operation.stack = node.stack;
        operation.number = ++operations_;
        operation.slot = slots[node.chain];
        operation.epoch = begins[node.chain] + node.place;
        for (const Use &use : node.uses)
            check(operation, of_node_ = use, order_.horizon_of(operation.slot, clock), found);
        if (node.name == host_function_)
            called_host(operation, order_.horizon_of(operation.slot, clock));
        for (const auto &[chain, place] : node.after)
            clock.set(slots[chain], begins[chain]);
    }
    for (std::size_t chain = 0; chain < slots.size(); ++chain) {
        order_.advance(slots[chain], graph.lengths()[chain]);
        ordered.before.raise(slots[chain], order_.last(slots[chain]));
    }
    ordered.joined = true;
    graph.end = order_.moment_of(ordered);
    update_watch_of_host();
    return found;
}

// Memory

void RaceDetector::memory_allocated(Address address, std::size_t size, int device, Stream stream,
                                    StackId stack) noexcept {
    const std::lock_guard lock(mutex_);
    try {
        knows_memory_.store(true, std::memory_order_release);
        allocations_.add(address, size, device, stream, stack);
    } catch (const std::bad_alloc &) { // without host memory, the reports do not name the allocation
    }
}

void RaceDetector::memory_freed(Address address, StackId stack) noexcept {
    const std::lock_guard lock(mutex_);
    allocations_.free(address, stack);
}

void RaceDetector::memory_unmapped(Address address, std::size_t size, int device, bool waited) noexcept {
    const std::lock_guard lock(mutex_);
    try {
        if (waited)
            order_.finish_device(device);
        const Address end = address + (size != 0 ? size : allocations_.size_of(address));
        accesses_.forget(address, end);
        allocations_.forget(address, end);
        page_locked_.forget(address, end);
    } catch (const std::bad_alloc &) { // without host memory, the accesses stay known
    }
    update_watch_of_host();
}

void RaceDetector::find_live(const Address *addresses, std::size_t count, LiveRange *found) {
    const std::lock_guard lock(mutex_);
    for (std::size_t place = 0; place < count; ++place) {
        const Allocation *const known = allocations_.live(addresses[place]);
        found[place] = known == nullptr ? LiveRange{} : LiveRange{known->address, known->address + known->size};
    }
}

// Page-locked memory

void RaceDetector::watch_host(PageWatch::Seen seen) {
    const std::lock_guard lock(mutex_);
    if (seen == nullptr && host_seen_.exchange(nullptr) != nullptr)
        PageWatch::end();
    if (seen != nullptr) {
        host_seen_.store(seen);
        page_locked_.take_changed();
        PageWatch::watch(page_locked_.watched(), seen);
    }
}

void RaceDetector::host_registered(Address address, std::size_t size) {
    const std::lock_guard lock(mutex_);
    page_locked_.add(address, size);
}

void RaceDetector::host_unregistered(Address address) {
    const std::lock_guard lock(mutex_);
    page_locked_.remove(address);
    update_watch_of_host();
}

void RaceDetector::host_memory_allocated(Address address, std::size_t size) noexcept {
    const std::lock_guard lock(mutex_);
    try {
        page_locked_.add_block(address, size);
    } catch (const std::bad_alloc &) { // without host memory, only the whole pages of the block are watched
    }
}

void RaceDetector::host_memory_freed(Address address) noexcept {
    const std::lock_guard lock(mutex_);
    page_locked_.remove_block(address);
}

void RaceDetector::host_may_learn(int device, Stream stream) {
    const std::lock_guard lock(mutex_);
    page_locked_.forget(order_.horizon_of(order_.stream(device, stream)));
    update_watch_of_host();
}

void RaceDetector::stream_may_wait_for_host(int device, Stream stream) {
    const std::lock_guard lock(mutex_);
    const Moment now = order_.moment_of(order_.stream(device, stream));
    page_locked_.hold(now.slot, now.epoch);
}

bool RaceDetector::uses_host_memory() {
    const std::lock_guard lock(mutex_);
    return page_locked_.is_used(0, ~Address(0));
}

void RaceDetector::forget_uses_of_host_memory() {
    const std::lock_guard lock(mutex_);
    page_locked_.forget_all();
    update_watch_of_host();
}

bool RaceDetector::uses_host_memory(Address begin, Address end) {
    const std::lock_guard lock(mutex_);
    return page_locked_.is_used(begin, end);
}

bool RaceDetector::knows_page_locked(Address address) {
    const std::lock_guard lock(mutex_);
    return page_locked_.knows(address);
}

std::vector<WatchedRange> RaceDetector::ranges_in_use() {
    const std::lock_guard lock(mutex_);
    return page_locked_.watched();
}

// Reports

RaceDetector::Sizes RaceDetector::sizes() {
    const std::lock_guard lock(mutex_);
    return {recent_.size(),  accesses_.intervals(), accesses_.accesses(), order_.slots(),
            order_.events(), races_.all().size(),   allocations_.size()};
}

std::uint64_t RaceDetector::operations() {
    const std::lock_guard lock(mutex_);
    return operations_;
}

std::vector<RecentStep> RaceDetector::recent() {
    const std::lock_guard lock(mutex_);
    return recent_.read(names_);
}

RaceDetector::Races RaceDetector::races() {
    const std::lock_guard lock(mutex_);
    return races_.all();
}

void RaceDetector::forget_races() {
    const std::lock_guard lock(mutex_);
    races_.clear();
    searches_.clear();
}

// The parts of an operation

Operation RaceDetector::operation_in(OrderedStream &stream, std::string_view name, StackId stack) {
    Operation operation;
    operation.epoch = order_.begin(stream);
    operation.name = names_.number(name);
    operation.stack = stack;
    operation.number = ++operations_;
    operation.device = stream.device;
    operation.stream = stream.key;
    operation.slot = stream.slot;
    note(Kind::work, operation.name, stream.device, stream.key, stack);
    return operation;
}

void RaceDetector::note(Kind kind, NameId name, int device, Stream stream, StackId stack, const std::uintptr_t *event,
                        bool whole_device) {
    RecentSteps::Step step;
    step.kind = kind;
    step.whole_device = whole_device;
    step.device = device;
    step.name = name;
    step.stack = stack;
    step.number = operations_;
    step.stream = stream;
    step.has_event = event != nullptr;
    step.event = event == nullptr ? 0 : *event;
    recent_.add(step);
}

Use &RaceDetector::numbered(NamedUse &named) {
    named.use.label = names_.number(named.label);
    return named.use;
}

void RaceDetector::settle_page_locked() {
    page_locked_.settle(order_.host_horizon());
    update_watch_of_host();
}

// The function may tell the program that the earlier work is complete, and may itself use the memory of earlier and of
// later work.
void RaceDetector::called_host(const Operation &operation, const Horizon &horizon) {
    page_locked_.forget(horizon);
    page_locked_.hold(operation.slot, operation.epoch);
}

// The watch changes under the mutex, so that an earlier change never overwrites a later change. Without host
// memory, or if the system refuses the handler, nothing is watched any more.
void RaceDetector::update_watch_of_host() noexcept {
    const PageWatch::Seen seen = host_seen_.load();
    if (seen == nullptr || !page_locked_.take_changed())
        return;
    try {
        PageWatch::watch(page_locked_.watched(), seen);
    } catch (const std::exception &) {
        PageWatch::end();
    }
}

void RaceDetector::check(const Operation &operation, Use &use, const Horizon &horizon, Races &found) {
    if (page_locked_.counts(use))
        page_locked_.add_use(operation, use, horizon);
    Access *const access = accesses_.make(operation, use);
    raced_.clear();
    accesses_.add(access, horizon, [&](const Access *previous) { found_race(*previous, *access, found); });
}

// The map may find the same access in several pieces.
void RaceDetector::found_race(const Access &previous, const Access &current, Races &found) {
    if (std::find(raced_.begin(), raced_.end(), &previous) != raced_.end())
        return;
    raced_.push_back(&previous);
    report(previous, current, found);
}

void RaceDetector::report(const Access &previous, const Access &current, Races &found) {
    const bool use_after_free =
        previous.allocation != nullptr && current.allocation != nullptr && previous.allocation != current.allocation;
    RaceTable::Key key = RaceTable::key_of(previous, current, use_after_free, false);
    std::optional<Overlap> overlap;
    bool is_exact = false;
    if (previous.use.possible || current.use.possible)
        overlap = overlap_of(previous.use.region, current.use.region);
    if (overlap && overlap->exact) {
        const RaceTable::Key exact = RaceTable::key_of(previous, current, use_after_free, true);
        if (const auto common = searches_.find(key, previous.use, current.use, *overlap)) {
            if (common->certainty == CommonBytes::Certainty::none)
                return;
            is_exact = common->certainty == CommonBytes::Certainty::exact;
            if (is_exact)
                overlap = Overlap{common->begin, common->end, true};
        } else if (can_tell(previous.use) && can_tell(current.use)) { // the searches were too long already
            is_exact = races_.knows(exact);
        }
        if (is_exact)
            key = exact;
    }
    if (races_.count_again(key))
        return;
    if (!is_exact)
        overlap = overlap_of(previous.use.region, current.use.region);
    auto race = std::make_shared<Race>();
    race->previous = described(previous);
    race->current = described(current);
    if (is_exact)
        race->previous.possible = race->current.possible = false;
    race->overlap_begin = overlap ? overlap->begin : current.use.region.begin();
    race->overlap_end = overlap ? overlap->end : current.use.region.end();
    race->use_after_free = use_after_free;
    const auto allocation_of = [](const Access &access) -> std::optional<RaceAllocation> {
        if (access.allocation == nullptr)
            return std::nullopt;
        const Allocation &known = *access.allocation;
        const auto freed_stack = known.freed ? std::optional(known.freed_stack) : std::nullopt;
        return RaceAllocation{known.address, known.size, known.device, known.stream, known.stack, freed_stack};
    };
    race->allocation = allocation_of(current);
    if (use_after_free)
        race->previous_allocation = allocation_of(previous);
    race->is_overlap_exact = !overlap || overlap->exact;
    if (!race->is_overlap_exact)
        race->previous.possible = race->current.possible = true;
    race->recent = recent_.read(names_);
    races_.add(key, race);
    found.push_back(std::move(race));
}

RaceAccess RaceDetector::described(const Access &access) const {
    const Operation &operation = access.operation;
    const Region &region = access.use.region;
    return {names_.text(operation.name),
            names_.text(access.use.label),
            access.use.kind,
            access.use.possible,
            operation.device,
            operation.stream,
            region.address(),
            region.itemsize(),
            region.shape(),
            operation.stack,
            operation.launch_stack,
            operation.number};
}

} // namespace tcuda::races
