#include "ledger/pools.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace tcuda {

Pool &Pools::open(PoolId id, std::shared_ptr<ExternalSource> library, bool split, bool use_on_oom) {
    auto &pool = private_[id];
    if (pool == nullptr) {
        pool = std::make_unique<Pool>();
        pool->id = id;
        pool->library = std::move(library);
        pool->split = split;
        pool->use_on_oom = use_on_oom;
    }
    ++pool->uses;
    return *pool;
}

bool Pools::release(PoolId id) {
    Pool &pool = at(id);
    if (pool.uses == 0)
        throw std::out_of_range("nobody uses the pool");
    return --pool.uses == 0;
}

bool Pools::has_unused() const {
    return std::any_of(private_.begin(), private_.end(), [](const auto &known) { return known.second->uses == 0; });
}

Block *Pools::take_on_oom(Stream stream, std::size_t size) {
    for (const auto &[id, pool] : private_)
        if (pool->use_on_oom)
            if (Block *block = native_.take(*pool, stream, size))
                return block;
    return nullptr;
}

void Pools::remove_unused(const AnnouncedStreams &streams, std::vector<std::unique_ptr<Pool>> &removed) {
    const auto remove_heaps = [&](Pool &pool, bool all) {
        for (std::size_t i = pool.heaps.size(); i-- > 0;) {
            Heap &heap = *pool.heaps[i];
            const bool comes_again = heap.end == nullptr && (heap.stream == 0 || streams.knows(heap.stream));
            if (heap.pins == 0 && CachingAllocator::is_empty(heap) && (all || !comes_again))
                native_.remove(heap);
        }
    };
    remove_heaps(common_, false);
    for (auto known = private_.begin(); known != private_.end();) {
        Pool &pool = *known->second;
        const bool unused = pool.uses == 0 && pool.pins == 0;
        remove_heaps(pool, unused);
        if (!unused || !pool.heaps.empty()) {
            ++known;
            continue;
        }
        removed.push_back(std::move(known->second));
        known = private_.erase(known);
    }
}

} // namespace tcuda
