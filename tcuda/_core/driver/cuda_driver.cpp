#include "driver/cuda_driver.hpp"

#include <dlfcn.h>

#include <stdexcept>
#include <string>

#include "driver/stream_key.hpp"

namespace tcuda {
namespace {

// Types, values and layouts as cuda.h has them.
using Context = struct CUctx_st *;
using Handle = int;
using DevicePointer = unsigned long long;

struct Location {
    int type, id;
};
struct AllocationProperties {
    int type, requested_handle_types;
    Location location;
    void *win32_metadata;
    unsigned char compression, gpu_direct_rdma;
    unsigned short usage;
    unsigned char reserved[4];
};
struct AccessDescription {
    Location location;
    int flags;
};

constexpr int allocation_pinned = 1, location_device = 1, access_read_write = 3, granularity_recommended = 1;
constexpr int event_disable_timing = 2, capture_relaxed = 2;
constexpr int has_virtual_memory = 102, has_virtual_rdma = 110; // device attributes

} // namespace

struct CudaSymbols {
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);

    template <typename Function> struct Symbol {
        Symbol(void *library, const char *name) : function(reinterpret_cast<Function *>(dlsym(library, name))) {
            if (function == nullptr)
                throw std::runtime_error(std::string("libcuda.so.1 has no ") + name + ": the driver is too old");
        }
        template <typename... Arguments> int operator()(Arguments... arguments) const { return function(arguments...); }
        Function *function;
    };

    Symbol<int(unsigned)> init{checked(), "cuInit"};
    Symbol<int(int *)> device_count{library, "cuDeviceGetCount"};
    Symbol<int(Handle *, int)> device_get{library, "cuDeviceGet"};
    Symbol<int(int *, int, Handle)> device_attribute{library, "cuDeviceGetAttribute"};
    Symbol<int(int *, Handle, Handle)> can_access_peer{library, "cuDeviceCanAccessPeer"};
    Symbol<int(Context *, Handle)> retain_context{library, "cuDevicePrimaryCtxRetain"};
    Symbol<int(Context *)> get_context{library, "cuCtxGetCurrent"};
    Symbol<int(Context)> set_context{library, "cuCtxSetCurrent"};
    Symbol<int(Context)> push_context{library, "cuCtxPushCurrent_v2"};
    Symbol<int(Context *)> pop_context{library, "cuCtxPopCurrent_v2"};
    Symbol<int()> synchronize_context{library, "cuCtxSynchronize"};
    Symbol<int(int *)> exchange_capture_mode{library, "cuThreadExchangeStreamCaptureMode"};
    Symbol<int(DevicePointer *, std::size_t)> mem_alloc{library, "cuMemAlloc_v2"};
    Symbol<int(DevicePointer)> mem_free{library, "cuMemFree_v2"};
    Symbol<int(std::size_t *, std::size_t *)> mem_get_info{library, "cuMemGetInfo_v2"};
    Symbol<int(std::size_t *, const AllocationProperties *, int)> granularity{library, "cuMemGetAllocationGranularity"};
    Symbol<int(DevicePointer *, std::size_t, std::size_t, DevicePointer, unsigned long long)> address_reserve{
        library, "cuMemAddressReserve"};
    Symbol<int(DevicePointer, std::size_t)> address_free{library, "cuMemAddressFree"};
    Symbol<int(Physical *, std::size_t, const AllocationProperties *, unsigned long long)> mem_create{library,
                                                                                                      "cuMemCreate"};
    Symbol<int(Physical)> mem_release{library, "cuMemRelease"};
    Symbol<int(DevicePointer, std::size_t, std::size_t, Physical, unsigned long long)> mem_map{library, "cuMemMap"};
    Symbol<int(DevicePointer, std::size_t)> mem_unmap{library, "cuMemUnmap"};
    Symbol<int(DevicePointer, std::size_t, const AccessDescription *, std::size_t)> set_access{library,
                                                                                               "cuMemSetAccess"};
    Symbol<int(Event *, unsigned)> event_create{library, "cuEventCreate"};
    Symbol<int(Event, Stream)> event_record{library, "cuEventRecord"};
    Symbol<int(Event)> event_query{library, "cuEventQuery"};
    Symbol<int(Event)> event_synchronize{library, "cuEventSynchronize"};
    Symbol<int(Event)> event_destroy{library, "cuEventDestroy_v2"};
    Symbol<int(Stream)> stream_query{library, "cuStreamQuery"};
    Symbol<int(Stream)> stream_synchronize{library, "cuStreamSynchronize"};
    Symbol<int(Stream, int *, CaptureId *)> capture_info{library, "cuStreamGetCaptureInfo"};

private:
    void *checked() const {
        if (library == nullptr)
            throw std::runtime_error(std::string("libcuda.so.1 cannot be loaded: ") + dlerror());
        return library;
    }
};

