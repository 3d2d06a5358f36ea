// Threads that call all functions of one ledger at once, on a driver that checks its arguments.
//
//     stress [operations per thread] [seed]
//
// The program runs with expandable segments and without them. It checks these rules:
//   * No block overlaps another block: the program fills each block with a pattern, and checks the pattern at the free.
//   * No memory is reused too early: memory that a stream still uses goes to no other stream and not to the driver.
//   * The driver is called by the rules: no handle of a destroyed stream, no wait for a stream that captures, no stream
//     entry or event entry under the lock of the ledger.
//   * When the threads pause, the statistics equal the sums over the snapshot and over the blocks of the threads.
//   * Nothing is left at the end.
// The program prints the first violation and ends with the status 1.
#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <numeric>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "emulation/_cpp/memory/emulated_driver.hpp"
#include "emulation/_cpp/memory/emulated_memory.hpp"
#include "memory/ledger/ledger.hpp"
#include "memory/ledger/library_source.hpp"
#include "sanitizer/_cpp/order/race_detector.hpp"
#include "random.hpp"
#include "violation.hpp"

namespace {

using namespace tcuda;

constexpr std::size_t threads = 8;
constexpr std::size_t phases = 8; // the threads pause after each phase, and everything is compared
constexpr std::size_t mib = std::size_t(1) << 20;
constexpr std::size_t page = EmulatedMemory::page;
constexpr std::size_t device_memory = 2048 * mib;
constexpr std::size_t library_memory = 1024 * mib;
constexpr std::size_t most_held = 48; // blocks that one thread holds
constexpr std::size_t most_of_a_ledger = 10000; // operations of a thread on one ledger
constexpr int gone = 400;             // cudaErrorInvalidResourceHandle
constexpr int broken = 999;           // cudaErrorUnknown

thread_local std::size_t this_thread = threads; // the main thread
thread_local Random chance(0);

std::size_t rounded(std::size_t size) { return (size + unit - 1) / unit * unit; }

// Streams

// The numbered pieces of work on one stream, and how many of them are complete. The object outlives the stream.
struct Work {
    Stream handle = 0;
    std::size_t owner = threads; // the thread that uses and destroys the stream; `threads`: all threads
    bool announced = false;
    bool of_one_thread = false; // like the per-thread default stream: other threads cannot name the stream
    std::atomic<std::uint64_t> submitted{0}, completed{0};
    std::atomic<std::uint64_t> captures{0}; // odd while the stream captures
    std::array<std::uint64_t, threads + 1> told_captures{}; // `captures` at the last capture_of() of each thread

    bool is_announced() const { return announced || handle == 0; }
    bool submits_here() const { return owner == threads || owner == this_thread; }
    std::uint64_t submit() { return submitted.fetch_add(1, std::memory_order_relaxed) + 1; }
    bool done(std::uint64_t number) const { return completed.load(std::memory_order_relaxed) >= number; }
    bool idle() const { return done(submitted.load(std::memory_order_relaxed)); }
    void complete(std::uint64_t number) {
        std::uint64_t known = completed.load(std::memory_order_relaxed);
        while (known < number && !completed.compare_exchange_weak(known, number, std::memory_order_relaxed)) {
        }
    }
    void complete_all() { complete(submitted.load(std::memory_order_relaxed)); }
    bool capturing() const { return captures.load(std::memory_order_relaxed) % 2 == 1; }
    void set_capturing(bool on) {
        std::uint64_t known = captures.load(std::memory_order_relaxed);
        if ((known % 2 == 1) != on)
            captures.compare_exchange_strong(known, known + 1, std::memory_order_relaxed);
    }
    // Whether this thread has seen a capture that is still in progress.
    bool known_to_capture() const {
        return capturing() && told_captures[this_thread] == captures.load(std::memory_order_relaxed);
    }
};

struct Recorded {
    static constexpr std::uint64_t alive = 0x65766E74; // the mark of an event that is not destroyed
    std::uint64_t mark = alive;
    Work *work;
    std::uint64_t number;
    std::atomic<int> queries_left;
};

class Streams {
public:
    static constexpr std::size_t slots = 256;

    Streams() { create(threads, false, false); } // the default stream, 0

    // Returns a new stream, often with the handle of a destroyed stream.
    Work *create(std::size_t owner, bool announced, bool of_one_thread) {
        const std::lock_guard lock(mutex_);
        const auto is_free = [](const auto &slot) { return slot.load(std::memory_order_relaxed) == nullptr; };
        const std::size_t first = works_.empty() || chance.one_in(2) ? 0 : chance.below(slots / 2);
        const auto free = std::find_if(slots_.begin() + static_cast<std::ptrdiff_t>(first), slots_.end(), is_free);
        if (free == slots_.end())
            violation("the test has too many streams");
        Work &work = works_.emplace_back();
        work.handle = static_cast<Stream>(free - slots_.begin()) * 16;
        work.owner = owner;
        work.announced = announced;
        work.of_one_thread = of_one_thread;
        unfinished_.push_back(&work);
        free->store(&work, std::memory_order_release);
        return &work;
    }
    // The submitted work stays unfinished.
    void destroy(Work *work) { slots_.at(work->handle / 16).store(nullptr, std::memory_order_release); }

    Work &at(Stream handle, const char *call) {
        Work *work = slots_.at(handle / 16).load(std::memory_order_acquire);
        if (work == nullptr || handle % 16 != 0)
            violation("%s() of a stream that is destroyed, %#zx", call, static_cast<std::size_t>(handle));
        return *work;
    }
    bool is_there(const Work *work) const {
        return slots_.at(work->handle / 16).load(std::memory_order_acquire) == work;
    }

    template <typename Visit> void each_unfinished(Visit visit) {
        const std::lock_guard lock(mutex_);
        const auto finished = [&](const Work *work) { return !is_there(work) && work->idle(); };
        unfinished_.erase(std::remove_if(unfinished_.begin(), unfinished_.end(), finished), unfinished_.end());
        for (Work *work : unfinished_)
            visit(*work);
    }

private:
    std::mutex mutex_;
    std::deque<Work> works_;
    std::vector<Work *> unfinished_;
    std::array<std::atomic<Work *>, slots> slots_{};
};

// The physical pages behind the addresses of the device. A page may have several addresses.
class Pages {
public:
    void map(Address address, std::size_t size, Physical physical) {
        const std::lock_guard lock(mutex_);
        for (std::size_t at = 0; at < size; at += page)
            pages_[address + at] = first + physical * most_of_a_piece + at;
        second_addresses_ += mappings_[physical]++ != 0;
        physical_[address] = physical;
    }
    void unmap(Address address, std::size_t size) {
        const std::lock_guard lock(mutex_);
        for (std::size_t at = 0; at < size; at += page) {
            pages_.erase(address + at);
            owners_.erase(address + at);
        }
        const auto known = physical_.find(address);
        if (--mappings_[known->second] == 0)
            mappings_.erase(known->second);
        physical_.erase(known);
    }
    // A number for the place in physical memory, which is no address; 0 if the address is not mapped.
    std::uint64_t place_of(Address address) {
        const std::lock_guard lock(mutex_);
        const auto known = pages_.find(address / page * page);
        return known == pages_.end() ? 0 : known->second + address % page;
    }
    // Notes the stream for which memory of a page is handed out.
    void handed_out(Address address, const Work *stream) {
        const std::lock_guard lock(mutex_);
        const auto known = pages_.find(address / page * page);
        if (known == pages_.end())
            return;
        const Work *&owner = owners_[known->first];
        adopted_ += owner != nullptr && owner != stream;
        owner = stream;
    }
    std::size_t second_addresses() const { return second_addresses_; }
    std::size_t adopted() const { return adopted_; }

private:
    static constexpr std::uint64_t first = std::uint64_t(1) << 60, most_of_a_piece = std::uint64_t(1) << 28;

