// A launch of a kernel on the processor: block after block, in one thread of the operating system.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "emulation/_cpp/kernels/access_recorder.hpp"
#include "emulation/_cpp/kernels/context.hpp"
#include "emulation/_cpp/kernels/fault_guard.hpp"
#include "emulation/_cpp/kernels/fiber.hpp"
#include "emulation/_cpp/kernels/launch_memory.hpp"
#include "emulation/_cpp/kernels/loaded_module.hpp"
#include "emulation/_cpp/kernels/races/race_finder.hpp"
#include "emulation/_cpp/kernels/thread_stacks.hpp"
#include <tcuda_abi.h>

namespace tcuda {

struct Launch {
    const abi::Kernel *kernel;
    abi::Index grid;
    abi::Index block;
    std::string arguments; // the packed bytes
    unsigned shared_bytes;
    // Whether all threads of a block must reach its barriers. A GPU does not count the threads that have returned.
    bool strict = true;
    // How long threads may spin while no thread of the block returns or leaves a barrier.
    std::chrono::nanoseconds patience = std::chrono::seconds(30);
    // Whether the launch notes the memory that the kernel reads and writes, and what AccessRecorder has to find.
    bool recorded = false;
    bool finds_changes = false;
    std::vector<abi::Range> variables{}; // the global variables of the module, in ascending order
    abi::Range constants{};              // pages with variables that the kernel can only read
    // Whether the launch looks for races between its threads. The module must be compiled for that.
    bool races = false;
    // Whether the launch looks for reads of unwritten memory, and whether no object of the module has padding.
    bool marked = false;
    bool strict_marks = false;
    std::vector<Marks> marks{}; // the memory with unwritten bytes that is known when the launch begins
    bool marks_shared = false;  // whether the dynamic shared memory is marked
    // The order of the blocks, and of the threads of a block that is compiled for the search for races: 0 is the usual
    // order, 1 the reverse of the usual order, and other numbers are seeds. In another order than the usual one, the
    // kernel prints nothing.
    unsigned order = 0;
    // Whether the blocks may wait for each other at a barrier of the whole grid.
    bool cooperative = false;
};

// The reads of unwritten memory at one place of the code: the first read, and the number of reads.
struct UnwrittenReads {
    std::uintptr_t address;
    std::uint64_t size;
    std::uintptr_t code;
    abi::Index thread, block;
    unsigned long long count;
};

// An access outside of the known ranges. The code of an access or a failure is the place in the library right behind
// the call that checks, from the beginning of the library; 0 if the place is not known.
struct Access {
    std::uintptr_t address;
    std::uint64_t size;
    bool write;
    std::uintptr_t code;
};

// A failure of a thread, or of all threads of a block, which wait at several places of the code.
struct Fault {
    std::string kind, text, file, function;
    int line = 0;
    std::vector<std::uintptr_t> codes{};
};

// The threads of a block run on fibers. A fiber runs thread after thread in a plain loop. A thread that waits keeps its
// fiber, and another fiber goes on with the loop. So a kernel that never waits needs one fiber.
//
// The order of the threads is the same in every run, unless a thread spins without a pause. A block begins when the
// block before has ended. DESIGN.md has the exceptions, and says which code may run on a fiber.
class Grid : private FaultGuard::Owner {
public:
    enum class Outcome { done, access, fault, interrupted };

    // The module must outlive the grid. Throws std::invalid_argument if no GPU could run the launch.
    Grid(LoadedModule &module, Launch launch);
    ~Grid();
    Grid(const Grid &) = delete;
    Grid &operator=(const Grid &) = delete;

    // Lets the kernel use this memory of the device. Throws std::logic_error while run() is called.
    void allow(abi::Range range);

    // Adds the marks of memory that allow() has not admitted yet, if the launch looks for reads of unwritten memory.
    // Throws std::logic_error while run() is called.
    void mark(const Marks &marks);

    // Starts the kernel, or goes on: after an access that allow() has admitted, or after an interruption. A launch that
    // has ended returns the same outcome again. Throws std::logic_error if this thread runs another grid of the module,
    // or if another thread is in run().
    Outcome run();

    // Called by another thread during run(): lets run() return soon.
    void interrupt();

    const Access &access() const { return access_; }
    const Fault &fault() const { return fault_; }
    // The thread and the block of the access or of the fault.
    abi::Index thread() const { return thread_; }
    abi::Index block() const { return block_; }

