// The search for races between the threads of a launch.
#pragma once

#include <cstdint>
#include <vector>

#include "emulated/kernels/races/access_stamp.hpp"
#include "emulated/kernels/races/block_clock.hpp"
#include "emulated/kernels/races/code_sites.hpp"
#include "emulated/kernels/races/hand_over_hints.hpp"
#include "emulated/kernels/races/hand_overs.hpp"
#include "emulated/kernels/races/race_log.hpp"
#include "emulated/kernels/races/shadow.hpp"
#include <tcuda_abi.h>

namespace tcuda {

// The memory of a module, as the search for races sees it.
struct ModuleMemory {
    abi::Range library, heap;
    std::vector<abi::Range> variables; // the global variables

    // Whether the address is in shared memory, which each block has for itself.
    bool is_shared(std::uintptr_t address) const;
};

// Learns of each access right before the access, in the order in which the threads run. This order orders nothing.
//
// Called on fibers, so nothing throws an exception. Without memory, the search stops, and failed() is true.
class RaceFinder {
public:
    RaceFinder(ModuleMemory memory, abi::Index grid, abi::Index block);

    void start_block(abi::Index block) noexcept;
    void pass_barrier() noexcept;
    void join(unsigned warp, std::uint32_t lanes) noexcept;
    void fence(unsigned thread, abi::Scope scope) noexcept;
    void touch(unsigned thread, std::uintptr_t address, std::uint64_t size, abi::Touch touch,
               std::uintptr_t site) noexcept {
        if (!is_quick(thread, address, size, touch, site))
            touch_slowly(thread, address, size, touch, site);
    }
    // Called when no thread runs any more, while the memory of the launch still exists. Gives back the shadow.
    void finish() noexcept;

    bool failed() const { return failed_; }
    const RaceLog &log() const { return log_; }

private:
    // A conflict of the present access with an earlier one, until all bytes are known.
    struct Conflict {
        AccessStamp first;
        std::uintptr_t begin, end;
    };
    // Bytes that the present access overwrites, until the next access.
    struct Overwritten {
        static constexpr std::size_t most = 64;

        KernelRace *race;
        std::uintptr_t address;
        std::size_t size;
        unsigned char bytes[most];
    };

    // A conflict of a plain read with an atomic access that is no race if the next access of the reader to these bytes
    // is a compare-and-swap: what was read is only a guess at what the swap will find.
    struct OpenRead {
        static constexpr std::size_t most = 64;

        Conflict conflict;
        AccessStamp second;
        unsigned reader;
        Missing missing;
        std::uint64_t count;
    };

    static AccessKind kind_of(abi::Touch touch);
    bool is_quick(unsigned thread, std::uintptr_t address, std::uint64_t size, abi::Touch touch, std::uintptr_t site);
    void touch_slowly(unsigned thread, std::uintptr_t address, std::uint64_t size, abi::Touch touch,
                      std::uintptr_t site) noexcept;
    bool is_easy(ShadowCell &cell);
    bool is_easy_read(ShadowCell &cell, AccessStamp now);
    bool is_easy_write(ShadowCell &cell, AccessStamp now);
    bool is_over(std::uint64_t value) const;
    bool has_rivals(std::uint64_t value) const;
    void look_at(std::uintptr_t address, std::uint64_t size);
    void visit(ShadowCell &cell, std::uintptr_t begin, unsigned size);
    void visit_unit(ShadowCell &cell, std::uintptr_t begin, unsigned first, unsigned last);
    void forget(std::uintptr_t address, std::uint64_t size);

    void compare(std::uint64_t value, std::uintptr_t begin, unsigned size);
    void compare_member(const ShadowMember &member, std::uintptr_t begin, unsigned size);
    bool conflicts(AccessStamp other) const;
    bool comes_before(AccessStamp other, std::uintptr_t address) const;
    bool all_come_before(const ShadowMember &member, std::uintptr_t address) const;
    std::uint64_t with_present(std::uint64_t value, std::uintptr_t address);
    Shadow::Rivals rivals_in(const ShadowGroup &group, unsigned count) const;
    bool replaces(AccessStamp other) const;
    void compared(std::uintptr_t address, std::uint64_t size);
    std::uint64_t without_guess(std::uint64_t read, std::uint64_t written);
    bool is_guess(AccessStamp first) const;
    bool leave_open(const Conflict &conflict);
    template <typename Closes> void close_reads(Closes closes);
    void close_all_reads() noexcept;
    bool is_of_present_thread(const ShadowMember &member) const;
    unsigned own_read(std::uint64_t read);

    void add(AccessStamp first, std::uintptr_t begin, unsigned size);
    void report(const Conflict &conflict);
    void report_all();
    bool needs_more(Missing known, AccessStamp first, AccessStamp second) const;
    KernelRace *note(const Conflict &conflict, AccessStamp second, bool same_value, const Missing *missing);
    void note_write_after_atomic(std::uint64_t written);
    bool is_plain_part_of_atomic(AccessStamp first, AccessStamp second) const;
    Missing missing(AccessStamp first, std::uintptr_t address) const;
    RacingAccess described(AccessStamp stamp) const;
    unsigned shown_site(unsigned site);
    void look_at_overwritten();
    AccessKind kind(AccessStamp stamp) const { return sites_[stamps::site(stamp)].kind; }

    const ModuleMemory memory_;
    const abi::Index grid_, block_;
    BlockClock clock_;
    HandOvers hand_overs_;
    HandOverHints hints_;
    CodeSites sites_;
    Shadow shadow_;
    RaceLog log_;
    bool stopped_ = false, failed_ = false;
    bool quick_ = true; // whether is_quick() may be true

