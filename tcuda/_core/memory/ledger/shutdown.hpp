#pragma once

#include <atomic>

namespace tcuda {

// Whether the ledger still gives memory back. Every function may be called without the lock.
class Shutdown {
public:
    // In a forked child: frees do nothing from now on.
    void abandon() { abandoned_.store(true, std::memory_order_relaxed); }
    // At the exit of the interpreter: frees only count from now on.
    void close() { closed_.store(true, std::memory_order_relaxed); }

    bool is_abandoned() const { return abandoned_.load(std::memory_order_relaxed); }
    bool is_closed() const { return closed_.load(std::memory_order_relaxed); }

private:
    std::atomic<bool> abandoned_{false}, closed_{false};
};

} // namespace tcuda
