// Accesses to memory that the search for races must know. Other modules only check accesses.
#pragma once

#include "tcuda/launch.h"

#ifdef TCUDA_RACES
// The line of an access is that of the call, so functions of the headers that access memory are parts of their callers.
#define TCUDA_AT_CALLER __attribute__((always_inline))
#else
#define TCUDA_AT_CALLER
#endif
#define TCUDA_ACCESS inline TCUDA_UNSANITIZED __attribute__((always_inline))

namespace tcuda {

constexpr abi::Touch touch_of(bool write) { return write ? abi::Touch::write : abi::Touch::read; }
constexpr abi::Touch volatile_touch_of(bool write) {
    return write ? abi::Touch::volatile_write : abi::Touch::volatile_read;
}

TCUDA_ACCESS bool is_in(const abi::Span &slot, abi::Address address, unsigned size) {
    const abi::Address offset = address - slot.begin;
    return __builtin_expect(offset < slot.bytes && slot.bytes - offset >= size, 1);
}

#ifdef TCUDA_RACES

TCUDA_ACCESS bool is_of_headers(abi::Address address) {
    const auto own = reinterpret_cast<abi::Address>(__start_tcuda_own);
    return address - own < reinterpret_cast<abi::Address>(__stop_tcuda_own) - own;
}

inline TCUDA_UNSANITIZED __attribute__((noinline)) void touch_in_core(abi::Address address, unsigned long long size,
                                                                      abi::Touch kind, const void *site) {
    // Variables of the module are initialised before the first launch.
    if (services.touch != nullptr)
        services.touch(services.grid, address, size, kind, site);
}

TCUDA_ACCESS void touch(abi::Address address, unsigned long long size, abi::Touch kind, const void *site) {
    if (!is_of_headers(address))
        touch_in_core(address, size, kind, site);
}

// The stamp of an access by the running thread; 0 if the core has to note the access.
TCUDA_ACCESS AccessStamp stamp_of(const void *site) {
    if (!race_notes.open)
        return 0;
    const AccessStamp now = race_notes.stamps[race_notes.thread];
    const unsigned number = race_notes.sites[reinterpret_cast<abi::Address>(site) - race_notes.code];
    return now == 0 || number == 0 ? 0 : now | number;
}

// Notes an access with the cells from RaceNotes::cell(cells, address) on. False if the core has to note the access.
template <unsigned size, bool write>
TCUDA_ACCESS bool noted(abi::Address address, abi::Address cells, const void *site) {
    if (size > 16 || (size >= shadow_unit && address % shadow_unit != 0) || (size == 2 && address % 2 != 0))
        return false;
    const AccessStamp now = stamp_of(site);
    if (now == 0)
        return false;
    ShadowCell *cell = abi::RaceNotes::cell(cells, address);
    if (size < shadow_unit) {
        cell = race_notes.bytes(*cell);
        if (cell == nullptr)
            return false;
        cell += address % shadow_unit;
    }
    for (unsigned left = size < shadow_unit ? size : size / shadow_unit; left != 0; --left, ++cell)
        if (!(write ? race_notes.write(*cell, now) : race_notes.read(*cell, now, cells != race_notes.own_cells)))
            return false;
    return true;
}

// Notes the most frequent accesses as noted() does, with few registers. False if noted() has to note the access.
TCUDA_ACCESS bool is_usual_read(ShadowCell &cell, const void *site) {
    const AccessStamp before = cell.read, now = race_notes.stamps[race_notes.thread];
    if (before == 0) {
        const unsigned number = race_notes.sites[reinterpret_cast<abi::Address>(site) - race_notes.code];
        if (cell.written != 0 || now == 0 || number == 0)
            return false;
        cell.read = now | number;
        return true;
    }
    return stamps::moment(before) == stamps::moment(now) || (cell.written == 0 && race_notes.has_all_rivals(before));
}
TCUDA_ACCESS bool is_usual_write(ShadowCell &cell, const void *site) {
    const AccessStamp before = cell.read, now = race_notes.stamps[race_notes.thread];
    if (cell.written != 0)
        return before == 0 && stamps::moment(cell.written) == stamps::moment(now);
    const unsigned number = race_notes.sites[reinterpret_cast<abi::Address>(site) - race_notes.code];
    if (now == 0 || number == 0 || (before != 0 && stamps::moment(before) != stamps::moment(now)))
        return false;
    if (before != 0) {
        race_notes.facts[number] |= abi::RaceNotes::updates;
        cell.read = 0;
    }
    cell.written = now | number;
    return true;
}
template <unsigned size, bool write>
TCUDA_ACCESS bool is_usual(abi::Address address, abi::Address cells, const void *site) {
    if (!race_notes.open || size > 16 || (size >= shadow_unit && address % shadow_unit != 0) ||
        (size == 2 && address % 2 != 0))
        return false;
    ShadowCell *cell = abi::RaceNotes::cell(cells, address);
    if (size < shadow_unit) {
        if (!cell->is_split())
            return false;
        cell = race_notes.bytes(*cell) + address % shadow_unit;
    }
    for (unsigned left = size < shadow_unit ? size : size / shadow_unit; left != 0; --left, ++cell)
        if (!(write ? is_usual_write(*cell, site) : is_usual_read(*cell, site)))
            return false;
    return true;
}

template <unsigned size, bool write>
inline TCUDA_UNSANITIZED __attribute__((noinline)) void note_rarer(abi::Address address, abi::Address cells,
                                                                   const void *site) {
    if (!noted<size, write>(address, cells, site))
        touch(address, size, touch_of(write), site);
}

template <unsigned size, bool write>
inline TCUDA_UNSANITIZED __attribute__((noinline)) void access_without_slot(abi::Address address, const void *site) {
    resolve(address, size, write, site);
    const unsigned place = abi::slot_place(reinterpret_cast<abi::Address>(site));
    const bool resolved = is_in(slots[place], address, size);
    if (!resolved)
        touch(address, size, touch_of(write), site);
    else if (race_notes.cells[place] != 0)
        note_rarer<size, write>(address, race_notes.cells[place], site);
}

// Checks a plain access, and notes it. `aligned` tells whether the address must be a multiple of the size, or of 8.
template <unsigned size, bool write, bool aligned> TCUDA_ACCESS void access(abi::Address address) {
    const void *site = __builtin_return_address(0);
    if (aligned)
        check_alignment(address, size, write, site);
    abi::Address cells;
    if (reinterpret_cast<abi::Address>(shared_memory) - 1 - address < (write ? written_bytes : own_bytes)) {
        if (!write && is_of_headers(address))
            return;
        cells = race_notes.own_cells;
    } else {
        const unsigned place = abi::slot_place(reinterpret_cast<abi::Address>(site));
        if (!is_in(slots[place], address, size)) {
            access_without_slot<size, write>(address, site);
            return;
        }
        cells = race_notes.cells[place];
        if (cells == 0)
            return;
    }
    if (!is_usual<size, write>(address, cells, site))
        note_rarer<size, write>(address, cells, site);
}

// Whether the module can note an atomic update for the whole device, which the launch has checked before.
template <unsigned size> TCUDA_ACCESS bool noted_update(abi::Address address, const void *site) {
    if (size % shadow_unit != 0 || size > 16 || !race_notes.free_updates)
        return false;
    abi::Address cells = race_notes.own_cells;
    if (reinterpret_cast<abi::Address>(shared_memory) - 1 - address >= written_bytes) {
        const unsigned place = abi::slot_place(reinterpret_cast<abi::Address>(site));
        cells = race_notes.cells[place];
        if (!is_in(slots[place], address, size) || cells == 0)
            return false;
    }
    ShadowCell *cell = abi::RaceNotes::cell(cells, address);
    if (size == shadow_unit && race_notes.open && cell->read == 0 && race_notes.has_all_rivals(cell->written))
        return true;
    const AccessStamp now = stamp_of(site);
    if (now == 0)
        return false;
    for (unsigned left = size / shadow_unit; left != 0; --left, ++cell)
        if (!race_notes.update(*cell, now | stamps::weak, cells != race_notes.own_cells))
            return false;
    return true;
}

inline void fence(abi::Scope scope) {
    if (services.fence != nullptr)
        services.fence(services.grid, scope);
}

#else

TCUDA_ACCESS void touch(abi::Address, unsigned long long, abi::Touch, const void *) {}
#ifdef TCUDA_UNCHECKED // The compiler calls the functions of checks.h only for the steps.
template <unsigned size, bool write, bool aligned> TCUDA_ACCESS void access(abi::Address) {}
#else
// Out of the way of the usual accesses. A place of the code that uses several arrays in turn finds the memory of an
// access in a slot that the address chooses. Arrays begin at multiples of 512 bytes.
template <unsigned size, bool write, bool aligned>
inline TCUDA_UNSANITIZED __attribute__((noinline, cold)) void check_rarer(abi::Address address, const void *site) {
    if (aligned)
        check_alignment(address, size, write, site);
    static_assert(abi::slot_count == 256, "the place has 8 bits");
    abi::Span &other = slots[static_cast<unsigned>(address >> 9) * 0x9e3779b1u >> 24];
    if (is_in(other, address, size)) {
        slot_of(site) = other;
    } else {
        check_slot(address, size, write, site);
        other = slot_of(site);
    }
}

// Checks a plain access in few instructions: the beginning of a slot is a multiple of 16, so an aligned access that
// begins before the last whole multiple of its size ends in the slot.
template <unsigned size, bool write, bool aligned> TCUDA_ACCESS void access(abi::Address address) {
    const abi::Span &slot = slot_of(__builtin_return_address(0));
    if (__builtin_expect(address % size != 0 || address - slot.begin >= slot.bytes / size * size, 0))
        check_rarer<size, write, aligned>(address, __builtin_return_address(0));
}
#endif
inline void fence(abi::Scope) {}

#endif

} // namespace tcuda

#undef TCUDA_ACCESS
