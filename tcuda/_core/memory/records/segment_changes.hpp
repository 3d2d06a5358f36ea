#pragma once

#include <atomic>
#include <cstddef>

namespace tcuda {

// How many bytes of segments came from the driver and went back, since somebody last took the counts. The lock of the
// device's ledger guards the counts.
class SegmentChanges {
public:
    using Ask = void();

    struct Bytes {
        std::size_t mapped = 0, unmapped = 0;
    };

    // `ask` asks somebody to take the counts soon. The function is called with the lock of a ledger, and so calls
    // neither Python nor the ledger. Null ends that.
    static void connect(Ask *ask) { ask_.store(ask, std::memory_order_relaxed); }

    void note(bool mapped, std::size_t size) noexcept {
        (mapped ? bytes_.mapped : bytes_.unmapped) += size;
        if (Ask *const ask = ask_.load(std::memory_order_relaxed))
            ask();
    }

    Bytes take() noexcept {
        const Bytes taken = bytes_;
        bytes_ = {};
        return taken;
    }

private:
    static inline std::atomic<Ask *> ask_{nullptr};
    Bytes bytes_;
};

} // namespace tcuda
