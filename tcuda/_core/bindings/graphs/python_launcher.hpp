// The object behind the Python class of graph launchers.
#pragma once

#include <nanobind/nanobind.h>

#include <atomic>

#include "bindings/scopes/current_stream.hpp"
#include "graphs/graph_launcher.hpp"

namespace tcuda {

// Launches a graph on the stream on which CuPy launches in this thread.
class PythonLauncher {
public:
    PythonLauncher(libcuda::GraphExec exec, nanobind::handle current_stream)
        : launcher_(exec), current_stream_(current_stream_in(current_stream)) {}

    int launch() {
        launched_.store(true, std::memory_order_relaxed);
        const auto stream = static_cast<libcuda::Stream>(current_stream_());
        const nanobind::gil_scoped_release release; // a launch may wait for room in the queue of the stream
        return launcher_.launch(stream);
    }
    bool launched() const { return launched_.load(std::memory_order_relaxed); }

private:
    const GraphLauncher launcher_;
    CurrentStream *const current_stream_;
    std::atomic<bool> launched_{false};
};

} // namespace tcuda
