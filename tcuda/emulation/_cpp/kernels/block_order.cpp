// The part of a Grid that has the order of the blocks, and of the threads of a block.
#include <numeric>
#include <utility>

#include "emulation/_cpp/kernels/block_fibers.hpp"

namespace tcuda {
namespace {

// A number that depends on all bits of the other number.
unsigned long long mixed(unsigned long long number) {
    number = (number ^ number >> 30) * 0xbf58476d1ce4e5b9ull;
    number = (number ^ number >> 27) * 0x94d049bb133111ebull;
    return number ^ number >> 31;
}

} // namespace

// A stride that reaches each block once.
void Grid::order_blocks() {
    stride_ = 1 + mixed(launch_.order) % blocks_;
    while (std::gcd(stride_, blocks_) != 1)
        ++stride_;
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

} // namespace tcuda
