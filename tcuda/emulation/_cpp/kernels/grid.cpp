#include "emulation/_cpp/kernels/grid.hpp"

#include <algorithm>
#include <cstdio>
#include <stdexcept>
#include <utility>

#include "emulation/_cpp/kernels/block_fibers.hpp"
#include "emulation/_cpp/kernels/watchdog.hpp"

namespace tcuda {
namespace {

constexpr unsigned most_threads = 1024; // the limit of a block
constexpr unsigned most_unwritten_places = 64;
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

} // namespace

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
    order_blocks();
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

bool Grid::next_block() {
    if (can_start_block())
        start_next_block();
    else if (!resting_.empty())
        go_on_with_resting();
    else
        return false;
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
        check_reads_again();
    }
}

// Another block has other unwritten bytes in shared memory.
void Grid::check_reads_again() {
    for (unsigned place = 0; place < abi::record_count; ++place)
        __atomic_store_n(&interface_.records[place].read_bytes, 0, __ATOMIC_RELAXED);
}

} // namespace tcuda
