#include "kernel_uses/sass_accesses.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "kernel_uses/cannot_follow.hpp"

namespace tcuda::kernel_uses {

SassAccesses::Address SassAccesses::address_of(const Operand &operand) {
    Address found;
    std::vector<SassThread::Term> terms, offsets;
    for (const Register &part : operand.registers) {
        (part.offset ? offsets : terms).push_back({thread_.read(part.number, 0), false});
        if (!part.offset)
            found.high = sets_.joined(found.high, thread_.read(part.number, 1).origins);
    }
    if (terms.empty())
        terms = offsets;
    else if (!offsets.empty())
        terms.push_back({{}, false});
    terms.push_back({{0, std::int32_t(operand.number), true}, false});
    found.low = thread_.sum(terms);
    return found;
}

void SassAccesses::use(const Instruction &instruction, const MemoryUse &use) {
    if (use.unknown) {
        if (use.space != Space::none)
            record_.lose();
        record_.incomplete();
    }
    const unsigned width = width_of(instruction), pieces = std::min(8u, std::max(1u, width / 32));
    SassValue loaded{};
    SassValue exact[8] = {};
    bool has_exact = false;
    if (use.space != Space::none && use.address != nullptr) {
        const Address address = address_of(*use.address);
        if (use.space == Space::shared) {
            if (std::uint8_t(use.kind) & std::uint8_t(Kind::write))
                keep(shared_, stored(instruction, use, pieces));
            loaded.origins = shared_;
        } else if (use.space == Space::stack) {
            use_stack(instruction, use, address.low, width, pieces, exact);
            has_exact = true;
        } else if (use.space == Space::map) {
            use_map(use, address.low);
        } else {
            loaded.origins = use_address(instruction, use, address, pieces, exact, has_exact);
        }
    }
    if (use.to_shared)
        keep(shared_, sets_.single(wide_load));
    if (use.kind == Kind::write || use.kind == Kind::none) {
        if (use.space == Space::none)
            thread_.write_number(instruction);
        return;
    }
    // The registers in front of the address get what the instruction loads.
    std::vector<const Operand *> targets;
    for (const Operand &operand : instruction.operands) {
        if (operand.kind == Operand::Kind::memory)
            break;
        if (operand.kind == Operand::Kind::general)
            targets.push_back(&operand);
    }
    const auto each = targets.empty() ? 0u : std::max(1u, pieces / unsigned(targets.size()));
    for (std::size_t i = 0; i < targets.size(); ++i)
        for (unsigned piece = 0; piece < each; ++piece)
            thread_.write(targets[i], piece, has_exact ? exact[(i * each + piece) % 8] : loaded);
}

Origins SassAccesses::stored(const Instruction &instruction, const MemoryUse &use, unsigned pieces) {
    Origins found = 0;
    bool behind = false;
    for (const Operand &operand : instruction.operands) {
        if (behind && operand.kind == Operand::Kind::general)
            for (unsigned piece = 0; piece < pieces; ++piece)
                found = sets_.joined(found, thread_.read(operand.registers[0].number, piece).origins);
        behind = behind || &operand == use.address;
    }
    return found;
}

bool SassAccesses::is_slot(const SassValue &address) {
    return address.known && address.origins == sets_.single(own_memory) && address.constant % 4 == 0;
}

void SassAccesses::use_stack(const Instruction &instruction, const MemoryUse &use, const SassValue &address,
                             unsigned width, unsigned pieces, SassValue *loaded) {
    auto &slots = thread_.stack();
    const bool exact = is_slot(address) && use.kind != Kind::both;
    if (use.kind != Kind::read) {
        keep(stack_, stored(instruction, use, pieces));
        const Operand *source = nullptr;
        for (const Operand &operand : instruction.operands)
            if (operand.kind == Operand::Kind::general)
                source = &operand;
        if (!exact || width < 32)
            store_loosely(stored(instruction, use, pieces));
        for (unsigned piece = 0; exact && source != nullptr && piece < pieces; ++piece) {
            SassValue value = thread_.read(source->registers[0].number, piece);
            const auto at = std::int32_t(std::uint32_t(address.constant) + 4 * piece);
            const auto old = slots.find(at);
            if (width < 32)
                value = {value.origins, 0, false};
            if ((thread_.guard() || width < 32) && old != slots.end())
                value = joined(sets_, old->second, value);
            else if (thread_.guard())
                value.known = false;
            slots[at] = value;
            if (slots.size() > 4096)
                throw CannotFollow();
        }
    }
    if (use.kind == Kind::write)
        return;
    for (unsigned piece = 0; piece < pieces; ++piece) {
        SassValue value{stack_, 0, false};
        if (exact) {
            const auto at = std::int32_t(std::uint32_t(address.constant) + 4 * piece);
            const auto found = slots.find(at);
            value = found == slots.end() ? SassValue{} : found->second;
            const Origins both = sets_.joined(value.origins, loose_stack_);
            value = {both, value.constant, value.known && !stored_loosely_ && width == 32 * pieces};
        }
        loaded[piece] = value;
    }
}

void SassAccesses::use_map(const MemoryUse &use, const SassValue &address) {
    constexpr std::size_t map_size = 128;
    for (const std::uint32_t origin : sets_.members(address.origins)) {
        if (origin != block_address) {
            record_.incomplete();
            record_.record(origin, Kind::read, false);
        } else if (address.known && address.constant >= 0) {
            for (std::size_t at = 0; at < map_size; at += 8) {
                const Origins word = parameters_.word(sets_, address.constant + std::int64_t(at)).origins;
                for (const std::uint32_t found : sets_.members(word))
                    record_.record(found, use.kind, false);
            }
        } else {
            record_.record(any_word, use.kind, false);
        }
    }
    if (address.origins == 0)
        record_.lose();
}

Origins SassAccesses::use_address(const Instruction &instruction, const MemoryUse &use, const Address &address,
                                  unsigned pieces, SassValue *exact, bool &has_exact) {
    const Origins from_memory = sets_.single(width_of(instruction) >= 64 ? wide_load : narrow_load);
    Origins origins = address.low.origins, loaded = 0;
    // The low half of an address of shared memory is a plain number.
    if (origins == 0 && address.high == sets_.single(own_memory))
        origins = address.high;
    if (origins == 0) {
        record_.lose();
        return from_memory;
    }
    const bool certain = sets_.members(origins).size() == 1 && !use.unknown;
    if (certain && origins == address.low.origins && is_slot(address.low)) {
        use_stack(instruction, use, address.low, width_of(instruction), pieces, exact);
        has_exact = true;
        return 0;
    }
    for (const std::uint32_t origin : sets_.members(origins)) {
        if (origin == own_memory) {
            if (std::uint8_t(use.kind) & std::uint8_t(Kind::write)) {
                const Origins data = stored(instruction, use, pieces);
                keep(shared_, data);
                keep(stack_, data);
                store_loosely(data);
            }
            loaded = sets_.joined(loaded, sets_.joined(shared_, stack_));
            continue;
        }
        if (origin == block_address) {
            if (use.kind != Kind::read) {
                record_.lose();
            } else if (address.low.known && sets_.members(origins).size() == 1) {
                has_exact = width_of(instruction) >= 32;
                for (unsigned piece = 0; piece < pieces && has_exact; ++piece)
                    exact[piece] = parameters_.word(sets_, std::int64_t(address.low.constant) + 4 * piece);
            } else {
                loaded = sets_.joined(loaded, sets_.single(any_word));
            }
            continue;
        }
        loaded = sets_.joined(loaded, from_memory);
        if (origin == module_memory)
            continue;
        if (origin == wide_load || origin == narrow_load)
            record_.incomplete();
        else
            record_.record(origin, use.kind, certain);
    }
    return loaded;
}

void SassAccesses::store_loosely(Origins data) {
    shared_changed_ = shared_changed_ || !stored_loosely_;
    stored_loosely_ = true;
    keep(loose_stack_, data);
}

void SassAccesses::keep(Origins &kept, Origins more) {
    const Origins both = sets_.joined(kept, more);
    if (both != kept) {
        kept = both;
        shared_changed_ = true;
    }
}

bool SassAccesses::take_change() { return std::exchange(shared_changed_, false); }

} // namespace tcuda::kernel_uses
