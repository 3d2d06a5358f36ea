// The memory that a launch on the processor may use.
#pragma once

#include <cstdint>
#include <vector>

#include <tcuda_abi.h>

namespace tcuda {

// Memory of devices, and the launch's own memory: that of the module, of the stacks, of the arguments. The global
// variables of the module are memory of a device inside of the module.
class LaunchMemory {
public:
    // The global variables, in ascending order, must outlive the object.
    explicit LaunchMemory(const std::vector<abi::Range> &variables) : variables_(variables) {}

    void admit(abi::Range range); // an empty range does nothing
    void admit_own(abi::Range range);

    // The admitted memory around an access; null if a byte of the access is outside.
    const abi::Range *find(std::uintptr_t address, std::uint64_t size) const;

    // The memory of a device that an access in `found` uses; null if the access uses memory of the launch itself.
    const abi::Range *of_device(std::uintptr_t address, std::uint64_t size, const abi::Range &found) const {
        return is_own(address) ? variable_at(address, size) : &found;
    }
    // The part of `around` between two variables, around an address that is in no variable.
    abi::Range between_variables(std::uintptr_t address, abi::Range around) const;

    // All memory of devices, in ascending order.
    std::vector<abi::Range> of_devices() const;

private:
    bool is_own(std::uintptr_t address) const;
    const abi::Range *variable_at(std::uintptr_t address, std::uint64_t size) const;

    const std::vector<abi::Range> &variables_;
    std::vector<abi::Range> ranges_; // in ascending order; none overlaps another
    std::vector<abi::Range> own_;    // the ranges that are no memory of a device
};

} // namespace tcuda
