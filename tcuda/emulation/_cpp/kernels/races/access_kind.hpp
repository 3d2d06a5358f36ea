// The kinds of accesses.
#pragma once

#include <cstdint>

#include <tcuda_races.h>

namespace tcuda {

// A release is a write to a volatile variable by a thread that has called a fence before.
enum class AccessKind : std::uint8_t {
    read,
    write,
    volatile_read,
    volatile_write,
    volatile_release,
    atomic_read,
    atomic_read_of_block,
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
inline bool is_of_block(AccessKind kind) {
    return kind == AccessKind::atomic_read_of_block || kind == AccessKind::atomic_of_block;
}
inline bool is_atomic(AccessKind kind) { return kind >= AccessKind::atomic_read; }

} // namespace tcuda
