// The part of a Grid that lets a block rest while its threads wait for another block.
#include <algorithm>
#include <cstring>
#include <utility>

#include "emulation/_cpp/kernels/grid.hpp"

namespace tcuda {
namespace {

// The limits of an H200. Emulated devices say that they have 8 multiprocessors (costs.py), and a cooperative launch
// must fit these. A kernel whose blocks wait without a cooperative launch may be right for a whole GPU and asks nobody
// for its size, so such a kernel fails where it fails on an H200.
constexpr unsigned multiprocessors = 132, most_blocks = 32, most_resident_threads = 2048, most_shared = 233472;
constexpr std::size_t piece = 4096;

// The parts of a range outside of another range.
void add_outside(std::vector<abi::Range> &found, abi::Range range, abi::Range without) {
    const abi::Range before{range.begin, std::min(range.end, std::max(range.begin, without.begin))};
    const abi::Range after{std::max(range.begin, std::min(range.end, without.end)), range.end};
    if (without.begin >= without.end || before.end == range.end) {
        found.push_back(range);
        return;
    }
    for (const abi::Range &part : {before, after})
        if (part.begin < part.end)
            found.push_back(part);
}

} // namespace

// The blocks that an H200 can run at the same time.
unsigned long long Grid::most_resident() const {
    const unsigned in_warps = (threads_ + 31) / 32 * 32;
    return multiprocessors *
           std::max(1ull, std::min<unsigned long long>({most_blocks, most_resident_threads / in_warps,
                                                        most_shared / (launch_.shared_bytes + 1024)}));
}

// At most as many blocks are in the middle of the kernel as run at the same time.
bool Grid::can_start_block() const { return block_place_ + 1 != blocks_ && resting_.size() < most_resident(); }

// Whether another block can run if this block rests.
bool Grid::can_change_block() const { return !resting_.empty() || block_place_ + 1 != blocks_; }

void Grid::change_block() {
    ++quiet_changes_;
    rest();
    if (can_start_block())
        start_next_block();
    else
        go_on_with_resting();
}

void Grid::start_next_block() {
    block_ = block_at(++block_place_);
    if (spare_fibers_ + fibers_.size() * threads_ - fibers_used_ < threads_)
        make_fibers();
    start_block();
}

// Takes the memory for the fibers of a block.
void Grid::make_fibers() {
    fibers_.emplace_back(new Fiber[threads_]);
    while (stacks_.size() * ThreadStacks::count < fibers_.size() * threads_) {
        stacks_.push_back(ThreadStacks::take());
        const ThreadStacks &stacks = *stacks_.back();
        memory_.admit_own(
            {reinterpret_cast<std::uintptr_t>(stacks.begin()), reinterpret_cast<std::uintptr_t>(stacks.end())});
        if (!guards_.empty())
            guard_stacks();
    }
}

// Threads read the values, also of a block that goes on after a rest.
void Grid::make_exchanges() {
    const unsigned warps = (threads_ + 31) / 32;
    exchanges_.reset(new Exchanges[warps]);
    const auto values = reinterpret_cast<std::uintptr_t>(exchanges_.get());
    memory_.admit_own({values, values + warps * sizeof(Exchanges)});
}

// All of the module that each block has for itself: no code, no variables of a device, no heap.
void Grid::find_shared() {
    const auto heap = reinterpret_cast<std::uintptr_t>(interface_.heap);
    const auto dynamic = reinterpret_cast<std::uintptr_t>(interface_.dynamic_shared);
    std::vector<abi::Range> without = launch_.variables;
    without.push_back({heap, heap + abi::heap_capacity});
    without.push_back({dynamic + launch_.shared_bytes, dynamic + abi::shared_capacity});
    without.push_back(interface_.own);
    without.push_back(launch_.constants);
    for (const auto &[range, code] : module_.segments())
        if (!code)
            shared_.push_back(range);
    for (const abi::Range &each : without) {
        std::vector<abi::Range> rest;
        for (const abi::Range &range : shared_)
            add_outside(rest, range, each);
        shared_ = std::move(rest);
    }
}

void Grid::rest() {
    if (shared_.empty())
        find_shared();
    RestingBlock block{block_,
                       interface_.cursor->next,
                       started_,
                       waiting_,
                       at_barrier_,
                       converging_,
                       exchanging_,
                       std::exchange(ready_, {}),
                       std::exchange(barrier_, {}),
                       std::exchange(paused_, {}),
                       votes_,
                       result_,
                       std::exchange(fiber_of_, std::vector<Fiber *>(threads_)),
                       std::exchange(parked_, {}),
                       std::exchange(meetings_, {}),
                       std::exchange(exchanges_, nullptr),
                       {},
                       {},
                       std::nullopt};
    for (const abi::Range &range : shared_)
        block.shared.insert(block.shared.end(), reinterpret_cast<const char *>(range.begin),
                            reinterpret_cast<const char *>(range.end));
    if (marks_own_)
        block.written = recorder_->written_shared();
    if (races_ != nullptr)
        block.races = races_->rest();
    resting_.push_back(std::move(block));
    waiting_ = at_barrier_ = converging_ = exchanging_ = 0;
    parked_.reserve(launch_.order > 1 ? threads_ : 0);
    meetings_.reserve(threads_);
    make_exchanges();
}

void Grid::go_on_with_resting() {
    RestingBlock block = std::move(resting_.front());
    resting_.pop_front();
    *interface_.block = block_ = block.block;
    *interface_.cursor = {block.next, true};
    started_ = block.started;
    waiting_ = block.waiting;
    at_barrier_ = block.at_barrier;
    converging_ = block.converging;
    exchanging_ = block.exchanging;
    ready_ = block.ready;
    barrier_ = block.barrier;
    paused_ = block.paused;
    votes_ = block.votes;
    result_ = block.result;
    fiber_of_ = std::move(block.fiber_of);
    parked_ = std::move(block.parked);
    meetings_ = std::move(block.meetings);
    exchanges_ = std::move(block.exchanges);
    looks_ = idle_pauses_ = 0;
    const char *from = block.shared.data();
    for (const abi::Range &range : shared_)
        for (std::uintptr_t begin = range.begin; begin < range.end;) {
            // Some pages of the module can only be read, and never change.
            const std::size_t size = std::min<std::size_t>(piece - begin % piece, range.end - begin);
            auto *const to = reinterpret_cast<char *>(begin);
            if (std::memcmp(to, from, size) != 0)
                std::memcpy(to, from, size);
            begin += size;
            from += size;
        }
    if (marks_own_) {
        recorder_->go_on_with(block.written);
        check_reads_again();
    }
    if (races_ != nullptr)
        races_->go_on_with(*block.races);
}

} // namespace tcuda
