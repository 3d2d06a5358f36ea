// Threads that call all functions of one allocator of page-locked host memory at once, on a driver that checks its
// calls.
//
//     host [operations per thread] [seed]
//
// The program runs with a driver that knows which memory work uses, as emulated devices do, and with a driver that only
// has events behind all work, as CUDA does. The program checks these rules:
//   * No block overlaps another block: the program fills each block with a pattern, and checks the pattern at the free.
//   * No memory is handed out or given back to the driver while work or a graph uses the memory.
//   * No event is recorded while a thread captures, and the driver is not called under the lock of the allocator.
//   * When the threads pause, the statistics equal the sums over the snapshot and over the blocks of the threads.
//   * Nothing is left at the end.
// The program prints the first violation and ends with the status 1.
#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "emulation/_cpp/memory/emulated_driver.hpp"
#include "emulation/_cpp/memory/emulated_memory.hpp"
#include "memory/host_allocator/host_allocator.hpp"
#include "random.hpp"
#include "violation.hpp"

namespace {

using namespace tcuda;

constexpr std::size_t threads = 8;
constexpr std::size_t phases = 8; // the threads end after each phase, and everything is compared
constexpr int devices = 2;
constexpr std::size_t streams = 4; // of each device
constexpr std::size_t mib = std::size_t(1) << 20;
constexpr std::size_t most_held = 24; // blocks that one thread holds
constexpr std::size_t most_size = 5 * mib;
constexpr std::size_t most_segment = 32 * mib;
constexpr int broken = 999; // cudaErrorUnknown

thread_local Random chance(0);

// The numbered pieces of work on one stream, and how many of them are complete.
struct Work {
    std::atomic<std::uint64_t> submitted{0}, completed{0};

    bool done(std::uint64_t number) const { return completed >= number; }
    void complete(std::uint64_t number) {
        std::uint64_t known = completed;
        while (known < number && !completed.compare_exchange_weak(known, number)) {
        }
    }
};

using DeviceWork = std::array<Work, streams>;

// A graph keeps its memory until its release.
struct Graph {
    std::atomic<bool> released{false};
    std::vector<Address> held;
    std::vector<std::pair<Address, std::size_t>> uses;
};

// The memory that work and graphs use.
class Uses {
public:
    void add(Address address, std::size_t size, const Work *work, std::uint64_t number,
             std::shared_ptr<const Graph> graph = nullptr) {
        const std::lock_guard lock(mutex_);
        uses_.emplace(address, Use{size, work, number, std::move(graph)});
    }
    // Whether something uses the memory. Forgets the uses that are over.
    bool any(Address address, std::size_t size) {
        const std::lock_guard lock(mutex_);
        bool found = false;
        for (auto use = uses_.lower_bound(address - most_segment); use != uses_.end() && use->first < address + size;) {
            if (use->second.is_over()) {
                use = uses_.erase(use);
                continue;
            }
            found = found || use->first + use->second.size > address;
            ++use;
        }
        return found;
    }

private:
    struct Use {
        std::size_t size;
        const Work *work;
        std::uint64_t number;
        std::shared_ptr<const Graph> graph;

        bool is_over() const { return graph != nullptr ? graph->released.load() : work->done(number); }
    };

    std::mutex mutex_;
    std::multimap<Address, Use> uses_; // by the address of the first byte
};

class CheckingDriver : public EmulatedDriver {
public:
    CheckingDriver(EmulatedMemory &first, EmulatedMemory &second, bool knows)
        : EmulatedDriver({&first, &second}), knows_(knows) {}

    HostAllocator *allocator = nullptr;
    std::atomic<bool> unlucky{true}; // the driver sometimes fails without a reason
    std::array<DeviceWork, devices> works;
    Uses uses;
    std::atomic<int> capturing{0}, events{0};
    std::atomic<std::size_t> reserves{0};

    std::size_t taken() {
        const std::lock_guard lock(mutex_);
        std::size_t sum = 0;
        for (const auto &[address, size] : segments_)
            sum += size;
        return sum;
    }