struct CudaDriver::Device {
    Handle handle = 0;
    Context context = nullptr;
    AllocationProperties properties{};
    std::vector<AccessDescription> access; // of the device itself, and of those that can access it
    bool virtual_memory = false;
};

// The primary context of a device is current, and captures forbid nothing, while it lives.
class CudaDriver::Scope {
public:
    Scope(CudaDriver &driver, int index) : cuda_(*driver.cuda_) {
        try {
            device = &driver.device(index);
        } catch (const std::runtime_error &) {
            status = 101; // cudaErrorInvalidDevice
            return;
        }
        status = cuda_.push_context(device->context);
        if (status == success) {
            pushed_ = true;
            cuda_.exchange_capture_mode(&mode_);
        }
    }
    ~Scope() {
        if (pushed_) {
            cuda_.exchange_capture_mode(&mode_);
            Context popped;
            cuda_.pop_context(&popped);
        }
    }
    Scope(const Scope &) = delete;
    Scope &operator=(const Scope &) = delete;

    int status = success;
    Device *device = nullptr;

private:
    const CudaSymbols &cuda_;
    int mode_ = capture_relaxed;
    bool pushed_ = false;
};

CudaDriver::CudaDriver() : cuda_(std::make_unique<CudaSymbols>()) {
    int count = 0;
    if (cuda_->init(0) != success || cuda_->device_count(&count) != success)
        throw std::runtime_error("libcuda.so.1 finds no device");
    devices_.resize(static_cast<std::size_t>(count));
}

CudaDriver::~CudaDriver() = default; // contexts and events go with the process

CudaDriver::Device &CudaDriver::device(int index) {
    const std::lock_guard lock(mutex_);
    auto &known = devices_.at(static_cast<std::size_t>(index));
    if (known != nullptr)
        return *known;
    auto made = std::make_unique<Device>();
    int virtual_memory = 0, rdma = 0;
    if (cuda_->device_get(&made->handle, index) != success || cuda_->retain_context(&made->context, made->handle) != success)
        throw std::runtime_error("the device has no context");
    cuda_->device_attribute(&virtual_memory, has_virtual_memory, made->handle);
    cuda_->device_attribute(&rdma, has_virtual_rdma, made->handle);
    made->virtual_memory = virtual_memory != 0;
    made->properties.type = allocation_pinned;
    made->properties.location = {location_device, made->handle};
    made->properties.gpu_direct_rdma = rdma != 0;
    // Mapped memory is out of cudaDeviceEnablePeerAccess()'s reach: peers get access when it is mapped.
    for (int other = 0; other < static_cast<int>(devices_.size()); ++other) {
        Handle handle;
        int can = other == index;
        if (cuda_->device_get(&handle, other) == success &&
            (can != 0 || (cuda_->can_access_peer(&can, handle, made->handle) == success && can != 0)))
            made->access.push_back({{location_device, handle}, access_read_write});
    }
    known = std::move(made);
    return *known;
}

int CudaDriver::enter(int index) {
    Context current = nullptr;
    const int status = cuda_->get_context(&current);
    if (status != success || current != nullptr)
        return status;
    try {
        return cuda_->set_context(device(index).context);
    } catch (const std::runtime_error &) {
        return 101; // cudaErrorInvalidDevice
    }
}

// Memory

int CudaDriver::allocate(int device, std::size_t size, Address *address) {
    const Scope scope(*this, device);
    DevicePointer pointer = 0;
    const int status = scope.status != success ? scope.status : cuda_->mem_alloc(&pointer, size);
    *address = pointer;
    return status;
}

int CudaDriver::free(int device, Address address) {
    const Scope scope(*this, device);
    return scope.status != success ? scope.status : cuda_->mem_free(address);
}

