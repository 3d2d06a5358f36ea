// A row of the table in the form that a call reads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "sanitizer/_cpp/library_calls/table.hpp"
#include "sanitizer/_cpp/order/region.hpp"

namespace tcuda::library_calls {

enum class Role : std::uint8_t {
    ignored,
    wide,
    real32,
    real64,
    data_type,
    index_type,
    nccl_type,
    cupy_type,
    order,
    vector,
    read,
    write,
    both,
    maybe,
    table,
    object,
    keeps,
    sets,
    create,
    holds,
    indexes,
    repoints,
    ends,
    resizes,
    reads,
    writes,
    fills,
};

// A number of a call. A number has one to three terms, which are arguments or constants.
struct Number {
    enum class Form : std::uint8_t { term, sum, product, choice };
    struct Term {
        int argument = -1;
        std::int64_t constant = 0;
    };
    Form form = Form::term;
    Term terms[3];
};

// How many items a pointer leads to, and where they lie.
struct Extent {
    std::vector<Number> counts;    // none: unknown; one: of a vector; two: rows and columns
    std::vector<Number> strides;   // the increment of a vector or the leading dimension
    std::vector<Number> batches;   // the stride and the number of matrices
    int exchanged = -1;            // the operation that exchanges rows and columns
};

struct Argument {
    std::string label;
    Role role = Role::ignored;
    Extent extent;
    int type_argument = -1; // the argument that names the type of the items
    std::size_t itemsize = 0;
};

// The values of the arguments of a call.
using Values = const std::uint64_t *;

struct Signature {
    std::string name;
    std::vector<Argument> arguments;
    Extra extra = Extra::none;
    int stream = -1;            // the argument that is the stream
    bool plans_are_numbers = false; // the objects are 32-bit numbers

    // The object of the library that an argument names.
    std::uint64_t object(Values values, std::size_t argument) const {
        return plans_are_numbers ? std::uint32_t(values[argument]) : values[argument];
    }
    std::int64_t number(Values values, const Number &number) const;
    std::int64_t number(Values values, const Number::Term &term) const;
    // The bytes of an item of the argument; 0 if the type is unknown.
    std::size_t itemsize(Values values, const Argument &argument) const;

    enum class Memory : std::uint8_t { exact, unsized, none };
    // Sets the region of the memory that the pointer leads to. `unsized`: only the address is known.
    Memory find(Values values, std::size_t argument, races::Region &region) const;
};

// The signature of each function of `functions`, in the same order. The list lives as long as the process.
const std::vector<Signature> &signatures();

// The bytes of an item of a cudaDataType; 0 if the type is unknown.
std::size_t size_of_data_type(std::int64_t type);

} // namespace tcuda::library_calls
