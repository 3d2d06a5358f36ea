#include "sanitizer/_cpp/kernel_uses/ptx_pointers.hpp"

#include <algorithm>

namespace tcuda::kernel_uses::ptx {
namespace {

constexpr std::int64_t most_words = 1024;

bool is_number(const Sum &sum) { return sum.terms.empty(); }

} // namespace

Pointers::Pointers(const Flow &flow, const Effects &effects, const Function &entry) : flow_(flow) {
    find_evidence(effects, entry);
    for (const Access &access : effects.accesses)
        add_access(access);
    for (const auto &[address, kind] : effects.maps)
        add_map(address, kind);
    for (const Value given : effects.given)
        add_possible(given, Kind::both);
    for (const Value stored : effects.published)
        for (const Sum &sum : flow_.values().sums(stored))
            for (const Term &term : sum.terms)
                if (!term.is_derived && origin_of(term).kind != Origin::Kind::foreign &&
                    origin_of(term).kind != Origin::Kind::system)
                    is_complete_ = false; // other kernels may find the pointer there
    // The pointers that the kernel, or a function that is not known, loads may be those that the kernel stored.
    if (has_foreign_ || effects.has_opaque) {
        for (const Value stored : effects.stored)
            add_possible(stored, Kind::both);
        for (const Value stored : effects.published)
            add_possible(stored, Kind::both);
    }
    if (effects.has_opaque)
        is_complete_ = false;
}

// Which parameters are pointers, not numbers, shows where a pointer and a number are added.
void Pointers::find_evidence(const Effects &effects, const Function &entry) {
    for (const auto argument : entry.arguments)
        if (entry.variables[argument].is_pointer && entry.variables[argument].size == pointer_bytes)
            pointers_.insert(static_cast<std::int64_t>(entry.variables[argument].offset));
    for (const Value value : effects.global)
        add_evidence(value);
    for (const Access &access : effects.accesses)
        add_evidence(access.address);
}

// A parameter that is all that an address can be is a pointer. Registers that are written several times show nothing.
void Pointers::add_evidence(Value value) {
    const Sum *only = nullptr;
    for (const Sum &sum : flow_.values().sums(value)) {
        if (is_number(sum))
            continue;
        if (only != nullptr)
            return;
        only = &sum;
    }
    if (const Term *alone = only == nullptr ? nullptr : parameter_alone(*only))
        pointers_.insert(origin_of(*alone).offset);
}

// The parameter that is the only base that the sum can have; null if there is none.
const Term *Pointers::parameter_alone(const Sum &sum) const {
    const Term *only = nullptr;
    for (const Term &term : sum.terms) {
        const Origin &origin = origin_of(term);
        if (term.is_derived) { // a part of the true pointer, perhaps
            const bool is_scalar = origin.kind == Origin::Kind::parameter && origin.size < pointer_bytes;
            if (!is_scalar && origin.kind != Origin::Kind::foreign)
                return nullptr;
            continue;
        }
        if (only != nullptr || term.is_negative || origin.kind != Origin::Kind::parameter ||
            origin.size != pointer_bytes)
            return nullptr;
        only = &term;
    }
    return only;
}

bool Pointers::is_pointer(const Term &term) const {
    const Origin &origin = origin_of(term);
    switch (origin.kind) {
    case Origin::Kind::parameter:
        return origin.size == pointer_bytes && pointers_.count(origin.offset) != 0;
    case Origin::Kind::region:
    case Origin::Kind::system:
        return true;
    case Origin::Kind::any_word:
    case Origin::Kind::foreign:
    case Origin::Kind::mixed:
        break;
    }
    return false;
}

Pointers::Bases Pointers::bases_of(const Sum &sum) const {
    Bases bases;
    std::vector<Term> known, whole;
    bool has_negative = false;
    bool has_derived_pointer = false;
    for (const Term &term : sum.terms) {
        if (term.is_derived) {
            const auto kind = origin_of(term).kind;
            if (kind == Origin::Kind::system && !term.is_negative)
                known.push_back(term); // the driver gives its address in halves
            else if (is_pointer(term))
                has_derived_pointer = true;
        } else if (term.is_negative) {
            has_negative = true;
        } else {
            whole.push_back(term);
            if (is_pointer(term))
                known.push_back(term);
        }
    }
    const auto is_in_parts_too = [&](const Term &term) {
        Term part = term;
        part.is_derived = true;
        return std::find(sum.terms.begin(), sum.terms.end(), part) != sum.terms.end();
    };
    // A multiple of a pointer, or its opposite, may leave nothing of the pointer.
    const bool is_plain =
        whole.size() <= 1 || (!has_negative && std::none_of(known.begin(), known.end(), is_in_parts_too));
    if (known.size() == 1 && is_plain) {
        bases.terms = known;
    } else if (known.empty() && whole.size() == 1 && !has_derived_pointer) {
        bases.terms = whole;
    } else if (whole.empty()) {
        return derived_bases_of(sum);
    } else {
        bases.terms = whole;
        bases.is_lost = has_derived_pointer && known.empty();
    }
    return bases;
}

// The bases of an address that was computed from parts of pointers.
Pointers::Bases Pointers::derived_bases_of(const Sum &sum) const {
    Bases bases;
    for (const Term &term : sum.terms) {
        const Origin &origin = origin_of(term);
        if (!term.is_derived || term.is_negative)
            bases.is_lost = true;
        const bool is_piece = origin.kind == Origin::Kind::parameter && origin.size != pointer_bytes;
        if (is_piece || origin.kind == Origin::Kind::mixed)
            bases.is_lost = true;
        else
            bases.terms.push_back(term);
    }
    bases.is_lost = bases.is_lost || sum.terms.size() != 1;
    return bases;
}

void Pointers::add_access(const Access &access) {
    std::vector<const Sum *> sums;
    const auto &all = flow_.values().sums(access.address);
    for (const Sum &sum : all)
        if (!is_number(sum)) // a null pointer beside a pointer
            sums.push_back(&sum);
    if (sums.empty()) {
        is_lost_ = true;
        return;
    }
    std::set<std::int64_t> offsets;
    bool has_others = false;
    for (const Sum *sum : sums) {
        const Bases bases = bases_of(*sum);
        is_lost_ = is_lost_ || bases.is_lost;
        has_others = has_others || bases.is_lost;
        for (const Term &term : bases.terms) {
            const Origin &origin = origin_of(term);
            switch (origin.kind) {
            case Origin::Kind::parameter:
                if (origin.size == pointer_bytes)
                    offsets.insert(origin.offset);
                else
                    is_lost_ = true;
                break;
            case Origin::Kind::any_word:
                has_others = true;
                add_possible(origin, access.kind);
                break;
            case Origin::Kind::foreign:
                has_others = true;
                has_foreign_ = true;
                is_complete_ = false;
                break;
            case Origin::Kind::region:
            case Origin::Kind::system:
            case Origin::Kind::mixed:
                has_others = true;
                break;
            }
        }
    }
    for (const auto offset : offsets) {
        Found &found = found_[offset];
        Kind &kind = offsets.size() == 1 && !has_others ? found.certain : found.possible;
        kind = kind | access.kind;
    }
}

// The memory of a tensor map is known to the driver only. Its first word is the address.
void Pointers::add_map(Value address, Kind kind) {
    for (const Sum &sum : flow_.values().sums(address))
        for (const Term &term : sum.terms) {
            const Origin &origin = origin_of(term);
            if (origin.kind != Origin::Kind::region || term.is_derived || term.is_negative)
                continue;
            const Region &region = flow_.regions()[static_cast<std::uint32_t>(origin.offset)];
            if (region.kind == Region::Kind::entry_argument && sum.is_exact)
                add_possible({Origin::Kind::parameter, region.offset + sum.number, pointer_bytes}, kind);
        }
}

void Pointers::add_possible(Value value, Kind kind) {
    for (const Sum &sum : flow_.values().sums(value))
        for (const Term &term : sum.terms)
            if (!term.is_derived || sum.terms.size() == 1)
                add_possible(origin_of(term), kind);
}

void Pointers::add_possible(const Origin &origin, Kind kind) {
    if (origin.kind == Origin::Kind::parameter && origin.size == pointer_bytes && origin.offset >= 0) {
        Kind &possible = found_[origin.offset].possible;
        possible = possible | kind;
    }
    if (origin.kind != Origin::Kind::any_word)
        return;
    if (origin.size < pointer_bytes || origin.size > most_words * pointer_bytes) {
        is_lost_ = true;
        return;
    }
    const auto end = origin.offset + origin.size;
    auto word = (origin.offset + pointer_bytes - 1) / pointer_bytes * pointer_bytes;
    for (; word + pointer_bytes <= end; word += pointer_bytes) {
        Kind &possible = found_[word].possible;
        possible = possible | kind;
    }
}

std::vector<PointerUse> Pointers::uses() const {
    auto found = found_;
    for (const auto offset : pointers_)
        found[offset];
    std::vector<PointerUse> uses;
    for (auto &[offset, kinds] : found) {
        if (is_lost_)
            kinds.possible = Kind::both;
        PointerUse use;
        use.offset = static_cast<std::size_t>(offset);
        use.kind = kinds.certain | kinds.possible;
        use.possible = use.kind != kinds.certain;
        uses.push_back(use);
    }
    return uses;
}

} // namespace tcuda::kernel_uses::ptx
