// The shadow of memory for the search for races. A module itself notes the accesses for which a few bits of the
// shadow decide. These are most accesses. The core notes the other accesses. Both sides include this header.
#pragma once

#include "tcuda_abi.h"

namespace tcuda {

// A stamp says who has made an access, when, and at which place of the code. From the lowest bit: the place of the code,
// the thread in its block, the step of the thread in its phase, the phase, and whether the access is not plain. Phase 0
// is never used, so a stamp is never 0. The highest bit is 0 in a stamp, and 1 in a reference.
//
// A phase is a piece of the life of a block: between two barriers, and within 2^step_bits steps of a thread.
using AccessStamp = __UINT64_TYPE__;

namespace stamps {

constexpr unsigned site_bits = 13, thread_bits = 10, step_bits = 11, phase_bits = 28, lane_bits = 5;
constexpr unsigned thread_shift = site_bits, step_shift = thread_shift + thread_bits,
                   phase_shift = step_shift + step_bits, weak_shift = phase_shift + phase_bits;
constexpr AccessStamp reference = AccessStamp(1) << 63;
constexpr AccessStamp weak = AccessStamp(1) << weak_shift;
constexpr AccessStamp threads = AccessStamp((1u << thread_bits) - 1) << thread_shift;
constexpr AccessStamp lanes = AccessStamp((1u << lane_bits) - 1) << thread_shift;
static_assert(weak_shift == 62, "a stamp has 63 bits");

constexpr unsigned TCUDA_UNSANITIZED field(AccessStamp stamp, unsigned shift, unsigned bits) {
    return static_cast<unsigned>(stamp >> shift) & ((1u << bits) - 1);
}
constexpr unsigned TCUDA_UNSANITIZED site(AccessStamp stamp) { return field(stamp, 0, site_bits); }
constexpr unsigned TCUDA_UNSANITIZED thread(AccessStamp stamp) { return field(stamp, thread_shift, thread_bits); }
constexpr unsigned TCUDA_UNSANITIZED lane(AccessStamp stamp) { return field(stamp, thread_shift, lane_bits); }
constexpr unsigned TCUDA_UNSANITIZED step(AccessStamp stamp) { return field(stamp, step_shift, step_bits); }
// Also for a reference
constexpr unsigned TCUDA_UNSANITIZED phase(AccessStamp stamp) { return field(stamp, phase_shift, phase_bits); }
constexpr AccessStamp TCUDA_UNSANITIZED of(unsigned phase, unsigned step, unsigned thread) {
    return AccessStamp(phase) << phase_shift | AccessStamp(step) << step_shift | AccessStamp(thread) << thread_shift;
}
// The stamp of the same access by another thread of the block.
constexpr AccessStamp TCUDA_UNSANITIZED with_thread(AccessStamp stamp, unsigned thread) {
    return (stamp & ~threads) | AccessStamp(thread) << thread_shift;
}
// The stamp without the place of the code. Two accesses of a thread have the same moment if no other thread can learn
// of the first access before the second access.
constexpr AccessStamp TCUDA_UNSANITIZED moment(AccessStamp stamp) { return stamp >> site_bits; }

} // namespace stamps

// A few accesses of which none comes before another.
struct ShadowGroup {
    static constexpr unsigned most = 4;

    AccessStamp stamps[most]; // those in use come first, and the others are 0
    unsigned lanes[most];     // the lanes of a warp that have made the access; 0 for one lane
};

// The threads for which a group has a rival. A further access of such a thread changes nothing. A group of two blocks
// has a rival for every thread of the grid. A group of two warps of a block has a rival for every thread of the block
// until the next barrier.
enum class Rivals : unsigned { none, of_block, of_grid };

// A value of the shadow is 0, a stamp, or the reference to a group. From the lowest bit, a reference has the number of the
// group (32 bits), the rivals (2 bits), a phase, and whether all accesses of the group are reads of one block, none of
// them after the phase.
namespace values {

constexpr unsigned rivals_shift = 32, of_one_block_shift = 62;

constexpr bool TCUDA_UNSANITIZED is_reference(AccessStamp value) { return value >> 63 != 0; }
constexpr unsigned TCUDA_UNSANITIZED number(AccessStamp reference) { return static_cast<unsigned>(reference); }
constexpr Rivals TCUDA_UNSANITIZED rivals(AccessStamp reference) {
    return static_cast<Rivals>(reference >> rivals_shift & 3);
}
constexpr bool TCUDA_UNSANITIZED is_of_one_block(AccessStamp reference) {
    return (reference >> of_one_block_shift & 1) != 0;
}
constexpr AccessStamp TCUDA_UNSANITIZED reference(unsigned number, Rivals rivals, unsigned phase, bool of_one_block) {
    return stamps::reference | AccessStamp(of_one_block) << of_one_block_shift |
           AccessStamp(phase) << stamps::phase_shift | AccessStamp(static_cast<unsigned>(rivals)) << rivals_shift |
           number;
}

} // namespace values

// The accesses to some bytes: the last accesses that write, and the accesses since then that read.
struct ShadowCell {
    AccessStamp written, read;

