// Notes of stacks that only tests make. The notes stand for calls of the driver, and for the callbacks in them.
#include <nanobind/nanobind.h>

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <optional>
#include <thread>

#include "bindings/threads/python_stacks.hpp"

namespace nb = nanobind;

namespace tcuda {
namespace {

StackId note_without_lock() {
    const nb::gil_scoped_release released;
    return note_any_stack();
}

nb::tuple note_both_ways(bool python_first) {
    StackId first = python_first ? note_python_stack() : note_without_lock();
    StackId second = python_first ? note_without_lock() : note_python_stack();
    return python_first ? nb::make_tuple(first, second) : nb::make_tuple(second, first);
}

StackId note_in_foreign_thread() {
    const nb::gil_scoped_release released;
    StackId noted = 0;
    std::thread([&] { noted = note_any_stack(); }).join();
    return noted;
}

// Notes while another thread has Python's lock, and keeps the lock until the note is made. The stack, and the seconds.
nb::tuple note_against_lock() {
    std::mutex mutex;
    std::condition_variable changed;
    bool holds = false, noted = false;
    StackId stack = 0;
    std::chrono::duration<double> time{};
    {
        const nb::gil_scoped_release released;
        std::thread other([&] {
            const nb::gil_scoped_acquire acquired;
            std::unique_lock lock(mutex);
            holds = true;
            changed.notify_all();
            changed.wait(lock, [&] { return noted; });
        });
        {
            std::unique_lock lock(mutex);
            changed.wait(lock, [&] { return holds; });
        }
        const auto begin = std::chrono::steady_clock::now();
        stack = note_any_stack();
        time = std::chrono::steady_clock::now() - begin;
        {
            const std::lock_guard lock(mutex);
            noted = true;
        }
        changed.notify_all();
        other.join();
    }
    return nb::make_tuple(stack, time.count());
}

double seconds_per_note(std::size_t count, bool with_lock) {
    std::optional<nb::gil_scoped_release> released;
    if (!with_lock)
        released.emplace();
    const auto begin = std::chrono::steady_clock::now();
    for (std::size_t done = 0; done < count; ++done)
        note_any_stack();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count() / double(count);
}

} // namespace

void bind_stacks_for_tests(nb::module_ &module) {
    module.def(
        "begin_stack_notes", [](int milliseconds) { begin_stack_notes(std::chrono::milliseconds(milliseconds)); },
        nb::arg("milliseconds") = 100,
        R"(
    Begin a time in which callbacks of the driver note Python stacks without Python's lock. The times are counted.

    Args:
        milliseconds: How long a callback waits at most for a thread that has Python's lock.)");
    module.def("end_stack_notes", end_stack_notes);
    module.def("note_stack_without_lock", note_without_lock,
               "Return the number of the stack of this thread, as a callback without Python's lock notes the stack.");
    module.def("note_stack_both_ways", note_both_ways, nb::arg("python_first"),
               "Return the same stack as noted with the lock and as a callback without the lock notes it.");
    module.def("note_stack_in_foreign_thread", note_in_foreign_thread,
               "Note the stack of a thread that Python does not know.");
    module.def("note_stack_against_lock", note_against_lock,
               R"(Note the stack while another thread waits for the note with Python's lock; return the seconds too.)");
    module.def("seconds_per_stack_note", seconds_per_note, nb::arg("count"), nb::arg("with_lock"),
               "Measure notes of the same stack.");
}

} // namespace tcuda
