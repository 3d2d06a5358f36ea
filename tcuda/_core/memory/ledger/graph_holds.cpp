#include "memory/ledger/graph_holds.hpp"

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
        // The next start of a block below the address. For an address far behind the start, or a number that is no
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

std::list<GraphHolds::Hold> GraphHolds::own(const std::vector<Address> &held) {
    std::list<Hold> own;
    for (const Address address : held)
        if (live_.find(address) != nullptr)
            own.push_back({address, 0});
    return own;
}

void GraphHolds::release(Lock &lock, std::list<Hold> &own) {
    for (const Hold &hold : own)
        unhold(lock, live_.find(hold.address)); // a held block is live
}

void GraphHolds::release_later(std::list<Hold> &own, std::uint64_t request) {
    for (Hold &hold : own)
        hold.release = request;
    released_.splice(released_.end(), own);
}

void GraphHolds::end_passed(Lock &lock) {
    while (!released_.empty() && checkpoint_.has_passed(released_.front().release)) {
        Block *const block = live_.find(released_.front().address);
        released_.pop_front();
        // A detector does not see that an event of the ledger covers all streams.
        MemoryObserver *const observer = observer_.load(std::memory_order_relaxed);
        if (observer != nullptr && block->holds == 1 && block->state == Block::State::awaiting_free)
            observer->memory_unmapped(block->address, block->size, device_, false);
        unhold(lock, block);
    }
}

} // namespace tcuda