    // The first barrier of a block for which returned threads were not counted, if the launch is not strict.
    struct Unreached {
        unsigned waiting, returned;
    };
    Unreached unreached() const { return unreached_; }

    // The memory of devices that the launch has used, if `recorded`. Called after run() has returned `done`.
    const AccessRecorder *recorder() const { return recorder_.get(); }
    AccessRecorder *recorder() { return recorder_.get(); }
    // The races that the launch has found so far; null unless the launch looks for `races`.
    const RaceFinder *races() const { return races_.get(); }
    // The reads of unwritten memory, in the order of the first read of each place.
    const std::vector<UnwrittenReads> &unwritten_reads() const { return unwritten_reads_; }
    // The memory of which recorder() knows, in ascending order.
    std::vector<abi::Range> recorded() const { return memory_.of_devices(); }

private:
    // The lanes of a warp that have called an exchange with the same mask.
    struct Meeting {
        unsigned warp, mask, arrived;
    };

    // The results of the exchanges of a warp. A lane may read a result until its next exchange, so 32 results may be in
    // use while the next result is made.
    struct Exchanges {
        static constexpr unsigned count = 33;
        unsigned long long values[count][32];
        unsigned users[count]; // the lanes whose last exchange has this result
        unsigned lanes; // the lanes that have made an exchange
        unsigned char result_of[32];
    };

    // A block in the middle of the kernel, while other blocks run. The fibers of the block keep their stacks.
    struct RestingBlock {
        abi::Index block, next;
        unsigned started, waiting, at_barrier, converging, exchanging;
        FiberQueue ready, barrier, paused;
        abi::Votes votes, result;
        std::vector<Fiber *> fiber_of, parked;
        std::vector<Meeting> meetings;
        std::unique_ptr<Exchanges[]> exchanges;
        std::vector<char> shared; // the contents of shared memory
        std::vector<unsigned long long> written; // what the block has written there, if shared memory has marks
        std::optional<RaceFinder::Resting> races;
    };

    // The numbers that change while the threads of a block make progress.
    struct Position {
        abi::Index block;
        unsigned started;
        unsigned long long switches;
        bool operator==(const Position &other) const;
    };

    static void run_threads(void *grid);
    static abi::Votes wait_for_block(void *grid, int predicate);
    static const unsigned long long *exchange(void *grid, unsigned mask, unsigned long long value, unsigned *present);
    static unsigned converge(void *grid, const void *site);
    static void pause(void *grid);
    static void await(void *grid, bool first, const void *site);
    static void park(void *grid);
    static void step(void *grid, bool write);
    static abi::Span resolve(void *grid, std::uintptr_t address, unsigned long long size, bool write, const void *site);
    static void touch(void *grid, std::uintptr_t address, unsigned long long size, abi::Touch touch, const void *site);
    static void fence(void *grid, abi::Scope scope);
    static void fail(void *grid, const char *kind, const char *text, const char *file, int line, const char *function,
                     const void *site);

    char *note(const RefusedInstruction &refused) noexcept override;
    [[noreturn]] void leave() override;

    bool begin();
    void prepare();
    void end();
    Outcome run_blocks();
    bool next_block();
    void change_block();
    unsigned long long most_resident() const;
    bool can_change_block() const;
    bool can_start_block() const;
    void rest();
    void go_on_with_resting();
    void start_next_block();
    void make_fibers();
    void guard_stacks();
    void wait_for_other_block();
    void make_exchanges();
    void find_shared();
    void order_blocks();
    abi::Index block_at(unsigned long long place) const;
    bool give_up();
    void unpark();
    void start_block();
    void check_reads_again();
    Fiber *next_fiber();
    Fiber *next_of_waiting();
    Fiber *spare_fiber();
    void make_current(Fiber *fiber);
    void wait(Fiber::Wait reason, FiberQueue *queue);
    void go_on();
    void yield();
    void interrupt_thread(bool may_yield);
    bool take_interruption();
    void use_own_memory();

    void note_event();
    const ThreadStacks *stacks_with(std::uintptr_t address) const;
    unsigned rank_of(abi::Index thread) const;
    abi::Index place_of(abi::Index thread) const; // in the order in which the threads begin
    unsigned started() const;
    void note_started();
    unsigned lanes_of(unsigned warp) const; // the lanes of a warp that the block has
    unsigned returned_lanes(unsigned warp) const;
    void bind(Fiber *fiber);
    void release(Fiber *fiber);
    void finish(Meeting meeting);
    bool finish_meetings();
    bool release_converged();
    bool release_block();
    void look_at_clock();
    void take_interruption_of_pause();
    void describe_failure();
    std::string advice_for_waits() const;
    void describe_deadlock();
    static std::string reason_of(const Fiber &fiber);
    abi::Span resolved(std::uintptr_t address, unsigned long long size, bool write, const void *site);
    void record(const Access &access, const abi::Range &known);
    void note_unwritten(const Access &access);
    std::uintptr_t code_of(const void *site) const;

