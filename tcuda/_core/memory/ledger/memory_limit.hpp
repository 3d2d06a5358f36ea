#pragma once

#include <algorithm>
#include <cstddef>
#include <limits>

#include "driver/driver.hpp"
#include "memory/allocator/room.hpp"
#include "memory/ledger/failures.hpp"
#include "threads/lock.hpp"

namespace tcuda {

// How much memory of the device may be reserved: the share that set_per_process_memory_fraction() sets, and what the
// device has.
class MemoryLimit {
public:
    MemoryLimit(int device, Driver &driver) : device_(device), driver_(driver) {}

    void set_fraction(double fraction) {
        fraction_ = fraction;
        bytes_ = 0;
    }
    double fraction() const { return fraction_; }
    bool is_set() const { return fraction_ < 1; }

    // The limit in bytes. The first call after a change asks the driver how much memory there is. Throws DriverError.
    std::size_t bytes(Lock &lock) {
        if (bytes_ == 0) {
            lock.leave_interpreter();
            std::size_t free, total;
            if (const int status = driver_.memory_info(device_, &free, &total))
                throw DriverError(status, "asking the driver for its memory");
            bytes_ = std::max<std::size_t>(bytes_of(total), 1);
        }
        return bytes_;
    }

    // The limit of a device with `total` bytes.
    std::size_t bytes_of(std::size_t total) const {
        return is_set() ? static_cast<std::size_t>(fraction_ * static_cast<double>(total))
                        : std::numeric_limits<std::size_t>::max();
    }

    // How many more bytes the limit allows beside `reserved`. Throws DriverError.
    std::size_t left(Lock &lock, std::size_t reserved) {
        const std::size_t most = bytes(lock);
        return most - std::min(most, reserved);
    }

    // Whether `size` more bytes may be reserved beside `reserved`. Throws DriverError.
    bool allows(Lock &lock, std::size_t size, std::size_t reserved) { return size <= left(lock, reserved); }

    // How many more bytes may be reserved beside `reserved`, if `wanted` bytes are about to be reserved. Throws
    // DriverError. The question to the driver takes as long as many allocations, so the last answer counts until a
    // share of it is taken. Without an answer, the device has nothing.
    Room room(Lock &lock, std::size_t wanted, std::size_t reserved) {
        const std::size_t allowed = left(lock, reserved);
        const auto free = [&] { return asked_at_ + free_ - std::min(asked_at_ + free_, reserved); };
        if (!is_known_ || reserved > asked_at_ + free_ / shares_of_answer || wanted > free()) {
            lock.leave_interpreter();
            std::size_t total;
            is_known_ = driver_.memory_info(device_, &free_, &total) == success;
            free_ = is_known_ ? free_ : 0;
            asked_at_ = reserved;
        }
        return {allowed, std::min(allowed, free())};
    }

    // Lets the next room() ask the driver, because the device had less than the last answer said.
    void doubt() { is_known_ = false; }

private:
    static constexpr std::size_t shares_of_answer = 16;

    const int device_;
    Driver &driver_;
    double fraction_ = 1;
    std::size_t bytes_ = 0; // 0 before the driver is asked
    std::size_t free_ = 0, asked_at_ = 0; // the last answer for the free memory, and what was reserved then
    bool is_known_ = false;
};

} // namespace tcuda
