#include "kernel_uses/sass_arithmetic.hpp"

#include <algorithm>
#include <set>
#include <string_view>
#include <vector>

#include "kernel_uses/sass_memory.hpp"

namespace tcuda::kernel_uses {
namespace {

using Term = SassThread::Term;
using Names = std::set<std::string_view>;

// The tables are made when the library is loaded: a fork while a thread makes a table would leave the table unfinished in
// the child. The tables are never freed, because kernels may be launched while the process exits.

// Most instructions exist for general registers (IADD3) and for uniform ones (UIADD3).
const Names &names_with_uniform_ones =
    *new Names{"MOV",  "IADD",  "IADD3", "VIADD", "IMAD", "LEA",  "SEL", "SHF",    "LOP3",  "PRMT", "SGXT",
               "BMSK", "ISETP", "PLOP3", "FLO",   "POPC", "BREV", "LDC", "VIMNMX", "IMNMX", "IABS"};

const Names &names_without_result =
    *new Names{"ISETP", "FSETP", "DSETP", "HSETP2", "PLOP3", "FCHK", "R2P", "NOP", "UFSETP", "VSETP"};

const Names &names_of_numbers =
    *new Names{"S2R",   "CS2R",  "VOTE",  "VOTEU", "MATCH", "POPC",  "FLO",  "BREV", "BMSK", "MUFU", "I2F",
               "I2FP",  "I2I",   "I2IP",  "F2I",   "F2F",   "F2FP",  "IMMA", "BMMA", "QMMA", "OMMA", "HGMMA",
               "IGMMA", "QGMMA", "DGMMA", "BGMMA", "IDP",   "IDP4A", "IABS", "P2R",  "LEPC", "BMOV", "B2R",
               "ELECT", "S2UR",  "UI2F",  "UF2F",  "UF2FP", "LDTM",  "QSPC", "SYNCS"};

std::string_view general_name(std::string_view name) {
    if (name == "LDCU")
        return "LDC";
    const bool is_uniform = name.size() > 1 && name[0] == 'U' && names_with_uniform_ones.count(name.substr(1)) > 0;
    return is_uniform ? name.substr(1) : name;
}

// Whether an instruction writes no register.
bool writes_nothing(std::string_view name) { return names_without_result.count(name) > 0; }

// Whether the result of an instruction is never part of an address: floating-point numbers, counts, special registers.
bool gives_number(std::string_view name) {
    if (names_of_numbers.count(name) > 0)
        return true;
    return name != "FSEL" && name != "FSWZ" && (name[0] == 'F' || name[0] == 'D' || name[0] == 'H');
}

void multiply(SassThread &thread, const Instruction &instruction, const std::vector<const Operand *> &sources,
              unsigned pieces, SassValue *results) {
    if (sources.size() < 3)
        return;
    const auto is_one = [](const Operand &operand) {
        return operand.kind == Operand::Kind::immediate && operand.number == 1;
    };
    for (unsigned piece = 0; piece < pieces; ++piece) {
        std::vector<Term> terms = {{thread.value(*sources[2], piece), sources[2]->negated}};
        if (is_one(*sources[1]))
            terms.push_back({thread.value(*sources[0], piece), sources[0]->negated});
        else if (is_one(*sources[0]))
            terms.push_back({thread.value(*sources[1], piece), sources[1]->negated});
        else if (const SassValue left = thread.value(*sources[0], 0), right = thread.value(*sources[1], 0);
                 !(left.known && left.origins == 0 && left.constant == 0) &&
                 !(right.known && right.origins == 0 && right.constant == 0))
            terms.push_back({{}, false}); // a product: a number that is not known
        results[piece] = thread.sum(terms);
    }
    if (instruction.has("X") || instruction.has("HI") || pieces > 1)
        results[pieces - 1].known = false;
}

} // namespace

void move_values(SassThread &thread, const Instruction &instruction) {
    const std::string_view name = general_name(instruction.name);
    if (writes_nothing(name))
        return;
    std::vector<const Operand *> sources;
    const Operand *target = SassThread::target_of(instruction, sources);
    if (target == nullptr)
        return;
    const unsigned pieces = instruction.has("64") || (name == "IMAD" && instruction.has("WIDE")) ? 2 : 1;
    // Both halves are read before one is written: the target may be a source.
    SassValue results[8] = {};
    unsigned count = pieces;
    const auto source = [&](std::size_t index) { return index < sources.size() ? sources[index] : nullptr; };
    const auto term = [&](std::size_t index, unsigned half) {
        const Operand *found = source(index);
        return found == nullptr ? Term{{0, 0, true}, false} : Term{thread.value(*found, half), found->negated};
    };
    if (name == "LDC") {
        const unsigned width = width_of(instruction);
        count = std::max(1u, width / 32);
        for (unsigned piece = 0; piece < count; ++piece)
            if (width >= 32 && source(0) != nullptr && source(0)->kind == Operand::Kind::constant)
                results[piece] = thread.constant(*source(0), 4 * piece);
    } else if (name == "MOV" || name == "R2UR" || name == "MOV32I" || name == "SHFL" || name == "SGXT") {
        for (unsigned piece = 0; piece < pieces; ++piece)
            results[piece] = term(0, piece).value;
        if (name != "MOV" && name != "MOV32I" && name != "R2UR")
            results[0].known = false;
    } else if (name == "IADD" || name == "IADD3" || name == "VIADD") {
        for (unsigned piece = 0; piece < pieces; ++piece)
            results[piece] = thread.sum({term(0, piece), term(1, piece), term(2, piece)});
        // A sum with a carry is the high half of a number.
        if (instruction.has("X") || pieces > 1)
            results[pieces - 1].known = false;
    } else if (name == "IMAD") {
        multiply(thread, instruction, sources, pieces, results);
    } else if (name == "LEA") {
        // The first source is shifted, hence a number, and the second one is the base.
        const Operand *shift = nullptr;
        for (const Operand *operand : sources)
            if (operand->kind == Operand::Kind::immediate)
                shift = operand;
        const bool shifted = shift != nullptr && shift == sources.back() && shift->number != 0 && sources.size() > 2;
        for (unsigned piece = 0; piece < pieces; ++piece)
            results[piece] = thread.sum({shifted ? Term{{}, false} : term(0, piece), term(1, piece)});
    } else if (name == "SEL" || name == "FSEL") {
        for (unsigned piece = 0; piece < pieces; ++piece)
            results[piece] = joined(thread.sets(), term(0, piece).value, term(1, piece).value);
    } else if (name == "SHF") {
        const Operand *shift = source(1);
        const bool fixed = shift != nullptr && shift->kind == Operand::Kind::immediate;
        const bool right = instruction.has("R");
        if (!(fixed && (right ? shift->number >= 16 : shift->number > 0)))
            results[0] = {
                thread.all({source(0) == nullptr ? target : source(0), source(2) == nullptr ? target : source(2)}, 0)
                    .origins,
                0, false};
    } else if (name == "LOP3") {
        // And with a small mask: a remainder, no address.
        const Operand *lut = nullptr;
        for (const Operand *operand : sources)
            if (operand->kind == Operand::Kind::immediate)
                lut = operand;
        const bool remainder = lut != nullptr && lut->number == 0xc0 &&
                               std::any_of(sources.begin(), sources.end(), [&](const Operand *operand) {
                                   return operand != lut && operand->kind == Operand::Kind::immediate &&
                                          operand->number >= 0 && operand->number < 0x10000;
                               });
        if (!remainder)
            results[0].origins = thread.all(sources, 0).origins;
    } else if (name == "S2R" || name == "S2UR" || name == "GETLMEMBASE") {
        if (name == "GETLMEMBASE" || (source(0) != nullptr && source(0)->text.substr(0, 5) == "SR_SW"))
            results[0].origins = thread.sets().single(own_memory);
    } else if (name == "CS2R") {
        count = instruction.has("32") ? 1 : 2;
    } else if (name == "PRMT" || name == "VIMNMX" || name == "IMNMX" || name == "VIADDMNMX") {
        results[0].origins = thread.all(sources, 0).origins;
    } else if (!gives_number(name)) {
        // An instruction of which nothing is known keeps what the register had, and adds its operands.
        for (unsigned piece = 0; piece < pieces; ++piece)
            results[piece].origins =
                thread.sets().joined(thread.value(*target, piece).origins, thread.all(sources, piece).origins);
    }
    for (unsigned piece = 0; piece < count; ++piece)
        thread.write(target, piece, results[piece]);
}

} // namespace tcuda::kernel_uses