    // Hot fields first
    const abi::Module &interface_;
    Fiber *current_ = nullptr;
    unsigned started_ = 0; // the threads of the block up to the last that has waited, or all
    FiberQueue ready_;
    FiberQueue barrier_;
    unsigned waiting_ = 0; // the number of threads that wait
    unsigned at_barrier_ = 0; // the number of threads at the barrier of the block
    unsigned converging_ = 0; // the number of threads in converge()
    bool changes_block_ = false; // whether the block shall rest, because its threads wait for another block
    unsigned idle_pauses_ = 0; // the pauses since a thread of the block has last done something else
    unsigned long long quiet_changes_ = 0; // the changes of the block since a thread has last done something else
    unsigned looks_ = 0; // the looks at barriers of libcu++ since a thread of the block has last done something else
    abi::Votes votes_{}; // the votes at the present barrier so far
    abi::Votes result_{}; // the votes at the last barrier
    unsigned long long switches_ = 0;
    Context scheduler_;

    LoadedModule &module_;
    const Launch launch_;
    const unsigned threads_; // the threads of a block
    bool begun_ = false;
    std::optional<Outcome> ended_;
    abi::Index block_{};
    const unsigned long long blocks_; // of the grid
    unsigned long long block_place_ = 0; // of the present block in the order
    unsigned long long stride_ = 1; // from block to block, in the order of a seed

    LaunchMemory memory_;
    std::unique_ptr<AccessRecorder> recorder_;
    std::unique_ptr<RaceFinder> races_;
    abi::Range covered_{}; // the memory around the access that the recorder does not cover yet
    bool uncovered_ = false; // whether a fiber waits until the recorder covers its access
    bool marks_own_ = false; // whether the recorder has marks of shared memory
    std::vector<UnwrittenReads> unwritten_reads_; // has room for the most places that are kept
    std::vector<std::unique_ptr<ThreadStacks>> stacks_; // each for as many fibers as ThreadStacks::count
    std::vector<std::unique_ptr<Fiber[]>> fibers_; // as many as the threads of a block, for each block that has begun
    std::vector<std::unique_ptr<FaultGuard>> guards_; // one for each of stacks_ during run()
    std::size_t fibers_used_ = 0;
    std::size_t spare_fibers_ = 0; // the number of fibers in spare_
    std::deque<RestingBlock> resting_;
    std::vector<abi::Range> shared_; // the shared memory of a block, from the first rest on
    // The fiber of each thread, by rank, from the first wait of the thread. The entry of a thread that has returned
    // stays until its fiber waits for another thread or is spare.
    std::vector<Fiber *> fiber_of_;
    FiberQueue spare_;
    FiberQueue paused_;
    std::vector<Fiber *> parked_; // the threads that wait for the first thread of another order
    std::vector<Meeting> meetings_; // has room for a meeting of each thread
    std::unique_ptr<Exchanges[]> exchanges_; // for each warp; without values until the first exchange
    unsigned exchanging_ = 0; // the number of warps whose Exchanges are in use

    Unreached unreached_{};
    bool progress_ = true; // whether a thread made progress since the last look at the clock
    unsigned last_started_ = 0;
    std::chrono::steady_clock::time_point last_progress_{};
    unsigned pauses_ = 0;
    unsigned idle_looks_ = 0; // the looks at the clock since the last progress
    std::chrono::steady_clock::time_point begin_{};

    std::atomic<bool> running_{false};
    std::atomic<bool> interrupt_{false};
    Position last_interruption_{};
    Fiber *resumed_ = nullptr; // the fiber that goes on at the next run()
    bool interrupted_ = false;
    bool asks_ = false;
    bool failed_ = false;
    Access access_{};
    // A failure in the words of the kernel. A fiber makes no copy, because a copy may throw.
    struct {
        const char *kind, *text, *file, *function;
        int line;
        std::uintptr_t code;
    } failure_{};
    RefusedInstruction refused_{};
    char text_[192];
    Fault fault_;
    abi::Index thread_{};
};

} // namespace tcuda
