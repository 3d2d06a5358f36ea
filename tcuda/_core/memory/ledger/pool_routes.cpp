#include "memory/ledger/pool_routes.hpp"

#include <algorithm>
#include <iterator>

#include "driver/stream_key.hpp"

namespace tcuda {

Pool &PoolRoutes::pool_for(CaptureId capture, Pool &otherwise) const {
    for (auto route = routes_.rbegin(); route != routes_.rend(); ++route)
        if (route->capture != 0 ? route->capture == capture : route->thread == thread_number())
            return *route->pool;
    return otherwise;
}

void PoolRoutes::begin(Pool &pool, std::uint64_t use) {
    routes_.push_back({&pool, thread_number(), 0, use});
    ++pool.uses;
}

Pool *PoolRoutes::end(PoolId id, std::uint64_t use) noexcept {
    const auto ended = std::find_if(routes_.rbegin(), routes_.rend(), [&](const Route &route) {
        const bool is_named = route.use == use && (use != 0 || route.thread == thread_number());
        return route.capture == 0 && is_named && route.pool->id == id;
    });
    if (ended == routes_.rend())
        return nullptr;
    Pool *pool = ended->pool;
    --pool->uses;
    routes_.erase(std::next(ended).base());
    return pool;
}

void PoolRoutes::begin_capture(Pool &pool, CaptureId capture) {
    routes_.push_back({&pool, 0, capture, 0});
    ++pool.uses;
}

Pool *PoolRoutes::end_capture(CaptureId capture) noexcept {
    const auto ended =
        std::find_if(routes_.begin(), routes_.end(), [&](const Route &route) { return route.capture == capture; });
    if (ended == routes_.end())
        return nullptr;
    Pool *pool = ended->pool;
    --pool->uses;
    routes_.erase(ended);
    return pool;
}

} // namespace tcuda
