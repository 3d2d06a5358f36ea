#include "sanitizer/_cpp/watch/launch_walk.hpp"

#include <algorithm>

namespace tcuda::watch {
namespace {

using kernel_uses::Kind;
using kernel_uses::Touch;
using kernel_uses::Walk;

constexpr std::size_t most_work_of_thread = std::size_t(1) << 17;
constexpr std::size_t most_touches_of_sample = 64;
constexpr std::uint64_t first_count = 256; // threads of one call
constexpr std::uint64_t most_threads = std::uint64_t(1) << 48; // far more than are ever followed

std::uint64_t product(const Walk::Index &sizes) { return std::uint64_t(sizes[0]) * sizes[1] * sizes[2]; }

Walk::Index index_of(std::uint64_t number, const Walk::Index &sizes) {
    return {static_cast<unsigned>(number % sizes[0]), static_cast<unsigned>(number / sizes[0] % sizes[1]),
            static_cast<unsigned>(number / sizes[0] / sizes[1])};
}

// The number of the place that is one step inside from the first corner in each direction.
std::uint64_t inside_of(const Walk::Index &sizes) {
    std::uint64_t number = 0, stride = 1;
    for (const unsigned size : sizes) {
        number += size > 1 ? stride : 0;
        stride *= size;
    }
    return number;
}

} // namespace

std::uint64_t LaunchWalk::threads() const {
    const std::uint64_t blocks = product(sizes_.grid), of_block = product(sizes_.block);
    return std::min(blocks, most_threads / of_block) * of_block;
}

bool LaunchWalk::follow(Walk &walk, std::uint64_t number, std::size_t &work, std::size_t most) {
    const std::uint64_t of_block = product(sizes_.block);
    const std::size_t left = work < most ? std::min(most - work, most_work_of_thread) : 0;
    std::size_t steps = left;
    touches_.clear();
    const bool is_whole = walk.follow(index_of(number / of_block, sizes_.grid),
                                      index_of(number % of_block, sizes_.block), steps, touches_);
    work += left - steps + 16; // and to begin a thread
    for (const Touch &touch : touches_) {
        if ((std::uint8_t(touch.kind) & std::uint8_t(Kind::read)) != 0)
            reads_.add(touch.address, touch.address + touch.bytes);
        if ((std::uint8_t(touch.kind) & std::uint8_t(Kind::write)) != 0)
            writes_.add(touch.address, touch.address + touch.bytes);
    }
    return is_whole;
}

void LaunchWalk::follow_corners(Walk &walk) {
    const auto places = [](const Walk::Index &sizes) {
        const std::uint64_t count = product(sizes);
        std::vector<std::uint64_t> made{0, inside_of(sizes), count / 2, count - 1};
        std::sort(made.begin(), made.end());
        made.erase(std::unique(made.begin(), made.end()), made.end());
        return made;
    };
    const auto of_block = places(sizes_.block);
    for (const auto block : places(sizes_.grid))
        for (const auto thread : of_block) {
            const std::uint64_t number = block * product(sizes_.block) + thread;
            follow(walk, number, work_, most_work);
            if (touches_.empty() || touches_.size() > most_touches_of_sample)
                continue;
            last_ = {number, touches_};
            if (first_.touches.empty())
                first_ = last_;
        }
}

void LaunchWalk::look_at(Address address) {
    if (first_.touches.size() != last_.touches.size() || first_.number == last_.number ||
        guess_work_ >= most_guess_work)
        return;
    const std::uint64_t all = threads();
    const __int128 distance = static_cast<__int128>(last_.number) - static_cast<__int128>(first_.number);
    std::uint64_t followed = all; // no thread
    Walk walk(*program_, sizes_, parameters_.data());
    for (std::size_t place = 0; place < first_.touches.size(); ++place) {
        const __int128 from = first_.touches[place].address, reach = last_.touches[place].address - from;
        if (reach == 0)
            continue;
        const __int128 number = static_cast<__int128>(first_.number) + (address - from) * distance / reach;
        if (number < 0 || number >= static_cast<__int128>(all) || static_cast<std::uint64_t>(number) == followed)
            continue;
        followed = static_cast<std::uint64_t>(number);
        follow(walk, followed, guess_work_, most_guess_work);
    }
    reads_.settle();
    writes_.settle();
}

bool LaunchWalk::look() {
    if (is_done_)
        return false;
    const std::uint64_t all = threads();
    Walk walk(*program_, sizes_, parameters_.data());
    if (count_ == 0) {
        follow_corners(walk);
        count_ = first_count;
    } else {
        for (const std::uint64_t end = std::min(all, next_ + count_); next_ < end && work_ < most_work; ++next_)
            is_whole_ = follow(walk, next_, work_, most_work) && is_whole_;
        count_ *= 4;
    }
    reads_.settle();
    writes_.settle();
    const bool is_long = work_ >= most_work || reads_.size() + writes_.size() > most_ranges;
    is_done_ = next_ == all || is_long;
    is_whole_ = is_whole_ && !(is_long && next_ != all);
    return true;
}

} // namespace tcuda::watch