    std::mutex mutex_;
    std::map<Address, std::uint64_t> pages_;
    std::map<Address, Physical> physical_;      // by the address of the mapping
    std::map<Physical, std::size_t> mappings_; // how many each piece has
    std::map<Address, const Work *> owners_;   // the streams for which memory of the pages was handed out last
    std::size_t second_addresses_ = 0, adopted_ = 0;
};

// Memory that was freed while streams still used it, by addresses and by physical pages

class Unfinished {
public:
    Pages pages;

    void add(Address address, std::size_t size, Work *work, std::uint64_t number) {
        if (work->done(number))
            return;
        for (const Address at : {address, address + size - 1}) {
            add_at(at / unit, work, number);
            if (const std::uint64_t place = pages.place_of(at))
                add_at(place / unit, work, number);
        }
    }

    // The memory is handed out for use on `stream`. Only unfinished work of `stream` itself may still use the memory.
    void handed_out(Address address, std::size_t size, const Work *stream) {
        for (Address at = address; at < address + size; at = (at / page + 1) * page)
            if (const std::uint64_t place = pages.place_of(at))
                look_at(place, std::min(address + size, (at / page + 1) * page) - at, stream);
        look_at(address, size, stream);
        pages.handed_out(address, stream);
    }

    // The memory is given back to its source. Some calls wait themselves for work on the memory (`call_waits`).
    void given_back(Address address, std::size_t size, bool call_waits, const char *call) {
        each(address, size, [&](std::uint64_t at, std::vector<Piece> &pieces) {
            for (const Piece &piece : pieces)
                if (!call_waits && !piece.work->done(piece.number))
                    violation("%s() of memory at %#zx that stream %#zx still works on", call,
                              static_cast<std::size_t>(at * unit), static_cast<std::size_t>(piece.work->handle));
            return true;
        });
    }

private:
    struct Piece {
        Work *work;
        std::uint64_t number;
    };
    struct Shard {
        std::mutex mutex;
        std::map<std::uint64_t, std::vector<Piece>> pieces; // by address / unit
    };
    static constexpr std::uint64_t region = 4096; // units

    void look_at(std::uint64_t address, std::size_t size, const Work *stream) {
        each(address, size, [&](std::uint64_t at, std::vector<Piece> &pieces) {
            for (const Piece &piece : pieces)
                if (piece.work != stream && !piece.work->done(piece.number))
                    violation("stream %#zx got memory at %#zx that stream %#zx still works on",
                              static_cast<std::size_t>(stream->handle), static_cast<std::size_t>(at * unit),
                              static_cast<std::size_t>(piece.work->handle));
            const auto done = [](const Piece &piece) { return piece.work->done(piece.number); };
            pieces.erase(std::remove_if(pieces.begin(), pieces.end(), done), pieces.end());
            return pieces.empty();
        });
    }

    Shard &shard_of(std::uint64_t at) { return shards_[at / region % shards_.size()]; }

    void add_at(std::uint64_t at, Work *work, std::uint64_t number) {
        Shard &shard = shard_of(at);
        const std::lock_guard lock(shard.mutex);
        std::vector<Piece> &pieces = shard.pieces[at];
        const auto same = [&](const Piece &piece) { return piece.work == work; };
        const auto found = std::find_if(pieces.begin(), pieces.end(), same);
        if (found == pieces.end())
            pieces.push_back({work, number});
        else
            found->number = std::max(found->number, number);
    }

    // `visit` returns whether to forget the pieces.
    template <typename Visit> void each(Address address, std::size_t size, Visit visit) {
        const std::uint64_t first = address / unit, end = (address + size - 1) / unit + 1;
        for (std::uint64_t at = first; at < end; at = (at / region + 1) * region) {
            Shard &shard = shard_of(at);
            const std::lock_guard lock(shard.mutex);
            const std::uint64_t until = std::min(end, (at / region + 1) * region);
            for (auto place = shard.pieces.lower_bound(at); place != shard.pieces.end() && place->first < until;)
                place = visit(place->first, place->second) ? shard.pieces.erase(place) : std::next(place);
        }
    }

    std::array<Shard, 64> shards_;
};

// The driver

class CountingDriver : public EmulatedDriver {
public:
    CountingDriver(EmulatedMemory &memory, Streams &streams, Unfinished &unfinished)
        : EmulatedDriver({&memory}), memory_(memory), streams_(streams), unfinished_(unfinished) {}

    // The stream that the caller of the ledger names in this thread.
    static thread_local const Work *current;
    Ledger *ledger = nullptr;
    std::atomic<bool> unlucky{true}; // the driver sometimes refuses memory without a reason
    std::atomic<bool> fragile{false}; // the driver sometimes fails to take memory back

    int events() const { return events_; }

    int allocate(int device, std::size_t size, Address *address) override {
        if (size == 0)
            violation("the driver was asked for 0 bytes");
        return refuses() ? out_of_memory : EmulatedDriver::allocate(device, size, address);
    }
    int free(int device, Address address) override {
        if (breaks())
            return broken;
        // Like cudaFree(), free() waits. The caching allocator, with segments of whole pages, must not rely on that.
        if (const auto block = memory_.block_at(address))
            unfinished_.given_back(address, block->size, block->size % page != 0, "free");
        return good(EmulatedDriver::free(device, address), "free");
    }
    int reserve(int device, std::size_t size, Address *address) override {
        return refuses() ? out_of_memory : EmulatedDriver::reserve(device, size, address);
    }
    int release(int device, Address address, std::size_t size) override {
        return breaks() ? broken : good(EmulatedDriver::release(device, address, size), "release");
    }
    int create(int device, std::size_t size, Physical *physical) override {
        return refuses() ? out_of_memory : EmulatedDriver::create(device, size, physical);
    }
    int destroy(int device, Physical physical) override {
        return breaks() ? broken : good(EmulatedDriver::destroy(device, physical), "destroy");
    }
    int map(int device, Address address, std::size_t size, Physical physical) override {
        if (refuses())
            return out_of_memory;
        unfinished_.pages.map(address, size, physical);
        return good(EmulatedDriver::map(device, address, size, physical), "map");
    }
    int unmap(int device, Address address, std::size_t size) override {
        if (breaks())
            return broken;
        unfinished_.given_back(address, size, false, "unmap");
        unfinished_.pages.unmap(address, size);
        return good(EmulatedDriver::unmap(device, address, size), "unmap");
    }

