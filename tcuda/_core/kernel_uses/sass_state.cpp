#include "kernel_uses/sass_state.hpp"

#include <algorithm>

namespace tcuda::kernel_uses {

bool SassState::join(OriginSets &sets, const SassState &other) {
    bool changed = false;
    for (std::size_t i = 0; i < registers.size(); ++i) {
        const SassValue both = joined(sets, registers[i], other.registers[i]);
        changed = changed || both != registers[i];
        registers[i] = both;
    }
    for (const auto &[place, value] : other.stack) {
        const auto [found, fresh] = stack.emplace(place, value);
        const SassValue both = joined(sets, found->second, value);
        changed = changed || fresh || both != found->second;
        found->second = both;
    }
    return changed;
}

SassRegisters::SassRegisters(const SassState &state) : stack(state.stack), values_(state.registers.size()) {
    for (std::size_t i = 0; i < values_.size(); ++i)
        values_[i].holds = values_[i].fails = state.registers[i];
}

SassValue SassRegisters::read(OriginSets &sets, std::uint16_t number, const std::optional<Predicate> &guard) const {
    if (number >= values_.size())
        return {0, 0, true};
    const Guarded &value = values_[number];
    if (guard && guard->number == value.predicate)
        return guard->negated ? value.fails : value.holds;
    return joined(sets, value.holds, value.fails);
}

void SassRegisters::write(OriginSets &sets, std::uint16_t number, const std::optional<Predicate> &guard,
                          SassValue value) {
    if (number >= values_.size())
        return;
    Guarded &target = values_[number];
    if (!guard || guard->number == Predicate::always) {
        target = {value, value, Predicate::always};
        return;
    }
    if (target.predicate != guard->number) {
        target.holds = target.fails = joined(sets, target.holds, target.fails);
        target.predicate = guard->number;
        guarded_.push_back(number);
    }
    (guard->negated ? target.fails : target.holds) = value;
}

void SassRegisters::forget(OriginSets &sets, std::uint8_t predicate) {
    guarded_.erase(std::remove_if(guarded_.begin(), guarded_.end(),
                                  [&](std::uint16_t number) {
                                      Guarded &value = values_[number];
                                      if (value.predicate != predicate)
                                          return value.predicate == Predicate::always;
                                      value.holds = value.fails = joined(sets, value.holds, value.fails);
                                      value.predicate = Predicate::always;
                                      return true;
                                  }),
                   guarded_.end());
}

SassState SassRegisters::state(OriginSets &sets, const std::optional<Predicate> &guard) const {
    SassState found;
    found.stack = stack;
    found.registers.reserve(values_.size());
    for (std::size_t i = 0; i < values_.size(); ++i)
        found.registers.push_back(read(sets, std::uint16_t(i), guard));
    return found;
}

} // namespace tcuda::kernel_uses
