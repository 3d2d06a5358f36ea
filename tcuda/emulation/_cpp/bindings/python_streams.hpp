// The driver table of emulated devices, whose streams and events are Python objects.
#pragma once

#include <nanobind/nanobind.h>

#include "emulation/_cpp/memory/emulated_driver.hpp"

namespace tcuda {

// The methods of `streams` are the stream and event entries of the table. A method raises an exception with the status
// as `error_code`. An exception without a status, such as KeyboardInterrupt, becomes an Interruption. An entry that
// waits ends with an interruption. Any other entry is called again, so it must have the same effect a second time.
class PythonStreams : public EmulatedDriver {
public:
    PythonStreams(std::vector<EmulatedMemory *> memories, nanobind::object streams)
        : EmulatedDriver(std::move(memories)), streams_(std::move(streams)),
          defers_work_(nanobind::hasattr(streams_, "finish")) {}

    void finish(int device) override;
    int host_register(Address address, std::size_t size) override;
    int host_unregister(Address address) override;
    int query_host(Address address, std::size_t size) override;
    int record_device(int device, Event *event) override;
    int record(int device, Stream stream, Event *event) override;
    int query(int device, Event event) override;
    int synchronize(int device, Event event) override;
    int destroy_event(int device, Event event) override;
    int query_stream(int device, Stream stream) override;
    int synchronize_stream(int device, Stream stream) override;
    int synchronize_device(int device) override;
    int fill(int device, Stream stream, Address address, std::size_t size, unsigned char value) override;
    int capture_of(int device, Stream stream, CaptureId *capture) override;

private:
    struct Entry {
        const char *name;
        bool waits;
    };
    template <typename... Arguments> int call(std::uint64_t *result, Entry entry, Arguments... arguments);
    int status(Entry entry, int device, std::uintptr_t what);
    int status_of_stream(Entry entry, int device, Stream key, std::uint64_t *result);

    nanobind::object streams_;
    const bool defers_work_; // whether work on memory may be done later than the call that queued the work
};

} // namespace tcuda
