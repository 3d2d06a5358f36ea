// Where the core and Python meet below the ledger: sources of memory, and the streams of devices.
#pragma once

#include <nanobind/nanobind.h>

#include "driver/cuda_driver.hpp"
#include "ledger/external_source.hpp"
#include "driver/host_driver.hpp"

namespace tcuda {

// A pool that is a Python object: `allocate(size, device, stream)` returns what holds the memory, and has its address
// as `ptr`, or raises MemoryError; dropping that frees it. `empty_cache(device)` gives back what is kept.
class PythonSource : public ExternalSource {
public:
    PythonSource(nanobind::object pool, Reserve reserve, std::size_t unit)
        : ExternalSource(reserve, unit), pool_(std::move(pool)) {}
    ~PythonSource() override;

    Address allocate(std::size_t size, int device, Stream stream, void **token) override;
    void free(Address address, std::size_t size, int device, Stream stream, void *token) noexcept override;
    void empty_cache(int device) override;

private:
    nanobind::object pool_;
};

// A library that a Python object keeps loaded.
class OwnedLibrarySource : public LibrarySource {
public:
    OwnedLibrarySource(std::uintptr_t allocate, std::uintptr_t free, nanobind::object owner)
        : LibrarySource(reinterpret_cast<Allocate *>(allocate), reinterpret_cast<Free *>(free)),
          owner_(std::move(owner)) {}
    ~OwnedLibrarySource() override;

private:
    void report(const char *text) noexcept override; // as Python tells of an exception in a destructor

    nanobind::object owner_;
};

// CUDA's table, with which other threads of Python run while one waits: what it waits for may be theirs to do.
class PythonCudaDriver : public CudaDriver {
public:
    int synchronize(int device, Event event) override;
    int synchronize_stream(int device, Stream stream) override;
    int synchronize_device(int device) override;

private:
    template <typename Call> int waiting(Call call);
};

// Emulated streams: a Python object with the stream and event entries of the driver table as methods, which raise what
// has the status as `error_code`. What they raise without one (as KeyboardInterrupt) becomes an Interruption: a wait ends
// with it, and everything else is done again, so an entry must do the same a second time.
class PythonStreams : public HostDriver {
public:
    PythonStreams(std::vector<HostMemory *> memories, nanobind::object streams)
        : HostDriver(std::move(memories)), streams_(std::move(streams)) {}

    int record(int device, Stream stream, Event *event) override;
    int query(int device, Event event) override;
    int synchronize(int device, Event event) override;
    int destroy_event(int device, Event event) override;
    int query_stream(int device, Stream stream) override;
    int synchronize_stream(int device, Stream stream) override;
    int synchronize_device(int device) override;
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
};

} // namespace tcuda
