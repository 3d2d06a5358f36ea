// The watched calls of the driver that a thread is in.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>

#include "sanitizer/_cpp/host_accesses/page_watch.hpp"

namespace tcuda::cupti {

// An access to memory in such a call is the driver's. A subscription may begin or end while a thread is in a call, so
// each subscription counts anew.
class CallDepth {
public:
    static CallDepth &of_thread() {
        static thread_local CallDepth depth;
        if (const std::uint64_t now = subscriptions_.load(std::memory_order_relaxed); depth.subscription_ != now) {
            depth.subscription_ = now;
            depth.calls_ = 0;
            depth.pause_.reset();
        }
        return depth;
    }
    static void begin_again() { subscriptions_.fetch_add(1); }

    bool any() const { return calls_ != 0; }
    void count(bool begins) {
        if (begins)
            ++calls_;
        else if (calls_ != 0 && --calls_ == 0)
            pause_.reset();
    }
    // No page is protected until the end of the call.
    void open_pages() {
        if (!pause_)
            pause_.emplace();
    }

private:
    static inline std::atomic<std::uint64_t> subscriptions_{0};

    std::uint64_t subscription_ = 0;
    unsigned calls_ = 0;
    std::optional<PageWatch::Pause> pause_;
};

inline void open_pages_in_call() { CallDepth::of_thread().open_pages(); }

} // namespace tcuda::cupti
