// How much page-locked memory the host has for the allocator.
#pragma once

#include <algorithm>
#include <cstddef>
#include <limits>

namespace tcuda {

// The limit as far as the allocator knows: the room that the host had at the last question, and the refusals of the
// driver.
class HostLimit {
public:
    // The host has `room` bytes left beside `held` bytes of the allocator.
    void found(std::size_t held, std::size_t room) { most_ = held <= unlimited - room ? held + room : unlimited; }
    // The driver has refused to let the allocator hold `bytes`. The reason is unknown, and may pass.
    void refused(std::size_t bytes) { refused_ = std::min(refused_, bytes); }
    // The driver lets the allocator hold `bytes`.
    void granted(std::size_t bytes) { refused_ = bytes >= refused_ ? unlimited : refused_; }
    void forget_refusals() { refused_ = unlimited; }

    // Whether `size` more bytes may be held beside `held`.
    bool allows(std::size_t size, std::size_t held) const {
        const std::size_t most = std::min(most_, refused_ - 1);
        return size <= most && held <= most - size;
    }

private:
    static constexpr std::size_t unlimited = std::numeric_limits<std::size_t>::max();

    std::size_t most_ = unlimited;
    std::size_t refused_ = unlimited; // the least that the driver has refused
};

} // namespace tcuda
