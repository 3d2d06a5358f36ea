// The listing of a cubin that NVIDIA's disassembler prints.
#pragma once

#include <cstddef>
#include <map>
#include <set>
#include <string_view>
#include <vector>

#include "kernel_uses/sass_instruction.hpp"

namespace tcuda::kernel_uses {

struct SassListing {
    struct Section {
        std::string_view name; // of its first function
        std::size_t begin = 0, end = 0;
        bool kernel = false;
        bool has_functions = false; // functions of the program that the kernel calls
    };

    unsigned architecture = 0; // 90 for sm_90 and sm_90a; 0 if the listing does not tell
    std::vector<Instruction> instructions;
    std::vector<std::size_t> functions; // for each instruction: where its function begins
    std::vector<Section> sections;
    std::map<std::string_view, std::size_t> labels; // the instruction behind a label
    std::vector<std::string_view> externals;        // functions that the listing names and does not hold

    // Facts about the instructions.
    std::vector<bool> leads; // whether a basic block begins here
    std::map<std::size_t, std::set<std::size_t>>
        rejoins; // by function: where its convergence barriers let threads go on
    std::size_t general_registers = 0, uniform_registers = 0; // how many the instructions may use
    bool has_functions = false;                               // whether a function has a section of its own
};

// The listing refers to the text. Any other text gives a listing without sections.
SassListing read_listing(std::string_view text);

} // namespace tcuda::kernel_uses
