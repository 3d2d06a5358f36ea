// Stamps: who has made an access, when, and at which place of the code, in 64 bits.
#pragma once

#include <cstdint>

#include <tcuda_abi.h>

namespace tcuda {

// The kinds of accesses. A release is a write to a volatile variable by a thread that has called a fence before.
enum class AccessKind : std::uint8_t {
    read,
    write,
    volatile_read,
    volatile_write,
    volatile_release,
    atomic_read,
    atomic_of_block,
    atomic_of_device,
};

inline bool writes(AccessKind kind) {
    return kind == AccessKind::write || kind == AccessKind::volatile_write || kind == AccessKind::volatile_release ||
           kind >= AccessKind::atomic_of_block;
}

inline bool is_plain(AccessKind kind) { return kind <= AccessKind::write; }
inline bool is_volatile(AccessKind kind) {
    return kind >= AccessKind::volatile_read && kind <= AccessKind::volatile_release;
}
inline bool is_atomic(AccessKind kind) { return kind >= AccessKind::atomic_read; }

// From the lowest bit: the place of the code, the thread in its block, the step of the thread in its phase, the phase,
// and whether the access is not plain. Phase 0 is never used, so a stamp is never 0. The highest bit is that of a
// reference.
//
// A phase is a piece of the life of a block: between two barriers, and within 2^step_bits steps of a thread.
using AccessStamp = std::uint64_t;

namespace stamps {

constexpr unsigned site_bits = 13, thread_bits = 10, step_bits = 11, phase_bits = 28;
constexpr unsigned thread_shift = site_bits, step_shift = thread_shift + thread_bits,
                   phase_shift = step_shift + step_bits, weak_shift = phase_shift + phase_bits;
constexpr AccessStamp reference = AccessStamp(1) << 63;
constexpr AccessStamp weak = AccessStamp(1) << weak_shift;
static_assert(weak_shift == 62, "a stamp has 63 bits");

constexpr unsigned field(AccessStamp stamp, unsigned shift, unsigned bits) {
    return static_cast<unsigned>(stamp >> shift) & ((1u << bits) - 1);
}
constexpr unsigned site(AccessStamp stamp) { return field(stamp, 0, site_bits); }
constexpr unsigned thread(AccessStamp stamp) { return field(stamp, thread_shift, thread_bits); }
constexpr unsigned step(AccessStamp stamp) { return field(stamp, step_shift, step_bits); }
constexpr unsigned phase(AccessStamp stamp) { return field(stamp, phase_shift, phase_bits); }
constexpr AccessStamp of(unsigned phase, unsigned step, unsigned thread) {
    return AccessStamp(phase) << phase_shift | AccessStamp(step) << step_shift | AccessStamp(thread) << thread_shift;
}
// The stamp of the same access by another thread of the block.
constexpr AccessStamp with_thread(AccessStamp stamp, unsigned thread) {
    return (stamp & ~(AccessStamp((1u << thread_bits) - 1) << thread_shift)) | AccessStamp(thread) << thread_shift;
}
// The stamp without the place of the code: equal for two accesses of one thread between which nobody can learn of it.
constexpr AccessStamp moment(AccessStamp stamp) { return stamp >> site_bits; }

} // namespace stamps
} // namespace tcuda