int CudaDriver::memory_info(int device, std::size_t *free, std::size_t *total) {
    const Scope scope(*this, device);
    return scope.status != success ? scope.status : cuda_->mem_get_info(free, total);
}

int CudaDriver::granularity(int device, std::size_t *bytes) {
    const Scope scope(*this, device);
    *bytes = 0;
    if (scope.status != success || !scope.device->virtual_memory)
        return scope.status;
    return cuda_->granularity(bytes, &scope.device->properties, granularity_recommended);
}

int CudaDriver::reserve(int device, std::size_t size, Address *address) {
    const Scope scope(*this, device);
    DevicePointer pointer = 0;
    const int status = scope.status != success ? scope.status : cuda_->address_reserve(&pointer, size, 0, 0, 0);
    *address = pointer;
    return status;
}

int CudaDriver::release(int device, Address address, std::size_t size) {
    const Scope scope(*this, device);
    return scope.status != success ? scope.status : cuda_->address_free(address, size);
}

int CudaDriver::create(int device, std::size_t size, Physical *physical) {
    const Scope scope(*this, device);
    return scope.status != success ? scope.status
                                   : cuda_->mem_create(physical, size, &scope.device->properties, 0);
}

int CudaDriver::destroy(int device, Physical physical) {
    const Scope scope(*this, device);
    return scope.status != success ? scope.status : cuda_->mem_release(physical);
}

int CudaDriver::map(int device, Address address, std::size_t size, Physical physical) {
    const Scope scope(*this, device);
    int status = scope.status != success ? scope.status : cuda_->mem_map(address, size, 0, physical, 0);
    if (status != success)
        return status;
    status = cuda_->set_access(address, size, scope.device->access.data(), scope.device->access.size());
    if (status != success)
        cuda_->mem_unmap(address, size);
    return status;
}

int CudaDriver::unmap(int device, Address address, std::size_t size) {
    const Scope scope(*this, device);
    return scope.status != success ? scope.status : cuda_->mem_unmap(address, size);
}

// Streams and events

int CudaDriver::record(int device, Stream stream, Event *event) {
    const Scope scope(*this, device);
    Stream handle;
    int status = scope.status != success ? scope.status : handle_of(stream, &handle);
    if (status == success)
        status = cuda_->event_create(event, event_disable_timing);
    if (status != success)
        return status;
    status = cuda_->event_record(*event, handle);
    if (status != success)
        cuda_->event_destroy(*event);
    return status;
}

int CudaDriver::query(int device, Event event) {
    const Scope scope(*this, device);
    return scope.status != success ? scope.status : cuda_->event_query(event);
}

int CudaDriver::synchronize(int device, Event event) {
    const Scope scope(*this, device);
    return scope.status != success ? scope.status : cuda_->event_synchronize(event);
}

int CudaDriver::destroy_event(int device, Event event) {
    const Scope scope(*this, device);
    return scope.status != success ? scope.status : cuda_->event_destroy(event);
}

int CudaDriver::query_stream(int device, Stream stream) {
    const Scope scope(*this, device);
    Stream handle;
    const int status = scope.status != success ? scope.status : handle_of(stream, &handle);
    return status != success ? status : cuda_->stream_query(handle);
}

int CudaDriver::synchronize_stream(int device, Stream stream) {
    const Scope scope(*this, device);
    Stream handle;
    const int status = scope.status != success ? scope.status : handle_of(stream, &handle);
    return status != success ? status : cuda_->stream_synchronize(handle);
}

int CudaDriver::synchronize_device(int device) {
    const Scope scope(*this, device);
    return scope.status != success ? scope.status : cuda_->synchronize_context();
}

int CudaDriver::capture_of(int device, Stream stream, CaptureId *capture) {
    Stream handle;
    int state = 0;
    CaptureId number = 0;
    int status = handle_of(stream, &handle);
    if (status == success && handle > per_thread_stream) { // such a stream knows its context
        status = cuda_->capture_info(handle, &state, &number);
    } else if (status == success) {
        const Scope scope(*this, device);
        status = scope.status != success ? scope.status : cuda_->capture_info(handle, &state, &number);
    }
    constexpr int implicit = 906; // the default stream, while another stream that waits for it captures
    *capture = status == implicit ? some_capture : state != 0 ? number : 0; // without a capture the number is the last one
    return status == implicit ? success : status;
}

} // namespace tcuda