    int host_allocate(std::size_t size, Address *address) override {
        use_the_allocator();
        if (fails(200))
            return out_of_memory;
        const int status = EmulatedDriver::host_allocate(size, address);
        if (status == success)
            note(*address, size);
        return status;
    }
    int host_free(Address address, std::size_t size) override {
        use_the_allocator();
        if (fails(50))
            return broken;
        forget(address, size, "host_free");
        return EmulatedDriver::host_free(address, size);
    }
    // Nothing at times, so that all unused memory goes back.
    std::size_t host_room() override {
        use_the_allocator();
        return chance.one_in(20) ? 0 : EmulatedDriver::host_room();
    }
    bool knows_host_uses() const override { return knows_; }
    int query_host(Address address, std::size_t size) override {
        use_the_allocator();
        if (fails(100))
            return broken;
        return uses.any(address, size) ? not_ready : success;
    }
    int record_device(int device, Event *event) override {
        use_the_allocator();
        if (capturing != 0)
            violation("an event was recorded while a stream captures");
        if (fails(100))
            return broken;
        auto *recorded = reinterpret_cast<Recorded *>(*event);
        if (recorded == nullptr) {
            recorded = new Recorded;
            *event = reinterpret_cast<Event>(recorded);
            ++events;
        }
        for (std::size_t stream = 0; stream < streams; ++stream)
            recorded->numbers[stream] = works_of(device)[stream].submitted.load();
        if (capturing != 0)
            violation("a capture began while an event was recorded");
        return success;
    }
    int query(int device, Event event) override {
        use_the_allocator();
        if (fails(100))
            return broken;
        if (chance.one_in(3)) // the devices go on
            complete(device, event);
        for (std::size_t stream = 0; stream < streams; ++stream)
            if (!works_of(device)[stream].done(at(event).numbers[stream]))
                return not_ready;
        return success;
    }
    int synchronize(int device, Event event) override {
        use_the_allocator();
        complete(device, event);
        return success;
    }
    int synchronize_device(int device) override {
        use_the_allocator();
        for (Work &work : works_of(device))
            work.complete(work.submitted);
        return success;
    }
    int destroy_event(int, Event event) override {
        delete &at(event);
        --events;
        return success;
    }

    // The allocator asks about devices, and never about one stream.
    int record(int, Stream, Event *) override { violation("record() was called"); }
    int query_stream(int, Stream) override { violation("query_stream() was called"); }
    int synchronize_stream(int, Stream) override { violation("synchronize_stream() was called"); }
    int capture_of(int, Stream, CaptureId *) override { violation("capture_of() was called"); }

private:
    struct Recorded {
        std::array<std::atomic<std::uint64_t>, streams> numbers{};
    };

    bool fails(std::size_t chances) { return unlucky && chance.one_in(chances); }
    DeviceWork &works_of(int device) { return works[static_cast<std::size_t>(device)]; }
    static Recorded &at(Event event) { return *reinterpret_cast<Recorded *>(event); }
    void complete(int device, Event event) {
        for (std::size_t stream = 0; stream < streams; ++stream)
            works_of(device)[stream].complete(at(event).numbers[stream]);
    }
    // Under the lock of the allocator, the call would be a deadlock.
    void use_the_allocator() {
        if (chance.one_in(20))
            allocator->statistics();
        if (chance.one_in(100))
            std::this_thread::yield();
    }
    void note(Address address, std::size_t size) {
        const std::lock_guard lock(mutex_);
        if (!segments_.emplace(address, size).second)
            violation("the driver's memory at %#zx was not forgotten", static_cast<std::size_t>(address));
        reserves += size == small_host_reserve;
    }
    void forget(Address address, std::size_t size, const char *call) {
        if (uses.any(address, size))
            violation("%s() of memory at %#zx in use", call, static_cast<std::size_t>(address));
        const std::lock_guard lock(mutex_);
        const auto found = segments_.find(address);
        if (found == segments_.end() || found->second != size)
            violation("%s() of memory that is no segment, at %#zx", call, static_cast<std::size_t>(address));
        segments_.erase(found);
    }

