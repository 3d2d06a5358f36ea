#include "sanitizer/_cpp/kernel_uses/ptx_frames.hpp"

namespace tcuda::kernel_uses::ptx {

Frames::Frames(const Module &module, const Function &entry, Regions &regions) : module_(module), regions_(regions) {
    add(entry, 0);
    for (const auto argument : entry.arguments)
        region_of(0, argument);
}

std::uint32_t Frames::add(const Function &function, std::uint32_t caller) {
    Frame frame;
    frame.function = &function;
    frame.caller = caller;
    frame.regions.assign(function.variables.size(), no_region);
    const auto &written = written_registers(function);
    frame.registers.resize(function.registers);
    for (std::uint32_t number = 0; number < function.registers; ++number)
        if (!written[number])
            frame.registers[number] = Held(Values::no_pointer);
    frames_.push_back(std::move(frame));
    return static_cast<std::uint32_t>(frames_.size() - 1);
}

const std::vector<bool> &Frames::written_registers(const Function &function) {
    const auto [found, is_new] = written_.emplace(&function, std::vector<bool>());
    auto &written = found->second;
    if (!is_new)
        return written;
    written.resize(function.registers);
    const auto mark = [&](const Operand &operand) {
        if (operand.kind == Operand::Kind::reg)
            written[operand.index] = true;
    };
    for (const auto &instruction : function.instructions)
        for (std::uint32_t at = 0; at < instruction.results; ++at) {
            const Operand &operand = function.operands[instruction.first + at];
            mark(operand);
            if (operand.kind == Operand::Kind::vector)
                for (std::uint32_t element = 0; element < operand.count; ++element)
                    mark(function.elements[operand.index + element]);
        }
    for (const auto argument : function.arguments)
        if (function.variables[argument].is_register)
            written[function.variables[argument].size] = true;
    return written;
}

std::pair<std::uint32_t, bool> Frames::of_call(std::uint32_t caller, std::uint32_t instruction,
                                               const Function &function) {
    const auto found = frames_[caller].calls.find(instruction);
    if (found != frames_[caller].calls.end())
        return {found->second, false};
    std::uint32_t callee = 0;
    bool is_known = false;
    for (std::uint32_t above = caller; !is_known; above = frames_[above].caller) { // a recursive call
        if (frames_[above].function == &function) {
            callee = above;
            is_known = true;
        }
        if (above == 0)
            break;
    }
    if (!is_known && frames_.size() >= most_frames) {
        const auto shared = shared_frames_.find(&function);
        is_known = shared != shared_frames_.end();
        callee = is_known ? shared->second : 0;
    }
    if (!is_known) {
        callee = add(function, frames_.size() >= most_frames ? 0 : caller);
        if (callee >= most_frames)
            shared_frames_[&function] = callee;
    }
    frames_[caller].calls[instruction] = callee;
    return {callee, true};
}

std::uint32_t Frames::region_of(std::uint32_t frame, std::uint32_t variable) {
    if (frames_[frame].regions[variable] != no_region)
        return frames_[frame].regions[variable];
    const Function &function = *frames_[frame].function;
    const Variable &declared = function.variables[variable];
    std::uint32_t region;
    if (declared.storage == Storage::shared) {
        const auto key = std::make_pair(&function, variable);
        const auto found = shared_regions_.find(key);
        region = found != shared_regions_.end() ? found->second : regions_.add(Region::Kind::shared);
        shared_regions_[key] = region;
    } else if (declared.storage == Storage::local) {
        region = regions_.add(Region::Kind::local);
    } else if (declared.storage == Storage::argument && function.is_entry && frame == 0) {
        region = regions_.add(Region::Kind::entry_argument, static_cast<std::int64_t>(declared.offset),
                              static_cast<std::int64_t>(declared.size));
    } else {
        region = regions_.add(Region::Kind::argument);
    }
    return frames_[frame].regions[variable] = region;
}

std::uint32_t Frames::region_of_module(std::uint32_t variable) {
    const auto found = module_regions_.find(variable);
    if (found != module_regions_.end())
        return found->second;
    const bool is_shared = module_.variables[variable].storage == Storage::shared;
    if (is_shared && module_.variables[variable].size == 0) { // all arrays without a size begin at one address
        if (dynamic_shared_ == no_region)
            dynamic_shared_ = regions_.add(Region::Kind::shared);
        return module_regions_[variable] = dynamic_shared_;
    }
    return module_regions_[variable] = regions_.add(is_shared ? Region::Kind::shared : Region::Kind::module);
}

std::uint32_t Frames::heap() {
    if (heap_ == no_region)
        heap_ = regions_.add(Region::Kind::heap);
    return heap_;
}

} // namespace tcuda::kernel_uses::ptx
