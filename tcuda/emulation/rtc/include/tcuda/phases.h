// The counter of a barrier of libcu++: how many threads must still arrive in the present phase.
#pragma once

#include "tcuda/device.h"

namespace tcuda {

inline TCUDA_UNSANITIZED unsigned int threads_of_block() {
    return blockDim.x * blockDim.y * blockDim.z;
}
inline TCUDA_UNSANITIZED unsigned int rank_in_block() {
    return threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
}

// From the lowest bit: the arrivals of each phase, the arrivals that the present phase still lacks, and whether the phase
// has an odd number.
struct PhaseWord {
    static constexpr unsigned int missing_shift = 31;
    static constexpr unsigned long long most = (1ull << missing_shift) - 1, odd = 1ull << 62,
                                        missing = most << missing_shift, one = 1ull << missing_shift;

    static constexpr unsigned long long of(unsigned long long arrivals, bool is_odd) {
        return arrivals | arrivals << missing_shift | (is_odd ? odd : 0);
    }

    unsigned long long value;
};

// For the search for races, arrivals are accesses to the first half of a counter, and the ends of phases to the second
// half. So a thread that waits learns nothing of the arrivals in the next phase.
enum class Half : abi::Address { arrivals = 0, phases = 4 };

inline TCUDA_UNSANITIZED void touch_half(const PhaseWord &word, Half half, abi::Touch kind, const void *site) {
    touch(reinterpret_cast<abi::Address>(&word) + static_cast<abi::Address>(half), 4, kind, site);
}

// Changes a counter as an atomic function does, and returns the value before. `site` is a place of the kernel.
template <class Operation>
inline TCUDA_UNSANITIZED __attribute__((always_inline)) unsigned long long changed(PhaseWord &word, Half half,
                                                                                   abi::Scope scope, const void *site,
                                                                                   Operation operation) {
    const auto address = reinterpret_cast<abi::Address>(&word);
    check_alignment(address, sizeof word, true, site);
    check(address, sizeof word, false, site);
    check(address, sizeof word, true, site);
    touch_half(word, half, scope == abi::Scope::block ? abi::Touch::atomic_of_block : abi::Touch::atomic_of_device,
               site);
    const unsigned long long before = word.value;
    word.value = operation(before);
    return before;
}

// Lets `count` threads arrive after a fence, and lets the phase have as many arrivals fewer from now on as `dropped` says. The last
// thread of the phase calls `completion` and begins the next phase. Returns whether the number of the phase is odd.
template <class Completion>
inline TCUDA_UNSANITIZED __attribute__((noinline)) bool arrive(PhaseWord &word, abi::Scope scope,
                                                               unsigned long long count, const void *site,
                                                               unsigned long long dropped, Completion &completion) {
    __asm__ volatile("" ::: "memory");
    const unsigned long long before = changed(word, Half::arrivals, scope, site, [=](unsigned long long old) TCUDA_UNSANITIZED {
        return old - count * PhaseWord::one - dropped;
    });
    const unsigned long long missing = (before & PhaseWord::missing) >> PhaseWord::missing_shift;
    // The search for races tells what is missing between init() and the arrival.
    if (missing < count && services.touch == nullptr)
        fail("phase", "more threads arrive at a cuda::barrier than its phase expects, or init() comes later", "", 0, "",
             site);
    if (missing == count) {
        fence(scope);
        completion();
        fence(scope);
        changed(word, Half::phases, scope, site, [](unsigned long long old) TCUDA_UNSANITIZED {
            return PhaseWord::of(old & PhaseWord::most, (old & PhaseWord::odd) == 0);
        });
    }
    __asm__ volatile("" ::: "memory");
    return (before & PhaseWord::odd) != 0;
}

// What a barrier does at the end of a phase, if the program names nothing.
struct NoCompletion {
    TCUDA_UNSANITIZED void operator()() const {}
};

// Whether the phase with an odd or an even number has ended. `site` is a place of the kernel.
inline TCUDA_UNSANITIZED bool has_ended(const PhaseWord &word, abi::Scope scope, bool is_odd, const void *site) {
    const auto address = reinterpret_cast<abi::Address>(&word);
    check_alignment(address, sizeof word, false, site);
    check(address, sizeof word, false, site);
    touch_half(word, Half::phases,
               scope == abi::Scope::block ? abi::Touch::atomic_read_of_block : abi::Touch::atomic_read, site);
    const bool ended = ((word.value & PhaseWord::odd) != 0) != is_odd;
    if (ended)
        fence(scope);
    __asm__ volatile("" ::: "memory");
    return ended;
}

}  // namespace tcuda