    const bool knows_;
    std::mutex mutex_;
    std::map<Address, std::size_t> segments_;
};

struct Held {
    HostBlock *block;
    std::uint64_t id;

    // The first and the last words of the block.
    template <typename Visit> void each_word(Visit visit) const {
        const std::size_t words = block->size / sizeof(std::uint64_t), edge = std::min<std::size_t>(words, 8);
        auto *const begin = reinterpret_cast<std::uint64_t *>(block->address);
        for (std::size_t at = 0; at < edge; ++at) {
            visit(begin[at], id * 1000003 + at);
            visit(begin[words - 1 - at], id * 1000003 + words - 1 - at);
        }
    }
    void fill() const {
        each_word([](std::uint64_t &word, std::uint64_t value) { word = value; });
    }
    void verify() const {
        each_word([&](const std::uint64_t &word, std::uint64_t value) {
            if (word != value)
                violation("a block of %zu bytes was overwritten", block->size);
        });
    }
};

class Worker {
public:
    Worker(CheckingDriver &driver, CaptureGate &gate, HostAllocator &allocator, std::size_t number)
        : driver_(driver), gate_(gate), allocator_(allocator), number_(number), random_(chance()) {}

    void run(std::size_t operations) {
        chance = random_;
        for (std::size_t i = 0; i < operations; ++i)
            operate();
        random_ = chance;
    }
    void stop() {
        while (!held.empty())
            free_one(0);
        while (!graphs_.empty())
            release();
    }

    std::vector<Held> held;
    std::uint64_t lacks = 0;

private:
    void operate() {
        const std::size_t dice = chance.below(1000);
        if (dice < 120)
            copy();
        else if (dice < 160)
            synchronize();
        else if (dice < 166)
            capture();
        else if (dice < 180)
            replay();
        else if (dice < 187)
            release();
        else if (dice < 189)
            allocator_.empty_cache();
        else if (dice < 192)
            look();
        else if (dice < 193 && number_ == 0)
            change();
        else if (held.size() < most_held && chance.below(100) < 52)
            allocate();
        else if (!held.empty())
            free_one(chance.below(held.size()));
    }

    void allocate() {
        constexpr std::array<std::size_t, 4> often{1000, 100000, mib, 3 * mib};
        const std::size_t size = chance.one_in(3) ? 1 + chance.below(chance.one_in(4) ? most_size : 4096)
                                                  : often[chance.below(often.size())];
        HostBlock *block;
        try {
            block = allocator_.allocate(size);
        } catch (const HostMemoryError &) {
            if (!driver_.unlucky)
                violation("the allocator has no memory");
            ++lacks;
            return;
        }
        // A block of the size for the request exceeds the request by up to an eighth, and a free block exceeds that
        // size by up to an eighth.
        if (block->size < size || block->size > size + std::max<std::size_t>(size * 17 / 64, 63))
            violation("a block for %zu bytes has %zu bytes", size, block->size);
        if (driver_.uses.any(block->address, block->size))
            violation("memory of %zu bytes at %#zx was handed out, and work still uses the memory", block->size,
                      static_cast<std::size_t>(block->address));
        const Held made{block, ++blocks_ * threads + number_};
        made.fill();
        held.push_back(made);
    }

    void free_one(std::size_t which) {
        const Held gone = held[which];
        held.erase(held.begin() + static_cast<std::ptrdiff_t>(which));
        gone.verify();
        if (allocator_.allocation_at(gone.block->address + gone.block->size / 2) !=
            std::make_pair(gone.block->address, gone.block->size))
            violation("allocation_at() finds another block");
        allocator_.free(gone.block);
    }