    // The present access
    AccessStamp now_ = 0;
    AccessKind kind_{};
    unsigned thread_ = 0;
    unsigned own_read_ = 0; // the place of the read of the same memory by the same thread; 0 if there is none
    std::vector<Conflict> conflicts_;
    std::vector<Overwritten> overwritten_;
    std::vector<OpenRead> open_reads_;
};

// Whether nothing more needs to be known of the accesses of the value: they come before the last barrier of the block.
inline bool RaceFinder::is_over(std::uint64_t value) const {
    if (!Shadow::is_reference(value))
        return clock_.of_this_block(value) && clock_.before_barrier(value);
    const unsigned phase = Shadow::phase(value);
    return Shadow::is_of_one_block(value) && phase >= clock_.first_of_block() && phase < clock_.first_of_generation();
}

// Whether every thread that could race with an access like those of the group races with one of them.
inline bool RaceFinder::has_rivals(std::uint64_t value) const {
    if (!Shadow::is_reference(value) || hand_overs_.used())
        return false;
    const Shadow::Rivals rivals = Shadow::rivals(value);
    return rivals == Shadow::Rivals::of_grid ||
           (rivals == Shadow::Rivals::of_block && Shadow::phase(value) >= clock_.first_of_generation());
}

// Does what visit() does for a plain read, if that is easy.
inline bool RaceFinder::is_easy_read(ShadowCell &cell, AccessStamp now) {
    if (stamps::moment(cell.read) == stamps::moment(now))
        return true;
    if (cell.written != 0 && !is_over(cell.written))
        return false;
    if (cell.read == 0 || is_over(cell.read)) {
        shadow_.drop(cell.read);
        cell.read = now;
        return true;
    }
    constexpr AccessStamp lane = AccessStamp(BlockClock::lanes - 1) << stamps::thread_shift;
    const auto lane_of = [](AccessStamp stamp) { return 1u << stamps::thread(stamp) % BlockClock::lanes; };
    if (!Shadow::is_reference(cell.read)) {
        if ((cell.read | lane) != (now | lane))
            return false;
        const std::uint32_t number = shadow_.free_group();
        if (number == Shadow::no_group)
            return false;
        shadow_.group(number) = {{cell.read}, {lane_of(cell.read) | lane_of(now)}};
        cell.read = Shadow::reference(number, Shadow::Rivals::none, clock_.first_of_generation(), true);
        return true;
    }
    if (has_rivals(cell.read))
        return true;
    ShadowGroup &group = shadow_.group(cell.read);
    for (unsigned place = 0; place < ShadowGroup::most; ++place) {
        if ((group.stamps[place] | lane) == (now | lane)) {
            if (group.lanes[place] == 0)
                group.lanes[place] = lane_of(group.stamps[place]);
            group.lanes[place] |= lane_of(now);
            return true;
        }
    }
    // The second warp
    if (group.stamps[1] != 0 || Shadow::phase(cell.read) < clock_.first_of_generation() ||
        (group.stamps[0] & stamps::weak) != 0 || clock_.before_barrier(group.stamps[0]) ||
        stamps::thread(group.stamps[0]) / BlockClock::lanes == stamps::thread(now) / BlockClock::lanes)
        return false;
    group.stamps[1] = now;
    group.lanes[1] = 0;
    cell.read = Shadow::reference(static_cast<std::uint32_t>(cell.read), Shadow::Rivals::of_block,
                                  clock_.first_of_generation(), true);
    return true;
}

// Does what visit() does for a plain write, if that is easy.
inline bool RaceFinder::is_easy_write(ShadowCell &cell, AccessStamp now) {
    const AccessStamp moment = stamps::moment(now);
    const bool updates = stamps::moment(cell.read) == moment;
    if (cell.read != 0 && !updates && !is_over(cell.read))
        return false;
    if (stamps::moment(cell.written) == moment && cell.read == 0)
        return true;
    if (cell.written != 0 && !is_over(cell.written))
        return false;
    if (updates)
        sites_[stamps::site(now)].updates = true;
    shadow_.drop(cell.written);
    shadow_.drop(cell.read);
    cell = {now, 0};
    return true;
}

// Does what touch() does for most accesses.
inline bool RaceFinder::is_quick(unsigned thread, std::uintptr_t address, std::uint64_t size, abi::Touch touch,
                                 std::uintptr_t site) {
    const unsigned offset = static_cast<unsigned>(address) % (Shadow::page_cells * Shadow::unit);
    if (!quick_ || touch > abi::Touch::write || size > 16 || offset + size > Shadow::page_cells * Shadow::unit)
        return false;
    AccessStamp now = clock_.present(thread);
    ShadowCell *const cells = shadow_.near_page(address >> Shadow::page_shift);
    if (now == 0 || cells == nullptr)
        return false;
    // What is done for the first cells is the same if the access turns out not to be quick.
    ShadowCell *cell = cells + offset / Shadow::unit;
    auto left = static_cast<unsigned>(size) / Shadow::unit;
    if ((address | size) % Shadow::unit != 0) {
        const unsigned first = offset % Shadow::unit;
        left = static_cast<unsigned>(size);
        if (first + left > Shadow::unit || !Shadow::is_split(*cell))
            return false;
        cell = shadow_.parts(*cell) + first;
    }
    const bool write = touch == abi::Touch::write;
    now |=
        sites_.number(static_cast<std::uint32_t>(site - memory_.library.begin), static_cast<AccessKind>(touch), size);
    for (; left != 0; --left, ++cell)
        if (!(write ? is_easy_write(*cell, now) : is_easy_read(*cell, now)))
            return false;
    return true;
}

} // namespace tcuda