    // Whether the bytes of the cell have cells of their own. The number of these cells is in the lowest bits.
    TCUDA_NOTE bool is_split() const { return written >> 62 == 3; }
    static constexpr AccessStamp split_as(unsigned number) { return AccessStamp(3) << 62 | number; }
};

constexpr unsigned shadow_unit = 4; // the bytes that a cell describes

struct ShadowParts {
    ShadowCell cells[shadow_unit];
};

// Objects that are known by numbers, and do not move. An object that is not in use has the number of the next object that
// is not in use.
template <typename Object> struct Pool {
    static constexpr unsigned none = ~0u, chunk = 4096;

    Object *const *chunks;
    unsigned free; // the first object that is not in use

    TCUDA_NOTE Object &operator[](unsigned number) const { return chunks[number / chunk][number % chunk]; }
    // The number of an object with any contents; `none` if all are in use.
    TCUDA_NOTE unsigned take() {
        const unsigned number = free;
        if (number != none)
            __builtin_memcpy(&free, &(*this)[number], sizeof free);
        return number;
    }
    TCUDA_NOTE void give_back(unsigned number) {
        __builtin_memcpy(static_cast<void *>(&(*this)[number]), &free, sizeof free);
        free = number;
    }
};

namespace abi {

// The state with which a module notes accesses itself. The functions do the work of RaceFinder::visit(), and return
// false if the core must do that work. The order of the threads makes no difference.
struct RaceNotes {
    enum SiteFact : unsigned char {
        updates = 1,          // a thread writes here to memory that the thread has read before
        atomic_of_device = 2, // the access is an atomic update for the whole device
    };

    bool open;         // whether the module may note accesses
    bool free_updates; // whether the module may note atomic updates
    bool has_rivals;   // whether rivals count, because nothing has been handed over
    unsigned thread;   // the rank of the running thread in its block
    unsigned first_of_block, first_of_generation; // phases
    const AccessStamp *stamps; // of each thread now, without the place of the code; 0 if the core has to make the stamp
    const unsigned short *sites; // the numbers of the places of the code, by their offsets; 0 if not known
    unsigned char *facts;        // SiteFact by the number of the place
    Address code;                // the beginning of the library
    // The address of the cell of a unit is 4 times the address of the unit plus one of these numbers: for the module's
    // own memory, and for the memory in each slot. 0 for memory that no two threads share.
    Address own_cells, cells[slot_count];
    Pool<ShadowGroup> groups;
    Pool<ShadowParts> parts;

    static TCUDA_NOTE ShadowCell *cell(Address cells, Address address) {
        return reinterpret_cast<ShadowCell *>(cells + address / shadow_unit * sizeof(ShadowCell));
    }
    // Whether all accesses of the value come before the last barrier of the block, so that the value is not needed.
    TCUDA_NOTE bool is_over(AccessStamp value) const {
        return stamps::phase(value) - first_of_block < first_of_generation - first_of_block && value >> 62 != 2;
    }
    // Whether the value is one plain access of the thread of the stamp `now`.
    TCUDA_NOTE bool is_of_thread(AccessStamp value, AccessStamp now) const {
        return ((value ^ now) & stamps::threads) == 0 && value >> 62 == 0 && stamps::phase(value) >= first_of_block;
    }
    // Whether every thread that could race with an access like those of the group races with one of them.
    TCUDA_NOTE bool has_all_rivals(AccessStamp value) const {
        if (!values::is_reference(value) || !has_rivals)
            return false;
        const Rivals rivals = values::rivals(value);
        return rivals == Rivals::of_grid ||
               (rivals == Rivals::of_block && stamps::phase(value) >= first_of_generation);
    }
    TCUDA_NOTE void drop(AccessStamp value) {
        if (values::is_reference(value))
            groups.give_back(values::number(value));
    }

    // `of_device` tells whether the memory surely is no shared memory, which each block has for itself.
    TCUDA_NOTE bool read(ShadowCell &cell, AccessStamp now, bool of_device) {
        const AccessStamp before = cell.read, written = cell.written;
        if (stamps::moment(before) == stamps::moment(now))
            return true;
        if (written != 0 && !is_over(written) && !is_of_thread(written, now))
            return false;
        if (before == 0) {
            cell.read = now;
            return true;
        }
        return values::is_reference(before) ? read_again(cell, now) : read_second(cell, now, of_device);
    }
    TCUDA_NOTE bool write(ShadowCell &cell, AccessStamp now) {
        const AccessStamp before = cell.read, written = cell.written;
        if (before == 0) {
            if (stamps::moment(written) == stamps::moment(now))
                return true;
        } else if (is_of_thread(before, now)) {
            facts[stamps::site(now)] |= updates;
        } else if (!is_over(before)) {
            return false;
        }
        if (written != 0 && !is_over(written) && !is_of_thread(written, now))
            return false;
        drop(written);
        drop(before);
        cell.written = now;
        cell.read = 0;
        return true;
    }
    // An atomic update for the whole device, whose stamp is not plain. Accesses that come before the update by a barrier
    // are not forgotten, because the update does not race with all accesses that race with those accesses.
    TCUDA_NOTE bool update(ShadowCell &cell, AccessStamp now, bool of_device) {
        const AccessStamp before = cell.written;
        if (cell.read != 0)
            return false;
        if (before == 0) {
            cell.written = now;
            return true;
        }
        if (values::is_reference(before))
            return has_all_rivals(before);
        if ((before & stamps::weak) == 0 || (facts[stamps::site(before)] & atomic_of_device) == 0)
            return false;
        const Rivals rivals = rivals_of(before, now, of_device);
        const unsigned number = rivals == Rivals::none ? Pool<ShadowGroup>::none : groups.take();
        if (number == Pool<ShadowGroup>::none)
            return false;
        start(groups[number], before, now);
        cell.written = values::reference(number, rivals, first_of_generation, false);
        return true;
    }