    // Work without a word to the allocator.
    void copy() {
        if (held.empty())
            return;
        const std::size_t which = chance.below(held.size());
        const HostBlock &block = *held[which].block;
        submit(block.address, block.size);
        if (chance.one_in(2))
            free_one(which);
    }
    Work &pick() { return driver_.works[chance.below(devices)][chance.below(streams)]; }
    void submit(Address address, std::size_t size) {
        Work &work = pick();
        // An event that is recorded meanwhile does not cover the work, so the work is a use only from now on.
        driver_.uses.add(address, size, &work, ++work.submitted);
    }
    void synchronize() {
        Work &work = pick();
        work.complete(work.submitted);
    }

    void capture() {
        if (held.empty() || graphs_.size() > 4)
            return;
        const auto graph = std::make_shared<Graph>();
        gate_.begin_capture();
        ++driver_.capturing;
        std::vector<Address> inside{8}; // no memory of the allocator
        for (std::size_t count = 1 + chance.below(3); count > 0 && !held.empty(); --count) {
            const std::size_t which = chance.below(held.size());
            const HostBlock &block = *held[which].block;
            inside.push_back(block.address + chance.below(block.size));
            graph->uses.emplace_back(block.address, block.size);
            driver_.uses.add(block.address, block.size, nullptr, 0, graph);
            if (chance.one_in(2))
                free_one(which);
            if (chance.one_in(3))
                allocate();
        }
        --driver_.capturing;
        graph->held = allocator_.hold(inside);
        if (graph->held.size() != inside.size() - 1)
            violation("hold() found %zu of %zu addresses", graph->held.size(), inside.size() - 1);
        gate_.end_capture();
        graphs_.push_back(graph);
    }
    void replay() {
        if (graphs_.empty())
            return;
        for (const auto &[address, size] : graphs_[chance.below(graphs_.size())]->uses)
            submit(address, size);
    }
    void release() {
        if (graphs_.empty())
            return;
        const auto gone = graphs_.begin() + static_cast<std::ptrdiff_t>(chance.below(graphs_.size()));
        const auto graph = *gone;
        graphs_.erase(gone);
        graph->released = true;
        allocator_.release(graph->held);
    }

    void look() {
        const HostStatistics seen = allocator_.statistics();
        if (seen.allocated_bytes.current < seen.active_bytes.current)
            violation("the statistics have more active bytes than allocated bytes");
        allocator_.snapshot();
        allocator_.events();
        if (chance.one_in(4)) {
            allocator_.reset_peaks();
            allocator_.reset_accumulated();
        }
        if (chance.one_in(2))
            allocator_.record_history(Stacks::none, 100, 0, chance.one_in(2));
        else
            allocator_.stop_history();
    }
    void change() {
        HostSettings settings;
        settings.background_thread = chance.one_in(2);
        settings.reserved_segment = chance.one_in(2) ? 0 : 8 * mib;
        allocator_.change_settings(settings);
        if (chance.one_in(2)) {
            allocator_.begin_rest();
            allocate();
            allocator_.end_rest();
        }
    }

