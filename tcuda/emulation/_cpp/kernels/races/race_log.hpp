// The races that a launch has found.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "emulation/_cpp/kernels/races/access_kind.hpp"
#include <tcuda_abi.h>

namespace tcuda {

// What would order the two accesses of a race. A fence is missing in both threads, or in that of one access.
enum class Missing : unsigned char { warp_barrier, barrier, atomic, fence, fence_of_first, fence_of_second, scope };

struct RacingAccess {
    AccessKind kind;
    std::uint32_t
        code; // of the call of the hook, from the beginning of the library; 0 if the launch has too many places
    std::uint32_t size;
    abi::Index thread, block;
};

struct KernelRace {
    std::uintptr_t address; // the first byte that both accesses touch
    std::uint64_t size;
    RacingAccess first, second;
    Missing missing;
    bool same_value;
    bool shared; // whether the memory is shared memory
    std::uint64_t count;
};

// Keeps one race for each pair of places of the code. Takes no memory after the first race.
class RaceLog {
public:
    static constexpr std::size_t most = 256;

    // The number of the race of two places; null if the log has none and no room. `is_new` tells whether the race has
    // no contents yet.
    KernelRace *race_of(std::uint32_t one, std::uint32_t other, bool &is_new);
    // The race of two places, if the log has one.
    KernelRace *find(std::uint32_t one, std::uint32_t other);

    const std::vector<KernelRace> &races() const { return races_; }
    std::vector<KernelRace> &races() { return races_; }
    std::size_t left_out() const { return left_out_; }

private:
    static constexpr unsigned places = 8192; // of the table

    struct Pair {
        std::uint32_t low, high; // 0, 0 if the place of the table is empty
        std::uint32_t number;    // most if the race was left out
    };

    Pair *pair_of(std::uint32_t one, std::uint32_t other);

    std::vector<Pair> pairs_;
    std::vector<KernelRace> races_;
    std::size_t left_out_ = 0;
};

} // namespace tcuda
