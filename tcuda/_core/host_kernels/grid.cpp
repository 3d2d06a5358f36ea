#include "host_kernels/grid.hpp"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <stdexcept>
#include <utility>

#include "host_kernels/watchdog.hpp"

namespace tcuda {
namespace {

constexpr unsigned warp_size = 32;
constexpr auto patience = std::chrono::seconds(30);
constexpr unsigned pauses_between_looks = 4096; // at the clock

} // namespace

Grid::Grid(LoadedModule &module, Launch launch)
    : module_(module), interface_(module.interface()), launch_(std::move(launch)),
      threads_(launch_.block.x * launch_.block.y * launch_.block.z) {
    const auto *arguments = launch_.arguments.data();
    const auto begin = reinterpret_cast<std::uintptr_t>(arguments);
    allow({begin, begin + launch_.arguments.size()});
}

Grid::~Grid() { end(); }

void Grid::allow(abi::Range range) {
    const auto before = [](const abi::Range &left, const abi::Range &right) { return left.begin < right.begin; };
    ranges_.insert(std::upper_bound(ranges_.begin(), ranges_.end(), range, before), range);
}

bool Grid::begin() {
    if (!module_.acquire())
        return false;
    begun_ = true;
    stacks_ = Stacks::take();
    allow({reinterpret_cast<std::uintptr_t>(stacks_->begin()), reinterpret_cast<std::uintptr_t>(stacks_->end())});
    // Dynamic shared memory beyond the size of the launch is no memory of the block.
    const abi::Range library = module_.range();
    const auto shared = reinterpret_cast<std::uintptr_t>(interface_.dynamic_shared);
    allow({library.begin, shared});
    allow({shared, shared + launch_.shared_bytes});
    allow({shared + abi::shared_capacity, library.end});
    use_own_memory();
    std::fill_n(interface_.slots, abi::slot_count, abi::Range{});
    *interface_.services = {this, wait_for_block, exchange, converge, pause, resolve, fail};
    *interface_.block_dim = launch_.block;
    *interface_.grid_dim = launch_.grid;
    *interface_.dynamic_shared_size = launch_.shared_bytes;
    return true;
}

void Grid::end() {
    if (!begun_ || ended_)
        return;
    ended_ = true;
    if (std::exchange(*interface_.printed, false))
        std::fflush(stdout);
    Stacks::give(std::move(stacks_));
    module_.release();
}

Grid::Outcome Grid::run() {
    if (!begun_) {
        if (!begin())
            throw std::logic_error("the kernel is launched while this thread runs another kernel of the same module");
        start_block();
    }
    const Watch watch(*this);
    const bool goes_on = std::exchange(asks_, false) || std::exchange(interrupted_, false);
    enter(goes_on ? current_ : next_fiber());
    while (!asks_ && !interrupted_ && !failed_ && next_block())
        enter(next_fiber());
    if (interrupted_)
        return Outcome::interrupted;
    if (asks_)
        return Outcome::access;
    end();
    return failed_ ? Outcome::fault : Outcome::done;
}

// Blocks

bool Grid::next_block() {
    if (++block_.x == launch_.grid.x) {
        block_.x = 0;
        if (++block_.y == launch_.grid.y) {
            block_.y = 0;
            if (++block_.z == launch_.grid.z)
                return false;
        }
    }
    start_block();
    return true;
}

void Grid::start_block() {
    *interface_.block = block_;
    *interface_.cursor = {{0, 0, 0}, 0, threads_};
    votes_ = {0, 1, 0};
}

// The fiber that runs next; null at the end of the block and after a deadlock.
Grid::Fiber *Grid::next_fiber() {
    for (;;) {
        if (next_ready_ != ready_.size())
            return ready_[next_ready_++];
        ready_.clear();
        next_ready_ = 0;
        if (interface_.cursor->started < threads_)
            return spare_fiber();
        if (waiting_ == 0)
            return nullptr;
        if (finish_meetings() || release_converged())
            continue;
        if (!paused_.empty()) {
            Fiber *fiber = paused_.front();
            paused_.pop_front();
            release(fiber);
            continue;
        }
        if (release_block())
            continue;
        report_deadlock();
        return nullptr;
    }
}

Grid::Fiber *Grid::spare_fiber() {
    if (spare_.empty()) {
        const std::size_t place = fibers_.size();
        stacks_->guard_up_to(place + 1);
        fibers_.push_back(std::make_unique<Fiber>());
        Fiber *fiber = fibers_.back().get();
        fiber->grid = this;
        fiber->context.prepare(stacks_->bottom(place), stacks_->top(place), run_threads, fiber);
        return fiber;
    }
    Fiber *fiber = spare_.back();
    spare_.pop_back();
    return fiber;
}

// In the scheduler: runs fibers until the block has ended, a thread has failed or an access needs an answer.
void Grid::enter(Fiber *fiber) {
    make_current(fiber);
    scheduler_.switch_to(fiber->context);
}

void Grid::make_current(Fiber *fiber) {
    current_ = fiber;
    if (fiber->wait != Wait::nothing) {
        fiber->wait = Wait::nothing;
        *interface_.thread = fiber->thread;
    }
}

// In a fiber: lets the next fiber run, or goes back to the scheduler if there is none. The processor predicts a switch
// from fiber to fiber better than two switches by way of the scheduler.
void Grid::leave() {
    Fiber *fiber = current_;
    Fiber *next = next_fiber();
    if (next == nullptr) {
        fiber->context.switch_to(scheduler_);
    } else {
        make_current(next);
        if (next != fiber)
            fiber->context.switch_to(next->context);
    }
}

// In a fiber: lets other threads run until release() of the fiber.
void Grid::wait(Wait reason) {
    Fiber *fiber = current_;
    fiber->wait = reason;
    fiber->thread = *interface_.thread;
    if (fiber_of_.empty())
        fiber_of_.resize(threads_);
    fiber_of_[fiber->rank] = fiber;
    ++waiting_;
    leave();
}

void Grid::release(Fiber *fiber) {
    fiber_of_[fiber->rank] = nullptr;
    --waiting_;
    ready_.push_back(fiber);
}

void Grid::run_threads(void *argument) {
    auto *fiber = static_cast<Fiber *>(argument);
    Grid *grid = fiber->grid;
    for (;;) {
        grid->launch_.kernel->run(grid->launch_.arguments.data());
        grid->progress_ = true;
        grid->spare_.push_back(fiber);
        grid->leave();
    }
}

unsigned Grid::rank_of(abi::Index thread) const {
    return thread.x + launch_.block.x * (thread.y + launch_.block.y * thread.z);
}

unsigned Grid::lanes_of(unsigned warp) const {
    const unsigned lanes = threads_ - warp * warp_size;
    return lanes >= warp_size ? 0xffffffff : (1u << lanes) - 1;
}

unsigned Grid::returned_lanes(unsigned warp) const {
    unsigned returned = 0;
    for (unsigned lane = 0; lane < warp_size; ++lane) {
        const unsigned rank = warp * warp_size + lane;
        if (rank < interface_.cursor->started && fiber_of_[rank] == nullptr)
            returned |= 1u << lane;
    }
    return returned;
}

// Barriers of the block

abi::Votes Grid::wait_for_block(void *grid, int predicate) {
    auto &self = *static_cast<Grid *>(grid);
    self.votes_.count += predicate != 0;
    self.votes_.all = self.votes_.all != 0 && predicate != 0;
    self.votes_.any = self.votes_.any != 0 || predicate != 0;
    ++self.at_barrier_;
    self.current_->rank = self.rank_of(*self.interface_.thread);
    self.wait(Wait::block);
    return self.result_;
}

// Ends the barrier if all threads of the block, or all that have not returned, wait at the barrier.
bool Grid::release_block() {
    if (at_barrier_ != waiting_ || (launch_.strict && waiting_ != threads_))
        return false;
    result_ = std::exchange(votes_, {0, 1, 0});
    at_barrier_ = 0;
    progress_ = true;
    for (Fiber *fiber : fiber_of_)
        if (fiber != nullptr)
            release(fiber);
    return true;
}

// Warps

const unsigned long long *Grid::exchange(void *grid, unsigned mask, unsigned long long value, unsigned *present) {
    auto &self = *static_cast<Grid *>(grid);
    Fiber &fiber = *self.current_;
    fiber.rank = self.rank_of(*self.interface_.thread);
    const unsigned warp = fiber.rank / warp_size;
    const unsigned bit = 1u << fiber.rank % warp_size;
    if ((mask & bit) == 0) {
        char text[96];
        std::snprintf(text, sizeof text, "the mask 0x%08x of a call for a warp lacks the lane of the calling thread", mask);
        fail(grid, "mask", text, "", 0, "");
    }
    if (self.exchanges_.empty()) {
        self.exchanges_.resize((self.threads_ + warp_size - 1) / warp_size);
        const auto values = reinterpret_cast<std::uintptr_t>(self.exchanges_.data()); // which threads read
        self.allow({values, values + self.exchanges_.size() * sizeof(Exchanges)});
    }
    fiber.mask = mask;
    fiber.value = value;
    const auto same = [&](const Meeting &meeting) { return meeting.warp == warp && meeting.mask == mask; };
    auto meeting = std::find_if(self.meetings_.begin(), self.meetings_.end(), same);
    const unsigned expected = mask & self.lanes_of(warp);
    const unsigned arrived = (meeting == self.meetings_.end() ? 0 : meeting->arrived) | bit;
    if (arrived == expected) {
        if (meeting != self.meetings_.end())
            self.meetings_.erase(meeting);
        if (self.fiber_of_.empty())
            self.fiber_of_.resize(self.threads_);
        self.fiber_of_[fiber.rank] = &fiber; // for finish()
        self.finish({warp, mask, arrived});
    } else {
        if (meeting == self.meetings_.end())
            self.meetings_.push_back({warp, mask, arrived});
        else
            meeting->arrived = arrived;
        self.wait(Wait::warp);
    }
    *present = fiber.present;
    return fiber.values;
}

// Gives the lanes that have arrived their values. The calling thread, if it is one of them, goes on without a wait.
void Grid::finish(Meeting meeting) {
    progress_ = true;
    Exchanges &exchanges = exchanges_[meeting.warp];
    unsigned long long *values = exchanges.values[exchanges.next++ % 8];
    for (unsigned lane = 0; lane < warp_size; ++lane) {
        if ((meeting.arrived >> lane & 1) == 0)
            continue;
        Fiber *fiber = fiber_of_[meeting.warp * warp_size + lane];
        values[lane] = fiber->value;
        fiber->values = values;
        fiber->present = meeting.arrived;
        if (fiber->wait == Wait::nothing)
            fiber_of_[fiber->rank] = nullptr;
        else
            release(fiber);
    }
}

// Ends an exchange for which only threads are missing that have returned.
bool Grid::finish_meetings() {
    const auto complete = [this](const Meeting &meeting) {
        const unsigned expected = meeting.mask & lanes_of(meeting.warp) & ~returned_lanes(meeting.warp);
        return (expected & ~meeting.arrived) == 0;
    };
    const auto found = std::find_if(meetings_.begin(), meetings_.end(), complete);
    if (found == meetings_.end())
        return false;
    const Meeting meeting = *found;
    meetings_.erase(found);
    finish(meeting);
    return true;
}

// The lanes that are at the same place of the code now, as __activemask() tells them.
unsigned Grid::converge(void *grid, const void *site) {
    auto &self = *static_cast<Grid *>(grid);
    Fiber &fiber = *self.current_;
    fiber.rank = self.rank_of(*self.interface_.thread);
    fiber.site = site;
    self.wait(Wait::convergence);
    return fiber.present;
}

bool Grid::release_converged() {
    bool any = false;
    for (unsigned first = 0; first < threads_; first += warp_size) {
        const unsigned last = std::min(first + warp_size, threads_);
        for (unsigned rank = first; rank < last; ++rank) {
            Fiber *fiber = fiber_of_[rank];
            if (fiber == nullptr || fiber->wait != Wait::convergence)
                continue;
            unsigned lanes = 0;
            for (unsigned other = rank; other < last; ++other)
                if (fiber_of_[other] != nullptr && fiber_of_[other]->wait == Wait::convergence &&
                    fiber_of_[other]->site == fiber->site)
                    lanes |= 1u << other % warp_size;
            for (unsigned other = rank; other < last; ++other)
                if (lanes >> other % warp_size & 1) {
                    fiber_of_[other]->present = lanes;
                    release(fiber_of_[other]);
                }
            any = true;
        }
    }
    return any;
}

void Grid::pause(void *grid) {
    auto &self = *static_cast<Grid *>(grid);
    const bool alone = self.waiting_ == 0 && self.next_ready_ == self.ready_.size() && self.interface_.cursor->started == self.threads_;
    if (alone)
        return;
    if (self.pauses_++ % pauses_between_looks == 0) {
        const auto now = std::chrono::steady_clock::now();
        if (std::exchange(self.progress_, false))
            self.last_progress_ = now;
        else if (now - self.last_progress_ > patience)
            fail(grid, "timeout", "threads of the block spin, and no thread of the block returns or reaches a barrier", "",
                 0, "");
    }
    Fiber &fiber = *self.current_;
    fiber.rank = self.rank_of(*self.interface_.thread);
    self.paused_.push_back(&fiber);
    self.wait(Wait::pause);
}

// Accesses

const abi::Range *Grid::find(std::uintptr_t address, std::uint64_t size) const {
    const auto after = [](std::uintptr_t left, const abi::Range &right) { return left < right.begin; };
    auto place = std::upper_bound(ranges_.begin(), ranges_.end(), address, after);
    if (place == ranges_.begin())
        return nullptr;
    --place;
    return address < place->end && size <= place->end - address ? &*place : nullptr;
}

abi::Range Grid::resolve(void *grid, std::uintptr_t address, unsigned long long size, bool write) {
    auto &self = *static_cast<Grid *>(grid);
    if (self.interrupt_.exchange(false))
        self.give_way();
    for (;;) {
        if (const abi::Range *range = self.find(address, size))
            return *range;
        Fiber *fiber = self.current_;
        self.access_ = {address, size, write};
        self.thread_ = fiber->thread = *self.interface_.thread;
        self.asks_ = true;
        fiber->context.switch_to(self.scheduler_);
    }
}

// The checks of accesses fail from now on, so that the next access calls resolve(). Only the ends of the ranges change, so
// that no check passes by a range that the kernel writes meanwhile.
void Grid::interrupt() {
    if (interrupt_.exchange(true))
        return;
    const auto set = [](std::uintptr_t &end, std::uintptr_t value) { __atomic_store_n(&end, value, __ATOMIC_RELAXED); };
    for (unsigned place = 0; place < abi::slot_count; ++place)
        set(interface_.slots[place].end, 0);
    set(interface_.own->end, interface_.own->begin);
}

// In a fiber: returns from run(), and then lets other threads of the block go on, for which this thread may wait in a
// loop.
void Grid::give_way() {
    use_own_memory();
    interrupted_ = true;
    current_->context.switch_to(scheduler_);
    pause(this);
}

// Lets the fast check know the memory of the module up to the dynamic shared memory.
void Grid::use_own_memory() {
    *interface_.own = {module_.range().begin, reinterpret_cast<std::uintptr_t>(interface_.dynamic_shared)};
}

// Failures

void Grid::fail(void *grid, const char *kind, const char *text, const char *file, int line, const char *function) {
    auto &self = *static_cast<Grid *>(grid);
    self.thread_ = *self.interface_.thread;
    self.fault_ = {kind, text, file, function, line};
    self.failed_ = true;
    self.current_->context.switch_to(self.scheduler_); // for ever
}

std::string Grid::reason_of(const Fiber &fiber) const {
    char text[64];
    switch (fiber.wait) {
    case Wait::block:
        return "__syncthreads()";
    case Wait::warp:
        std::snprintf(text, sizeof text, "a warp function with the mask 0x%08x", fiber.mask);
        return text;
    default:
        return "__activemask()";
    }
}

// Nothing can go on: says where the threads wait.
void Grid::report_deadlock() {
    std::vector<std::pair<std::string, unsigned>> reasons; // in the order of the first thread
    std::string text;
    for (Fiber *fiber : fiber_of_) {
        if (fiber == nullptr)
            continue;
        const std::string reason = reason_of(*fiber);
        const auto known =
            std::find_if(reasons.begin(), reasons.end(), [&](const auto &entry) { return entry.first == reason; });
        if (known != reasons.end()) {
            ++known->second;
            continue;
        }
        if (reasons.empty())
            thread_ = fiber->thread;
        reasons.emplace_back(reason, 1);
    }
    for (const auto &[reason, count] : reasons)
        text += (text.empty() ? "" : ", ") + std::to_string(count) + (count == 1 ? " thread waits at " : " threads wait at ") +
                reason;
    const unsigned returned = threads_ - waiting_;
    if (returned != 0)
        text += ", " + std::to_string(returned) + (returned == 1 ? " thread has returned" : " threads have returned");
    fault_ = {"deadlock", text, "", "", 0};
    failed_ = true;
}

} // namespace tcuda
