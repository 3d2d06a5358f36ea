// The search for races between the threads of a launch.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "emulation/_cpp/kernels/races/access_kind.hpp"
#include "emulation/_cpp/kernels/races/block_clock.hpp"
#include "emulation/_cpp/kernels/races/code_sites.hpp"
#include "emulation/_cpp/kernels/races/hand_over_hints.hpp"
#include "emulation/_cpp/kernels/races/hand_overs.hpp"
#include "emulation/_cpp/kernels/races/open_reads.hpp"
#include "emulation/_cpp/kernels/races/race_log.hpp"
#include "emulation/_cpp/kernels/races/shadow.hpp"
#include <tcuda_races.h>

namespace tcuda {

// The memory of a module, as the search for races sees it.
struct ModuleMemory {
    abi::Range library, heap;
    std::vector<abi::Range> variables; // the global variables

    // Whether the address is in shared memory, which each block has for itself.
    bool is_shared(std::uintptr_t address) const;
};

// Learns of accesses right before the accesses, in the order in which the threads run. That order never counts as a
// reason why an access comes before another access. The module notes most accesses itself in the same shadow, and the
// other accesses come here.
//
// Called on fibers, so nothing throws an exception. Without memory, the search stops, and failed() is true.
class RaceFinder {
public:
    // `notes` belong to the module, which must outlive the launch.
    RaceFinder(ModuleMemory memory, abi::Index grid, abi::Index block, abi::RaceNotes &notes);
    RaceFinder(const RaceFinder &) = delete;
    RaceFinder &operator=(const RaceFinder &) = delete;

    void start_block(abi::Index block) noexcept;
    // The state of the search for a block that rests while another block runs.
    struct Resting {
        BlockClock::Resting clock;
        HandOvers::Resting hand_overs;
    };
    Resting rest();
    void go_on_with(const Resting &resting);
    void pass_barrier() noexcept;
    void join(unsigned warp, std::uint32_t lanes) noexcept;
    void fence(unsigned thread, abi::Scope scope) noexcept;
    void touch(unsigned thread, std::uintptr_t address, std::uint64_t size, abi::Touch touch,
               std::uintptr_t site) noexcept;
    // Lets the module know the cells of the memory in a slot, and returns the part of the memory around the address of
    // which the slot may know. `shared` tells whether several threads can use the memory.
    abi::Range open_slot(unsigned slot, std::uintptr_t address, abi::Range memory, bool shared) noexcept;
    // Called when no thread runs any more, while the memory of the launch still exists.
    void finish() noexcept;
    // Called before others use the module, even if the launch has not ended.
    void leave_module() noexcept;

    bool failed() const { return failed_; }
    // Whether threads may have told each other how far they are, so that another order of the threads may show more.
    bool communicates() const { return polls_ || (fences_ && updates_); }
    const RaceLog &log() const { return log_; }
    // The races of volatile accesses, which are no races where the memory is a flag that a thread polls.
    const RaceLog &log_of_volatile() const { return log_of_volatile_; }

private:
    // Bytes that the present access overwrites, until the next access.
    struct Overwritten {
        static constexpr std::size_t most = 64;

        KernelRace *race;
        std::uintptr_t address;
        std::size_t size;
        unsigned char bytes[most];
    };

    static AccessKind kind_of(abi::Touch touch);
    void tell_module();
    void stop();
    bool is_easy(ShadowCell &cell, bool of_device);
    void note_access(std::uintptr_t address, std::uint64_t size, std::uint32_t code);
    void close_reads_of(std::uintptr_t address, std::uint64_t size);
    void look_at(std::uintptr_t address, std::uint64_t size);
    void visit(ShadowCell &cell, std::uintptr_t begin, unsigned size);
    void visit_unit(ShadowCell &cell, std::uintptr_t begin, unsigned first, unsigned last);
    void forget(std::uintptr_t address, std::uint64_t size);
    void forget_other_blocks(std::uintptr_t address);
    bool is_of_other_blocks(AccessStamp value) const;

    void compare(AccessStamp value, std::uintptr_t begin, unsigned size);
    void compare_member(const ShadowMember &member, std::uintptr_t begin, unsigned size);
    bool conflicts(AccessStamp other) const;
    bool comes_before(AccessStamp other, std::uintptr_t address) const;
    bool all_come_before(const ShadowMember &member, std::uintptr_t address) const;
    AccessStamp with_present(AccessStamp value, std::uintptr_t address);
    Rivals rivals_in(const ShadowGroup &group, unsigned count) const;
    bool unite(ShadowMember *members, unsigned &count) const;
    bool replaces(AccessStamp other) const;
    void compared(std::uintptr_t address, std::uint64_t size);
    AccessStamp without_guess(AccessStamp read, AccessStamp written);
    bool is_guess(AccessStamp first) const;
    bool may_be_of_flag(AccessStamp first, AccessStamp second) const;
    bool leave_open(const Conflict &conflict);
    template <typename Closes> void close_reads(Closes closes);
    void close_all_reads() noexcept;
    bool is_of_present_thread(const ShadowMember &member) const;
    unsigned own_read(AccessStamp read);

    void add(AccessStamp first, std::uintptr_t begin, unsigned size);
    void report(const Conflict &conflict);
    void report_all();
    bool needs_more(Missing known, AccessStamp first, AccessStamp second) const;
    KernelRace *note(const Conflict &conflict, AccessStamp second, bool same_value, const Missing *missing);
    void note_write_after_atomic(AccessStamp written);
    bool is_plain_part_of_atomic(AccessStamp first, AccessStamp second) const;
    Missing missing(AccessStamp first, std::uintptr_t address) const;
    RacingAccess described(AccessStamp stamp) const;
    unsigned shown_site(unsigned site);
    void look_at_overwritten();
    AccessKind kind(AccessStamp stamp) const { return sites_[stamps::site(stamp)].kind; }

    abi::RaceNotes &notes_;
    const ModuleMemory memory_;
    const abi::Index grid_, block_;
    BlockClock clock_;
    HandOvers hand_overs_;
    HandOverHints hints_;
    CodeSites sites_;
    std::unique_ptr<Shadow> shadow_; // until the end of the launch
    RaceLog log_, log_of_volatile_;
    bool stopped_ = false, failed_ = false;
    bool fences_ = false, updates_ = false; // whether there was a fence, and an atomic function
    bool polls_ = false;                    // whether there was a volatile read, or a comparison
    unsigned updates_of_block_ = 0; // the atomic accesses of the present block of which the core knows

    // The present access
    AccessStamp now_ = 0;
    AccessKind kind_{};
    unsigned thread_ = 0;
    unsigned own_read_ = 0; // the place of the read of the same memory by the same thread; 0 if there is none
    std::vector<Conflict> conflicts_; // until all bytes are known
    std::vector<Overwritten> overwritten_;
    OpenReads open_reads_;
};

} // namespace tcuda