    // The cells of the bytes of a cell; null if the core must make them.
    TCUDA_NOTE ShadowCell *bytes(ShadowCell &cell) {
        if (cell.is_split())
            return parts[static_cast<unsigned>(cell.written)].cells;
        if ((cell.written | cell.read) != 0)
            return nullptr;
        const unsigned number = parts.take();
        if (number == Pool<ShadowParts>::none)
            return nullptr;
        cell.written = ShadowCell::split_as(number);
        ShadowCell *const cells = parts[number].cells;
        for (unsigned place = 0; place < shadow_unit; ++place)
            cells[place].written = cells[place].read = 0;
        return cells;
    }

private:
    // Whether the stamp is a plain access of the block after the last barrier.
    TCUDA_NOTE bool is_new(AccessStamp stamp) const {
        return stamp >> 62 == 0 && stamps::phase(stamp) >= first_of_generation;
    }
    static TCUDA_NOTE unsigned lane_of(AccessStamp stamp) { return 1u << stamps::lane(stamp); }
    static TCUDA_NOTE bool of_same_warp(AccessStamp one, AccessStamp other) {
        return ((one ^ other) & (stamps::threads ^ stamps::lanes)) == 0;
    }
    // The rivals of a group of two accesses of the same kind that nothing orders.
    TCUDA_NOTE Rivals rivals_of(AccessStamp before, AccessStamp now, bool of_device) const {
        if (stamps::phase(before) >= first_of_generation)
            return of_same_warp(before, now) ? Rivals::none : Rivals::of_block;
        const bool of_other_block = stamps::phase(before) < first_of_block;
        return of_other_block && of_device && has_rivals ? Rivals::of_grid : Rivals::none;
    }
    static TCUDA_NOTE void start(ShadowGroup &group, AccessStamp first, AccessStamp second) {
        group.stamps[0] = first;
        group.stamps[1] = second;
        group.stamps[2] = group.stamps[3] = 0;
        group.lanes[0] = group.lanes[1] = group.lanes[2] = group.lanes[3] = 0;
    }
    // A read after one access that reads.
    TCUDA_NOTE bool read_second(ShadowCell &cell, AccessStamp now, bool of_device) {
        const AccessStamp before = cell.read;
        if (is_over(before) || is_of_thread(before, now)) {
            cell.read = now;
            return true;
        }
        if ((before & stamps::weak) != 0)
            return false;
        const Rivals rivals = rivals_of(before, now, of_device);
        if (rivals == Rivals::none && !is_new(before))
            return false;
        const unsigned number = groups.take();
        if (number == Pool<ShadowGroup>::none)
            return false;
        ShadowGroup &group = groups[number];
        const bool alike = (before | stamps::lanes) == (now | stamps::lanes);
        start(group, before, alike ? 0 : now);
        if (alike)
            group.lanes[0] = lane_of(before) | lane_of(now);
        cell.read = values::reference(number, rivals, first_of_generation, rivals != Rivals::of_grid);
        return true;
    }
    // A read after several accesses that read.
    TCUDA_NOTE bool read_again(ShadowCell &cell, AccessStamp now) {
        const AccessStamp before = cell.read;
        if (has_all_rivals(before))
            return true;
        if (is_over(before)) {
            drop(before);
            cell.read = now;
            return true;
        }
        ShadowGroup &group = groups[values::number(before)];
        bool all_new = values::is_of_one_block(before);
        for (unsigned place = 0; place < ShadowGroup::most; ++place) {
            const AccessStamp stamp = group.stamps[place];
            if (stamp == 0) {
                if (!all_new)
                    return false;
                group.stamps[place] = now;
                group.lanes[place] = 0;
                if (!of_same_warp(group.stamps[0], now))
                    cell.read =
                        values::reference(values::number(before), Rivals::of_block, first_of_generation, true);
                return true;
            }
            if ((stamp | stamps::lanes) == (now | stamps::lanes)) {
                group.lanes[place] = (group.lanes[place] == 0 ? lane_of(stamp) : group.lanes[place]) | lane_of(now);
                return true;
            }
            all_new = all_new && is_new(stamp);
        }
        return false;
    }
};

} // namespace abi
} // namespace tcuda

#undef TCUDA_NOTE
