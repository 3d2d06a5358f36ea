#include "bindings/graphs/graph_captures.hpp"

#include <nanobind/stl/vector.h>

#include "bindings/memory/ledger_errors.hpp"
#include "driver/status.hpp"
#include "driver/stream_key.hpp"

namespace nb = nanobind;

namespace tcuda {
namespace {

// The time from before the start of a capture until the ledger knows the capture.
class AboutToCapture {
public:
    explicit AboutToCapture(CaptureGate &gate) : gate_(gate) { gate_.begin_capture(); }
    ~AboutToCapture() { gate_.end_capture(); }
    AboutToCapture(const AboutToCapture &) = delete;
    AboutToCapture &operator=(const AboutToCapture &) = delete;

private:
    CaptureGate &gate_;
};

// Ends the capture that nobody needs.
void drop(const CudaGraphs &graphs, libcuda::Stream stream) {
    CudaGraphs::Ended ended;
    const char *failed;
    graphs.end_capture(stream, {}, std::nullopt, false, &ended, &failed);
}

} // namespace

int begin_graph(const CudaGraphs &graphs, PythonLedger &own, PoolId pool, nb::handle capture, libcuda::Stream stream,
                int device, int mode) {
    Ledger &ledger = own.ledger;
    guarded(own, [&] { ledger.prepare_capture(); });
    const AboutToCapture about(ledger.gate());
    int status = ledger.enter(device);
    if (status == success)
        status = graphs.begin_capture(stream, mode);
    if (status != success)
        return status;
    guarded(own, [&] {
        CaptureId number = 0;
        try {
            number = ledger.begin_capture(pool, device, key_of(stream));
            nb::setattr(capture, "number", nb::int_(number));
        } catch (...) {
            drop(graphs, stream);
            if (number != 0) {
                ledger.end_capture(number);
                ledger.release_graph(pool, {}, false);
            }
            throw;
        }
    });
    return success;
}

std::pair<int, const char *> end_graph(const CudaGraphs &graphs, PythonLedger &own, nb::handle capture,
                                       CaptureId number, libcuda::Stream stream, int device,
                                       const std::vector<libcuda::Graph> &bodies, std::optional<std::uint64_t> flags,
                                       bool keep) {
    CudaGraphs::Ended ended;
    std::vector<Address> held;
    int status = success;
    const char *failed = "cuCtxSetCurrent";
    guarded(own, [&] {
        const NotedCall noted = own.ledger.noted_call();
        const nb::gil_scoped_release release;
        status = own.ledger.enter(device);
        if (status == success)
            status = graphs.end_capture(stream, bodies, flags, keep, &ended, &failed);
        if (status != success)
            return;
        try {
            held = own.ledger.hold(ended.addresses, number);
        } catch (...) {
            graphs.destroy(ended);
            throw;
        }
        own.ledger.end_capture(number);
    });
    if (status == success)
        nb::setattr(capture, "ended", nb::make_tuple(ended.graph, ended.exec, ended.nodes, held));
    Interruption::raise_if_any();
    return {status, failed};
}

} // namespace tcuda
