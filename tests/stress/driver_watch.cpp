// The watch of the driver's calls, told by several threads at once.
//
//     driver_watch [calls per thread] [seed]
//
// The threads work on streams of their own and on common streams, create and destroy streams, and capture. Work on a
// thread's own streams and memory is always ordered, so no race may be found there. The program prints the first failure
// and ends with the status 1.
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "sanitizer/_cpp/watch/driver_watch.hpp"
#include "sanitizer/_cpp/watch/use_list.hpp"

namespace {

using namespace tcuda;
using namespace tcuda::watch;
using races::RaceDetector;

constexpr int workers = 6;
constexpr Address base = 0x7000000;
constexpr std::size_t room = 1 << 16; // of each thread
constexpr libcuda::Context context = 0x10;

void expect(bool condition, const char *failure) {
    if (condition)
        return;
    std::printf("driver_watch: %s\n", failure);
    std::exit(1);
}

// The driver: streams have handles above 0x1000, and capture if the handle has this bit.
constexpr Stream capturing_bit = 0x100000;

int current_device(int *device) { return *device = 0, success; }
int push_context(libcuda::Context) { return success; }
int pop_context(libcuda::Context *popped) { return *popped = context, success; }
int stream_context(libcuda::Stream, libcuda::Context *found) { return *found = context, success; }
int stream_flags(libcuda::Stream, unsigned *flags) { return *flags = 1, success; }
int capture_info(libcuda::Stream stream, int *status, libcuda::CaptureId *capture) {
    *capture = (stream & capturing_bit) != 0 ? stream : 0;
    *status = *capture != 0;
    return success;
}

DriverQuestions stand_in() {
    DriverQuestions made;
    made.current_device = current_device;
    made.push_context = push_context;
    made.pop_context = pop_context;
    made.stream_context = stream_context;
    made.stream_flags = stream_flags;
    made.capture_info = capture_info;
    return made;
}

// Each launch writes the memory that its function names.
class Launches final : public LaunchUses {
public:
    NamedOperation uses_of(const Launch &launch) override {
        static thread_local UseList uses;
        uses.clear();
        uses.add(launch.function, 256, races::AccessKind::both, false, "out");
        return {"kernel", uses.get()};
    }
};

class Graphs final : public WatchedGraphs {
public:
    void captured(const WatchedStream &stream, const NamedOperation &, StackId) override {
        expect((stream.handle & capturing_bit) != 0, "work of a stream that does not capture was captured");
        ++captured_works;
    }
    void instantiated(libcuda::GraphExec, libcuda::Graph) override {}
    void updated(libcuda::GraphExec, libcuda::Graph) override {}
    void node_set(libcuda::GraphExec, libcuda::GraphNode) override {}
    Races launched(libcuda::GraphExec, const WatchedStream &, StackId) override { return {}; }
    void executable_about_to_be_destroyed(libcuda::GraphExec) override {}
    void graph_about_to_be_destroyed(libcuda::Graph) override {}

    std::atomic<std::size_t> captured_works{0};
};

StackId stack() { return stack_without_frames; }

void work(DriverWatch &watch, int number, std::size_t calls, std::uint64_t seed) {
    std::mt19937_64 chance(seed + static_cast<std::uint64_t>(number));
    const Address mine = base + static_cast<Address>(number) * room;
    const Stream first = 0x2000 + 0x1000 * static_cast<Stream>(number);
    Stream stream = first;
    const Stream captured = first | capturing_bit;
    const libcuda::Event event = 0x900000 + 16 * static_cast<libcuda::Event>(number);
    watch.stream_created(context, stream, false);
    for (std::size_t call = 0; call < calls; ++call) {
        const Address place = mine + chance() % (room / 256) * 256;
        switch (chance() % 12) {
        case 0: // the order goes on over a destroyed stream, because the host waits
            watch.stream_synchronized({context, stream});
            watch.stream_about_to_be_destroyed(stream);
            stream = stream == first ? first + 16 : first;
            watch.stream_created(context, stream, false);
            break;
        case 1:
            watch.event_recorded({context, stream}, event);
            watch.event_waited({context, 0x1100}, event);
            break;
        case 2:
            watch.event_recorded({context, 0x1100}, event);
            watch.event_synchronized(event);
            break;
        case 3:
            watch.copied({context, stream}, {{CopyEnd::Memory::device, place}, {CopyEnd::Memory::device, mine}, 128});
            break;
        case 4:
            watch.set({context, stream}, {place, 32, 8, 32});
            break;
        case 5:
            watch.capture_begun({context, captured});
            watch.launched({context, captured}, {place, "kernel", nullptr, nullptr, {}});
            watch.capture_about_to_end({context, captured});
            break;
        case 6:
            watch.host_memory_locked(place, 256, false);
            watch.host_memory_about_to_be_unlocked(place);
            break;
        case 7:
            watch.event_about_to_be_destroyed(event);
            break;
        case 8:
            watch.launched({context, per_thread_stream},
                           {base - 4096 + 256 * static_cast<Address>(number), "kernel", nullptr, nullptr, {}});
            break;
        default:
            watch.launched({context, stream}, {place, "kernel", nullptr, nullptr, {}});
        }
    }
    watch.stream_synchronized({context, stream});
}

} // namespace

int main(int argc, char **argv) {
    const std::size_t calls = argc > 1 ? std::stoul(argv[1]) : 20000;
    const std::uint64_t seed = argc > 2 ? std::stoull(argv[2]) : 1;
    RaceDetector detector;
    const DriverQuestions questions = stand_in();
    Launches launches;
    Graphs graphs;
    std::atomic<std::size_t> found{0};
    DriverWatch watch(detector, launches, graphs, questions, stack,
                      [&](DriverWatch::Races &&races) { found += races.size(); });
    std::vector<std::thread> threads;
    for (int number = 0; number < workers; ++number)
        threads.emplace_back(work, std::ref(watch), number, calls, seed);
    for (std::thread &thread : threads)
        thread.join();
    expect(found == 0, "a race was found where everything is ordered");
    expect(graphs.captured_works > 0, "nothing was captured");
    watch.launched({context, 0x1100}, {base, "kernel", nullptr, nullptr, {}});
    watch.launched({context, 0x1200}, {base, "kernel", nullptr, nullptr, {}});
    expect(found == 1, "a race was missed");
    std::printf("driver_watch: %zu operations\n", static_cast<std::size_t>(detector.operations()));
}
