// What threads learn from each other through memory: by fences, and by atomic functions and volatile variables.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "emulation/_cpp/kernels/races/block_clock.hpp"
#include <tcuda_abi.h>

namespace tcuda {

// A thread hands over what it knows by a fence and then a write to a place: by an atomic function, or to a volatile
// variable. Another thread takes what was handed over by a read of the same place and then a fence.
//
// Each place has a log of what was handed over there. A thread knows the beginnings of some logs. An entry of a log may
// need entries of other logs, which the writer knew.
class HandOvers {
    struct OfBlock;

public:
    // The knowledge of the threads of a block that rests while another block runs.
    using Resting = OfBlock;
    Resting resting() const;
    void go_on_with(const Resting &resting);

    HandOvers(BlockClock &clock, unsigned threads);

    void start_block();
    void pass_barrier(); // before that of the clock
    void join(unsigned warp, std::uint32_t lanes);
    void fence(unsigned thread, abi::Scope scope);
    // A read by an atomic function of the scope, or of a volatile variable.
    void read(unsigned thread, std::uintptr_t address, abi::Scope scope);
    // A write after read() of the same thread if `updates`. Whether the thread hands something over.
    bool write(unsigned thread, std::uintptr_t address, std::uint64_t size, abi::Scope scope, bool updates);

    // Whether the thread has done nothing that others could learn of since its last fence.
    bool has_just_fenced(unsigned thread) const {
        const BlockTime mark = marks_[thread].any.last, now = clock_.time(thread);
        return mark.generation == now.generation && mark.step + 1 == now.step;
    }
    // Whether read() and write() have an effect.
    bool may_hand_over() const { return any_mark_ || used(); }
    // Whether the launch has handed over anything.
    bool used() const { return !logs_.empty(); }
    // Whether the thread has called a fence at the time or later.
    bool has_fenced_since(unsigned thread, BlockTime time) const { return !(marks_[thread].any.last < time); }

    // The hand-overs that count beside those of the usual rules.
    enum class Also : unsigned char {
        nothing,
        small_scopes,  // functions of block scope between blocks
        without_fence, // what the thread has read, and no fence follows the read
    };
    // Whether the thread knows of an access to the address by what was handed over.
    bool knows(unsigned thread, AccessStamp stamp, std::uintptr_t address, bool of_atomic, Also also) const;

private:
    // What a fence has made ready to be handed over.
    struct Mark {
        BlockTime last, before; // the last one, and the last one before the last barrier
    };
    struct Marks {
        Mark any, wide; // of a fence of any scope, and of a fence for the whole device
    };
    // The marks of all threads of a block at a barrier, or one mark if all are equal.
    struct BlockMarks {
        std::vector<BlockTime> any, wide;
        BlockTime last_any, last_wide;
    };
    struct Entry {
        std::uint32_t block, thread;
        BlockTime at, any, wide;
        std::uint32_t block_marks, known_steps; // numbers, plus one
    };
    struct Seen { // the first entries of a log
        std::uint32_t log, count;
        bool wide;
    };
    // The entry at `place`, and the later entries, need these entries of a log: of another log, or of the same log
    // where only threads of the block know of these entries.
    struct Import {
        std::uint32_t place, count;
        bool wide;
        bool released; // whether other blocks learn of the import by the entry
    };
    struct Log {
        std::uintptr_t address;
        std::uint64_t size;
        bool narrow = false; // whether an entry tells other blocks less than its own block
        bool seen = false;   // whether another thread than its writer has read the last entry
        std::vector<Entry> entries;
        std::unordered_map<std::uint32_t, std::vector<std::uint32_t>> of_block;
        std::unordered_map<std::uint32_t, std::vector<Import>> imports; // by the log
    };
    struct Steps {
        std::uint32_t known[BlockClock::lanes];
    };
    struct Target {
        std::uint32_t block;
        unsigned thread;
        BlockTime time;
        std::uintptr_t address;
        bool of_atomic;
    };
    struct Step { // a thread of the block has seen the first entries of a log
        std::uint32_t log, count, block;
        bool wide;
    };

    struct OfBlock {
        std::vector<Marks> marks;
        std::vector<Steps> steps_at_fence;
        std::vector<std::vector<Seen>> known, pending;
        std::vector<Seen> known_to_block;
        bool any_seen, any_mark;
        std::uint32_t first_mark, marks_generation, marks_number;
    };

    static void add(std::vector<Seen> &list, Seen seen);
    static BlockTime of_barrier(const Mark &mark, std::uint32_t generation);
    void set(Mark &mark, BlockTime time) const;
    std::uint32_t marks_of_block();
    void import(Log &log, std::uint32_t number, const std::vector<Seen> &known) const;
    bool has(const Log &log, std::uint32_t count, const Target &target, bool near) const;
    bool covers(const Log &log, const Entry &entry, const Target &target, bool near) const;
    static bool adds_nothing(const Log &log, const Entry &entry);
    bool tells_less(const Entry &entry) const;
    bool tells_others(const Entry &entry) const;

    BlockClock &clock_;
    const unsigned threads_;
    std::vector<Log> logs_;
    std::unordered_map<std::uintptr_t, std::uint32_t> log_of_;
    std::vector<BlockMarks> block_marks_;
    std::vector<Steps> steps_;

    // Of the present block
    std::vector<Marks> marks_;
    std::vector<Steps> steps_at_fence_; // of each thread; empty until a fence follows a function of a warp
    std::vector<std::vector<Seen>> known_, pending_; // of each thread
    std::vector<Seen> known_to_block_;
    bool any_seen_ = false, any_mark_ = false;
    std::uint32_t first_mark_ = 0;      // the generation of the first fence of the block
    std::uint32_t marks_generation_ = 0, marks_number_ = 0; // the last result of marks_of_block()
};

} // namespace tcuda
