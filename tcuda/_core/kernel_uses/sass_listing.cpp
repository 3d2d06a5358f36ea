#include "kernel_uses/sass_listing.hpp"

#include <algorithm>
#include <set>

#include "kernel_uses/words.hpp"

namespace tcuda::kernel_uses {
namespace {

constexpr std::size_t most_instructions = 1 << 20;
constexpr std::size_t widest = 8; // registers that one instruction loads

// The word behind `directive`, up to a comma or a blank.
std::string_view argument(std::string_view line, std::string_view directive) {
    if (line.substr(0, directive.size()) != directive || line.size() == directive.size() ||
        blanks.find(line[directive.size()]) == blanks.npos)
        return {};
    const std::string_view rest = trimmed(line.substr(directive.size()));
    return rest.substr(0, rest.find_first_of(", \t"));
}

class ListingReader {
public:
    SassListing read(std::string_view text) {
        while (!text.empty()) {
            const std::size_t end = text.find('\n');
            read_line(trimmed(text.substr(0, end)));
            text.remove_prefix(end == text.npos ? text.size() : end + 1);
        }
        close_section();
        for (const std::string_view name : functions_)
            if (listing_.labels.find(name) == listing_.labels.end())
                listing_.externals.push_back(name);
        learn();
        return std::move(listing_);
    }

private:
    void read_line(std::string_view line) {
        if (line.substr(0, 2) == "//") {
            close_section();
        } else if (const std::string_view section = argument(line, ".section"); !section.empty()) {
            close_section();
            if (section.substr(0, 6) == ".text.") {
                listing_.sections.push_back({section.substr(6), listing_.instructions.size(), 0, false, false});
                open_ = true;
                function_ = listing_.instructions.size();
            }
        } else if (const std::string_view target = argument(line, ".target"); target.substr(0, 3) == "sm_") {
            for (std::size_t i = 3; i < target.size() && i < 6 && target[i] >= '0' && target[i] <= '9'; ++i)
                listing_.architecture = listing_.architecture * 10 + unsigned(target[i] - '0');
        } else if (const std::string_view typed = argument(line, ".type"); !typed.empty()) {
            if (line.find("@function") != line.npos)
                functions_.insert(typed);
        } else if (const std::string_view other = argument(line, ".other"); !other.empty()) {
            if (open_ && other == listing_.sections.back().name && line.find("STO_CUDA_ENTRY") != line.npos)
                listing_.sections.back().kernel = true;
        } else if (open_ && line.size() > 1 && line.back() == ':') {
            read_label(line.substr(0, line.size() - 1));
        } else if (open_) {
            if (auto instruction = read_instruction(line)) {
                if (listing_.instructions.size() == most_instructions)
                    instruction->name = {};
                if (listing_.instructions.size() <= most_instructions) {
                    listing_.instructions.push_back(std::move(*instruction));
                    listing_.functions.push_back(function_);
                }
            }
        }
    }

    void read_label(std::string_view label) {
        const std::size_t place = listing_.instructions.size();
        SassListing::Section &section = listing_.sections.back();
        if (!listing_.labels.emplace(label, place).second)
            listing_.labels[label] = std::size_t(-1); // two places: nobody can tell where a branch goes
        if (label.substr(0, 2) == ".L")
            return;
        function_ = place;
        if (place != section.begin && label.find("$__internal_") == label.npos)
            section.has_functions = true;
    }

    void learn() {
        listing_.leads.resize(listing_.instructions.size() + 1);
        for (const auto &[name, place] : listing_.labels)
            if (place < listing_.leads.size())
                listing_.leads[place] = true;
        for (const SassListing::Section &section : listing_.sections)
            listing_.has_functions = listing_.has_functions || !section.kernel;
        for (std::size_t i = 0; i < listing_.instructions.size(); ++i) {
            const Instruction &instruction = listing_.instructions[i];
            if (instruction.name == "CALL")
                listing_.leads[i + 1] = true;
            if (instruction.name == "BSSY" && instruction.operands.size() > 1)
                if (const auto place = listing_.labels.find(instruction.operands.back().text);
                    place != listing_.labels.end())
                    listing_.rejoins[listing_.functions[i]].insert(place->second);
            for (const Operand &operand : instruction.operands)
                for (const Register &found : operand.registers)
                    if (found.number < Register::uniform)
                        listing_.general_registers = std::max(listing_.general_registers, found.number + widest);
                    else if (found.number != Register::zero)
                        listing_.uniform_registers =
                            std::max(listing_.uniform_registers, found.number - Register::uniform + widest);
        }
        listing_.general_registers = std::min<std::size_t>(listing_.general_registers, 255);
        listing_.uniform_registers = std::min<std::size_t>(listing_.uniform_registers, 255);
    }

    void close_section() {
        if (open_)
            listing_.sections.back().end = listing_.instructions.size();
        open_ = false;
    }

    SassListing listing_;
    std::set<std::string_view> functions_;
    std::size_t function_ = 0;
    bool open_ = false;
};

} // namespace

SassListing read_listing(std::string_view text) { return ListingReader().read(text); }

} // namespace tcuda::kernel_uses
