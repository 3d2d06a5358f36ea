#include "sanitizer/_cpp/bindings/python_mpi_watch.hpp"

#include <unistd.h>

#include <atomic>
#include <stdexcept>
#include <utility>

#include "bindings/threads/python_stacks.hpp"
#include "sanitizer/_cpp/bindings/pending_races.hpp"
#include "sanitizer/_cpp/mpi/interception.hpp"
#include "sanitizer/_cpp/mpi/mpi_call.hpp"

namespace nb = nanobind;

namespace tcuda {
namespace {

std::atomic<bool> has_watch{false};

} // namespace

PythonMpiWatch::PythonMpiWatch(nb::object made_for) : detector(std::move(made_for)), process_(getpid()) {
    PythonRaceDetector &told = nb::cast<PythonRaceDetector &>(detector);
    auto made =
        std::make_unique<mpi::MpiWatch>(told.detector, note_any_stack, [&told](races::RaceDetector::Races &&found) {
            pending_races().add(told, found);
        });
    begin_stack_notes();
    if (has_watch.exchange(true)) {
        end_stack_notes();
        throw std::runtime_error("another race detector watches the calls of MPI already");
    }
    watch_ = std::move(made);
    mpi::set_watch(&*watch_);
    try {
        const nb::gil_scoped_release released; // another thread that loads a module may wait for the lock
        mpi::begin_interception();
    } catch (...) {
        end();
        throw;
    }
}

// A call of MPI in another thread may wait for Python's lock to note its stack.
void PythonMpiWatch::end() noexcept {
    if (!watch_)
        return;
    {
        const nb::gil_scoped_release released;
        mpi::end_interception();
        mpi::set_watch(nullptr);
    }
    if (getpid() == process_)
        watch_.reset();
    else
        static_cast<void>(watch_.release());
    end_stack_notes();
    has_watch.store(false);
}

} // namespace tcuda
