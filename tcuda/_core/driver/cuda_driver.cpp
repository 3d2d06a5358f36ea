#include "driver/cuda_driver.hpp"

#include <new>
#include <stdexcept>

#include "driver/current_device.hpp"
#include "driver/host_nodes.hpp"
#include "driver/host_room.hpp"
#include "driver/own_memory_call.hpp"
#include "driver/status.hpp"
#include "driver/stream_key.hpp"

namespace tcuda {

CudaDriver::CudaDriver()
    : memory_(libcuda::calls<libcuda::MemoryCalls>()), host_memory_(libcuda::calls<libcuda::HostMemoryCalls>()),
      streams_(libcuda::calls<libcuda::StreamCalls>()), captures_(libcuda::calls<libcuda::CaptureCalls>()) {
    devices_.when_found([this](const CudaDevice &device) { imported_.allow(memory_, device); });
}

int CudaDriver::enter(int index) {
    const libcuda::ContextCalls &contexts = devices_.contexts();
    libcuda::Context current = 0;
    const int status = contexts.get_current(&current);
    if (status != success || current != 0)
        return status;
    try {
        return contexts.set_current(devices_.of(index).context);
    } catch (const std::runtime_error &) {
        return invalid_device;
    }
}

// Memory

int CudaDriver::allocate(int device, std::size_t size, Address *address) {
    const CurrentDevice current(devices_, captures_, device);
    const OwnMemoryCall own;
    libcuda::DevicePointer pointer = 0;
    const int status = current.status != success ? current.status : memory_.allocate(&pointer, size);
    *address = pointer;
    return status;
}

int CudaDriver::free(int device, Address address) {
    const CurrentDevice current(devices_, captures_, device);
    const OwnMemoryCall own;
    return current.status != success ? current.status : memory_.free(address);
}

int CudaDriver::memory_info(int device, std::size_t *free, std::size_t *total) {
    const CurrentDevice current(devices_, captures_, device);
    return current.status != success ? current.status : memory_.get_info(free, total);
}

int CudaDriver::granularity(int device, std::size_t *bytes) {
    const CurrentDevice current(devices_, captures_, device);
    *bytes = 0;
    if (current.status != success || !current.device->virtual_memory)
        return current.status;
    return memory_.granularity(bytes, &current.device->properties, libcuda::granularity_recommended);
}

int CudaDriver::reserve(int device, std::size_t size, Address *address) {
    const CurrentDevice current(devices_, captures_, device);
    libcuda::DevicePointer pointer = 0;
    const int status = current.status != success ? current.status : memory_.address_reserve(&pointer, size, 0, 0, 0);
    *address = pointer;
    return status;
}

int CudaDriver::release(int device, Address address, std::size_t size) {
    const CurrentDevice current(devices_, captures_, device);
    return current.status != success ? current.status : memory_.address_free(address, size);
}

int CudaDriver::create(int device, std::size_t size, Physical *physical) {
    const CurrentDevice current(devices_, captures_, device);
    if (current.status != success)
        return current.status;
    libcuda::AllocationProperties properties = current.device->properties;
    if (current.device->exportable)
        properties.requested_handle_types = libcuda::handle_type_file_descriptor;
    int status = memory_.create(physical, size, &properties, 0);
    // Some systems forbid exportable memory although the device has it. Other memory is better than none.
    if (status != success && status != out_of_memory && properties.requested_handle_types != 0) {
        properties.requested_handle_types = 0;
        status = memory_.create(physical, size, &properties, 0);
        if (status == success)
            current.device->exportable = false;
    }
    return status;
}

int CudaDriver::destroy(int device, Physical physical) {
    const CurrentDevice current(devices_, captures_, device);
    return current.status != success ? current.status : memory_.release(physical);
}

int CudaDriver::map(int device, Address address, std::size_t size, Physical physical) {
    const CurrentDevice current(devices_, captures_, device);
    int status = current.status != success ? current.status : memory_.map(address, size, 0, physical, 0);
    if (status != success)
        return status;
    status = memory_.set_access(address, size, current.device->access.data(), current.device->access.size());
    if (status != success)
        memory_.unmap(address, size);
    return status;
}

int CudaDriver::unmap(int device, Address address, std::size_t size) {
    const CurrentDevice current(devices_, captures_, device);
    return current.status != success ? current.status : memory_.unmap(address, size);
}

int CudaDriver::use(int device) {
    try {
        devices_.of(device);
        return success;
    } catch (const std::runtime_error &) {
        return invalid_device;
    }
}

// The stream of the copies: no stream of the program waits for it, and its use invalidates no capture of the program.
// Called in the context of the device.
int CudaDriver::copy_stream(int device, libcuda::Stream *stream) try {
    const std::lock_guard lock(copies_mutex_);
    libcuda::Stream &known = copy_streams_[device];
    int status = success;
    if (known == 0)
        status = libcuda::calls<libcuda::TransferCalls>().stream_create(&known, libcuda::stream_non_blocking);
    *stream = known;
    return status;
} catch (const std::bad_alloc &) {
    return out_of_memory;
}

int CudaDriver::copy(int device, Address to, Address from, std::size_t size) {
    const CurrentDevice current(devices_, captures_, device);
    const OwnMemoryCall own;
    libcuda::Stream stream = 0;
    const int status = current.status != success ? current.status : copy_stream(device, &stream);
    return status != success ? status : libcuda::calls<libcuda::TransferCalls>().copy(to, from, size, stream);
}

int CudaDriver::finish_copies(int device) {
    const CurrentDevice current(devices_, captures_, device);
    const OwnMemoryCall own;
    libcuda::Stream stream = 0;
    const int status = current.status != success ? current.status : copy_stream(device, &stream);
    return status != success ? status : streams_.synchronize(stream);
}

// Memory in several processes

int CudaDriver::allocation_of(int device, Address address, Address *begin, std::size_t *size) {
    const CurrentDevice current(devices_, captures_, device);
    libcuda::DevicePointer pointer = 0;
    const int status = current.status != success ? current.status : memory_.address_range(&pointer, size, address);
    *begin = pointer;
    return status;
}

int CudaDriver::export_physical(int device, Physical physical, int *descriptor) {
    const CurrentDevice current(devices_, captures_, device);
    *descriptor = -1;
    return current.status != success
               ? current.status
               : memory_.export_handle(descriptor, physical, libcuda::handle_type_file_descriptor, 0);
}

int CudaDriver::import_physical(int device, int descriptor, Physical *physical) {
    const CurrentDevice current(devices_, captures_, device);
    const auto handle = static_cast<std::uintptr_t>(descriptor); // the driver takes the descriptor as a pointer
    return current.status != success ? current.status
                                     : memory_.import_handle(physical, handle, libcuda::handle_type_file_descriptor);
}

int CudaDriver::map_imported(int device, Address address, std::size_t size, Physical physical) {
    const CurrentDevice current(devices_, captures_, device);
    int status = current.status != success ? current.status : memory_.map(address, size, 0, physical, 0);
    if (status != success)
        return status;
    try {
        status = imported_.add(memory_, *current.device, address, size);
    } catch (const std::bad_alloc &) {
        status = out_of_memory;
    }
    if (status != success)
        memory_.unmap(address, size);
    return status;
}

int CudaDriver::unmap_imported(int device, Address address, std::size_t size) {
    imported_.remove(address);
    return unmap(device, address, size);
}

// Page-locked memory of the host

// Whether the program uses the device. The question makes no context.
bool CudaDriver::is_active(int device) const {
    libcuda::Device handle;
    unsigned flags;
    int active = 0;
    return devices_.contexts().device_get(&handle, device) == success &&
           devices_.contexts().primary_state(handle, &flags, &active) == success && active != 0;
}

// The first device that the program uses: memory of the host needs a context, and a context takes memory of its device.
int CudaDriver::active_device() const {
    for (int device = 0; device < devices_.count(); ++device)
        if (is_active(device))
            return device;
    return 0;
}

int CudaDriver::host_allocate(std::size_t size, Address *address) {
    const CurrentDevice current(devices_, captures_, active_device());
    *address = 0;
    return current.status != success ? current.status
                                     : host_memory_.allocate(address, size, libcuda::host_memory_portable);
}

int CudaDriver::host_free(Address address, std::size_t) {
    const CurrentDevice current(devices_, captures_, active_device());
    return current.status != success ? current.status : host_memory_.free(address);
}

int CudaDriver::host_register(Address address, std::size_t size) {
    const CurrentDevice current(devices_, captures_, active_device());
    return current.status != success ? current.status : host_memory_.lock(address, size, libcuda::host_memory_portable);
}

int CudaDriver::host_unregister(Address address) {
    const CurrentDevice current(devices_, captures_, active_device());
    return current.status != success ? current.status : host_memory_.unlock(address);
}

std::size_t CudaDriver::host_room() { return tcuda::host_room(); }

int CudaDriver::host_node() {
    if (!has_several_host_nodes())
        return -1;
    libcuda::Context context = 0;
    libcuda::Device device;
    const bool current = devices_.contexts().get_current(&context) == success && context != 0;
    const int status = current ? devices_.contexts().current_device(&device)
                               : devices_.contexts().device_get(&device, active_device());
    int node = -1;
    if (status != success ||
        devices_.contexts().device_attribute(&node, libcuda::attribute_host_node, device) != success)
        return -1; // an older driver does not know the attribute
    return node;
}

// Streams and events

int CudaDriver::record(int device, Stream stream, Event *event) {
    const CurrentDevice current(devices_, captures_, device);
    Stream handle;
    int status = current.status != success ? current.status : handle_of(stream, &handle);
    if (status == success)
        status = streams_.event_create(event, libcuda::event_disable_timing);
    if (status != success)
        return status;
    status = streams_.event_record(*event, handle);
    if (status != success)
        streams_.event_destroy(*event);
    return status;
}

int CudaDriver::record_device(int device, Event *event) {
    if (*event == 0 && !is_active(device))
        return success;
    const CurrentDevice current(devices_, captures_, device);
    int status = current.status;
    if (status == success && *event == 0)
        status = streams_.event_create(event, libcuda::event_disable_timing);
    if (status != success)
        return status;
    try {
        return libcuda::calls<libcuda::ContextEventCalls>().record(current.device->context, *event);
    } catch (const std::runtime_error &) { // an older driver: only a wait is sure to cover all work
        return devices_.contexts().synchronize();
    }
}

int CudaDriver::query(int device, Event event) {
    const CurrentDevice current(devices_, captures_, device);
    return current.status != success ? current.status : streams_.event_query(event);
}

int CudaDriver::synchronize(int device, Event event) {
    const CurrentDevice current(devices_, captures_, device);
    return current.status != success ? current.status : streams_.event_synchronize(event);
}

int CudaDriver::destroy_event(int device, Event event) {
    const CurrentDevice current(devices_, captures_, device);
    return current.status != success ? current.status : streams_.event_destroy(event);
}

int CudaDriver::query_stream(int device, Stream stream) {
    const CurrentDevice current(devices_, captures_, device);
    Stream handle;
    const int status = current.status != success ? current.status : handle_of(stream, &handle);
    return status != success ? status : streams_.query(handle);
}

int CudaDriver::synchronize_stream(int device, Stream stream) {
    const CurrentDevice current(devices_, captures_, device);
    Stream handle;
    const int status = current.status != success ? current.status : handle_of(stream, &handle);
    return status != success ? status : streams_.synchronize(handle);
}

int CudaDriver::synchronize_device(int device) {
    const CurrentDevice current(devices_, captures_, device);
    return current.status != success ? current.status : devices_.contexts().synchronize();
}

int CudaDriver::fill(int device, Stream stream, Address address, std::size_t size, unsigned char value) {
    const CurrentDevice current(devices_, captures_, device);
    Stream handle;
    const int status = current.status != success ? current.status : handle_of(stream, &handle);
    return status != success ? status : libcuda::calls<libcuda::FillCalls>().fill(address, value, size, handle);
}

int CudaDriver::capture_of(int device, Stream stream, CaptureId *capture) {
    Stream handle;
    int state = 0;
    CaptureId number = 0;
    int status = handle_of(stream, &handle);
    if (status == success && handle > per_thread_stream) { // any other stream knows its context
        status = captures_.info(handle, &state, &number);
    } else if (status == success) {
        const CurrentDevice current(devices_, captures_, device);
        status = current.status != success ? current.status : captures_.info(handle, &state, &number);
    }
    // The stream is the default stream, and a stream that waits for it captures.
    if (status == capture_implicit) {
        *capture = some_capture;
        return success;
    }
    // Without a capture, the driver returns the number of the last capture.
    *capture = state != libcuda::capture_status_none ? number : 0;
    return status;
}

} // namespace tcuda
