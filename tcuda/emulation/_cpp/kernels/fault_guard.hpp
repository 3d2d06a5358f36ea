// Instructions of kernels that the processor refuses.
#pragma once

#include <atomic>
#include <cstdint>

#include <tcuda_abi.h>

namespace tcuda {

// An instruction that the processor refuses to execute.
struct RefusedInstruction {
    enum class Reason {
        access,     // no memory is at the address, or the memory cannot be written
        no_address, // the number is too large for an address
        alignment,  // the address suits no instruction for vectors
        call,       // no code is at the address
        division,   // of an integer
        instruction // the code means nothing
    };

    Reason reason;
    std::uintptr_t address; // 0 if unknown
    std::uintptr_t code;    // the address of the instruction
};

// While the object exists, a refused instruction of code on the given stacks does not end the process: the thread goes
// on at a place that the owner of the stacks chooses. Signals of other code go to the handler that was there before.
// The thread that makes the guard is the thread that runs the code.
class FaultGuard {
public:
    class Owner {
    public:
        // Called in the handler of a signal. Returns the top of a stack on which leave() can run.
        virtual char *note(const RefusedInstruction &refused) noexcept = 0;
        // Must not return.
        virtual void leave() = 0;

    protected:
        ~Owner() = default;
    };

    // Code on the stacks cannot write to whole pages of `read_only`. A write of other code ends the protection.
    FaultGuard(Owner &owner, const char *begin, const char *end, abi::Range read_only);
    ~FaultGuard();
    FaultGuard(const FaultGuard &) = delete;
    FaultGuard &operator=(const FaultGuard &) = delete;

private:
    friend class FaultHandlers;

    // Where the handler finds a guard.
    struct Place {
        std::atomic<std::uintptr_t> thread; // the thread of the guard; 0 if the place is free
        std::uintptr_t begin, end;
        abi::Range read_only;
        Owner *owner;
        Place *next;
    };

    Place *place_ = nullptr;
};

} // namespace tcuda
