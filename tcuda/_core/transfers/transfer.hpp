// The work of one call on several devices: waits, copies and launches, in their order.
#pragma once

#include <cstddef>
#include <cstdint>

#include "driver/libcuda.hpp"
#include "driver/status.hpp"
#include "transfers/transfer_devices.hpp"

namespace tcuda {

// A stream. The handle of a default stream means the default stream of the device.
struct Place {
    int device;
    libcuda::Stream stream;
};

// Memory, and the stream of its device.
struct End {
    Place place;
    std::uint64_t address;
};

// Asked before each wait while captures are in progress.
class WaitGuard {
public:
    virtual ~WaitGuard() = default;

    // Whether the stream may wait. If not, the work ends without a status.
    virtual bool allows(const Place &waiting, const Place &awaited) = 0;
};

// The functions return false if they failed, or if an earlier function failed: then they do nothing. The context that
// was current is current again when the object ends.
class Transfer {
public:
    // Throws std::runtime_error where there is no driver. `guard` is null if no capture is in progress.
    explicit Transfer(TransferDevices &devices, WaitGuard *guard = nullptr);
    ~Transfer();
    Transfer(const Transfer &) = delete;
    Transfer &operator=(const Transfer &) = delete;

    // The status of the first failure, and the name of the call that failed.
    int status() const { return status_; }
    const char *failed_call() const { return failed_call_; }

    // Makes the context of `device` current.
    bool enter(int device);

    // Lets later work of one stream wait for the work that the other stream has now.
    bool wait(const Place &waiting, const Place &awaited);

    // Copies bytes on the stream of `source`.
    bool copy(const End &target, const End &source, std::size_t bytes);
    bool copy_rows(const End &target, std::size_t target_pitch, const End &source, std::size_t source_pitch,
                   std::size_t width, std::size_t rows);

    // Launches a kernel of the device of `place`.
    bool launch(const Place &place, libcuda::Function function, unsigned blocks, unsigned threads, void **arguments);

    // Copies on the stream of `source`, which first waits for the stream of `target`; the stream of `target` then waits
    // for the copy. `is_first` is false if an earlier hop of the two has waited already.
    bool hop(const End &target, const End &source, std::size_t bytes, bool is_first = true) {
        return (!is_first || wait(source.place, target.place)) && copy(target, source, bytes) &&
               wait(target.place, source.place);
    }

    // After a failure: waits for the work of the stream, so that its memory may be freed. Does nothing during captures.
    void settle(const Place &place);

private:
    bool done(int status, const char *call) {
        if (status == success)
            return true;
        status_ = status;
        failed_call_ = call;
        return false;
    }

    TransferDevices &devices_;
    WaitGuard *const guard_;
    const libcuda::StreamCalls &streams_;
    const libcuda::TransferCalls &calls_;
    libcuda::Context before_ = 0, current_ = 0;
    int device_ = -1; // the device whose context this object has made current
    int status_ = success;
    bool is_refused_ = false; // whether the guard has refused a wait
    const char *failed_call_ = "";
};

} // namespace tcuda