    CheckingDriver &driver_;
    CaptureGate &gate_;
    HostAllocator &allocator_;
    const std::size_t number_;
    Random random_;
    std::uint64_t blocks_ = 0;
    std::vector<std::shared_ptr<Graph>> graphs_;
};

// Compares everything while no thread runs.
void inspect(CheckingDriver &driver, HostAllocator &allocator, const std::vector<std::unique_ptr<Worker>> &workers) {
    allocator.begin_rest(); // of the thread of the settings
    std::size_t blocks = 0, bytes = 0;
    for (const auto &worker : workers)
        for (const Held &held : worker->held) {
            held.verify();
            ++blocks;
            bytes += held.block->size;
        }
    std::size_t allocated = 0, allocated_bytes = 0, segment_bytes = 0;
    Address end = 0;
    for (const HostSegmentView &segment : allocator.snapshot()) {
        if (segment.address < end)
            violation("the snapshot has segments that overlap");
        end = segment.address;
        segment_bytes += segment.size;
        bool after_free = false;
        for (const HostBlockView &block : segment.blocks) {
            if (block.address != end || block.size == 0)
                violation("the snapshot has a segment with a gap, or with an empty block");
            end += block.size;
            const bool is_free = block.state == HostBlock::State::free;
            if (is_free && after_free)
                violation("two free blocks lie side by side, not joined");
            after_free = is_free;
            if (block.state == HostBlock::State::allocated) {
                ++allocated;
                allocated_bytes += block.size;
            }
        }
        if (end != segment.address + segment.size)
            violation("the blocks of a segment do not end at its end");
    }
    const HostStatistics seen = allocator.statistics();
    const auto same = [](const char *what, std::int64_t found, std::size_t expected) {
        if (found != static_cast<std::int64_t>(expected))
            violation("%s: %lld, not %zu", what, static_cast<long long>(found), expected);
    };
    same("blocks of the snapshot", static_cast<std::int64_t>(allocated), blocks);
    same("bytes of the snapshot", static_cast<std::int64_t>(allocated_bytes), bytes);
    same("active requests", seen.active_requests.current, blocks);
    same("active bytes", seen.active_bytes.current, bytes);
    same("allocated bytes", seen.allocated_bytes.current, segment_bytes);
    same("bytes of the driver", static_cast<std::int64_t>(driver.taken()), segment_bytes);
    allocator.end_rest();
}

struct Counts {
    std::uint64_t lacks = 0;
    std::size_t reserves = 0;
};

Counts run(bool knows, std::size_t operations) {
    EmulatedMemory first(mib), second(mib);
    CheckingDriver driver(first, second, knows);
    Counts counts;
    {
        CaptureGate gate;
        HostAllocator allocator(driver, devices, gate, [](int) { return true; });
        driver.allocator = &allocator;
        std::vector<std::unique_ptr<Worker>> workers;
        for (std::size_t number = 0; number < threads; ++number)
            workers.push_back(std::make_unique<Worker>(driver, gate, allocator, number));
        for (std::size_t phase = 0; phase < phases; ++phase) {
            std::vector<std::thread> running;
            for (const auto &worker : workers)
                running.emplace_back([&] { worker->run(operations / phases); });
            for (std::thread &thread : running)
                thread.join();
            inspect(driver, allocator, workers);
        }
        driver.unlucky = false;
        for (const auto &worker : workers) {
            worker->stop();
            counts.lacks += worker->lacks;
        }
        // One thread that uses one block again and again needs a reserve where the driver has only events.
        allocator.change_settings({});
        allocator.empty_cache();
        for (int i = 0; i < 10000; ++i)
            allocator.free(allocator.allocate(mib));
        inspect(driver, allocator, {});
        allocator.empty_cache();
        inspect(driver, allocator, {});
        if (driver.taken() != 0)
            violation("at the end %zu bytes are still taken", driver.taken());
        counts.reserves = driver.reserves;
        // The end of the allocator gives all memory back, even memory in use.
        allocator.allocate(mib);
        allocator.free(allocator.allocate(3 * mib));
    }
    if (driver.taken() != 0 || driver.events != 0)
        violation("a destroyed allocator left %zu bytes and %d events", driver.taken(), driver.events.load());
    if (knows == (counts.reserves != 0))
        violation("there were %zu reserves", counts.reserves);
    return counts;
}

} // namespace

int main(int count, char **arguments) {
    const std::size_t operations = count > 1 ? std::strtoull(arguments[1], nullptr, 10) : 200000;
    seed = count > 2 ? std::strtoull(arguments[2], nullptr, 10) : 1;
    chance = Random(seed);
    Counts all;
    for (const bool knows : {true, false}) {
        run_name = knows ? "host, uses" : "host, events";
        const Counts counts = run(knows, operations);
        all.lacks += counts.lacks;
        all.reserves += counts.reserves;
    }
    std::printf(
        "host: 2 x %zu operations of %zu threads, %llu times out of memory, %zu reserves, seed %llu: nothing is "
        "wrong\n",
        threads * operations, threads, static_cast<unsigned long long>(all.lacks), all.reserves,
        static_cast<unsigned long long>(seed));
    return 0;
}
