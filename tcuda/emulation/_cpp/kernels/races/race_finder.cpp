#include "emulation/_cpp/kernels/races/race_finder.hpp"

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

namespace tcuda {
namespace {

constexpr unsigned lanes_of_warp = BlockClock::lanes;
constexpr std::size_t most_conflicts = 2 * lanes_of_warp; // of one access, before they are reported
constexpr unsigned updates_for_hints = 16; // atomic accesses of a block of which the hints get to know at least
constexpr std::uintptr_t window = 1024;    // of shared memory that is forgotten at once

bool contains(const abi::Range &range, std::uintptr_t address) {
    return address - range.begin < range.end - range.begin;
}

bool of_same_warp(AccessStamp one, AccessStamp other) {
    return stamps::thread(one) / lanes_of_warp == stamps::thread(other) / lanes_of_warp;
}

// Whether a read may be a guess at what a compare-and-swap finds.
bool may_guess(AccessKind kind) { return kind == AccessKind::read || kind == AccessKind::volatile_read; }

std::uint32_t lane_of(AccessStamp stamp) { return 1u << stamps::lane(stamp); }

std::uint32_t lanes_of(const ShadowMember &member) { return member.lanes == 0 ? lane_of(member.stamp) : member.lanes; }

// Calls `use` with each access of a value of the shadow, until `use` returns false.
template <typename Use> void each_member(const Shadow &shadow, AccessStamp value, Use use) {
    if (value == 0)
        return;
    if (!values::is_reference(value)) {
        use(ShadowMember{value, 0});
        return;
    }
    const ShadowGroup &group = shadow.group(value);
    for (unsigned place = 0; place < ShadowGroup::most && group.stamps[place] != 0; ++place)
        if (!use(ShadowMember{group.stamps[place], group.lanes[place]}))
            return;
}

} // namespace

bool ModuleMemory::is_shared(std::uintptr_t address) const {
    return contains(library, address) && !contains(heap, address) &&
           std::none_of(variables.begin(), variables.end(),
                        [&](const abi::Range &range) { return contains(range, address); });
}

RaceFinder::RaceFinder(ModuleMemory memory, abi::Index grid, abi::Index block, abi::RaceNotes &notes)
    : notes_(notes), memory_(std::move(memory)), grid_(grid), block_(block), clock_(block.x * block.y * block.z),
      hand_overs_(clock_, block.x * block.y * block.z), hints_(clock_), sites_(notes, memory_.library),
      shadow_(new Shadow(notes, memory_.library)) {
    conflicts_.reserve(most_conflicts);
    overwritten_.reserve(8);
    notes_.stamps = clock_.stamps();
    notes_.own_cells = shadow_->of_library().cells();
}

// The life of a launch

void RaceFinder::start_block(abi::Index block) noexcept {
    close_all_reads();
    clock_.start_block(block.x + grid_.x * (block.y + grid_.y * block.z));
    hand_overs_.start_block();
    hints_.start_block();
    updates_of_block_ = 0;
    tell_module();
}

RaceFinder::Resting RaceFinder::rest() {
    close_all_reads();
    return {clock_.resting(), hand_overs_.resting()};
}

void RaceFinder::go_on_with(const Resting &resting) {
    clock_.go_on_with(resting.clock);
    hand_overs_.go_on_with(resting.hand_overs);
    hints_.start_block();
    updates_of_block_ = 0;
    tell_module();
}

// Tells the module which accesses the module may note.
void RaceFinder::tell_module() {
    stopped_ = stopped_ || !clock_.has_phases();
    notes_.open = !stopped_ && overwritten_.empty();
    notes_.free_updates = updates_of_block_ >= updates_for_hints && !hand_overs_.may_hand_over();
    notes_.has_rivals = !hand_overs_.used();
    notes_.first_of_block = clock_.first_of_block();
    notes_.first_of_generation = clock_.first_of_generation();
}

// Called when the host has no memory left.
void RaceFinder::stop() {
    stopped_ = failed_ = true;
    notes_.open = notes_.free_updates = false;
}

void RaceFinder::pass_barrier() noexcept {
    if (stopped_)
        return;
    try {
        close_all_reads();
        hand_overs_.pass_barrier();
        clock_.pass_barrier();
        tell_module();
    } catch (const std::bad_alloc &) {
        stop();
    }
}

void RaceFinder::join(unsigned warp, std::uint32_t lanes) noexcept {
    if (stopped_)
        return;
    try {
        close_reads([&](const OpenRead &open) {
            return open.reader / lanes_of_warp == warp && (lanes >> open.reader % lanes_of_warp & 1) != 0;
        });
        hand_overs_.join(warp, lanes);
        clock_.join(warp, lanes);
    } catch (const std::bad_alloc &) {
        stop();
    }
}

void RaceFinder::fence(unsigned thread, abi::Scope scope) noexcept {
    if (stopped_)
        return;
    fences_ = true;
    try {
        hand_overs_.fence(thread, scope);
        tell_module();
    } catch (const std::bad_alloc &) {
        stop();
    }
}

void RaceFinder::finish() noexcept {
    if (std::exchange(stopped_, true))
        return;
    close_all_reads();
    look_at_overwritten();
    // Several threads write one value at one place of the code. No order of them helps.
    for (KernelRace &race : log_.races())
        if (race.same_value && race.first.code == race.second.code && race.first.code != 0)
            race.missing = Missing::atomic;
}

void RaceFinder::leave_module() noexcept {
    stopped_ = true;
    if (shadow_ == nullptr)
        return;
    shadow_.reset();
    notes_ = {};
}

// Accesses

AccessKind RaceFinder::kind_of(abi::Touch touch) {
    constexpr AccessKind kinds[] = {AccessKind::read,
                                    AccessKind::write,
                                    AccessKind::volatile_read,
                                    AccessKind::volatile_write,
                                    AccessKind::atomic_read,
                                    AccessKind::atomic_read_of_block,
                                    AccessKind::atomic_of_block,
                                    AccessKind::atomic_of_device};
    return kinds[static_cast<unsigned>(touch)];
}

abi::Range RaceFinder::open_slot(unsigned slot, std::uintptr_t address, abi::Range memory, bool shared) noexcept {
    notes_.cells[slot] = 0;
    if (!shared || stopped_)
        return memory;
    try {
        const Shadow::Region &region = shadow_->region(address);
        notes_.cells[slot] = region.cells();
        memory = {std::max(memory.begin, region.range().begin), std::min(memory.end, region.range().end)};
        region.expect_use(memory);
    } catch (const std::bad_alloc &) {
        stop();
    }
    return memory;
}

// Does what visit() does, if that is easy.
inline bool RaceFinder::is_easy(ShadowCell &cell, bool of_device) {
    if (kind_ == AccessKind::read)
        return notes_.read(cell, now_, of_device);
    if (kind_ == AccessKind::write)
        return notes_.write(cell, now_);
    return kind_ == AccessKind::atomic_of_device && notes_.update(cell, now_, of_device);
}

void RaceFinder::touch(unsigned thread, std::uintptr_t address, std::uint64_t size, abi::Touch touch,
                       std::uintptr_t site) noexcept {
    if (stopped_)
        return;
    try {
        if (!overwritten_.empty())
            look_at_overwritten();
        thread_ = thread;
        if (touch == abi::Touch::fresh) {
            forget(address, size);
        } else if (touch == abi::Touch::compared) {
            polls_ = true;
            compared(address, size);
        } else {
            kind_ = kind_of(touch);
            updates_ = updates_ || is_atomic(kind_);
            polls_ = polls_ || kind_ == AccessKind::volatile_read || (is_atomic(kind_) && !writes(kind_));
            if (kind_ == AccessKind::volatile_write && hand_overs_.has_just_fenced(thread))
                kind_ = AccessKind::volatile_release;
            note_access(address, size, static_cast<std::uint32_t>(site - memory_.library.begin));
        }
        tell_module();
    } catch (const std::bad_alloc &) {
        stop();
    }
}

void RaceFinder::note_access(std::uintptr_t address, std::uint64_t size, std::uint32_t code) {
    now_ = clock_.now(thread_);
    if (is_plain(kind_)) {
        now_ |= sites_.only_number(code, kind_, size);
        if (kind_ == AccessKind::write)
            close_reads_of(address, size);
        look_at(address, size);
        return;
    }
    // A comparison that fails reads at the place of an update, and modules do not note such reads.
    now_ |= stamps::weak | (kind_ == AccessKind::atomic_of_device ? sites_.only_number(code, kind_, size)
                                                                  : sites_.number(code, kind_, size));
    close_reads_of(address, size);
    const abi::Scope scope = is_of_block(kind_) ? abi::Scope::block : abi::Scope::device;
    const bool updates = kind_ >= AccessKind::atomic_of_block;
    updates_of_block_ += updates;
    if (updates || !writes(kind_)) {
        hints_.read(thread_, address);
        hand_overs_.read(thread_, address, scope);
    }
    look_at(address, size);
    if (writes(kind_)) {
        hints_.write(thread_, address);
        hand_overs_.write(thread_, address, size, scope, updates);
        clock_.advance(thread_);
    }
}

// The running thread makes an access after which its reads of the memory are no guesses.
void RaceFinder::close_reads_of(std::uintptr_t address, std::uint64_t size) {
    if (!open_reads_.empty())
        close_reads(
            [&](const OpenRead &open) { return open.reader == thread_ && open.conflict.overlaps(address, size); });
}

inline void RaceFinder::look_at(std::uintptr_t address, std::uint64_t size) {
    own_read_ = 0;
    const std::uintptr_t end = address + size;
    while (address < end) {
        const Shadow::Region &region = shadow_->region(address);
        const std::uintptr_t stop = std::min(end, region.range().end);
        while (address < stop) {
            const std::uintptr_t begin = address & ~std::uintptr_t(Shadow::unit - 1);
            const auto first = static_cast<unsigned>(address - begin);
            const auto last = static_cast<unsigned>(std::min<std::uintptr_t>(stop - begin, Shadow::unit));
            ShadowCell &cell = region[begin];
            if (last - first != Shadow::unit || !is_easy(cell, region.cells() != notes_.own_cells))
                visit_unit(cell, begin, first, last);
            address = begin + last;
        }
    }
    if (!conflicts_.empty())
        report_all();
}

void RaceFinder::visit_unit(ShadowCell &cell, std::uintptr_t begin, unsigned first, unsigned last) {
    const bool whole = first == 0 && last == Shadow::unit;
    const ShadowCell &known = cell.is_split() ? shadow_->parts(cell)[first] : cell;
    if ((known.written | known.read) != 0 && is_of_other_blocks(known.written) && is_of_other_blocks(known.read) &&
        memory_.is_shared(begin))
        forget_other_blocks(begin);
    if (!cell.is_split()) {
        if (whole) {
            visit(cell, begin, Shadow::unit);
            return;
        }
        shadow_->split(cell);
    }
    ShadowCell *const parts = shadow_->parts(cell);
    for (unsigned part = first; part < last; ++part)
        if (!is_easy(parts[part], false))
            visit(parts[part], begin + part, 1);
    if (whole)
        shadow_->join(cell);
}

void RaceFinder::visit(ShadowCell &cell, std::uintptr_t begin, unsigned size) {
    const bool write = writes(kind_);
    if (write && cell.read != 0)
        own_read_ = own_read(cell.read);
    if (cell.written != 0)
        compare(cell.written, begin, size);
    if (write && cell.read != 0)
        compare(cell.read, begin, size);
    if (kind_ == AccessKind::write) {
        note_write_after_atomic(cell.written);
        shadow_->drop(cell.written);
        shadow_->drop(cell.read);
        cell = {now_, 0};
    } else if (write) {
        cell.written = with_present(cell.written, begin);
    } else {
        cell.read = with_present(cell.read, begin);
    }
}

void RaceFinder::forget(std::uintptr_t address, std::uint64_t size) {
    const std::uintptr_t end = address + size;
    for (std::uintptr_t begin = address / Shadow::unit * Shadow::unit; begin < end; begin += Shadow::unit)
        shadow_->clear(shadow_->cell(begin));
}

// Whether all accesses of the value are of other blocks.
bool RaceFinder::is_of_other_blocks(AccessStamp value) const {
    bool found = true;
    each_member(*shadow_, value, [&](const ShadowMember &member) {
        found = !clock_.of_this_block(member.stamp);
        return found;
    });
    return found;
}

// Forgets what other blocks have done with the same shared memory, also around the address, where the present block
// will likely go on.
void RaceFinder::forget_other_blocks(std::uintptr_t address) {
    const Shadow::Region &region = shadow_->of_library();
    std::uintptr_t begin = std::max(address / window * window, region.range().begin);
    std::uintptr_t end = std::min((address / window + 1) * window, region.range().end);
    const auto leave_out = [&](const abi::Range &other) {
        if (other.end <= address)
            begin = std::max(begin, (other.end + Shadow::unit - 1) / Shadow::unit * Shadow::unit);
        else
            end = std::min(end, other.begin);
    };
    leave_out(memory_.heap);
    for (const abi::Range &variable : memory_.variables)
        leave_out(variable);
    for (std::uintptr_t place = begin; place + Shadow::unit <= end; place += Shadow::unit) {
        ShadowCell &cell = region[place];
        if ((cell.written | cell.read) == 0)
            continue;
        const ShadowCell *const cells = cell.is_split() ? shadow_->parts(cell) : &cell;
        const unsigned count = cell.is_split() ? Shadow::unit : 1;
        if (std::all_of(cells, cells + count, [&](const ShadowCell &each) {
                return is_of_other_blocks(each.written) && is_of_other_blocks(each.read);
            }))
            shadow_->clear(cell);
    }
}

// Guesses

// Forgets what the thread has read as a guess at what a compare-and-swap finds.
void RaceFinder::compared(std::uintptr_t address, std::uint64_t size) {
    const std::uintptr_t end = address + size;
    for (std::uintptr_t begin = address / Shadow::unit * Shadow::unit; begin < end; begin += Shadow::unit) {
        ShadowCell &cell = shadow_->cell(begin);
        if (!cell.is_split() && (begin < address || end < begin + Shadow::unit))
            shadow_->split(cell);
        if (!cell.is_split()) {
            cell.read = without_guess(cell.read, cell.written);
            continue;
        }
        for (unsigned part = 0; part < Shadow::unit; ++part) {
            ShadowCell &byte = shadow_->parts(cell)[part];
            if (begin + part - address < size)
                byte.read = without_guess(byte.read, byte.written);
        }
    }
    open_reads_.drop(
        [&](const OpenRead &open) { return open.reader == thread_ && open.conflict.is_in(address, size); });
}

// The reads of a cell without those that the thread has made since it last met others or wrote here.
AccessStamp RaceFinder::without_guess(AccessStamp read, AccessStamp written) {
    BlockTime own_write{};
    each_member(*shadow_, written, [&](const ShadowMember &member) {
        if (is_of_present_thread(member))
            own_write = std::max(own_write, clock_.time_of(member.stamp));
        return true;
    });
    const auto is_own_guess = [&](const ShadowMember &member) {
        return is_of_present_thread(member) && may_guess(kind(member.stamp)) &&
               own_write < clock_.time_of(member.stamp) &&
               !clock_.before_meeting(stamps::with_thread(member.stamp, thread_));
    };
    if (read == 0)
        return 0;
    if (!values::is_reference(read))
        return is_own_guess({read, 0}) ? 0 : read;
    ShadowGroup &group = shadow_->group(read);
    ShadowGroup left{};
    unsigned count = 0;
    bool changed = false;
    for (unsigned place = 0; place < ShadowGroup::most && group.stamps[place] != 0; ++place) {
        ShadowMember member{group.stamps[place], group.lanes[place]};
        if (is_own_guess(member)) {
            changed = true;
            member.lanes &= ~(1u << thread_ % lanes_of_warp);
            if (member.lanes == 0)
                continue;
        }
        left.stamps[count] = member.stamp;
        left.lanes[count++] = member.lanes;
    }
    if (!changed)
        return read;
    if (count == 0) {
        shadow_->drop(read);
        return 0;
    }
    group = left;
    // The group may have had the thread as a rival.
    return values::reference(values::number(read), Rivals::none, stamps::phase(read), values::is_of_one_block(read));
}

// Whether an access of this block is a plain read of which the thread may still make a guess.
bool RaceFinder::is_guess(AccessStamp stamp) const {
    return may_guess(kind(stamp)) && clock_.of_this_block(stamp) && !clock_.before_meeting(stamp);
}

// Whether it is not known yet if the conflict is a race.
bool RaceFinder::leave_open(const Conflict &conflict) {
    const bool reads = may_guess(kind_) && is_atomic(kind(conflict.first));
    if (!reads && !(is_atomic(kind_) && is_guess(conflict.first)))
        return false;
    const unsigned reader = reads ? thread_ : stamps::thread(conflict.first);
    const OpenRead added{conflict, now_, reader, {}, 1};
    OpenRead *const open = open_reads_.find(added);
    if (open == nullptr) {
        open_reads_.add({conflict, now_, reader, missing(conflict.first, conflict.begin), 1});
        return true;
    }
    ++open->count;
    if (needs_more(open->missing, conflict.first, now_))
        open->missing = missing(conflict.first, conflict.begin);
    return true;
}

// Reports the races of the reads that get no compare-and-swap any more.
template <typename Closes> void RaceFinder::close_reads(Closes closes) {
    open_reads_.take(closes, [&](const OpenRead &open) {
        KernelRace *const race = note(open.conflict, open.second, false, &open.missing);
        if (race != nullptr)
            race->count += open.count;
    });
}

void RaceFinder::close_all_reads() noexcept {
    if (open_reads_.empty())
        return;
    try {
        close_reads([](const OpenRead &) { return true; });
    } catch (const std::bad_alloc &) {
        stop();
    }
}

// Order

// Whether the two accesses are a race if nothing orders them.
bool RaceFinder::conflicts(AccessStamp other) const {
    const AccessKind first = kind(other), second = kind_;
    if (!writes(first) && !writes(second))
        return false;
    if (is_plain(first) || is_plain(second))
        return true;
    const bool near = clock_.of_this_block(other);
    if (!near && (is_of_block(first) || is_of_block(second)))
        return true;
    return is_volatile(first) || is_volatile(second);
}

// Whether a conflict is no race if a thread polls the memory.
bool RaceFinder::may_be_of_flag(AccessStamp first, AccessStamp second) const {
    const AccessKind one = kind(first), other = kind(second);
    if (is_plain(one) || is_plain(other) || !(is_volatile(one) || is_volatile(other)))
        return false;
    const bool near = clock_.of_this_block(first);
    if (!near && (is_of_block(one) || is_of_block(other)))
        return false;
    // Threads of a warp do not run in step. A write there is a write of a flag only right behind a fence.
    return !(near && is_volatile(one) && is_volatile(other) && of_same_warp(first, second)) ||
           one == AccessKind::volatile_release || other == AccessKind::volatile_release;
}

bool RaceFinder::comes_before(AccessStamp other, std::uintptr_t address) const {
    if (clock_.of_this_block(other)) {
        if (clock_.knows(thread_, other))
            return true;
    } else if (memory_.is_shared(address)) {
        return true; // the memory of another block
    }
    if (!hand_overs_.used())
        return false;
    const AccessKind kind_of_other = kind(other);
    return hand_overs_.knows(thread_, other, address, writes(kind_of_other) && !is_plain(kind_of_other),
                             HandOvers::Also::nothing);
}

bool RaceFinder::all_come_before(const ShadowMember &member, std::uintptr_t address) const {
    if (member.lanes == 0)
        return comes_before(member.stamp, address);
    const unsigned warp = stamps::thread(member.stamp) / lanes_of_warp * lanes_of_warp;
    for (std::uint32_t rest = member.lanes; rest != 0; rest &= rest - 1)
        if (!comes_before(stamps::with_thread(member.stamp, warp + static_cast<unsigned>(__builtin_ctz(rest))),
                          address))
            return false;
    return true;
}

inline void RaceFinder::compare(AccessStamp value, std::uintptr_t begin, unsigned size) {
    // Most values are one access, by the same thread or before the last barrier.
    if (!values::is_reference(value) && clock_.of_this_block(value) &&
        (clock_.before_barrier(value) || stamps::thread(value) == thread_))
        return;
    each_member(*shadow_, value, [&](const ShadowMember &member) {
        compare_member(member, begin, size);
        return true;
    });
}

void RaceFinder::compare_member(const ShadowMember &member, std::uintptr_t begin, unsigned size) {
    if (!conflicts(member.stamp))
        return;
    if (member.lanes == 0) {
        if (!comes_before(member.stamp, begin))
            add(member.stamp, begin, size);
        return;
    }
    const unsigned warp = stamps::thread(member.stamp) / lanes_of_warp * lanes_of_warp;
    for (std::uint32_t rest = member.lanes; rest != 0; rest &= rest - 1) {
        const unsigned other = warp + static_cast<unsigned>(__builtin_ctz(rest));
        const AccessStamp stamp = stamps::with_thread(member.stamp, other);
        if (!comes_before(stamp, begin)) {
            add(stamp, begin, size);
            // Of several reads that are left open, each may be the one that is a race.
            if (!is_atomic(kind_) || !is_guess(stamp))
                return;
        }
    }
}

// Whether everything that races with the other access, which comes before the present one, races with the present one.
bool RaceFinder::replaces(AccessStamp other) const { return is_plain(kind_) || kind(other) == kind_; }

// The value with the present access, which is no plain write. Accesses that come before the present one are left out.
AccessStamp RaceFinder::with_present(AccessStamp value, std::uintptr_t address) {
    if (value == 0)
        return now_;
    if (!values::is_reference(value)) {
        const bool mine = stamps::thread(value) == thread_ && clock_.of_this_block(value);
        if (replaces(value) && (mine || comes_before(value, address)))
            return now_;
        // All threads that can use the memory know of the access.
        if (!replaces(value) && (!clock_.of_this_block(value) || clock_.before_barrier(value)) &&
            memory_.is_shared(address))
            return now_;
    }
    ShadowMember kept[ShadowGroup::most + 1];
    unsigned count = 0;
    bool merged = false;
    const AccessStamp anybody = stamps::with_thread(now_, 0);
    each_member(*shadow_, value, [&](const ShadowMember &member) {
        const bool stale = !clock_.of_this_block(member.stamp) && memory_.is_shared(address);
        const bool alike = !merged && stamps::with_thread(member.stamp, 0) == anybody &&
                           stamps::thread(member.stamp) / lanes_of_warp == thread_ / lanes_of_warp;
        if (alike) {
            merged = true;
            kept[count++] = {member.stamp, lanes_of(member) | lane_of(now_)};
        } else if (!stale && !(replaces(member.stamp) && all_come_before(member, address))) {
            kept[count++] = member;
        }
        return true;
    });
    if (!merged)
        kept[count++] = {now_, 0};
    if (count > ShadowGroup::most && !unite(kept, count)) {
        // The first accesses, a plain write, and the last ones stay.
        const bool plain = kind(kept[2].stamp) == AccessKind::write;
        std::copy(kept + (plain ? 4 : 3), kept + count, kept + (plain ? 3 : 2));
        --count;
    }
    if (count == 1 && kept[0].lanes == 0) {
        shadow_->drop(value);
        return kept[0].stamp;
    }
    const std::uint32_t number = values::is_reference(value) ? values::number(value) : shadow_->new_group();
    ShadowGroup &group = shadow_->group(number);
    for (unsigned place = 0; place < ShadowGroup::most; ++place) {
        group.stamps[place] = place < count ? kept[place].stamp : 0;
        group.lanes[place] = place < count ? kept[place].lanes : 0;
    }
    const bool same_kind = kind_ == AccessKind::read || kind_ == AccessKind::atomic_of_device;
    const bool of_one_block = !writes(kind_) && std::all_of(kept, kept + count, [&](const ShadowMember &member) {
        return clock_.of_this_block(member.stamp);
    });
    return values::reference(number, same_kind ? rivals_in(group, count) : Rivals::none, clock_.first_of_generation(),
                             of_one_block);
}

// Makes one member of two members that differ only in the place of the code, so that no access is lost. A race with the
// second access is then reported at the place of the first access.
bool RaceFinder::unite(ShadowMember *members, unsigned &count) const {
    for (unsigned second = count - 1; second > 0; --second) {
        for (unsigned first = 0; first < second; ++first) {
            const AccessStamp one = members[first].stamp, other = members[second].stamp;
            if (stamps::moment(one | stamps::lanes) != stamps::moment(other | stamps::lanes) ||
                kind(one) != kind(other))
                continue;
            members[first].lanes = lanes_of(members[first]) | lanes_of(members[second]);
            std::copy(members + second + 1, members + count, members + second);
            --count;
            return true;
        }
    }
    return false;
}

// What the accesses of the kind of the present one in a group stand for.
Rivals RaceFinder::rivals_in(const ShadowGroup &group, unsigned count) const {
    Rivals rivals = Rivals::none;
    AccessStamp one = 0;
    for (unsigned place = 0; place < count; ++place) {
        const AccessStamp stamp = group.stamps[place];
        const bool here = clock_.of_this_block(stamp);
        if (here && clock_.before_barrier(stamp))
            continue;
        if (kind(stamp) != kind_) {
            if (writes(kind_))
                return Rivals::none;
            continue;
        }
        if (one == 0) {
            one = stamp;
        } else if (here && clock_.of_this_block(one)) {
            if (stamps::thread(one) / lanes_of_warp != stamps::thread(stamp) / lanes_of_warp)
                rivals = std::max(rivals, Rivals::of_block);
        } else if (clock_.block_of(one) != clock_.block_of(stamp)) {
            rivals = Rivals::of_grid;
        }
    }
    return rivals;
}

bool RaceFinder::is_of_present_thread(const ShadowMember &member) const {
    const bool same_warp = stamps::thread(member.stamp) / lanes_of_warp == thread_ / lanes_of_warp;
    const bool same_lane = member.lanes == 0 ? stamps::thread(member.stamp) == thread_
                                             : same_warp && (member.lanes >> thread_ % lanes_of_warp & 1) != 0;
    return same_lane && clock_.of_this_block(member.stamp);
}

// The place of the read of the thread among the reads of a cell; 0 if there is none.
unsigned RaceFinder::own_read(AccessStamp read) {
    unsigned site = 0;
    each_member(*shadow_, read, [&](const ShadowMember &member) {
        if (is_of_present_thread(member))
            site = stamps::site(member.stamp);
        return site == 0;
    });
    if (site != 0)
        sites_.set_updates(stamps::site(now_));
    return site;
}

void RaceFinder::note_write_after_atomic(AccessStamp written) {
    bool after_atomic = false;
    each_member(*shadow_, written, [&](const ShadowMember &member) {
        after_atomic = is_of_present_thread(member) && is_atomic(kind(member.stamp));
        return !after_atomic;
    });
    if (!after_atomic)
        return;
    CodeSites::Site &site = sites_[stamps::site(now_)];
    if (site.thread_after_atomic == 0) {
        site.block = clock_.block();
        site.thread_after_atomic = thread_ + 1;
    } else if (site.block != clock_.block()) {
        site.blocks_after_atomic = true;
    } else if (site.thread_after_atomic != thread_ + 1) {
        site.several_after_atomic = true;
    }
}

// Whether one access is atomic, and the other stands where several threads write what they use by atomic functions, or
// both stand there: there an atomic function is missing, and no one thread sets the memory up.
bool RaceFinder::is_plain_part_of_atomic(AccessStamp first, AccessStamp second) const {
    const bool near = clock_.of_this_block(first);
    const auto fits = [&](AccessStamp stamp) {
        const CodeSites::Site &site = sites_[stamps::site(stamp)];
        return is_atomic(site.kind) || site.several_after_atomic || (site.blocks_after_atomic && !near);
    };
    return fits(first) && fits(second) && !(is_atomic(kind(first)) && is_atomic(kind(second)));
}

// Races

// Adds bytes to the conflicts of the present access.
void RaceFinder::add(AccessStamp first, std::uintptr_t begin, unsigned size) {
    for (Conflict &conflict : conflicts_) {
        if (conflict.first == first && conflict.end == begin) {
            conflict.end += size;
            return;
        }
    }
    if (conflicts_.size() == most_conflicts)
        report_all();
    conflicts_.push_back({first, begin, begin + size});
}

void RaceFinder::report_all() {
    for (const Conflict &conflict : conflicts_)
        report(conflict);
    conflicts_.clear();
}

// A place has one number in the log of races, whether or not it is a release.
unsigned RaceFinder::shown_site(unsigned site) {
    const CodeSites::Site found = sites_[site];
    return found.kind == AccessKind::volatile_release
               ? sites_.number(found.code, AccessKind::volatile_write, found.size)
               : site;
}

// Whether what orders other accesses at the same places does not reach far enough for these two.
bool RaceFinder::needs_more(Missing known, AccessStamp first, AccessStamp second) const {
    return known <= Missing::barrier &&
           (!clock_.of_this_block(first) || (known == Missing::warp_barrier && !of_same_warp(first, second)));
}

// The race of the conflict; null if the log has no room. `missing` may be null if `second` is the present access.
KernelRace *RaceFinder::note(const Conflict &conflict, AccessStamp second, bool same_value, const Missing *found) {
    const unsigned one = shown_site(stamps::site(conflict.first)), other = shown_site(stamps::site(second));
    bool is_new;
    RaceLog &log = may_be_of_flag(conflict.first, second) ? log_of_volatile_ : log_;
    KernelRace *const race = log.race_of(one, other, is_new);
    if (race == nullptr)
        return nullptr;
    const auto word = [&] { return found != nullptr ? *found : missing(conflict.first, conflict.begin); };
    if (is_new) {
        *race = {conflict.begin,
                 conflict.end - conflict.begin,
                 described(conflict.first),
                 described(second),
                 word(),
                 same_value,
                 memory_.is_shared(conflict.begin),
                 0};
    } else if (needs_more(race->missing, conflict.first, second)) {
        race->missing = word();
    }
    if (race->missing != Missing::scope && is_plain_part_of_atomic(conflict.first, second))
        race->missing = Missing::atomic;
    return race;
}

void RaceFinder::report(const Conflict &conflict) {
    if (leave_open(conflict))
        return;
    const AccessKind first = kind(conflict.first);
    const bool both_write = writes(first) && writes(kind_);
    KernelRace *const race = note(conflict, now_, both_write && !is_atomic(first) && !is_atomic(kind_), nullptr);
    if (race == nullptr)
        return;
    ++race->count;
    if (both_write && race->missing == Missing::atomic && own_read_ != 0) {
        // The read of an update comes before its write, and was reported first.
        KernelRace *const of_read = log_.find(shown_site(stamps::site(conflict.first)), own_read_);
        if (of_read != nullptr && of_read->missing <= Missing::barrier)
            of_read->missing = Missing::atomic;
    }
    if (!race->same_value)
        return;
    Overwritten overwritten{race, conflict.begin, conflict.end - conflict.begin, {}};
    if (overwritten.size > Overwritten::most) {
        race->same_value = false;
        return;
    }
    std::memcpy(overwritten.bytes, reinterpret_cast<const void *>(conflict.begin), overwritten.size);
    overwritten_.push_back(overwritten);
}

void RaceFinder::look_at_overwritten() {
    for (const Overwritten &before : overwritten_)
        if (std::memcmp(before.bytes, reinterpret_cast<const void *>(before.address), before.size) != 0)
            before.race->same_value = false;
    overwritten_.clear();
}

Missing RaceFinder::missing(AccessStamp first, std::uintptr_t address) const {
    const bool near = clock_.of_this_block(first);
    const AccessKind kind_of_first = kind(first);
    const auto knows = [&](HandOvers::Also also) {
        return hand_overs_.knows(thread_, first, address, !is_plain(kind_of_first), also);
    };
    if (!near && knows(HandOvers::Also::small_scopes))
        return Missing::scope;
    // No fence comes between an atomic function and the value that the function itself reads.
    if (!is_atomic(kind_) && knows(HandOvers::Also::without_fence))
        return Missing::fence_of_second;
    const bool narrow = is_of_block(kind_of_first) || is_of_block(kind_);
    if (!near && narrow && !is_plain(kind_of_first) && !is_plain(kind_))
        return Missing::scope;
    if (near && is_volatile(kind_of_first) && is_volatile(kind_) && of_same_warp(first, now_))
        return Missing::warp_barrier;
    const auto [guess, seen] = hints_.about(thread_, first, address);
    if (guess == HandOverHints::Guess::likely)
        return hand_overs_.has_fenced_since(thread_, seen) ? Missing::fence_of_first : Missing::fence;
    if (sites_.updates(stamps::site(first)) && sites_.updates(stamps::site(now_)))
        return Missing::atomic;
    if (!near)
        return guess == HandOverHints::Guess::perhaps ? Missing::fence : Missing::atomic;
    return stamps::thread(first) / lanes_of_warp == thread_ / lanes_of_warp ? Missing::warp_barrier : Missing::barrier;
}

RacingAccess RaceFinder::described(AccessStamp stamp) const {
    const CodeSites::Site &site = sites_[stamps::site(stamp)];
    const unsigned rank = stamps::thread(stamp), number = clock_.block_of(stamp);
    const abi::Index thread{rank % block_.x, rank / block_.x % block_.y, rank / block_.x / block_.y};
    const abi::Index block{number % grid_.x, number / grid_.x % grid_.y, number / grid_.x / grid_.y};
    return {site.kind, site.code, site.size, thread, block};
}

} // namespace tcuda