    int record(int, Stream stream, Event *event) override {
        use_the_ledger();
        Work &work = streams_.at(stream, "record");
        if (work.of_one_thread && work.owner != this_thread)
            return gone;
        must_not_capture(work, "record");
        *event = reinterpret_cast<Event>(new Recorded{Recorded::alive, &work,
                                                      work.submitted.load(std::memory_order_relaxed),
                                                      {static_cast<int>(chance.below(6))}});
        ++events_;
        return success;
    }
    int query(int, Event event) override {
        use_the_ledger();
        Recorded &recorded = at(event, "query");
        if (recorded.work->done(recorded.number))
            return success;
        if (recorded.queries_left.fetch_sub(1, std::memory_order_relaxed) > 0)
            return not_ready;
        recorded.work->complete(recorded.number);
        return success;
    }
    int synchronize(int, Event event) override {
        use_the_ledger();
        const Recorded &recorded = at(event, "synchronize");
        recorded.work->complete(recorded.number);
        return success;
    }
    int destroy_event(int, Event event) override {
        Recorded &recorded = at(event, "destroy_event");
        if (breaks())
            return broken;
        recorded.mark = 0;
        delete &recorded;
        --events_;
        return success;
    }
    int query_stream(int, Stream stream) override {
        use_the_ledger();
        Work &work = by_handle(stream, "query_stream");
        if (work.of_one_thread && work.owner != this_thread)
            return gone;
        if (!work.idle() && !chance.one_in(4))
            return not_ready;
        work.complete_all();
        return success;
    }
    int synchronize_stream(int, Stream stream) override {
        use_the_ledger();
        Work &work = by_handle(stream, "synchronize_stream");
        if (work.of_one_thread && work.owner != this_thread)
            return gone;
        work.complete_all();
        return success;
    }
    int synchronize_device(int) override {
        use_the_ledger();
        streams_.each_unfinished([&](Work &work) {
            if (streams_.is_there(&work) && work.is_announced())
                must_not_capture(work, "synchronize_device");
            work.complete_all();
        });
        return success;
    }
    int capture_of(int, Stream stream, CaptureId *capture) override {
        use_the_ledger();
        Work &work = streams_.at(stream, "capture_of");
        if (work.of_one_thread && work.owner != this_thread)
            return gone;
        work.told_captures[this_thread] = work.captures.load(std::memory_order_relaxed);
        *capture = work.told_captures[this_thread] % 2 == 1 ? some_capture : 0;
        return success;
    }

private:
    bool refuses() { return unlucky.load(std::memory_order_relaxed) && chance.one_in(500); }

    bool breaks() { return fragile.load(std::memory_order_relaxed) && chance.one_in(50); }

    static int good(int status, const char *call) {
        if (status != success)
            violation("%s() was called with wrong arguments", call);
        return status;
    }

    // The calls take a while and sometimes call the ledger: under the lock of the ledger that would be a deadlock.
    void use_the_ledger() {
        if (chance.one_in(300))
            std::this_thread::sleep_for(std::chrono::microseconds(200)); // lets other threads run
        if (chance.one_in(200))
            ledger->of(0).bytes();
    }

    static Recorded &at(Event event, const char *call) {
        auto *recorded = reinterpret_cast<Recorded *>(event);
        if (recorded == nullptr || recorded->mark != Recorded::alive)
            violation("%s() of an event that is destroyed", call);
        return *recorded;
    }

    Work &by_handle(Stream stream, const char *call) {
        Work &work = streams_.at(stream, call);
        if (!work.is_announced() && &work != current)
            violation("%s() of a stream that was not announced, nor named by the caller, %#zx", call,
                      static_cast<std::size_t>(stream));
        must_not_capture(work, call);
        return work;
    }

    static void must_not_capture(const Work &work, const char *call) {
        if (work.known_to_capture())
            violation("%s() while stream %#zx captures", call, static_cast<std::size_t>(work.handle));
    }

    EmulatedMemory &memory_;
    Streams &streams_;
    Unfinished &unfinished_;
    std::atomic<int> events_{0};
};

thread_local const Work *CountingDriver::current = nullptr;

// A library of a user

struct Library {
    std::mutex mutex;
    std::map<Address, std::size_t> blocks;
    std::size_t used = 0;
    Ledger *ledger = nullptr;
    Unfinished *unfinished = nullptr;
} library;

void *library_allocate(std::ptrdiff_t size, int, void *) {
    if (chance.one_in(50))
        library.ledger->of(0).bytes(); // a library may call the ledger
    const std::lock_guard lock(library.mutex);
    const auto bytes = static_cast<std::size_t>(size);
    if (size <= 0)
        violation("the library was asked for %td bytes", size);
    if (bytes > library_memory - library.used)
        return nullptr;
    void *memory = std::aligned_alloc(unit, rounded(bytes));
    library.blocks.emplace(reinterpret_cast<Address>(memory), bytes);
    library.used += bytes;
    return memory;
}

void library_free(void *memory, std::ptrdiff_t size, int, void *) {
    if (chance.one_in(50))
        library.ledger->of(0).bytes();
    const auto address = reinterpret_cast<Address>(memory);
    const auto bytes = static_cast<std::size_t>(size);
    // A segment of a pool must be unused. A block of its own is freed at once: the library has to wait for streams.
    library.unfinished->given_back(address, bytes, bytes % page != 0, "library_free");
    const std::lock_guard lock(library.mutex);
    const auto found = library.blocks.find(address);
    if (found == library.blocks.end() || found->second != bytes)
        violation("the library was asked to free memory that it has not allocated, %zu bytes at %#zx", bytes,
                  static_cast<std::size_t>(address));
    library.used -= bytes;
    library.blocks.erase(found);
    std::free(memory);
}

// Blocks

struct Held {
    Address address = 0;
    std::size_t size = 0;
    std::uint64_t id = 0;
    Work *work = nullptr;
    std::vector<Work *> uses; // other streams that the block is recorded for

