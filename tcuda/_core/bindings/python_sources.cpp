#include "bindings/python_sources.hpp"

#include "bindings/interruption.hpp"
#include "bindings/python_stacks.hpp"
#include "driver/stream_key.hpp"

namespace nb = nanobind;

namespace tcuda {
namespace {

// Drops a reference, unless Python is no longer there to drop it.
void drop(nb::object &object) {
    if (!Py_IsInitialized()) {
        object.release();
        return;
    }
    const nb::gil_scoped_acquire lock;
    object.reset();
}

} // namespace

PythonSource::~PythonSource() { drop(pool_); }

Address PythonSource::allocate(std::size_t size, int device, Stream stream, void **token) {
    const nb::gil_scoped_acquire lock;
    try {
        nb::object memory = pool_.attr("allocate")(size, device, stream);
        const auto address = nb::cast<Address>(memory.attr("ptr"));
        if (address != 0)
            *token = memory.release().ptr();
        return address;
    } catch (nb::python_error &error) {
        if (!error.matches(PyExc_MemoryError))
            throw;
        return 0;
    }
}

void PythonSource::free(Address, std::size_t, int, Stream, void *token) noexcept {
    if (!Py_IsInitialized())
        return;
    const nb::gil_scoped_acquire lock;
    nb::object(nb::steal(static_cast<PyObject *>(token))).reset();
}

void PythonSource::empty_cache(int device) {
    const nb::gil_scoped_acquire lock;
    pool_.attr("empty_cache")(device);
}

OwnedLibrarySource::~OwnedLibrarySource() { drop(owner_); }

void OwnedLibrarySource::report(const char *text) noexcept {
    if (!Py_IsInitialized()) {
        LibrarySource::report(text);
        return;
    }
    const nb::gil_scoped_acquire lock;
    const nb::error_scope before; // the free may be part of the handling of an error
    PyErr_SetString(PyExc_RuntimeError, text);
    PyErr_WriteUnraisable(owner_.ptr());
}

template <typename Call> int PythonCudaDriver::waiting(Call call) {
    if (!holds_python_lock())
        return call();
    const nb::gil_scoped_release release;
    return call();
}

int PythonCudaDriver::synchronize(int device, Event event) {
    return waiting([&] { return CudaDriver::synchronize(device, event); });
}

int PythonCudaDriver::synchronize_stream(int device, Stream stream) {
    return waiting([&] { return CudaDriver::synchronize_stream(device, stream); });
}

int PythonCudaDriver::synchronize_device(int device) {
    return waiting([&] { return CudaDriver::synchronize_device(device); });
}

template <typename... Arguments>
int PythonStreams::call(std::uint64_t *result, Entry entry, Arguments... arguments) {
    constexpr int unknown = 999, most_interruptions = 10;
    const nb::gil_scoped_acquire lock;
    for (int i = 0; i < most_interruptions && !(entry.waits && Interruption::pending()); ++i) {
        try {
            const Interruption outer;
            *result = nb::cast<std::uint64_t>(streams_.attr(entry.name)(arguments...));
            return success;
        } catch (nb::python_error &error) {
            int status = unknown;
            if (nb::try_cast(nb::getattr(error.value(), "error_code", nb::none()), status))
                return status;
            Interruption::keep(error);
        } catch (const nb::cast_error &) {
            return unknown;
        }
    }
    return unknown;
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

int PythonStreams::capture_of(int device, Stream stream, CaptureId *capture) {
    *capture = 0;
    return status_of_stream({"capture_of", false}, device, stream, capture);
}

} // namespace tcuda
