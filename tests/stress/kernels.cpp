// Kernels on the processor: threads that launch, drop and interrupt grids of a few modules.
//
//     kernels MODULE [launches per thread] [seed]
//
// MODULE is the shared library of kernels.cu. The program prints the first failure and ends with the status 1.
#include <unistd.h>

#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <memory>
#include <random>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "emulation/_cpp/kernels/grid.hpp"
#include "emulation/_cpp/kernels/loaded_module.hpp"

namespace {

using namespace tcuda;

[[noreturn]] __attribute__((format(printf, 1, 2))) void fail(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    std::printf("kernels: ");
    std::vprintf(format, arguments);
    std::printf("\n");
    std::fflush(stdout);
    _exit(1); // The other threads go on meanwhile.
}

void require(bool condition, const char *text) {
    if (!condition)
        fail("%s", text);
}

// The bytes of a pointer, and of a number if the kernel has two parameters.
std::string packed(const void *memory, int number) {
    std::string bytes(16, '\0');
    std::memcpy(bytes.data(), &memory, sizeof memory);
    std::memcpy(bytes.data() + 8, &number, sizeof number);
    return bytes;
}

class Worker {
public:
    Worker(std::vector<std::unique_ptr<LoadedModule>> &modules, const std::string &library, unsigned seed)
        : modules_(modules), library_(library), chance_(seed) {}

    void work(int launches) {
        for (int done = 0; done < launches; ++done) {
            launch(*modules_[below(modules_.size())]);
            if (below(100) == 0)
                LoadedModule loaded(library_);
        }
    }

private:
    std::size_t below(std::size_t bound) { return chance_() % bound; }

    void launch(LoadedModule &module) {
        switch (below(6)) {
        case 0:
            return sum(module);
        case 1:
            return ask(module);
        case 2:
            return drop(module);
        case 3:
            return deadlock(module);
        case 4:
            return fault(module);
        default:
            return spin(module);
        }
    }

    Launch launch_of(LoadedModule &module, const char *name, unsigned threads, const std::string &arguments) {
        const abi::Kernel *kernel = module.kernel(name);
        require(kernel != nullptr, "a kernel is missing");
        return {kernel, {2, 1, 1}, {threads, 1, 1}, arguments.substr(0, kernel->argument_bytes), 64};
    }

    // Runs to the end, and answers questions for `memory`.
    Grid::Outcome finish(Grid &grid, const std::vector<int> &memory) {
        for (;;) {
            const Grid::Outcome outcome = grid.run();
            if (outcome == Grid::Outcome::interrupted)
                continue;
            if (outcome != Grid::Outcome::access)
                return outcome;
            const auto begin = reinterpret_cast<std::uintptr_t>(memory.data());
            require(grid.access().address - begin < memory.size() * sizeof(int), "a wrong access is reported");
            grid.allow({begin, begin + memory.size() * sizeof(int)});
        }
    }

    void sum(LoadedModule &module) {
        const unsigned threads = 1 + static_cast<unsigned>(below(256));
        std::vector<int> memory(threads);
        Grid grid(module, launch_of(module, "sum", threads, packed(memory.data(), 10)));
        require(finish(grid, memory) == Grid::Outcome::done, "a sum is not done");
        for (unsigned thread = 0; thread < threads; ++thread)
            require(memory[thread] == static_cast<int>(threads * (threads - 1) / 2 * 10), "a sum is wrong");
    }

    void ask(LoadedModule &module) {
        std::vector<int> memory(64);
        Grid grid(module, launch_of(module, "sum", 64, packed(memory.data(), 1)));
        Grid::Outcome outcome;
        do
            outcome = grid.run();
        while (outcome == Grid::Outcome::interrupted);
        require(outcome == Grid::Outcome::access, "an access is not reported");
        bool refused = false;
        try {
            Grid other(module, launch_of(module, "sum", 64, packed(memory.data(), 1)));
            other.run();
        } catch (const std::logic_error &) {
            refused = true;
        }
        require(refused, "two grids of a thread use a module");
        // Another thread goes on with the launch.
        std::thread([&] { require(finish(grid, memory) == Grid::Outcome::done, "a launch is not done"); }).join();
        require(memory[63] == 64 * 63 / 2, "a sum of another thread is wrong");
    }

    void drop(LoadedModule &module) {
        std::vector<int> memory(64);
        auto grid = std::make_unique<Grid>(module, launch_of(module, "sum", 64, packed(memory.data(), 1)));
        while (grid->run() == Grid::Outcome::interrupted) {
        }
        std::thread([&] { grid.reset(); }).join();
    }

    void deadlock(LoadedModule &module) {
        std::vector<int> memory(64);
        Grid grid(module, launch_of(module, "half", 64, packed(memory.data(), 0)));
        require(finish(grid, memory) == Grid::Outcome::fault, "a deadlock is not found");
        require(grid.fault().text == "32 threads wait at __syncthreads(), 32 threads have returned", "a text is wrong");
    }

    void fault(LoadedModule &module) {
        std::vector<int> memory(64);
        Grid grid(module, launch_of(module, "trap", 64, packed(memory.data(), 17)));
        require(finish(grid, memory) == Grid::Outcome::fault, "a trap is not found");
        require(grid.fault().kind == "trap" && grid.thread().x == 17, "the thread of a trap is wrong");
    }

    // The last thread of the block ends the wait of the others, after interruptions.
    void spin(LoadedModule &module) {
        if (below(20) != 0)
            return;
        std::vector<int> memory(64);
        Grid grid(module, launch_of(module, "spin", 8, packed(memory.data(), 0)));
        require(finish(grid, memory) == Grid::Outcome::done, "a wait does not end");
    }

    std::vector<std::unique_ptr<LoadedModule>> &modules_;
    const std::string &library_;
    std::mt19937 chance_;
};

} // namespace

int main(int count, char **arguments) {
    if (count < 2)
        fail("the module is missing");
    const int launches = count > 2 ? std::atoi(arguments[2]) : 1000;
    const unsigned seed = count > 3 ? static_cast<unsigned>(std::atoi(arguments[3])) : 1;
    std::printf("kernels: %d launches per thread, seed %u\n", launches, seed);
    std::fflush(stdout);
    std::ifstream file(arguments[1], std::ios::binary);
    const std::string library((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
    std::vector<std::unique_ptr<LoadedModule>> modules;
    for (int made = 0; made < 3; ++made)
        modules.push_back(std::make_unique<LoadedModule>(library));
    std::vector<std::thread> threads;
    for (unsigned number = 0; number < 4; ++number)
        threads.emplace_back([&, number] { Worker(modules, library, seed * 4 + number).work(launches); });
    for (std::thread &thread : threads)
        thread.join();
    return 0;
}
