// The part of a Grid in which threads wait for each other: the barriers of a block, and the functions of its warps.
#include <algorithm>
#include <cstdio>
#include <utility>

#include "emulation/_cpp/kernels/block_fibers.hpp"

namespace tcuda {
namespace {

constexpr unsigned warp_size = 32;

} // namespace

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

} // namespace tcuda
