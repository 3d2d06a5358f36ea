// The object behind the Python class MpiWatch.
#pragma once

#include <nanobind/nanobind.h>

#include <memory>

#include "sanitizer/_cpp/bindings/python_race_detector.hpp"
#include "sanitizer/_cpp/mpi/mpi_watch.hpp"

namespace tcuda {

// Tells a detector of the calls of MPI that mpi4py makes, from the constructor to end(). The calls run no Python code:
// the races that they find wait in pending_races(). A process has one watch at a time.
class PythonMpiWatch {
public:
    // Throws std::runtime_error if there is a watch already.
    explicit PythonMpiWatch(nanobind::object detector);
    ~PythonMpiWatch() { end(); }
    PythonMpiWatch(const PythonMpiWatch &) = delete;
    PythonMpiWatch &operator=(const PythonMpiWatch &) = delete;

    // The caller holds Python's lock. In the child of a fork, the detector is not told: another thread of the parent
    // may have had its mutex.
    void end() noexcept;

    nanobind::object detector;

private:
    const int process_;
    std::unique_ptr<mpi::MpiWatch> watch_;
};

} // namespace tcuda
