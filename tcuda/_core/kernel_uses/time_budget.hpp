#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>

namespace tcuda::kernel_uses {

// Time that several threads use up together. Safe in any thread, and without a lock.
class TimeBudget {
public:
    using Time = std::chrono::microseconds;

    explicit TimeBudget(Time total) : left_(total.count()) {}
    TimeBudget(const TimeBudget &) = delete;
    TimeBudget &operator=(const TimeBudget &) = delete;

    Time left() const { return Time(std::max<std::int64_t>(left_.load(), 0)); }
    void set(Time total) { left_.store(total.count()); }

    // Takes time from the budget for one piece of work, and gives back the rest when the work is done. So pieces of work
    // in several threads do not use the same time. A piece that takes longer than its share uses up the budget too.
    class Share {
    public:
        Share(TimeBudget &budget, Time most) : budget_(budget), begin_(Clock::now()) {
            std::int64_t left = budget_.left_.load();
            do
                taken_ = std::clamp<std::int64_t>(left, 0, most.count());
            while (!budget_.left_.compare_exchange_weak(left, left - taken_));
        }
        ~Share() {
            const auto used = std::chrono::duration_cast<Time>(Clock::now() - begin_).count();
            if (taken_ > 0)
                budget_.left_.fetch_add(taken_ - used);
        }
        Share(const Share &) = delete;
        Share &operator=(const Share &) = delete;

        Time time() const { return Time(taken_); }

    private:
        using Clock = std::chrono::steady_clock;

        TimeBudget &budget_;
        const Clock::time_point begin_;
        std::int64_t taken_ = 0;
    };

private:
    std::atomic<std::int64_t> left_; // below zero after work that took longer than its share
};

} // namespace tcuda::kernel_uses