    // Visits the words of a small block, and the first and the last 64 bytes of a larger block.
    template <typename Visit> void each_word(Visit visit) const {
        constexpr std::size_t edge = 64, small = 512;
        for (std::size_t at = 0; at < size; at += 8) {
            if (size > small && at == edge)
                at = size - edge;
            const std::uint64_t word = (id << 10 | at % 1024 / 8) * 0x9E3779B97F4A7C15ull;
            visit(reinterpret_cast<char *>(address + at), word, std::min<std::size_t>(8, size - at));
        }
    }
    void fill() const {
        each_word([](char *place, std::uint64_t word, std::size_t length) { std::memcpy(place, &word, length); });
    }
    void verify() const {
        each_word([&](char *place, std::uint64_t word, std::size_t length) {
            if (std::memcmp(place, &word, length) != 0)
                violation("block %llu of %zu bytes at %#zx was overwritten at byte %zu",
                          static_cast<unsigned long long>(id), size, static_cast<std::size_t>(address),
                          static_cast<std::size_t>(reinterpret_cast<Address>(place) - address));
        });
    }
};

struct Inbox {
    std::mutex mutex;
    std::vector<Held> blocks;
};

// A barrier of all threads; the last thread to arrive runs an action.
class Meeting {
public:
    template <typename Action> void wait(Action action) {
        std::unique_lock lock(mutex_);
        const std::size_t meeting = meetings_;
        if (++waiting_ == threads) {
            action();
            waiting_ = 0;
            ++meetings_;
            all_there_.notify_all();
        } else {
            all_there_.wait(lock, [&] { return meetings_ != meeting; });
        }
    }

private:
    std::mutex mutex_;
    std::condition_variable all_there_;
    std::size_t waiting_ = 0, meetings_ = 0;
};

std::atomic<StackId> stacks_noted{0};

StackId note_stack() { return stacks_noted.fetch_add(1, std::memory_order_relaxed) % 1000 + 1; }

// The sums over a snapshot.
struct Sums {
    std::int64_t allocations = 0, allocated = 0, active = 0, active_bytes = 0, requested = 0, reserved = 0,
                 segments = 0, split = 0, split_bytes = 0;
};

class Stress;

class Worker {
public:
    Worker(Stress &all, std::size_t number);
    void operator()(std::size_t operations);

    std::vector<Held> held;
    std::vector<Work *> streams;
    std::uint64_t lacks = 0; // how often memory ran out

    void allocate(std::size_t size, Work *work);
    void use_memory_that_lies_apart();
    void free_one(std::size_t which);
    void stop();

private:
    friend class Stress;

    void operate();
    std::size_t pick_size();
    Work *pick_stream();
    Work *pick_own() { return streams[chance.below(streams.size())]; }
    void lack_memory();
    void hand_over();
    void look_into_inbox();
    void record_use();
    void renew_stream();
    void change_pool();
    void leave_pool();
    void change_graph();
    void end_capture();
    void release_graph();
    void track();
    void check_tracker();
    void look();
    void change_history();
    void change_observer();
    void take_segment();
    void free_segment();
    void ask_for_nonsense();

    Stress &all_;
    DeviceLedger &ledger_;
    const std::size_t number_;
    const std::uint64_t first_random_ = chance();
    std::uint64_t blocks_ = 0;
    Held segment_;
    std::size_t own_pools_ = 0, renewed_ = 0;
    PoolId pool_{0, 0};
    bool pool_is_own_ = false, pool_begun_ = false;
    PoolId graph_pool_{0, 0};
    CaptureId capture_ = 0, captures_ = 0; // the capture is of this thread and of no stream
    std::vector<Address> graph_holds_;
    std::vector<Held> kept_; // blocks that this thread has freed and that the capture or the graph keeps
    std::unique_ptr<Tracker> tracker_;
    bool tracks_thread_ = false;
    Tracker expected_{false};
};

class Stress {
public:
    Stress(const Settings &settings, bool fragile, std::size_t operations);
    std::uint64_t run();
    Sums look_at(const PoolId *only);

    const Settings settings;
    const std::size_t operations;
    EmulatedMemory memory{device_memory};
    Streams streams;
    Unfinished unfinished;
    CountingDriver driver{memory, streams, unfinished};
    races::RaceDetector detector;
    Ledger ledger{driver, 1, settings};
    std::shared_ptr<ExternalSource> library_source = std::make_shared<LibrarySource>(library_allocate, library_free);
    std::vector<Work *> shared_streams;
    std::vector<PoolId> shared_pools;
    std::array<Inbox, threads> inboxes;
    Meeting meeting;
    std::vector<std::unique_ptr<Worker>> workers;

    std::uint64_t sleeps = 0; // how often a pool that was asleep was woken, also in vain

