// The code of a kernel in a form in which the threads of a launch can be followed.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "sanitizer/_cpp/kernel_uses/kernel_use.hpp"

namespace tcuda::kernel_uses {

struct LaunchSizes {
    std::array<unsigned, 3> grid{}, block{};
    bool operator==(const LaunchSizes &other) const { return grid == other.grid && block == other.block; }
    bool are_known() const {
        return std::count(grid.begin(), grid.end(), 0u) == 0 && std::count(block.begin(), block.end(), 0u) == 0;
    }
};

// The effect of a step on numbers or memory. A step whose effect has no action of its own is `forget`.
enum class Action : std::uint8_t {
    nothing,
    forget, // the results are unknown
    move,
    pack,   // one number from several parts, or several parts from one number
    add,
    subtract,
    multiply,
    multiply_high,
    multiply_wide,
    divide,
    remainder,
    least,
    most,
    absolute,
    opposite,
    complement,
    conjunction,
    disjunction,
    exclusive,
    shift_left,
    shift_right,
    choose,
    compare,
    convert,
    extract,
    combine, // lop3
    load,
    store,
    update,  // an atomic function
    test,    // an atomic function that may leave the memory as it is: compare-and-swap
    copy,    // from global memory to shared memory
    call,    // a function that returns
    branch,
    leave, // the thread ends
    lose,  // the rest of the way of the thread is unknown
};

enum class Relation : std::uint8_t { equal, unequal, less, less_or_equal, greater, greater_or_equal };
enum class Joint : std::uint8_t { none, conjunction, disjunction, exclusive };
enum class Storing : std::uint8_t {
    generic,
    global,
    own,       // the parameters, and the variables of the thread
    elsewhere, // memory that no other kernel can use, and that is not followed
};

// An operand of a step.
struct Source {
    enum class Kind : std::uint8_t { unknown, number, reg, thread_index, block_size, block_index, grid_size, lane };
    Kind kind = Kind::unknown;
    bool negated = false;
    std::uint32_t index = 0; // of the register, or of the axis
    std::int64_t number = 0; // the number, or the number to add to the register
};

struct Step {
    static constexpr std::uint32_t none = ~std::uint32_t(0);

    Action action = Action::forget;
    Relation relation = Relation::equal;
    Joint joint = Joint::none;
    Storing storing = Storing::generic;
    bool is_signed = false, adds = false; // `adds`: a product to which the last operand is added
    bool from_signed = false;
    bool is_strong = false; // memory that other threads may change meanwhile
    std::uint8_t bits = 32, from_bits = 32;
    std::uint8_t bytes = 4;     // of an element
    std::uint8_t elements = 1; // the number of elements to load or store
    bool is_guarded = false;
    Source guard;
    std::uint32_t target = none;                                  // of a branch
    std::uint32_t first_result = 0, results = 0;                  // registers of Program::results
    std::uint32_t first_source = 0, sources = 0;                  // of Program::sources
    Source address;

    bool ends_block() const { return action == Action::branch || action == Action::leave || action == Action::lose; }
};

// Addresses that stand for the parameters and for the variables of a thread. No device has memory there.
constexpr std::uint64_t parameter_base = std::uint64_t(1) << 58, variable_base = std::uint64_t(1) << 59;

struct Program {
    // A run of steps. The next block is that of a branch, or the block behind.
    struct Block {
        std::uint32_t begin, end;
        std::array<std::uint32_t, 2>
            next; // Step::none for no block, and the number of blocks for the end of the thread
        std::uint32_t joins;               // where all ways from the block come together again; Step::none if nowhere
    };

    std::vector<Step> steps;
    std::vector<Source> sources;
    std::vector<std::uint32_t> results; // numbers of registers; Step::none for no register
    std::vector<Block> blocks;
    std::vector<std::uint32_t> block_of; // each step
    std::vector<Parameter> parameters;
    std::size_t parameter_bytes = 0;
    std::uint32_t registers = 0;
};

} // namespace tcuda::kernel_uses
