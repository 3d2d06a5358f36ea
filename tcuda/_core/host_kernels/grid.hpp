// A launch of a kernel on the processor: block after block, in one thread of the operating system.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "host_kernels/context.hpp"
#include "host_kernels/loaded_module.hpp"
#include "host_kernels/stacks.hpp"
#include <tcuda_abi.h>

namespace tcuda {

struct Launch {
    const abi::Kernel *kernel;
    abi::Index grid;
    abi::Index block;
    std::string arguments; // packed
    unsigned shared_bytes;
    // Whether all threads of a block must reach its barriers. A GPU does not count the threads that have returned.
    bool strict;
};

// An access outside of the known ranges.
struct Access {
    std::uintptr_t address;
    std::uint64_t size;
    bool write;
};

// A failure of a thread.
struct Fault {
    std::string kind, text, file, function;
    int line = 0;
};

// The threads of a block run on fibers. A fiber runs thread after thread in a plain loop. A thread that waits keeps its
// fiber, and another fiber goes on with the loop. So a kernel that never waits needs one fiber.
//
// The order of the threads is the same in every run. A block begins when the block before has ended.
class Grid {
public:
    enum class Outcome { done, access, fault, interrupted };

    // The module must outlive the grid.
    Grid(LoadedModule &module, Launch launch);
    ~Grid();
    Grid(const Grid &) = delete;
    Grid &operator=(const Grid &) = delete;

    // Lets the kernel use this memory of the device.
    void allow(abi::Range range);

    // Starts the kernel, or goes on: after an access that allow() has admitted, or after an interruption. Throws
    // std::logic_error if this thread runs another grid of the module.
    Outcome run();

    // Called by another thread: lets run() return soon, and lets other threads of the block run.
    void interrupt();

    const Access &access() const { return access_; }
    const Fault &fault() const { return fault_; }
    // The thread and the block of the access or of the fault.
    abi::Index thread() const { return thread_; }
    abi::Index block() const { return *interface_.block; }

private:
    enum class Wait { nothing, block, warp, convergence, pause };

    struct Fiber {
        Grid *grid = nullptr;
        Context context;
        Wait wait = Wait::nothing;
        abi::Index thread{};
        unsigned rank = 0;
        unsigned mask = 0;
        unsigned long long value = 0;
        const unsigned long long *values = nullptr; // of the lanes of a finished exchange
        unsigned present = 0;
        const void *site = nullptr;
    };

    // The lanes of a warp that have called an exchange with the same mask.
    struct Meeting {
        unsigned warp, mask, arrived;
    };

    // The values of the last exchanges of a warp. A thread reads its result before a later exchange needs the room.
    struct Exchanges {
        unsigned long long values[8][32];
        unsigned next = 0;
    };

    static void run_threads(void *fiber);
    static abi::Votes wait_for_block(void *grid, int predicate);
    static const unsigned long long *exchange(void *grid, unsigned mask, unsigned long long value, unsigned *present);
    static unsigned converge(void *grid, const void *site);
    static void pause(void *grid);
    static abi::Range resolve(void *grid, std::uintptr_t address, unsigned long long size, bool write);
    static void fail(void *grid, const char *kind, const char *text, const char *file, int line, const char *function);

    bool begin();
    void use_own_memory();
    void give_way();
    void end();
    bool next_block();
    void start_block();
    Fiber *next_fiber();
    void enter(Fiber *fiber);
    void make_current(Fiber *fiber);
    void wait(Wait reason);
    void leave();
    Fiber *spare_fiber();

    unsigned rank_of(abi::Index thread) const;
    unsigned lanes_of(unsigned warp) const; // that the block has
    unsigned returned_lanes(unsigned warp) const;
    void release(Fiber *fiber);
    void finish(Meeting meeting);
    bool finish_meetings();
    bool release_converged();
    bool release_block();
    void report_deadlock();
    std::string reason_of(const Fiber &fiber) const;
    const abi::Range *find(std::uintptr_t address, std::uint64_t size) const;

    LoadedModule &module_;
    const abi::Module &interface_;
    const Launch launch_;
    const unsigned threads_; // of a block
    bool begun_ = false;
    bool ended_ = false;
    abi::Index block_{};

    std::vector<abi::Range> ranges_; // in ascending order
    std::unique_ptr<Stacks> stacks_;
    std::vector<std::unique_ptr<Fiber>> fibers_;
    std::vector<Fiber *> spare_;
    std::vector<Fiber *> ready_;
    std::size_t next_ready_ = 0; // in ready_
    std::deque<Fiber *> paused_;
    std::vector<Fiber *> fiber_of_; // by the rank of a waiting thread; empty until a thread waits
    unsigned waiting_ = 0;          // threads
    unsigned at_barrier_ = 0;       // threads
    abi::Votes votes_{};            // so far
    abi::Votes result_{};           // of the last barrier
    std::vector<Meeting> meetings_;
    std::vector<Exchanges> exchanges_; // by warp
    Context scheduler_;
    Fiber *current_ = nullptr;
    bool progress_ = true; // since a thread that spins last looked at the clock
    std::chrono::steady_clock::time_point last_progress_{};
    unsigned pauses_ = 0;

    std::atomic<bool> interrupt_{false};
    bool interrupted_ = false;
    bool asks_ = false;
    bool failed_ = false;
    Access access_{};
    Fault fault_;
    abi::Index thread_{};
};

} // namespace tcuda
