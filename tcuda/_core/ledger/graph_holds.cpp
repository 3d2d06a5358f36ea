#include "ledger/graph_holds.hpp"

#include <algorithm>
#include <iterator>

namespace tcuda {
namespace {

// Finds the live block that has an address, also an address in the middle of the block.
class BlocksByAddress {
public:
    explicit BlocksByAddress(const LiveBlocks &live) : live_(live) {}

    Block *containing(Address address) {
        if (Block *block = live_.find(address))
            return block;
        if (!live_.may_contain(address)) // kernels have sizes among their parameters, too
            return nullptr;
        // The next begin of a block below the address. For an address far behind the begin, or a number that is no
        // address, the search gives up as soon as sorting all blocks takes no longer.
        if (ordered_.empty() && live_.are_aligned()) {
            Address begin = address / unit * unit;
            for (std::size_t steps = live_.size(); steps != 0; --steps, begin -= unit) {
                if (Block *block = live_.find(begin))
                    return address - begin < block->size ? block : nullptr;
                if (!live_.may_contain(begin))
                    return nullptr;
            }
        }
        if (ordered_.empty()) {
            live_.each([&](Block *block) { ordered_.push_back(block); });
            std::sort(ordered_.begin(), ordered_.end(), ByAddress{});
        }
        const auto after = std::upper_bound(ordered_.begin(), ordered_.end(), address,
                                            [](Address wanted, const Block *block) { return wanted < block->address; });
        if (after == ordered_.begin())
            return nullptr;
        Block *block = *std::prev(after);
        return address - block->address < block->size ? block : nullptr;
    }

private:
    const LiveBlocks &live_;
    std::vector<Block *> ordered_; // empty until an address needs all blocks in order
};

} // namespace

std::vector<Address> GraphHolds::hold(const std::vector<Address> &addresses, CaptureId capture) {
    BlocksByAddress blocks(live_);
    std::vector<Block *> found;
    for (const Address address : addresses) {
        Block *block = blocks.containing(address);
        const bool has_contents = block != nullptr && (block->state == Block::State::allocated || block->holds != 0);
        if (has_contents && block->capture != capture)
            found.push_back(block);
    }
    std::sort(found.begin(), found.end(), ByAddress{});
    found.erase(std::unique(found.begin(), found.end()), found.end());
    std::vector<Address> held;
    held.reserve(found.size());
    for (Block *block : found) {
        ++block->holds;
        held.push_back(block->address);
    }
    return held;
}

void GraphHolds::unhold(Lock &lock, Block *block) {
    if (--block->holds == 0 && block->state == Block::State::awaiting_free)
        waits_.free(lock, block);
}

void GraphHolds::unhold_all(Lock &lock, Block *first) {
    while (first != nullptr) {
        Block *block = first;
        first = block->right;
        block->right = nullptr;
        unhold(lock, block);
    }
}

std::vector<Address> GraphHolds::own(const std::vector<Address> &held) {
    std::vector<Address> own;
    std::copy_if(held.begin(), held.end(), std::back_inserter(own),
                 [&](Address address) { return live_.find(address) != nullptr; });
    released_.reserve(released_.size() + own.size());
    return own;
}

void GraphHolds::release(Lock &lock, const std::vector<Address> &own, bool may_run) {
    if (own.empty())
        return;
    if (!may_run) {
        for (const Address address : own)
            unhold(lock, live_.find(address));
        return;
    }
    ++releases_;
    for (const Address address : own)
        released_.push_back({address, releases_});
    end_released(lock);
}

void GraphHolds::end_released(Lock &lock) {
    if (released_.empty())
        return;
    const std::uint64_t awaited = releases_; // later releases, while the lock is given back, need a later wait
    if (!progress_.synchronize_device(lock, nullptr))
        return;
    for (std::size_t i = 0; i < released_.size();) {
        if (released_[i].release > awaited) {
            ++i;
            continue;
        }
        Block *block = live_.find(released_[i].address); // a held block is live
        released_[i] = released_.back();
        released_.pop_back();
        unhold(lock, block); // may give the lock back, and other threads may change the list
        i = 0;
    }
}

} // namespace tcuda
