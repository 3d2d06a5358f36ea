#include "emulation/_cpp/kernels/races/hand_over_hints.hpp"

#include <algorithm>

namespace tcuda {

void HandOverHints::read(unsigned thread, std::uintptr_t address) {
    const unsigned number = place_of(address);
    const Place &place = places_[number];
    if (place.address == address)
        seen_[count_++ % most_seen] = {thread, clock_.time(thread), place.last, number};
}

void HandOverHints::write(unsigned thread, std::uintptr_t address) {
    Place &place = places_[place_of(address)];
    if (place.address != address) {
        place = {};
        place.address = address;
    }
    place.last = {clock_.block(), thread, clock_.time(thread)};
    const unsigned bit = clock_.block() % (64 * words);
    place.blocks[bit / 64] |= std::uint64_t(1) << bit % 64;
}

std::pair<HandOverHints::Guess, BlockTime> HandOverHints::about(unsigned thread, AccessStamp other,
                                                                std::uintptr_t address) const {
    const std::uint32_t block = clock_.block_of(other);
    const BlockTime time = clock_.time_of(other);
    Guess guess = Guess::none;
    for (unsigned number = 0; number < std::min(count_, most_seen); ++number) {
        const Seen &seen = seen_[number];
        if ((seen.thread != thread && seen.at.generation == clock_.generation()) ||
            places_[seen.place].address == address)
            continue;
        const Writer &writer = seen.writer;
        const bool after =
            writer.thread == stamps::thread(other) ? !(writer.time < time) : writer.time.generation > time.generation;
        if (writer.block == block && after)
            return {Guess::likely, seen.at};
        const unsigned bit = block % (64 * words);
        if (block != clock_.block() && (places_[seen.place].blocks[bit / 64] >> bit % 64 & 1) != 0)
            guess = Guess::perhaps;
    }
    return {guess, {}};
}

} // namespace tcuda
