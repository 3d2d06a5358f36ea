// The accesses that one thread of a launch makes for certain.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "sanitizer/_cpp/kernel_uses/program.hpp"

namespace tcuda::kernel_uses {

// Bytes of global memory that a thread uses.
struct Touch {
    std::uint64_t address;
    std::uint32_t bytes;
    Kind kind;
};

// Follows the threads of a launch, with the sizes and the parameters of the launch. Numbers that a thread
// loads from memory are unknown. Where the way of the thread depends on an unknown number, the thread is followed from
// the place on where all ways come together again. If the rest of the way is unknown, the walk ends.
class Walk {
public:
    using Index = std::array<unsigned, 3>;

    // All of these must outlive the walk. `parameters` has Program::parameter_bytes bytes.
    Walk(const Program &program, const LaunchSizes &sizes, const unsigned char *parameters);
    Walk(const Walk &) = delete;
    Walk &operator=(const Walk &) = delete;

    // Adds the accesses that the thread makes for certain. Returns whether these are all accesses of the thread.
    // Takes at most `steps` steps, and lowers the number by the steps that were taken.
    bool follow(const Index &block, const Index &thread, std::size_t &steps, std::vector<Touch> &touches);

private:
    struct Value {
        std::uint64_t number = 0;
        bool known = false;
    };

    Value value_of(const Source &source) const;
    // Unknown if the step has fewer operands.
    Value source(const Step &step, std::uint32_t place) const {
        return place < step.sources ? value_of(program_.sources[step.first_source + place]) : Value();
    }
    Value computed(const Step &step) const;
    Value compared(const Step &step) const;
    Value loaded(std::uint64_t address, unsigned bytes) const;
    void set(const Step &step, std::uint32_t place, Value value);
    void forget_results(const Step &step);
    void repack(const Step &step);
    void use_memory(const Step &step, std::vector<Touch> &touches);
    void use_variables(const Step &step, std::uint64_t address);
    void doubt(const Step &step);
    // Goes on where all ways from a block come together. Returns the next step, or Step::none if there is no such
    // place.
    std::uint32_t pass(std::uint32_t block);

    const Program &program_;
    const LaunchSizes &sizes_;
    const unsigned char *const parameters_;
    Index block_{}, thread_{};
    bool is_whole_ = true; // whether all accesses so far are known
    std::vector<Value> registers_;
    std::unordered_map<std::uint64_t, unsigned char> variables_; // the known bytes of the thread's variables
    std::vector<bool> in_region_;
    std::vector<std::uint32_t> region_;
};

} // namespace tcuda::kernel_uses
