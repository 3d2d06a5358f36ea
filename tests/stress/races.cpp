// The race detector, first with random calls of one thread, then with calls of several threads at once.
//
//     races [operations per thread] [seed]
//
// The program prints the first failure and ends with the status 1.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "sanitizer/_cpp/order/race_detector.hpp"

namespace {

using namespace tcuda;
using namespace tcuda::races;

constexpr Address base = 0x100000;
constexpr std::size_t room = 4096;
constexpr int workers = 8;

void expect(bool condition, const char *failure) {
    if (condition)
        return;
    std::printf("races: %s\n", failure);
    std::exit(1);
}

// Random uses of memory between two addresses.
class Chance {
public:
    explicit Chance(std::uint64_t seed) : generator_(seed) {}

    std::size_t below(std::size_t bound) { return generator_() % bound; }

    std::vector<RaceDetector::NamedUse> uses(Address begin, std::size_t size) {
        std::vector<RaceDetector::NamedUse> made(1 + below(3));
        for (RaceDetector::NamedUse &named : made) {
            std::vector<Dimension> shape(below(4));
            std::size_t left = size / 2;
            for (Dimension &dimension : shape) {
                const std::size_t count = 1 + below(6), stride = 1 + below(left / count + 1);
                dimension = {static_cast<std::int64_t>(count), static_cast<std::int64_t>(stride)};
                left -= std::min(left - 1, count * stride);
            }
            named.use.region.set(begin + below(size / 4), 1 + below(8), shape);
            named.use.kind = static_cast<AccessKind>(1 + below(3));
            named.label = "x";
        }
        return made;
    }

private:
    std::mt19937_64 generator_;
};

RaceDetector::NamedUses all_of(std::vector<RaceDetector::NamedUse> &uses) { return {uses.data(), uses.size()}; }

std::unique_ptr<GraphPlan> graph_of(RaceDetector &detector, Chance &chance, Address begin, std::size_t size) {
    std::vector<RaceDetector::NamedNode> nodes(1 + chance.below(6));
    for (std::size_t place = 0; place < nodes.size(); ++place) {
        nodes[place].name = "node";
        nodes[place].uses = chance.uses(begin, size);
        for (std::size_t other = 0; other < place; ++other)
            if (chance.below(2) == 0)
                nodes[place].dependencies.push_back(other);
    }
    return detector.add_graph(nodes);
}

void check_random_calls(std::size_t operations, std::uint64_t seed) {
    Chance chance(seed);
    RaceDetector detector;
    std::unique_ptr<GraphPlan> graph = graph_of(detector, chance, base, room);
    std::size_t races = 0;
    for (std::size_t operation = 0; operation < operations; ++operation) {
        const int device = static_cast<int>(chance.below(2));
        const Stream stream = chance.below(6) * 2;
        const std::uintptr_t event = chance.below(5);
        auto uses = chance.uses(base, room);
        switch (chance.below(20)) {
        default:
            races += detector.work(device, stream, "work", all_of(uses), 0).size();
            break;
        case 0:
            races += detector.work_together({{0, stream}, {1, stream}}, "together", all_of(uses), 0).size();
            break;
        case 1:
            detector.event_recorded(event, device, stream, 0);
            break;
        case 2:
            detector.event_waited(event, device, stream, 0);
            break;
        case 3:
            detector.event_synchronized(event, 0);
            break;
        case 4:
            if (chance.below(10) == 0)
                detector.device_synchronized(device, 0);
            else
                detector.stream_synchronized(device, stream, 0);
            break;
        case 5:
            detector.stream_destroyed(device, stream);
            detector.stream_created(device, stream, chance.below(2) == 0);
            break;
        case 6:
            detector.memory_allocated(base + chance.below(room), 1 + chance.below(room / 4), device, stream, 0);
            break;
        case 7:
            detector.memory_unmapped(base + chance.below(room), chance.below(room / 4), device, chance.below(8) == 0);
            break;
        case 8:
            races += detector.launch(*graph, device, stream, 0).size();
            break;
        case 9:
            if (chance.below(10) == 0) {
                detector.remove_graph(*graph);
                graph = graph_of(detector, chance, base, room);
            }
            break;
        case 10:
            races += detector.host_access("host", all_of(uses), 0).size();
            detector.forget_races();
            break;
        }
    }
    expect(races > 0, "random calls have no races");
    detector.memory_unmapped(0, 2 * base, 0, false);
    const RaceDetector::Sizes sizes = detector.sizes();
    expect(sizes.intervals == 0 && sizes.accesses == 0 && sizes.allocations == 0, "unmapped memory is known");
}

// Each thread has streams and memory of its own, and all threads read the same memory.
void check_threads(std::size_t operations, std::uint64_t seed) {
    RaceDetector detector;
    std::vector<std::thread> threads;
    for (int worker = 0; worker < workers; ++worker)
        threads.emplace_back([&detector, operations, seed, worker] {
            Chance chance(seed + static_cast<std::uint64_t>(worker));
            const auto number = static_cast<std::uintptr_t>(worker + 1);
            const Address own = base + number * 16 * room;
            const Stream stream = number * 0x100;
            auto graph = graph_of(detector, chance, own, room);
            detector.stream_created(0, stream, false);
            for (std::size_t operation = 0; operation < operations; ++operation) {
                auto uses = chance.uses(own, room);
                std::vector<RaceDetector::NamedUse> shared(1);
                shared[0].use.region.set(base, 64, {});
                expect(detector.work(0, stream, "work", all_of(uses), 0).empty(), "own memory races");
                expect(detector.work(0, stream, "look", all_of(shared), 0).empty(), "two reads race");
                switch (chance.below(12)) {
                case 0:
                    detector.event_recorded(number, 0, stream, 0);
                    break;
                case 1:
                    detector.event_waited(1 + chance.below(workers), 0, stream, 0);
                    break;
                case 2:
                    detector.stream_synchronized(0, stream, 0);
                    uses = chance.uses(own, room); // the detector has taken the regions before
                    expect(detector.host_access("host", all_of(uses), 0).empty(), "complete work races");
                    break;
                case 3:
                    detector.memory_allocated(own, room, 0, stream, 0);
                    detector.memory_freed(own, 0);
                    break;
                case 4:
                    detector.stream_synchronized(0, stream, 0);
                    detector.stream_destroyed(0, stream);
                    detector.stream_created(0, stream, false);
                    break;
                case 5: // branches that nothing orders may race
                    detector.launch(*graph, 0, stream, 0);
                    break;
                case 6:
                    detector.sizes();
                    detector.recent();
                    detector.races();
                    break;
                }
            }
            detector.remove_graph(*graph);
        });
    for (std::thread &thread : threads)
        thread.join();
    expect(detector.operations() >= workers * operations * 2, "operations are lost");
}

} // namespace

int main(int count, char **arguments) {
    const std::size_t operations = count > 1 ? std::strtoull(arguments[1], nullptr, 10) : 50000;
    const std::uint64_t seed = count > 2 ? std::strtoull(arguments[2], nullptr, 10) : 1;
    check_random_calls(operations, seed);
    check_threads(operations / workers, seed);
    std::printf("races: %zu operations: nothing is wrong\n", operations);
    return 0;
}
