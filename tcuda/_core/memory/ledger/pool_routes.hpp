#pragma once

#include <cstdint>
#include <vector>

#include "driver/driver.hpp"
#include "memory/allocator/pool.hpp"

namespace tcuda {

// The routes of allocations to private pools: of a thread, or of the streams of a capture. The route that
// was begun last wins. A route is a user of its pool.
class PoolRoutes {
public:
    bool empty() const { return routes_.empty(); }

    // The pool for an allocation of this thread, on a stream that takes part in `capture`; `otherwise` if there is no
    // route for it.
    Pool &pool_for(CaptureId capture, Pool &otherwise) const;

    // Sends the allocations of this thread to the pool. `use` is the number of the route, or 0.
    void begin(Pool &pool, std::uint64_t use);
    // Ends the last route to the pool that has this number, or, for 0, that this thread has begun without a number.
    // Returns the pool, which has one user less. Without such a route, nothing happens, and the result is null.
    Pool *end(PoolId id, std::uint64_t use) noexcept;

    // Makes room, so that the next begin_capture() cannot throw.
    void reserve_one() { routes_.reserve(routes_.size() + 1); }
    // Sends the allocations on all streams of a capture to the pool.
    void begin_capture(Pool &pool, CaptureId capture);
    // Ends that, and returns the pool, which has one user less; null if there is no such route.
    Pool *end_capture(CaptureId capture) noexcept;

private:
    struct Route {
        Pool *pool;
        std::uintptr_t thread;
        CaptureId capture; // 0 for all allocations of the thread
        std::uint64_t use; // the number of the route, or 0
    };

    std::vector<Route> routes_;
};

} // namespace tcuda
