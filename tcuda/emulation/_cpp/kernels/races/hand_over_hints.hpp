// Guesses at what was meant to be handed over, for the description of a race. They never tell whether there is a race.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "emulation/_cpp/kernels/races/block_clock.hpp"

namespace tcuda {

// Notes the last writer of places that atomic functions and volatile variables use, and which writers the threads of
// the present block have seen there. Takes no memory after the construction, and so forgets.
class HandOverHints {
public:
    explicit HandOverHints(const BlockClock &clock) : clock_(clock), places_(places), seen_(most_seen) {}

    void start_block() { count_ = 0; }
    void read(unsigned thread, std::uintptr_t address);
    void write(unsigned thread, std::uintptr_t address);

    enum class Guess : unsigned char { none, perhaps, likely };
    // Whether the thread has seen a write, to another place than that of the race, that the other thread made after its
    // access; and when the thread saw the write.
    std::pair<Guess, BlockTime> about(unsigned thread, AccessStamp other, std::uintptr_t address) const;

private:
    static constexpr unsigned places = 2048, most_seen = 64, words = 4;

    struct Writer {
        std::uint32_t block;
        unsigned thread;
        BlockTime time;
    };
    struct Place {
        std::uintptr_t address = 0;
        Writer last{};
        std::uint64_t blocks[words] = {}; // which blocks have written, by the remainder of their numbers
    };
    struct Seen {
        unsigned thread;
        BlockTime at;
        Writer writer;
        std::uint32_t place;
    };

    static unsigned place_of(std::uintptr_t address) {
        return static_cast<unsigned>(address * 0x9e3779b97f4a7c15ull >> 53);
    }

    const BlockClock &clock_;
    std::vector<Place> places_;
    std::vector<Seen> seen_;
    unsigned count_ = 0;
};

} // namespace tcuda
