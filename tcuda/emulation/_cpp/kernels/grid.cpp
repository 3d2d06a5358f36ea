#include "emulation/_cpp/kernels/grid.hpp"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <numeric>
#include <stdexcept>
#include <utility>

#include "emulation/_cpp/kernels/watchdog.hpp"

namespace tcuda {
namespace {

constexpr unsigned warp_size = 32;
constexpr unsigned most_threads = 1024;       // the limit of a block
constexpr unsigned most_unwritten_places = 64;
constexpr unsigned pauses_between_looks = 4096; // pauses between two looks at the clock
constexpr unsigned idle_pauses = 1024; // pauses after which a block waits for another block
constexpr unsigned most_idle_looks = 1; // in another order, while other blocks wait for their turn
constexpr auto longest_wait = std::chrono::milliseconds(50); // the wait for the module before a look for signals

unsigned threads_of(const Launch &launch) {
    const auto [x, y, z] = launch.block;
    const bool fits = x != 0 && y != 0 && z != 0 && x <= most_threads && y <= most_threads && z <= most_threads;
    if (!fits || static_cast<unsigned long long>(x) * y * z > most_threads)
        throw std::invalid_argument("a block must have 1 to 1024 threads");
    if (launch.grid.x == 0 || launch.grid.y == 0 || launch.grid.z == 0)
        throw std::invalid_argument("a grid must have at least one block");
    if (launch.shared_bytes > abi::shared_capacity)
        throw std::invalid_argument("a block has at most 232448 bytes of dynamic shared memory");
    return x * y * z;
}

std::atomic<unsigned long long> cooperative_launches{0};

// A number that depends on all bits of the other number.
unsigned long long mixed(unsigned long long number) {
    number = (number ^ number >> 30) * 0xbf58476d1ce4e5b9ull;
    number = (number ^ number >> 27) * 0x94d049bb133111ebull;
    return number ^ number >> 31;
}

} // namespace

// The life of a launch

Grid::Grid(LoadedModule &module, Launch launch)
    : interface_(module.interface()), module_(module), launch_(std::move(launch)), threads_(threads_of(launch_)),
      blocks_(static_cast<unsigned long long>(launch_.grid.x) * launch_.grid.y * launch_.grid.z),
      memory_(launch_.variables) {
    const auto begin = reinterpret_cast<std::uintptr_t>(launch_.arguments.data());
    memory_.admit_own({begin, begin + launch_.arguments.size()});
    if (launch_.recorded || launch_.marked)
        recorder_.reset(new AccessRecorder(launch_.finds_changes, launch_.strict_marks));
    if (launch_.marked) {
        for (const Marks &each : launch_.marks)
            recorder_->add_marks(each);
        const auto shared = reinterpret_cast<std::uintptr_t>(interface_.dynamic_shared);
        if (launch_.marks_shared && launch_.shared_bytes != 0)
            recorder_->add_marks({{shared, shared + launch_.shared_bytes}, nullptr});
        marks_own_ = recorder_->marks_shared();
        unwritten_reads_.reserve(most_unwritten_places);
    }
}

Grid::~Grid() { end(); }

// False if another thread uses the module.
bool Grid::begin() {
    if (!module_.acquire(longest_wait))
        return false;
    try {
        prepare();
    } catch (...) {
        module_.release();
        throw;
    }
    begun_ = true;
    return true;
}

// Takes all memory that the launch needs, because code on a fiber must not throw.
void Grid::prepare() {
    make_fibers();
    fiber_of_.assign(threads_, nullptr);
    meetings_.reserve(threads_);
    if (launch_.order > 1)
        parked_.reserve(threads_);
    make_exchanges();
    // Dynamic shared memory beyond the size of the launch is no memory of the block.
    const abi::Range library = module_.range();
    const auto shared = reinterpret_cast<std::uintptr_t>(interface_.dynamic_shared);
    const abi::Range headers = module_.headers();
    memory_.admit_own({library.begin, headers.begin});
    memory_.admit_own({headers.end, shared});
    memory_.admit_own({shared, shared + launch_.shared_bytes});
    memory_.admit_own({shared + abi::shared_capacity, library.end});
    std::fill_n(interface_.slots, abi::slot_count, abi::Span{});
    *interface_.services = {this,
                            wait_for_block,
                            exchange,
                            converge,
                            pause,
                            await,
                            step,
                            resolve,
                            nullptr,
                            nullptr,
                            fail,
                            launch_.order < 2 ? nullptr : park,
                            launch_.order == 1,
                            launch_.order != 0,
                            launch_.cooperative ? ++cooperative_launches : 0};
    if (launch_.races) {
        const auto heap = reinterpret_cast<std::uintptr_t>(interface_.heap);
        ModuleMemory memory{library, {heap, heap + abi::heap_capacity}, launch_.variables};
        races_.reset(new RaceFinder(std::move(memory), launch_.grid, launch_.block, *interface_.races));
        interface_.services->touch = touch;
        interface_.services->fence = fence;
    }
    *interface_.block_dim = launch_.block;
    *interface_.grid_dim = launch_.grid;
    *interface_.dynamic_shared_size = launch_.shared_bytes;
    stride_ = 1 + mixed(launch_.order) % blocks_;
    while (std::gcd(stride_, blocks_) != 1)
        ++stride_;
    block_ = block_at(0);
    begin_ = std::chrono::steady_clock::now();
    start_block();
}

// Fibers in the middle of a kernel are forgotten: a kernel owns nothing of the host.
void Grid::end() {
    if (!std::exchange(begun_, false))
        return;
    if (std::exchange(*interface_.printed, false))
        std::fflush(stdout);
    if (recorder_ != nullptr)
        std::fill_n(interface_.records, abi::record_count, abi::Record{});
    if (races_ != nullptr)
        races_->leave_module();
    while (!stacks_.empty()) {
        ThreadStacks::give(std::move(stacks_.back()));
        stacks_.pop_back();
    }
    module_.release();
}

Grid::Outcome Grid::run() {
    if (running_.exchange(true))
        throw std::logic_error("another thread runs this launch");
    struct Running {
        std::atomic<bool> &flag;
        ~Running() { flag = false; }
    } running{running_};
    if (ended_)
        return *ended_;
    if (!begun_ && !begin())
        return Outcome::interrupted;
    interrupted_ = asks_ = false;
    use_own_memory();
    Outcome outcome;
    {
        // The watch ends before the module is given to other launches, because an interruption writes to the module.
        const Watch watch(*this);
        struct Guards {
            std::vector<std::unique_ptr<FaultGuard>> &list;
            ~Guards() { list.clear(); }
        } guards{guards_};
        guard_stacks();
        outcome = run_blocks();
    }
    if (outcome == Outcome::fault)
        describe_failure();
    if (outcome == Outcome::done && launch_.recorded)
        recorder_->finish();
    if (outcome == Outcome::fault || outcome == Outcome::done) {
        ended_ = outcome;
        if (races_ != nullptr)
            races_->finish();
        end();
    }
    return outcome;
}

Grid::Outcome Grid::run_blocks() {
    for (;;) {
        if (resumed_ != nullptr) {
            scheduler_.switch_to(std::exchange(resumed_, nullptr)->context);
        } else if (Fiber *fiber = next_fiber()) {
            make_current(fiber);
            scheduler_.switch_to(fiber->context);
        }
        if (failed_)
            return Outcome::fault;
        if (std::exchange(changes_block_, false)) {
            change_block();
            continue;
        }
        if (uncovered_) {
            recorder_->cover(access_.address, access_.size, covered_);
            uncovered_ = false;
            continue;
        }
        if (asks_)
            return Outcome::access;
        if (interrupted_)
            return give_up() ? Outcome::fault : Outcome::interrupted;
        if (!next_block())
            return Outcome::done;
        if (take_interruption())
            return Outcome::interrupted;
    }
}

void Grid::guard_stacks() {
    for (std::size_t place = guards_.size(); place < stacks_.size(); ++place)
        guards_.emplace_back(new FaultGuard(*this, stacks_[place]->begin(), stacks_[place]->end(),
                                            place == 0 ? launch_.constants : abi::Range{}));
}

// Blocks

bool Grid::next_block() {
    if (can_start_block())
        start_next_block();
    else if (!resting_.empty())
        go_on_with_resting();
    else
        return false;
    return true;
}

// The block that has a place in the order.
abi::Index Grid::block_at(unsigned long long place) const {
    unsigned long long number = place;
    if (launch_.order == 1)
        number = blocks_ - 1 - place;
    else if (launch_.order != 0)
        number =
            static_cast<unsigned long long>((static_cast<__uint128_t>(place) * stride_ + mixed(stride_)) % blocks_);
    const auto x = static_cast<unsigned>(number % launch_.grid.x);
    number /= launch_.grid.x;
    return {x, static_cast<unsigned>(number % launch_.grid.y), static_cast<unsigned>(number / launch_.grid.y)};
}

// Whether a launch in another order has taken too long, and ends here.
bool Grid::give_up() {
    if (launch_.order == 0)
        return false;
    // The last block waits for no other block, so look_at_clock() tells whether it spins.
    const auto longest = block_place_ + 1 == blocks_ ? 8 * launch_.patience : launch_.patience;
    if (std::chrono::steady_clock::now() - begin_ <= longest)
        return false;
    failed_ = true;
    failure_ = {"unfinished", "", "", "", 0, 0};
    return true;
}

void Grid::start_block() {
    *interface_.block = block_;
    *interface_.cursor = {{0, 0, 0}, false};
    started_ = 0;
    votes_ = {0, 1, 0};
    progress_ = true;
    note_event();
    if (races_ != nullptr)
        races_->start_block(block_);
    if (marks_own_) {
        recorder_->begin_block();
        for (unsigned place = 0; place < abi::record_count; ++place)
            __atomic_store_n(&interface_.records[place].read_bytes, 0, __ATOMIC_RELAXED);
    }
}

// Fibers

// The fiber that runs next; null at the end of the block, after a deadlock and at an interruption.
inline Fiber *Grid::next_fiber() {
    if (Fiber *fiber = ready_.pop())
        return fiber;
    return started_ < threads_ ? spare_fiber() : next_of_waiting();
}

// Called when all threads of the block that have not returned wait.
Fiber *Grid::next_of_waiting() {
    while (waiting_ != 0) {
        if (take_interruption())
            return nullptr;
        unpark();
        if (Fiber *fiber = ready_.pop())
            return fiber;
        if (!finish_meetings() && !release_converged()) {
            // If each thread that looks at a barrier has looked again, the looks change nothing.
            const bool idle = looks_ > threads_;
            if (idle && can_change_block() && quiet_changes_ <= 2 * blocks_) {
                changes_block_ = true;
                return nullptr;
            }
            Fiber *fiber = idle ? nullptr : paused_.pop();
            if (fiber != nullptr) {
                release(fiber);
            } else if (!release_block()) {
                failed_ = true;
                failure_.kind = "deadlock";
                return nullptr;
            }
        }
        if (Fiber *fiber = ready_.pop())
            return fiber;
    }
    return nullptr;
}

Fiber *Grid::spare_fiber() {
    if (Fiber *fiber = spare_.pop()) {
        --spare_fibers_;
        return fiber;
    }
    const std::size_t place = fibers_used_++;
    ThreadStacks &stacks = *stacks_[place / ThreadStacks::count];
    const std::size_t in_stacks = place % ThreadStacks::count;
    stacks.guard_up_to(in_stacks + 1);
    Fiber *fiber = &fibers_[place / threads_][place % threads_];
    fiber->place = static_cast<unsigned>(place);
    fiber->context.prepare(stacks.bottom(in_stacks), stacks.top(in_stacks), run_threads, this);
    return fiber;
}

inline void Grid::make_current(Fiber *fiber) {
    current_ = fiber;
    ++switches_;
    if (fiber->wait != Fiber::Wait::nothing) {
        fiber->wait = Fiber::Wait::nothing;
        *interface_.thread = fiber->thread;
        interface_.cursor->waited = true;
        if (races_ != nullptr)
            interface_.races->thread = fiber->rank;
    }
}

// In a fiber: lets the next fiber run, or goes back to the scheduler if no fiber can run. The processor predicts a
// switch from fiber to fiber better than two switches by way of the scheduler.
inline void Grid::go_on() {
    Fiber *fiber = current_;
    Fiber *next = next_fiber();
    if (next == nullptr) {
        fiber->context.switch_to(scheduler_);
        return;
    }
    make_current(next);
    if (next == fiber)
        return;
    if (const Fiber *after = ready_.first())
        after->context.prefetch();
    fiber->context.switch_to(next->context);
}

// In a fiber: lets other threads run until release() is called for the fiber.
inline void Grid::wait(Fiber::Wait reason, FiberQueue *queue) {
    Fiber *fiber = current_;
    fiber->wait = reason;
    fiber->thread = *interface_.thread;
    ++waiting_;
    if (queue != nullptr)
        queue->push(fiber);
    go_on();
}

inline void Grid::release(Fiber *fiber) {
    --waiting_;
    ready_.push(fiber);
}

inline void Grid::note_event() {
    looks_ = idle_pauses_ = 0;
    quiet_changes_ = 0;
}

inline const ThreadStacks *Grid::stacks_with(std::uintptr_t address) const {
    for (const auto &stacks : stacks_)
        if (stacks->contain(address))
            return stacks.get();
    return nullptr;
}

inline unsigned Grid::rank_of(abi::Index thread) const {
    return thread.x + launch_.block.x * (thread.y + launch_.block.y * thread.z);
}

inline abi::Index Grid::place_of(abi::Index thread) const {
    if (launch_.order != 1 || !launch_.races)
        return thread;
    const auto [x, y, z] = launch_.block;
    return {x - 1 - thread.x, y - 1 - thread.y, z - 1 - thread.z};
}

// In a fiber: the number of threads of the block that have been started.
inline unsigned Grid::started() const { return std::max(started_, rank_of(place_of(*interface_.thread)) + 1); }

// In a fiber, when its thread waits for the first time: lets the module start the threads after this one, which is the
// last that the module has started.
inline void Grid::note_started() {
    abi::Index next = place_of(*interface_.thread);
    const unsigned rank = rank_of(next);
    if (++next.x == launch_.block.x) {
        next.x = 0;
        if (++next.y == launch_.block.y) {
            next.y = 0;
            ++next.z;
        }
    }
    interface_.cursor->next = next;
    started_ = rank + 1;
}

// Notes which thread runs on the fiber.
inline void Grid::bind(Fiber *fiber) {
    const unsigned rank = rank_of(*interface_.thread);
    if (fiber_of_[rank] == fiber)
        return;
    note_started();
    if (fiber_of_[fiber->rank] == fiber)
        fiber_of_[fiber->rank] = nullptr;
    fiber->rank = rank;
    fiber_of_[rank] = fiber;
}

void Grid::run_threads(void *grid) {
    auto &self = *static_cast<Grid *>(grid);
    Fiber *fiber = self.current_;
    for (;;) {
        self.launch_.kernel->run(self.launch_.arguments.data());
        self.started_ = self.threads_;
        self.progress_ = true;
        self.note_event();
        if (self.fiber_of_[fiber->rank] == fiber)
            self.fiber_of_[fiber->rank] = nullptr;
        self.spare_.push(fiber);
        ++self.spare_fibers_;
        self.go_on();
    }
}

unsigned Grid::lanes_of(unsigned warp) const {
    const unsigned lanes = threads_ - warp * warp_size;
    return lanes >= warp_size ? 0xffffffff : (1u << lanes) - 1;
}

// The lanes whose threads have returned. All other threads of the block must wait.
unsigned Grid::returned_lanes(unsigned warp) const {
    unsigned returned = 0;
    for (unsigned lane = 0; lane < warp_size; ++lane) {
        const unsigned rank = warp * warp_size + lane;
        if (rank < threads_ && fiber_of_[rank] == nullptr)
            returned |= 1u << lane;
    }
    return returned;
}

// Barriers of the block

abi::Votes Grid::wait_for_block(void *grid, int predicate) {
    auto &self = *static_cast<Grid *>(grid);
    self.votes_.count += predicate != 0;
    self.votes_.all &= predicate != 0;
    self.votes_.any |= predicate != 0;
    ++self.at_barrier_;
    self.bind(self.current_);
    self.current_->site = __builtin_return_address(0);
    self.wait(Fiber::Wait::block, &self.barrier_);
    return self.result_;
}

// Ends the barrier if all threads of the block, or all that have not returned, wait at the barrier.
bool Grid::release_block() {
    if (at_barrier_ != waiting_ || (launch_.strict && waiting_ != threads_))
        return false;
    if (waiting_ != threads_ && unreached_.waiting == 0)
        unreached_ = {waiting_, threads_ - waiting_};
    if (races_ != nullptr)
        races_->pass_barrier();
    result_ = std::exchange(votes_, {0, 1, 0});
    waiting_ -= std::exchange(at_barrier_, 0);
    progress_ = true;
    note_event();
    ready_.append(barrier_);
    return true;
}

// Warps

const unsigned long long *Grid::exchange(void *grid, unsigned mask, unsigned long long value, unsigned *present) {
    auto &self = *static_cast<Grid *>(grid);
    Fiber &fiber = *self.current_;
    self.bind(&fiber);
    const unsigned warp = fiber.rank / warp_size;
    const unsigned bit = 1u << fiber.rank % warp_size;
    if ((mask & bit) == 0) {
        std::snprintf(self.text_, sizeof self.text_,
                      "the mask 0x%08x of a call for a warp lacks the lane of the calling thread", mask);
        fail(grid, "mask", self.text_, "", 0, "", __builtin_return_address(0));
    }
    if ((self.exchanging_ >> warp & 1) == 0) {
        self.exchanging_ |= 1u << warp;
        Exchanges &fresh = self.exchanges_[warp];
        fresh.lanes = 0;
        std::fill_n(fresh.users, Exchanges::count, 0);
    }
    fiber.mask = mask;
    fiber.value = value;
    fiber.site = __builtin_return_address(0);
    const auto same = [&](const Meeting &meeting) { return meeting.warp == warp && meeting.mask == mask; };
    const auto meeting = std::find_if(self.meetings_.begin(), self.meetings_.end(), same);
    const bool first = meeting == self.meetings_.end();
    const unsigned arrived = (first ? 0 : meeting->arrived) | bit;
    if (arrived == (mask & self.lanes_of(warp))) {
        if (!first)
            self.meetings_.erase(meeting);
        self.finish({warp, mask, arrived});
    } else {
        if (first)
            self.meetings_.push_back({warp, mask, arrived});
        else
            meeting->arrived = arrived;
        self.wait(Fiber::Wait::warp, nullptr);
    }
    *present = fiber.present;
    return self.exchanges_[warp].values[fiber.result];
}

// Gives the lanes that have arrived their values. If the calling thread is among them, the thread goes on at once.
void Grid::finish(Meeting meeting) {
    progress_ = true;
    note_event();
    if (races_ != nullptr) // The lanes of the mask that have not arrived have returned.
        races_->join(meeting.warp, meeting.mask & lanes_of(meeting.warp));
    Exchanges &exchanges = exchanges_[meeting.warp];
    const unsigned result =
        static_cast<unsigned>(std::find(exchanges.users, exchanges.users + Exchanges::count, 0) - exchanges.users);
    unsigned long long *values = exchanges.values[result];
    for (unsigned rest = meeting.arrived; rest != 0; rest &= rest - 1) {
        const auto lane = static_cast<unsigned>(__builtin_ctz(rest));
        Fiber *fiber = fiber_of_[meeting.warp * warp_size + lane];
        values[lane] = fiber->value;
        fiber->present = meeting.arrived;
        fiber->result = result;
        if ((exchanges.lanes >> lane & 1) != 0)
            --exchanges.users[exchanges.result_of[lane]];
        ++exchanges.users[result];
        exchanges.result_of[lane] = static_cast<unsigned char>(result);
        if (fiber->wait != Fiber::Wait::nothing)
            release(fiber);
    }
    exchanges.lanes |= meeting.arrived;
}

// Ends the exchanges in which only threads that have returned are missing.
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

// The lanes that are at the same place of the code now: the result of __activemask().
unsigned Grid::converge(void *grid, const void *site) {
    auto &self = *static_cast<Grid *>(grid);
    Fiber &fiber = *self.current_;
    self.bind(&fiber);
    fiber.site = site;
    ++self.converging_;
    self.wait(Fiber::Wait::convergence, nullptr);
    return fiber.present;
}

bool Grid::release_converged() {
    if (std::exchange(converging_, 0) == 0)
        return false;
    const auto converges = [this](unsigned rank) {
        return fiber_of_[rank] != nullptr && fiber_of_[rank]->wait == Fiber::Wait::convergence;
    };
    for (unsigned first = 0; first < threads_; first += warp_size) {
        const unsigned last = std::min(first + warp_size, threads_);
        for (unsigned rank = first; rank < last; ++rank) {
            if (!converges(rank))
                continue;
            unsigned lanes = 0;
            for (unsigned other = rank; other < last; ++other)
                if (converges(other) && fiber_of_[other]->site == fiber_of_[rank]->site)
                    lanes |= 1u << other % warp_size;
            // A released fiber must not be released again for another lane.
            for (unsigned rest = lanes; rest != 0; rest &= rest - 1) {
                Fiber *fiber = fiber_of_[first + static_cast<unsigned>(__builtin_ctz(rest))];
                fiber->present = lanes;
                fiber->wait = Fiber::Wait::pause;
                release(fiber);
            }
        }
    }
    return true;
}

// Threads that spin

void Grid::pause(void *grid) {
    auto &self = *static_cast<Grid *>(grid);
    self.looks_ = 0;
    self.quiet_changes_ = 0;
    self.take_interruption_of_pause();
    const unsigned most_idle = (self.launch_.order == 0 ? idle_pauses : idle_pauses / 8) + 4 * self.threads_;
    if (++self.idle_pauses_ > most_idle && self.started() == self.threads_ && self.can_change_block()) {
        self.wait_for_other_block();
        return;
    }
    // In another order, a block that waits for a block that has not begun shall take little time.
    if (self.pauses_++ % (self.launch_.order == 0 ? pauses_between_looks : pauses_between_looks / 8) == 0)
        self.look_at_clock();
    self.yield();
}

void Grid::await(void *grid, bool first, const void *site) {
    auto &self = *static_cast<Grid *>(grid);
    self.take_interruption_of_pause();
    if (first)
        self.note_event();
    else
        ++self.looks_;
    self.bind(self.current_);
    self.current_->site = site;
    self.wait(Fiber::Wait::phase, &self.paused_);
}

void Grid::take_interruption_of_pause() {
    if (interrupt_.load(std::memory_order_relaxed) && take_interruption())
        interrupt_thread(false);
}

// In a fiber, before the first statement of the kernel: waits until all threads of the block can begin.
void Grid::park(void *grid) {
    auto &self = *static_cast<Grid *>(grid);
    self.bind(self.current_);
    self.parked_.push_back(self.current_);
    self.wait(Fiber::Wait::pause, nullptr);
}

// Lets the threads of the block begin in their order.
void Grid::unpark() {
    for (std::size_t left = parked_.size(); left != 0; --left) {
        const std::size_t place = mixed(launch_.order + mixed(block_place_ + left)) % left;
        release(std::exchange(parked_[place], parked_[left - 1]));
    }
    parked_.clear();
}

// Before an access to a volatile variable: each thread makes one such access before any thread makes the next. So the
// lanes of a warp see what the other lanes have written before.
void Grid::step(void *grid, bool write) {
    static_cast<Grid *>(grid)->progress_ |= write;
    pause(grid);
}

void Grid::look_at_clock() {
    const auto now = std::chrono::steady_clock::now();
    const unsigned started = this->started();
    if (std::exchange(progress_, false) || std::exchange(last_started_, started) != started)
        last_progress_ = now, idle_looks_ = 0;
    else if (launch_.order != 0 && block_place_ + 1 != blocks_ && ++idle_looks_ > most_idle_looks)
        fail(this, "unfinished", "", "", 0, "", nullptr); // The block may wait for another block.
    else if (now - last_progress_ > launch_.patience)
        fail(this, "timeout",
             "threads of the block spin, and no thread of the block returns, reaches a barrier or writes a volatile "
             "variable",
             "", 0, "", nullptr);
}

// In a fiber: lets all other threads of the block that can go on run before this thread.
void Grid::yield() {
    const bool alone = waiting_ == 0 && ready_.first() == nullptr && started() == threads_;
    if (alone)
        return;
    bind(current_);
    wait(Fiber::Wait::pause, &paused_);
}

// In a fiber that waits for another block: lets the block rest.
void Grid::wait_for_other_block() {
    Fiber *fiber = current_;
    bind(fiber);
    fiber->wait = Fiber::Wait::pause;
    fiber->thread = *interface_.thread;
    ++waiting_;
    paused_.push(fiber);
    changes_block_ = true;
    fiber->context.switch_to(scheduler_);
}

// Accesses

void Grid::allow(abi::Range range) {
    if (running_)
        throw std::logic_error("memory is allowed while another thread runs the launch");
    memory_.admit(range);
}

void Grid::mark(const Marks &marks) {
    if (running_)
        throw std::logic_error("memory is marked while another thread runs the launch");
    if (launch_.marked)
        recorder_->add_marks(marks);
}

// In a fiber: notes an access, and lets the module note further accesses to the same page.
void Grid::record(const Access &access, const abi::Range &known) {
    const auto [address, size, write, code] = access;
    if (!recorder_->covers(address, size, known)) {
        // The recorder takes memory of the host, which code on a fiber must not do.
        access_ = access;
        covered_ = known;
        uncovered_ = true;
        Fiber *fiber = resumed_ = current_;
        fiber->context.switch_to(scheduler_);
    }
    if (!write && recorder_->is_unwritten(address, size))
        note_unwritten(access);
    recorder_->mark(address, size, write);
    const abi::Record found = recorder_->record_at(address, known);
    abi::Record &record = interface_.records[abi::record_place(address)];
    record.begin = found.begin;
    record.reads = found.reads;
    record.writes = found.writes;
    __atomic_store_n(&record.read_bytes, found.read_bytes, __ATOMIC_RELAXED);
    __atomic_store_n(&record.bytes, found.bytes, __ATOMIC_RELAXED); // interrupt() may write the size at the same time
}

// In a fiber, which must not take memory of the host. So the reads at further places are left out if the list is full.
void Grid::note_unwritten(const Access &access) {
    const auto known = std::find_if(unwritten_reads_.begin(), unwritten_reads_.end(),
                                    [&](const UnwrittenReads &each) { return each.code == access.code; });
    if (known != unwritten_reads_.end())
        ++known->count;
    else if (unwritten_reads_.size() < unwritten_reads_.capacity())
        unwritten_reads_.push_back({access.address, access.size, access.code, *interface_.thread, block_, 1});
}

std::uintptr_t Grid::code_of(const void *site) const {
    const abi::Range library = module_.range();
    const auto place = reinterpret_cast<std::uintptr_t>(site);
    return place >= library.begin && place < library.end ? place - library.begin : 0;
}

abi::Span Grid::resolve(void *grid, std::uintptr_t address, unsigned long long size, bool write, const void *site) {
    auto &self = *static_cast<Grid *>(grid);
    const abi::Span found = self.resolved(address, size, write, site);
    if (self.races_ == nullptr || address - found.begin >= found.bytes)
        return found;
    const auto slot = abi::slot_place(reinterpret_cast<std::uintptr_t>(site));
    // No other thread may use the stack of a thread.
    const abi::Range part = self.races_->open_slot(slot, address, {found.begin, found.begin + found.bytes},
                                                   self.stacks_with(address) == nullptr);
    return {part.begin, part.end - part.begin};
}

// The memory around an access that the slot of the access may have.
abi::Span Grid::resolved(std::uintptr_t address, unsigned long long size, bool write, const void *site) {
    // A thread that spins reads. A write may be the end of an atomic function, so no other thread may run before it.
    if (take_interruption())
        interrupt_thread(!write);
    for (;;) {
        if (const abi::Range *range = memory_.find(address, size)) {
            if (recorder_ == nullptr)
                return {range->begin, range->end - range->begin};
            const abi::Range *recorded = memory_.of_device(address, size, *range);
            if (recorded == nullptr && marks_own_)
                recorded = recorder_->shared_at(address, size);
            if (recorded == nullptr) {
                const abi::Range around = memory_.between_variables(address, *range);
                const abi::Range unmarked = recorder_->unmarked(address, size, around).value_or(around);
                return {unmarked.begin, unmarked.end - unmarked.begin};
            }
            if (!launch_.recorded) {
                const auto unmarked = recorder_->unmarked(address, size, *recorded);
                if (unmarked)
                    return {unmarked->begin, unmarked->end - unmarked->begin};
            }
            if (size != 0)
                record({address, size, write, code_of(site)}, *recorded);
            // The slot keeps its contents, because memory with a record is in no slot.
            const abi::Span &slot = interface_.slots[abi::slot_place(reinterpret_cast<std::uintptr_t>(site))];
            return {slot.begin, __atomic_load_n(&slot.bytes, __ATOMIC_RELAXED)};
        }
        // A kernel reads variables of the headers, such as the index of the thread.
        const abi::Range headers = module_.headers();
        if (!write && address - headers.begin < headers.end - headers.begin && size <= headers.end - address)
            return {headers.begin, headers.end - headers.begin};
        Fiber *fiber = current_;
        access_ = {address, size, write, code_of(site)};
        thread_ = *interface_.thread;
        asks_ = true;
        resumed_ = fiber;
        fiber->context.switch_to(scheduler_);
    }
}

// Races

void Grid::touch(void *grid, std::uintptr_t address, unsigned long long size, abi::Touch touch, const void *site) {
    const auto &self = *static_cast<Grid *>(grid);
    if (self.stacks_with(address) == nullptr)
        self.races_->touch(self.interface_.races->thread, address, size, touch, reinterpret_cast<std::uintptr_t>(site));
}

void Grid::fence(void *grid, abi::Scope scope) {
    const auto &self = *static_cast<Grid *>(grid);
    self.races_->fence(self.interface_.races->thread, scope);
}

// Interruptions

// The checks of accesses fail from now on, so that the next access calls resolve(). Only the sizes change, so that no
// check passes by a slot that the kernel writes meanwhile. If the kernel overwrites a change, the next interruption
// repeats the change.
void Grid::interrupt() {
    interrupt_ = true;
    for (unsigned place = 0; place < abi::slot_count; ++place)
        __atomic_store_n(&interface_.slots[place].bytes, 0, __ATOMIC_RELAXED);
    if (recorder_ != nullptr)
        for (unsigned place = 0; place < abi::record_count; ++place) {
            __atomic_store_n(&interface_.records[place].bytes, 0, __ATOMIC_RELAXED);
            __atomic_store_n(&interface_.records[place].read_bytes, 0, __ATOMIC_RELAXED);
        }
    __atomic_store_n(interface_.own_bytes, 0, __ATOMIC_RELAXED);
    __atomic_store_n(interface_.written_bytes, 0, __ATOMIC_RELAXED);
}

bool Grid::take_interruption() {
    if (!interrupt_.load(std::memory_order_relaxed) || !interrupt_.exchange(false))
        return false;
    interrupted_ = true;
    return true;
}

bool Grid::Position::operator==(const Position &other) const {
    return block.x == other.block.x && block.y == other.block.y && block.z == other.block.z &&
           started == other.started && switches == other.switches;
}

// In a fiber: returns from run(). A thread that has run alone since the last interruption may wait in a loop for
// another thread, so the other threads go on before this thread. Otherwise the threads keep their order, which must not
// depend on the time.
void Grid::interrupt_thread(bool may_yield) {
    const Position position{block_, started(), switches_};
    const bool stuck = std::exchange(last_interruption_, position) == position;
    Fiber *fiber = resumed_ = current_;
    fiber->context.switch_to(scheduler_);
    if (stuck && may_yield)
        yield();
}

// Lets the fast check know the memory of the module up to the dynamic shared memory.
void Grid::use_own_memory() {
    // A recorder must see the accesses to global variables.
    const bool all = (!launch_.recorded || launch_.variables.empty()) && !marks_own_;
    const auto shared = reinterpret_cast<std::uintptr_t>(interface_.dynamic_shared);
    *interface_.own_bytes = all ? shared - module_.range().begin : 0;
    *interface_.written_bytes = all ? shared - module_.headers().end : 0;
}

// Failures

void Grid::fail(void *grid, const char *kind, const char *text, const char *file, int line, const char *function,
                const void *site) {
    auto &self = *static_cast<Grid *>(grid);
    self.thread_ = *self.interface_.thread;
    if (site == nullptr && line == 0)
        site = __builtin_return_address(0); // in the function of the kernel, unless the core has found the failure
    self.failure_ = {kind, text, file, function, line, self.code_of(site)};
    self.failed_ = true;
    self.current_->context.switch_to(self.scheduler_); // does not return
}

void Grid::describe_failure() {
    if (std::strcmp(failure_.kind, "deadlock") == 0)
        describe_deadlock();
    else
        fault_ = {failure_.kind, failure_.text, failure_.file, failure_.function, failure_.line, {failure_.code}};
    if (fault_.kind == "timeout" && block_place_ + 1 != blocks_)
        fault_.text += ". The block may wait for a block that has not begun: the blocks of an emulated device run one "
                       "after another, so a block can wait for earlier blocks only. Let the blocks take their numbers "
                       "from a counter by atomicAdd(), in place of blockIdx";
}

std::string Grid::reason_of(const Fiber &fiber) {
    char text[64];
    switch (fiber.wait) {
    case Fiber::Wait::block:
        return "__syncthreads()";
    case Fiber::Wait::warp:
        std::snprintf(text, sizeof text, "a warp function with the mask 0x%08x", fiber.mask);
        return text;
    case Fiber::Wait::phase:
        return "a cuda::barrier or this_grid().sync()";
    default:
        return "__activemask()";
    }
}

// In the handler of a signal. The thread is never resumed, so its stack is free for leave().
char *Grid::note(const RefusedInstruction &refused) noexcept {
    refused_ = refused;
    return stacks_[current_->place / ThreadStacks::count]->top(current_->place % ThreadStacks::count);
}

// In a fiber, after its code was refused.
void Grid::leave() {
    using Reason = RefusedInstruction::Reason;
    const std::uintptr_t address = refused_.address;
    const auto at = static_cast<unsigned long long>(address);
    const auto *site = reinterpret_cast<const char *>(refused_.code) + 1; // as behind a call
    switch (refused_.reason) {
    case Reason::access:
        if (const ThreadStacks *stacks = stacks_with(address); stacks != nullptr && stacks->guards(address)) {
            std::snprintf(text_, sizeof text_,
                          "the thread needs more than the %zu KiB of its stack, or an index of a local array is wrong",
                          ThreadStacks::size >> 10);
            fail(this, "trap", text_, "", 0, "", site);
        }
        if (address >= launch_.constants.begin && address < launch_.constants.end) {
            std::snprintf(text_, sizeof text_, "%llu", at);
            fail(this, "constant", text_, "", 0, "", site);
        }
        std::snprintf(text_, sizeof text_, "Invalid access at %#llx", at);
        fail(this, address == 0 ? "trap" : "memory", text_, "", 0, "",
             site); // A GPU reports the address 0 like __trap().
        break;
    case Reason::no_address:
        fail(this, "memory", "Invalid access at a number that is too large for an address", "", 0, "", site);
        break;
    case Reason::alignment:
        fail(this, "misaligned", "Misaligned access to a vector", "", 0, "", site);
        break;
    case Reason::call:
        std::snprintf(
            text_, sizeof text_,
            "no code is at %#llx, where the kernel goes on: a pointer to a function is wrong, or a write beyond "
            "a local array has changed the place to return to",
            at);
        fail(this, "trap", text_, "", 0, "", site);
        break;
    case Reason::division:
        fail(this, "divide", "division of an integer by zero, or the quotient of two integers overflows", "", 0, "",
             site);
        break;
    case Reason::instruction:
        fail(this, "trap", "the kernel reaches code that has no meaning, such as __builtin_trap()", "", 0, "", site);
        break;
    }
    __builtin_unreachable();
}

// Describes where the threads wait when no thread can go on.
void Grid::describe_deadlock() {
    std::vector<std::pair<std::string, unsigned>> reasons; // in the order of the first thread
    std::vector<std::uintptr_t> codes;
    std::string text;
    for (const Fiber *fiber : fiber_of_) {
        if (fiber == nullptr)
            continue;
        const std::uintptr_t code = code_of(fiber->site);
        if (std::find(codes.begin(), codes.end(), code) == codes.end())
            codes.push_back(code);
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
        text += (text.empty() ? "" : ", ") + std::to_string(count) +
                (count == 1 ? " thread waits at " : " threads wait at ") + reason;
    const unsigned returned = threads_ - waiting_;
    if (returned != 0)
        text += ", " + std::to_string(returned) + (returned == 1 ? " thread has returned" : " threads have returned");
    fault_ = {"deadlock", text, "", "", 0, std::move(codes)};
}

} // namespace tcuda
