#include "emulation/_cpp/bindings/python_streams.hpp"

#include <utility>

#include "bindings/python/interruption.hpp"
#include "driver/stream_key.hpp"

namespace nb = nanobind;

namespace tcuda {

template <typename... Arguments>
int PythonStreams::call(std::uint64_t *result, Entry entry, Arguments... arguments) {
    constexpr int most_interruptions = 10;
    const nb::gil_scoped_acquire lock;
    for (int i = 0; i < most_interruptions && !(entry.waits && Interruption::pending()); ++i) {
        try {
            const Interruption outer;
            *result = nb::cast<std::uint64_t>(streams_.attr(entry.name)(arguments...));
            return success;
        } catch (nb::python_error &error) {
            int status = unknown_error;
            if (nb::try_cast(nb::getattr(error.value(), "error_code", nb::none()), status))
                return status;
            Interruption::keep(error);
        } catch (const nb::cast_error &) {
            if (PyErr_Occurred()) // there is no memory for the conversion
                Interruption::keep(nb::python_error());
            return unknown_error;
        }
    }
    return unknown_error;
}

int PythonStreams::status(Entry entry, int device, std::uintptr_t what) {
    std::uint64_t result = 0;
    const int status = call(&result, entry, device, what);
    return status != success ? status : static_cast<int>(result);
}

int PythonStreams::status_of_stream(Entry entry, int device, Stream key, std::uint64_t *result) {
    Stream handle;
    const int status = handle_of(key, &handle);
    return status != success ? status : call(result, entry, device, handle);
}

void PythonStreams::finish(int device) {
    std::uint64_t result = 0;
    if (defers_work_)
        call(&result, {"finish", false}, device);
}

int PythonStreams::host_register(Address address, std::size_t size) {
    std::uint64_t result = 0;
    return call(&result, {"host_register", false}, address, size);
}

int PythonStreams::host_unregister(Address address) {
    std::uint64_t result = 0;
    return call(&result, {"host_unregister", false}, address);
}

int PythonStreams::query_host(Address address, std::size_t size) {
    std::uint64_t result = 0;
    const int status = call(&result, {"query_host", false}, address, size);
    return status != success ? status : static_cast<int>(result);
}

int PythonStreams::record_device(int device, Event *event) {
    if (const Event before = std::exchange(*event, 0))
        destroy_event(device, before);
    std::uint64_t made = 0;
    const int status = call(&made, {"record_device", false}, device);
    *event = static_cast<Event>(made);
    return status;
}

int PythonStreams::record(int device, Stream stream, Event *event) {
    std::uint64_t made = 0;
    const int status = status_of_stream({"record", false}, device, stream, &made);
    *event = static_cast<Event>(made);
    return status;
}

int PythonStreams::query(int device, Event event) { return status({"query", false}, device, event); }

int PythonStreams::synchronize(int device, Event event) { return status({"synchronize", true}, device, event); }

int PythonStreams::destroy_event(int device, Event event) { return status({"destroy_event", false}, device, event); }

int PythonStreams::query_stream(int device, Stream stream) {
    std::uint64_t result = 0;
    const int status = status_of_stream({"query_stream", false}, device, stream, &result);
    return status != success ? status : static_cast<int>(result);
}

int PythonStreams::synchronize_stream(int device, Stream stream) {
    std::uint64_t result = 0;
    const int status = status_of_stream({"synchronize_stream", true}, device, stream, &result);
    return status != success ? status : static_cast<int>(result);
}

int PythonStreams::synchronize_device(int device) { return status({"synchronize_device", true}, device, 0); }

int PythonStreams::fill(int device, Stream stream, Address address, std::size_t size, unsigned char value) {
    Stream handle;
    std::uint64_t result = 0;
    const int status = handle_of(stream, &handle);
    return status != success ? status : call(&result, {"fill", false}, device, handle, address, size, int(value));
}

int PythonStreams::capture_of(int device, Stream stream, CaptureId *capture) {
    *capture = 0;
    return status_of_stream({"capture_of", false}, device, stream, capture);
}

} // namespace tcuda
