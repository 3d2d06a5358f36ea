// The bytes that a launch uses for certain, by the code of its kernel.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "sanitizer/_cpp/kernel_uses/program.hpp"
#include "sanitizer/_cpp/kernel_uses/walk.hpp"
#include "sanitizer/_cpp/order/sure_bytes.hpp"

namespace tcuda::watch {

// Follows the threads of a launch: first the threads at the corners of the grid, then all threads in their order. To
// find the thread that uses a byte, look_at() takes the addresses of each access for a linear function of the thread's
// number: a wrong guess costs time only.
class LaunchWalk final : public races::SureBytes {
public:
    // `parameters` is the parameter block. `program` is not null, and no size is 0.
    LaunchWalk(std::shared_ptr<const kernel_uses::Program> program, const kernel_uses::LaunchSizes &sizes,
               const std::vector<unsigned char> &parameters)
        : program_(std::move(program)), sizes_(sizes), parameters_(parameters) {}

    bool is_of(const kernel_uses::Program *program, const kernel_uses::LaunchSizes &sizes,
               const std::vector<unsigned char> &parameters) const {
        return program_.get() == program && sizes_ == sizes && parameters_ == parameters;
    }

    bool look() override;
    void look_at(Address address) override;
    const races::ByteRanges &reads() const override { return reads_; }
    const races::ByteRanges &writes() const override { return writes_; }
    std::size_t work() const override { return work_ + guess_work_; }
    bool are_all() const override { return is_done_ && is_whole_; }

private:
    // Work is counted in steps of a walk.
    static constexpr std::size_t most_work = std::size_t(1) << 21, most_guess_work = std::size_t(1) << 18;
    static constexpr std::size_t most_ranges = std::size_t(1) << 20;

    // A thread that was followed.
    struct Sample {
        std::uint64_t number;
        std::vector<kernel_uses::Touch> touches;
    };

    std::uint64_t threads() const;
    void follow_corners(kernel_uses::Walk &walk);
    // Follows one thread, as far as `work` is less than `most`. False if the thread may make other accesses too.
    bool follow(kernel_uses::Walk &walk, std::uint64_t number, std::size_t &work, std::size_t most);

    const std::shared_ptr<const kernel_uses::Program> program_;
    const kernel_uses::LaunchSizes sizes_;
    const std::vector<unsigned char> parameters_;
    races::ByteRanges reads_, writes_;
    std::vector<kernel_uses::Touch> touches_; // of one thread
    Sample first_{}, last_{};                 // of the corners: the first and the last thread that use memory
    std::uint64_t next_ = 0;                  // the next thread
    std::uint64_t count_ = 0;                 // how many threads the next call follows; 0 before the first call
    std::size_t work_ = 0, guess_work_ = 0;
    bool is_done_ = false, is_whole_ = true;
};

} // namespace tcuda::watch