    void inspect();
    void sleep_and_wake();
    void end();
    PoolId new_pool(bool with_library, bool split, bool use_on_oom) {
        const PoolId id{0, ledger.next_pool()};
        ledger.of(0).create_pool(id, with_library ? library_source : nullptr, split, use_on_oom);
        return id;
    }
    void must_be_broken(const DriverError &error) const {
        if (!driver.fragile || error.status != broken)
            violation("the driver failed with %d at %s", error.status, error.call);
    }
    template <typename Action> void may_break(Action action) const {
        try {
            action();
        } catch (const DriverError &error) {
            must_be_broken(error);
        }
    }
    std::vector<PoolId> new_shared_pools() {
        return {new_pool(false, true, false), new_pool(true, true, false), new_pool(false, false, true)};
    }
    Work *new_stream(std::size_t owner, bool announced, bool of_one_thread = false) {
        Work *work = streams.create(owner, announced, of_one_thread);
        if (announced)
            ledger.of(0).stream_created(work->handle);
        return work;
    }
    void destroy_stream(Work *work) {
        work->set_capturing(false);
        ledger.of(0).stream_about_to_be_destroyed(work->handle);
        streams.destroy(work);
    }
};

// A thread

Worker::Worker(Stress &all, std::size_t number) : all_(all), ledger_(all.ledger.of(0)), number_(number) {
    streams.push_back(all.new_stream(number, true));
    streams.push_back(all.new_stream(number, true));
    streams.push_back(all.new_stream(number, false));
    streams.push_back(all.new_stream(number, false, true));
}

void Worker::operator()(std::size_t operations) {
    this_thread = number_;
    chance = Random(first_random_);
    for (std::size_t phase = 0; phase < phases; ++phase) {
        for (std::size_t i = 0; i < operations / phases; ++i)
            operate();
        if (phase % 2 == 0 && capture_ != 0) // a capture forbids the sleep of pools
            end_capture();
        all_.meeting.wait([&] { all_.inspect(); });
    }
    stop();
}

void Worker::operate() {
    const std::size_t dice = chance.below(10000);
    std::size_t bound = 0;
    const auto is = [&](std::size_t share) { return dice < (bound += share); };
    if (is(500)) {
        hand_over();
    } else if (is(300)) {
        look_into_inbox();
    } else if (is(500)) {
        record_use();
    } else if (is(300)) {
        pick_stream()->submit();
    } else if (is(100)) {
        pick_stream()->complete_all();
    } else if (is(80)) {
        Work *work = chance.one_in(2) ? pick_own() : pick_stream();
        work->set_capturing(!work->capturing() && chance.one_in(40));
    } else if (is(40)) {
        change_pool();
    } else if (is(80)) {
        leave_pool();
    } else if (is(60)) {
        change_graph();
    } else if (is(60)) {
        track();
    } else if (is(100)) {
        look();
    } else if (is(30)) {
        change_history();
    } else if (is(30)) {
        change_observer();
    } else if (is(30)) {
        ask_for_nonsense();
    } else if (is(15)) {
        segment_.address == 0 ? take_segment() : free_segment();
    } else if (is(10)) {
        all_.ledger.enable_caching(!chance.one_in(4));
    } else if (is(10)) {
        use_memory_that_lies_apart();
    } else if (is(8)) {
        lack_memory();
    } else if (is(4)) {
        ledger_.set_memory_fraction(chance.one_in(10) ? 0.3 : chance.one_in(5) ? 0.6 : 1);
    } else if (is(4)) {
        Settings changed = all_.settings;
        changed.garbage_collection_threshold = chance.one_in(2) ? 0 : 0.5;
        changed.roundup_power2_divisions.fill(chance.one_in(2) ? 0 : 4);
        ledger_.change_settings(changed);
    } else if (is(4)) {
        all_.may_break([&] { ledger_.empty_cache(); });
    } else if (is(10)) {
        renew_stream();
    } else if (held.size() < most_held && chance.below(100) < 54) {
        allocate(pick_size(), pick_stream());
    } else if (!held.empty()) {
        free_one(chance.below(held.size()));
    }
}

// Returns a size that is not a whole number of pages, as the sizes of segments are.
std::size_t Worker::pick_size() {
    const std::size_t dice = chance.below(1000);
    const std::size_t large = dice < 975 ? 4 * mib : dice < 998 ? 40 * mib : 200 * mib;
    const std::size_t most = dice < 700 ? 4096 : dice < 940 ? mib / 4 : large;
    std::size_t size = 1 + chance.below(most);
    if (chance.one_in(3))
        size = rounded(size);
    return rounded(size) % page == 0 ? size + unit : size;
}

Work *Worker::pick_stream() {
    return chance.one_in(3) ? all_.shared_streams[chance.below(all_.shared_streams.size())] : pick_own();
}

void Worker::allocate(std::size_t size, Work *work) {
    Held block;
    block.size = size;
    block.id = ++blocks_ * threads + number_;
    block.work = work;
    CountingDriver::current = block.work;
    try {
        const bool from_library = chance.one_in(40);
        block.address = from_library ? ledger_.allocate(block.size, block.work->handle, all_.library_source)
                                     : all_.ledger.allocate(0, block.size, block.work->handle);
    } catch (const OutOfMemory &lack) {
        CountingDriver::current = nullptr;
        if (lack.requested != block.size || lack.stream != block.work->handle)
            violation("the out-of-memory error is about another request");
        ++lacks;
        for (std::size_t left = held.size() / 2; held.size() > left;)
            free_one(held.size() - 1);
        return;
    } catch (const DriverError &error) {
        CountingDriver::current = nullptr;
        all_.must_be_broken(error);
        return;
    }
    CountingDriver::current = nullptr;
    all_.unfinished.handed_out(block.address, block.size, block.work);
    block.fill();
    const std::size_t taken = ledger_.size_of(block.address);
    if (taken < block.size)
        violation("%zu bytes at %#zx were requested, and the block has %zu", block.size,
                  static_cast<std::size_t>(block.address), taken);
    expected_.allocated += static_cast<std::int64_t>(taken);
    ++expected_.allocations;
    held.push_back(std::move(block));
}

// Frees four of five blocks of one stream, and allocates more than any two of them have.
void Worker::use_memory_that_lies_apart() {
    Work *work = pick_own();
    const std::size_t before = held.size();
    for (std::size_t made = 0; made < 5; ++made) {
        allocate(24 * mib - unit, work);
        if (held.size() != before + made + 1)
            return; // there was no memory
    }
    for (const std::size_t place : {4, 3, 1, 0}) {
        std::swap(held[before + place], held.back()); // free_one() swaps in the same way
        free_one(held.size() - 1);
    }
    allocate(60 * mib - unit, work);
}

void Worker::free_one(std::size_t which) {
    std::swap(held[which], held.back());
    const Held block = std::move(held.back());
    held.pop_back();
    block.verify();
    // For one block in three, the streams still work on the block when it is freed.
    const bool at_work = chance.one_in(3);
    const auto leave = [&](Work *work) {
        const bool submits = at_work && work->submits_here() && all_.streams.is_there(work);
        all_.unfinished.add(block.address, block.size, work,
                            submits ? work->submit() : work->submitted.load(std::memory_order_relaxed));
    };
    leave(block.work);
    for (Work *work : block.uses)
        leave(work);
    const std::size_t taken = ledger_.size_of(block.address);
    expected_.freed += static_cast<std::int64_t>(taken);
    if (!all_.ledger.free(block.address))
        violation("the ledger does not know of block %llu at %#zx", static_cast<unsigned long long>(block.id),
                  static_cast<std::size_t>(block.address));
    if (capture_ != 0 || std::count(graph_holds_.begin(), graph_holds_.end(), block.address) != 0)
        kept_.push_back(block);
}

// Asks for more memory than the device has, or for sizes near the largest number.
void Worker::lack_memory() {
    constexpr std::size_t most = ~std::size_t(0);
    const std::array<std::size_t, 5> sizes{device_memory + 1, 4 * device_memory, most / 2, most - 600, most};
    Work *work = pick_stream();
    CountingDriver::current = work;
    try {
        all_.ledger.allocate(0, sizes[chance.below(sizes.size())], work->handle);
        violation("the ledger allocated more memory than the device has");
    } catch (const OutOfMemory &) {
        ++lacks;
    } catch (const DriverError &error) {
        all_.must_be_broken(error);
    }
    CountingDriver::current = nullptr;
}

void Worker::hand_over() {
    if (held.empty())
        return;
    const std::size_t which = chance.below(held.size());
    std::swap(held[which], held.back());
    Inbox &inbox = all_.inboxes[chance.below(threads)];
    const std::lock_guard lock(inbox.mutex);
    inbox.blocks.push_back(std::move(held.back()));
    held.pop_back();
}

void Worker::look_into_inbox() {
    std::vector<Held> found;
    {
        const std::lock_guard lock(all_.inboxes[number_].mutex);
        found.swap(all_.inboxes[number_].blocks);
    }
    for (Held &block : found) {
        held.push_back(std::move(block));
        if (chance.one_in(2))
            free_one(held.size() - 1);
    }
}

void Worker::record_use() {
    if (held.empty())
        return;
    Held &block = held[chance.below(held.size())];
    Work *work = pick_stream();
    if (!ledger_.record_stream(block.address, work->handle))
        violation("record_stream() does not know of a live block");
    if (work != block.work)
        block.uses.push_back(work);
}

// Destroys a stream while other threads may hold and free blocks of the stream.
void Worker::renew_stream() {
    if (++renewed_ > 25)
        return;
    Work *&work = streams[chance.below(2)];
    for (std::size_t i = 0; i < 8 && !held.empty(); ++i) {
        Held &block = held[chance.below(held.size())];
        if (chance.one_in(2) && ledger_.record_stream(block.address, work->handle) && work != block.work)
            block.uses.push_back(work);
        hand_over();
    }
    for (std::size_t pause = chance.below(8); pause > 0; --pause)
        std::this_thread::yield();
    Work *old = work;
    if (chance.one_in(2)) { // otherwise the new stream may get the handle of the old stream
        work = all_.new_stream(number_, true);
        all_.destroy_stream(old);
    } else {
        all_.destroy_stream(old);
        work = all_.new_stream(number_, true);
    }
    for (Held &block : held) // for the ledger the new stream is another stream, even with the same handle
        if (block.work == old && ledger_.record_stream(block.address, work->handle))
            block.uses.push_back(work);
}

void Worker::change_pool() {
    if (pool_begun_)
        leave_pool();
    if (!pool_is_own_) {
        if (chance.one_in(10) && own_pools_ < 3) {
            ++own_pools_;
            pool_is_own_ = true;
            pool_ = all_.new_pool(chance.one_in(3), !chance.one_in(3), chance.one_in(3));
        } else {
            pool_ = all_.shared_pools[chance.below(all_.shared_pools.size())];
        }
    }
    ledger_.begin_pool(pool_);
    pool_begun_ = true;
    if (pool_is_own_ && ledger_.pool_uses(pool_) != 2)
        violation("a pool is used %d times, not twice", ledger_.pool_uses(pool_));
}

void Worker::leave_pool() {
    if (pool_begun_)
        ledger_.end_pool(pool_);
    pool_begun_ = false;
    if (pool_is_own_ && (this_thread == threads || chance.one_in(3))) {
        all_.may_break([&] { ledger_.release_pool(pool_); });
        pool_is_own_ = false;
    }
}

// Begins a capture, ends it with a graph, or releases the graph, in turns.
void Worker::change_graph() {
    if (capture_ != 0) {
        end_capture();
    } else if (graph_pool_ != PoolId{0, 0}) {
        release_graph();
    } else {
        graph_pool_ = {0, all_.ledger.next_pool()};
        capture_ = ++captures_ * (threads + 1) + number_ + 1;
        ledger_.begin_capture(graph_pool_, capture_);
    }
}

void Worker::end_capture() {
    std::vector<Address> addresses{1, device_memory};
    for (const auto *blocks : {&held, &kept_})
        for (const Held &block : *blocks)
            if (chance.one_in(4))
                addresses.push_back(block.address + (chance.one_in(2) ? 0 : chance.below(block.size)));
    graph_holds_ = ledger_.hold(addresses, capture_);
    std::vector<Held> left;
    for (const Held &block : kept_) {
        block.verify();
        if (std::count(graph_holds_.begin(), graph_holds_.end(), block.address) != 0)
            left.push_back(block);
    }
    kept_ = std::move(left);
    ledger_.end_capture(capture_);
    capture_ = 0;
}

void Worker::release_graph() {
    for (const Held &block : kept_)
        block.verify();
    kept_.clear();
    const std::vector<Address> holds = std::move(graph_holds_);
    graph_holds_.clear();
    const PoolId pool = std::exchange(graph_pool_, PoolId{0, 0});
    all_.may_break([&] { ledger_.release_graph(pool, holds, chance.one_in(2)); });
}

void Worker::track() {
    if (tracker_ != nullptr) {
        check_tracker();
        return;
    }
    tracks_thread_ = chance.one_in(2);
    tracker_ = std::make_unique<Tracker>(tracks_thread_);
    expected_ = Tracker(false);
    ledger_.attach(tracker_.get());
}

void Worker::check_tracker() {
    const Tracker seen = ledger_.read(*tracker_);
    ledger_.detach(tracker_.get());
    tracker_ = nullptr;
    if (seen.current != seen.allocated - seen.freed || seen.peak < seen.current || seen.peak > seen.allocated)
        violation("the figures of a tracker contradict each other");
    // A tracker of all threads counts at least the calls of this thread.
    const auto differs = [&](std::int64_t number, std::int64_t least) {
        return tracks_thread_ ? number != least : number < least;
    };
    if (differs(seen.allocations, expected_.allocations) || differs(seen.allocated, expected_.allocated) ||
        differs(seen.freed, expected_.freed))
        violation("a tracker has %lld allocations, %lld bytes, %lld bytes freed; expected are %lld, %lld, %lld",
                  static_cast<long long>(seen.allocations), static_cast<long long>(seen.allocated),
                  static_cast<long long>(seen.freed), static_cast<long long>(expected_.allocations),
                  static_cast<long long>(expected_.allocated), static_cast<long long>(expected_.freed));
}

void Worker::look() {
    const std::size_t dice = chance.below(100);
    if (dice < 60) {
        const auto [allocated, reserved] = ledger_.bytes();
        if (allocated.current < 0 || reserved.current < allocated.current || allocated.peak < allocated.current)
            violation("the figures of bytes() contradict each other");
    } else if (dice < 90) {
        const Statistics seen = ledger_.statistics();
        const auto consistent = [](const PooledCounter &counter) {
            return counter.small.current >= 0 && counter.large.current >= 0 &&
                   counter.small.current + counter.large.current == counter.all.current &&
                   counter.all.peak >= counter.all.current;
        };
        for (const PooledCounter *counter :
             {&seen.active, &seen.active_bytes, &seen.allocated_bytes, &seen.allocation, &seen.inactive_split,
              &seen.inactive_split_bytes, &seen.requested_bytes, &seen.reserved_bytes, &seen.segment})
            if (!consistent(*counter))
                violation("a counter has %lld small and %lld large, but %lld in all",
                          static_cast<long long>(counter->small.current),
                          static_cast<long long>(counter->large.current), static_cast<long long>(counter->all.current));
        if (seen.active_bytes.all.current < seen.allocated_bytes.all.current ||
            seen.reserved_bytes.all.current < seen.active_bytes.all.current + seen.inactive_split_bytes.all.current)
            violation("the statistics have more bytes in use than reserved");
    } else if (dice < 94) {
        all_.look_at(nullptr);
    } else if (dice < 97) {
        const PoolId common{0, 0};
        all_.look_at(chance.one_in(2) ? &common : &all_.shared_pools[chance.below(all_.shared_pools.size())]);
    } else {
        ledger_.reset_peaks();
        ledger_.reset_accumulated();
        ledger_.memory_fraction();
    }
}

void Worker::change_history() {
    const std::size_t dice = chance.below(4);
    if (dice == 0) {
        ledger_.stop_history();
    } else if (dice == 1) {
        ledger_.set_metadata(chance.one_in(2) ? nullptr : std::make_shared<const std::string>(std::to_string(number_)));
        for (const Occurrence &event : ledger_.events())
            if (static_cast<std::size_t>(event.action) >= actions || event.stack > 1000 ||
                (event.metadata != nullptr && std::stoul(*event.metadata) >= threads))
                violation("the history has an impossible event");
    } else {
        constexpr std::array<std::size_t, 4> capacities{0, 1, 7, 100};
        ledger_.record_history(static_cast<Stacks>(chance.below(4)), capacities[chance.below(4)],
                               chance.one_in(2) ? 0 : 1u << static_cast<unsigned>(Action::alloc), chance.one_in(2));
    }
}

// The races are those of a program without any order, so nothing is expected of them.
void Worker::change_observer() {
    ledger_.observe(chance.one_in(3) ? nullptr : &all_.detector);
    if (held.empty())
        return;
    const Held &used = held[chance.below(held.size())];
    races::RaceDetector::NamedUse use;
    use.use.region.set(used.address, used.size, {});
    use.use.kind = chance.one_in(2) ? races::AccessKind::read : races::AccessKind::write;
    all_.detector.work(0, number_ * 16, "use", {&use, 1}, 0);
    if (chance.one_in(10))
        all_.detector.device_synchronized(0, 0);
}

void Worker::take_segment() {
    segment_.size = unit * (1 + chance.below(4000));
    segment_.id = ++blocks_ * threads + number_;
    segment_.address = ledger_.allocate_segment(segment_.size);
    if (segment_.address != 0)
        segment_.fill();
}

void Worker::free_segment() {
    segment_.verify();
    ledger_.free_segment(segment_.address);
    segment_.address = 0;
}

void Worker::ask_for_nonsense() {
    const Address inner = held.empty() || held[0].size < 1024 ? 0x1000 : held[0].address + 256;
    if (all_.ledger.free(inner) || all_.ledger.free(0) || ledger_.record_stream(inner, 0) ||
        ledger_.size_of(inner) != 0)
        violation("the ledger accepts an address at which no block begins");
    if (!held.empty() && all_.ledger.change_source(nullptr))
        violation("the source was changed after allocations");
}

void Worker::stop() {
    if (tracker_ != nullptr)
        check_tracker();
    if (segment_.address != 0)
        free_segment();
    while (pool_begun_ || pool_is_own_)
        leave_pool();
    while (graph_pool_ != PoolId{0, 0})
        change_graph();
}

// The program

Stress::Stress(const Settings &settings, bool fragile, std::size_t operations)
    : settings(settings), operations(operations) {
    driver.fragile = fragile;
    driver.ledger = library.ledger = &ledger;
    library.unfinished = &unfinished;
    shared_streams = {&streams.at(0, "test"), new_stream(threads, true), new_stream(threads, true),
                      new_stream(threads, false)};
    shared_pools = new_shared_pools();
    for (std::size_t number = 0; number < threads; ++number)
        workers.push_back(std::make_unique<Worker>(*this, number));
}

// Checks a snapshot, and returns its sums.
Sums Stress::look_at(const PoolId *only) {
    Sums sums;
    Address end = 0;
    for (const SegmentView &segment : ledger.of(0).snapshot(only)) {
        if (segment.address < end)
            violation("the snapshot has segments that overlap");
        ++sums.segments;
        sums.reserved += static_cast<std::int64_t>(segment.size);
        end = segment.address;
        bool after_free = false;
        for (const BlockView &block : segment.blocks) {
            if (block.address != end || block.size == 0)
                violation("the snapshot has a segment with a gap, or with an empty block");
            end += block.size;
            const auto size = static_cast<std::int64_t>(block.size);
            const bool is_free = block.state == Block::State::free;
            if (is_free && after_free)
                violation("two free blocks lie side by side at %#zx, not merged",
                          static_cast<std::size_t>(block.address));
            after_free = is_free;
            if (is_free && segment.blocks.size() > 1) {
                ++sums.split;
                sums.split_bytes += size;
            }
            if (!is_free) {
                ++sums.active;
                sums.active_bytes += size;
                sums.requested += static_cast<std::int64_t>(block.requested);
            }
            if (block.state == Block::State::allocated) {
                ++sums.allocations;
                sums.allocated += size;
            }
        }
        if (end != segment.address + segment.size)
            violation("the blocks of a segment do not end at its end");
    }
    return sums;
}

// Compares everything while the threads pause.
// Puts pools to sleep and wakes them, while no other thread uses the ledger. inspect() then looks at the contents.
void Stress::sleep_and_wake() {
    ledger.of(0).set_memory_fraction(1); // a limit below what was reserved would let no pool wake
    for (const PoolId &pool : {common_pool, shared_pools.front()}) {
        may_break([&] { ledger.sleep(0, pool, true, {}); });
        while (ledger.of(0).is_asleep(pool)) {
            ++sleeps;
            Sleeper::Lack lack;
            auto refusal = Sleeper::Refusal::none;
            may_break([&] { ledger.of(0).wake(pool, &lack, &refusal); });
        }
    }
}

void Stress::inspect() {
    sleep_and_wake();
    const Statistics seen = ledger.of(0).statistics();
    const Sums sums = look_at(nullptr);
    Sums held;
    const auto add = [&](const std::vector<Held> &blocks) {
        for (const Held &block : blocks) {
            block.verify();
            ++held.allocations;
            held.allocated += static_cast<std::int64_t>(ledger.of(0).size_of(block.address));
        }
    };
    for (const auto &worker : workers)
        add(worker->held);
    for (const Inbox &inbox : inboxes)
        add(inbox.blocks);
    const auto same = [](const char *what, const PooledCounter &counter, std::int64_t expected) {
        if (counter.all.current != expected)
            violation("%s: the statistics have %lld, not %lld", what, static_cast<long long>(counter.all.current),
                      static_cast<long long>(expected));
    };
    same("allocations that are held", seen.allocation, held.allocations);
    same("bytes that are held", seen.allocated_bytes, held.allocated);
    same("allocations", seen.allocation, sums.allocations);
    same("allocated bytes", seen.allocated_bytes, sums.allocated);
    same("active blocks", seen.active, sums.active);
    same("active bytes", seen.active_bytes, sums.active_bytes);
    same("requested bytes", seen.requested_bytes, sums.requested);
    same("segments", seen.segment, sums.segments);
    same("reserved bytes", seen.reserved_bytes, sums.reserved);
    same("inactive split blocks", seen.inactive_split, sums.split);
    same("inactive split bytes", seen.inactive_split_bytes, sums.split_bytes);
    if (!driver.fragile)
        same("bytes of the device and the library", seen.reserved_bytes,
             static_cast<std::int64_t>(memory.used() + library.used));
    // The new shared stream may get the handle of the destroyed stream.
    Work *&shared = shared_streams[1 + chance.below(2)];
    destroy_stream(shared);
    shared = new_stream(threads, true);
    for (const PoolId &pool : shared_pools)
        may_break([&] { ledger.of(0).release_pool(pool); });
    shared_pools = new_shared_pools();
}

std::uint64_t Stress::run() {
    std::vector<std::thread> running;
    for (const auto &worker : workers)
        running.emplace_back([&] { (*worker)(operations); });
    for (std::thread &thread : running)
        thread.join();
    end();
    std::uint64_t lacks = 0;
    for (const auto &worker : workers)
        lacks += worker->lacks;
    return lacks;
}

// Frees everything, and checks that nothing is left.
void Stress::end() {
    driver.unlucky = driver.fragile = false;
    for (Inbox &inbox : inboxes)
        std::move(inbox.blocks.begin(), inbox.blocks.end(), std::back_inserter(workers[0]->held));
    for (const auto &worker : workers) {
        while (!worker->held.empty())
            worker->free_one(worker->held.size() - 1);
        for (Work *work : worker->streams)
            work->set_capturing(false);
    }
    for (Work *work : shared_streams)
        work->set_capturing(false);
    for (const PoolId &pool : shared_pools)
        ledger.of(0).release_pool(pool);
    for (const auto &worker : workers)
        for (Work *work : worker->streams)
            if (work->announced && chance.one_in(2))
                destroy_stream(work);
    ledger.of(0).empty_cache();
    Statistics left = ledger.of(0).statistics();
    left.each_counter([](const Counter &counter) {
        if (counter.current != 0)
            violation("a counter has %lld at the end", static_cast<long long>(counter.current));
    });
    if (memory.used() != 0 || library.used != 0 || !library.blocks.empty())
        violation("at the end %zu bytes of the device and %zu of the library are still taken", memory.used(),
                  library.used);
    if (!ledger.of(0).snapshot(nullptr).empty())
        violation("the snapshot still has segments at the end");
    // Only address ranges may stay: one for small and one for large blocks of each live stream, and two spare ranges.
    std::size_t streams_left = 1;
    const auto count_left = [&](const std::vector<Work *> &works) {
        for (Work *work : works)
            streams_left += work->announced && streams.is_there(work);
    };
    count_left(shared_streams);
    for (const auto &worker : workers)
        count_left(worker->streams);
    if (memory.live() > 2 * streams_left + 2)
        violation("%zu address ranges are still reserved, and there are %zu streams", memory.live(), streams_left);
    if (driver.events() != 0)
        violation("%d events were not destroyed", driver.events());
}

// Checks that a destroyed ledger gives all memory back, even memory in use.
void leave_blocks_behind(const Settings &settings) {
    EmulatedMemory memory(device_memory);
    Streams streams;
    Unfinished unfinished;
    CountingDriver driver(memory, streams, unfinished);
    driver.unlucky = false;
    const auto source = std::make_shared<LibrarySource>(library_allocate, library_free);
    {
        Ledger ledger(driver, 1, settings);
        driver.ledger = library.ledger = &ledger;
        library.unfinished = &unfinished;
        Work *work = streams.create(threads, true, false);
        const Stream other = work->handle;
        ledger.of(0).stream_created(other);
        std::vector<Address> used;
        for (const std::size_t size : {std::size_t(1), mib, 30 * mib}) {
            ledger.allocate(0, size, 0);
            ledger.of(0).allocate(size, 0, source);
            used.push_back(ledger.allocate(0, size, 0));
            ledger.of(0).record_stream(used.back(), other);
        }
        ledger.of(0).create_pool({0, 1}, source, true, false);
        ledger.of(0).begin_pool({0, 1});
        ledger.allocate(0, mib, 0);
        ledger.of(0).end_pool({0, 1});
        ledger.enable_caching(false);
        ledger.allocate(0, mib, 0);
        work->submit();
        for (const Address address : used)
            ledger.free(address);
    }
    if (memory.used() != 0 || memory.live() != 0 || library.used != 0 || driver.events() != 0)
        violation("a destroyed ledger left %zu bytes of the device, %zu of the library and %d events", memory.used(),
                  library.used, driver.events());
}

} // namespace

