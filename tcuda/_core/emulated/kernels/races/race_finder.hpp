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
               std::uintptr_t site) noexcept;
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

    static AccessKind kind_of(abi::Touch touch);
    bool is_repeated(const ShadowCell &cell) const;
    bool is_easy(ShadowCell &cell);
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
    unsigned own_read(std::uint64_t read);

    void add(AccessStamp first, std::uintptr_t begin, unsigned size);
    void report(const Conflict &conflict);
    void report_all();
    Missing missing(AccessStamp first) const;
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

    // The present access
    AccessStamp now_ = 0;
    AccessKind kind_{};
    unsigned thread_ = 0;
    unsigned own_read_ = 0; // the place of the read of the same memory by the same thread; 0 if there is none
    std::vector<Conflict> conflicts_;
    std::vector<Overwritten> overwritten_;
};

} // namespace tcuda
