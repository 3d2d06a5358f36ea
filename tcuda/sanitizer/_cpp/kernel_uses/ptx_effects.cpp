#include "sanitizer/_cpp/kernel_uses/ptx_effects.hpp"

#include <cstdint>
#include <set>
#include <utility>
#include <vector>

namespace tcuda::kernel_uses::ptx {
namespace {

class EffectsReader {
public:
    explicit EffectsReader(Flow &flow) : flow_(flow) {}

    Effects read() {
        for (std::uint32_t frame = 0; frame < flow_.frames().size(); ++frame)
            for (const Instruction &instruction : flow_.frames()[frame].function->instructions)
                add(frame, instruction);
        return std::move(effects_);
    }

private:
    void give(Value value, std::set<std::uint32_t> &seen) {
        std::vector<Value> values(1, value);
        while (!values.empty()) {
            const Value given = values.back();
            values.pop_back();
            effects_.given.push_back(given);
            for (const Sum &sum : flow_.values().sums(given))
                for (const Term &term : sum.terms) {
                    const Origin &origin = flow_.values().origin(term.origin);
                    if (origin.kind != Origin::Kind::region)
                        continue;
                    const auto region = static_cast<std::uint32_t>(origin.offset);
                    if (!seen.insert(region).second)
                        continue;
                    if (flow_.regions()[region].kind == Region::Kind::entry_argument)
                        values.push_back(flow_.regions().load(region, false, 0, pointer_bytes));
                    else if (flow_.regions()[region].kind != Region::Kind::module)
                        values.push_back(flow_.regions().content(region));
                }
        }
    }

    void add(std::uint32_t frame, const Instruction &instruction) {
        const Function &function = *flow_.frames()[frame].function;
        const Operation &operation = flow_.module().operations[instruction.operation];
        const auto operand = [&](std::uint32_t at) -> const Operand & {
            return function.operands[instruction.first + at];
        };
        if (operation.act == Act::call) {
            if (flow_.knows_callee(function, instruction))
                return;
            effects_.has_opaque = true;
            std::set<std::uint32_t> seen;
            for (std::uint32_t at = instruction.results; at < instruction.count; ++at)
                give(flow_.value_of(frame, operand(at)), seen);
            return;
        }
        if (operation.act == Act::opaque)
            effects_.has_opaque = true;
        if (operation.act == Act::prepare_global && instruction.results < instruction.count)
            effects_.global.push_back(flow_.value_of(frame, operand(instruction.results)));
        if (operation.act == Act::map) {
            effects_.has_opaque = true;
            for (unsigned which = 0; which < 4; ++which)
                if (const Operand *map = address_of(function, instruction, which))
                    effects_.maps.emplace_back(flow_.value_of(frame, *map), operation.memory[0].kind);
            return;
        }
        for (unsigned which = 0; which < 4; ++which) {
            const Operand *address = address_of(function, instruction, which);
            if (address == nullptr)
                break;
            auto memory = which < 2 ? operation.memory[which] : Operation::Memory();
            if (!operation.is_known) {
                effects_.has_opaque = true;
                memory = {Space::generic, Kind::both};
            }
            if (memory.kind == Kind::none || (memory.space != Space::generic && memory.space != Space::global))
                continue;
            const Value to = flow_.value_of(frame, *address);
            effects_.accesses.push_back({to, memory.space, memory.kind});
            if ((std::uint8_t(memory.kind) & std::uint8_t(Kind::write)) == 0)
                continue;
            bool is_stored = false, is_published = false;
            for (const Sum &sum : flow_.values().sums(to)) {
                const std::uint32_t region = flow_.memory().region_at(sum);
                is_stored = is_stored || region == no_region;
                is_published =
                    is_published || (region != no_region && flow_.regions()[region].kind == Region::Kind::module);
            }
            for (std::uint32_t at = instruction.results; at < instruction.count; ++at) {
                if (operand(at).is_address)
                    continue;
                if (is_stored)
                    effects_.stored.push_back(flow_.value_of(frame, operand(at)));
                if (is_published)
                    effects_.published.push_back(flow_.value_of(frame, operand(at)));
            }
        }
    }

    Flow &flow_;
    Effects effects_;
};

} // namespace

Effects effects_of(Flow &flow) { return EffectsReader(flow).read(); }

} // namespace tcuda::kernel_uses::ptx