int main(int count, char **arguments) {
    const std::size_t operations = count > 1 ? std::strtoull(arguments[1], nullptr, 10) : 200000;
    seed = count > 2 ? std::strtoull(arguments[2], nullptr, 10) : 1;
    CallerStack::connect(note_stack);
    std::uint64_t lacks = 0, sleeps = 0;
    std::size_t second_addresses = 0, adopted = 0;
    for (const bool expandable : {true, false}) {
        run_name = expandable ? "stress, expandable segments" : "stress, segments";
        Settings settings;
        settings.expandable_segments = expandable;
        std::size_t round = 0;
        for (std::size_t left = operations; left > 0; ++round) {
            const std::size_t some = std::min(left, most_of_a_ledger);
            left -= some;
            chance = Random(seed * 1000000 + left);
            settings.max_split_size = round % 2 == 0 ? Settings().max_split_size : 24 * mib;
            settings.trim_always = round % 3 == 1;
            Stress stress(settings, round % 4 >= 2, some);
            lacks += stress.run();
            second_addresses += stress.unfinished.pages.second_addresses();
            adopted += stress.unfinished.pages.adopted();
            sleeps += stress.sleeps;
        }
        leave_blocks_behind(settings);
    }
    if (operations >= most_of_a_ledger && second_addresses == 0)
        violation("no memory got a second address");
    if (operations >= most_of_a_ledger && adopted == 0)
        violation("no stream got memory of a destroyed stream");
    std::printf("stress: 2 x %zu operations of %zu threads, %llu times out of memory, %zu second addresses, %zu blocks of "
                "destroyed streams, %llu sleeps of pools, seed %llu: nothing is wrong\n",
                threads * operations, threads, static_cast<unsigned long long>(lacks), second_addresses, adopted,
                static_cast<unsigned long long>(sleeps), static_cast<unsigned long long>(seed));
    return 0;
}
