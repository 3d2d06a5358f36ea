#pragma once

namespace tcuda {

// A call for memory that the ledger makes. The ledger tells its observer of the memory itself, and it has a lock, so
// whoever watches the driver leaves these calls of the thread out.
class OwnMemoryCall {
public:
    OwnMemoryCall() { ++depth(); }
    ~OwnMemoryCall() { --depth(); }
    OwnMemoryCall(const OwnMemoryCall &) = delete;
    OwnMemoryCall &operator=(const OwnMemoryCall &) = delete;

    static bool is_active() { return depth() != 0; }

private:
    static int &depth() {
        static thread_local int depth = 0;
        return depth;
    }
};

} // namespace tcuda
