// The work of one call on several devices: waits, copies and launches, in their order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "driver/libcuda.hpp"
#include "driver/status.hpp"
#include "transfers/pack_tables.hpp"
#include "transfers/transfer_devices.hpp"

namespace tcuda {

// A stream. The handle of a default stream means the default stream of the device.
struct Place {
    int device;
    libcuda::Stream stream;

    bool operator==(const Place &other) const { return device == other.device && stream == other.stream; }
};

// Memory, and the stream of its device.
struct End {
    Place place;
    std::uint64_t address;
};

// Bytes that are copied.
struct Copy {
    End source, target;
    std::uint64_t bytes;
};

// The kernel that packs arrays.
struct PackKernel {
    libcuda::Function function;
    bool is_large; // whether the table is large
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
//
// Work that waits for events of other devices takes several microseconds longer on a legacy default stream than on
// other streams. So the work of such a stream runs in a lane: a side stream of the device, which first waits for the
// default stream. finish() lets the default stream wait for the lane. The lane of another stream is the stream itself.
// So is the lane of every stream during captures.
class Transfer {
public:
    // Throws std::runtime_error where there is no driver. `guard` is null if no capture is in progress. Without
    // `side_streams`, the lane of each stream is the stream itself.
    explicit Transfer(TransferDevices &devices, WaitGuard *guard = nullptr, bool side_streams = true);
    ~Transfer();
    Transfer(const Transfer &) = delete;
    Transfer &operator=(const Transfer &) = delete;

    // The status of the first failure, and the name of the call that failed.
    int status() const { return status_; }
    const char *failed_call() const { return failed_call_; }

    // Makes the context of `device` current.
    bool enter(int device);

    // Finds the lane of `place`. The lane has waited for the work that the stream had at the first call.
    bool open(const Place &place, Place *lane);
    // Lets the stream of the lane, and other streams, wait for the lane.
    bool finish(const Place &lane, const std::vector<Place> &others = {});

    // Lets later work of the streams wait for the work that `awaited` has now.
    bool wait(const Place &waiting, const Place &awaited) { return wait(&waiting, 1, awaited); }
    bool wait(const Place *waiting, std::size_t count, const Place &awaited);

    // Copies bytes in a lane of the device of `source`.
    bool copy(const Place &lane, const End &target, const End &source, std::size_t bytes);
    // Copies bytes of the host.
    bool upload(const End &target, const void *source, std::size_t bytes);
    bool copy_rows(const Place &lane, const End &target, std::size_t target_pitch, const End &source,
                   std::size_t source_pitch, std::size_t width, std::size_t rows);

    // Copies arrays of the device of the lane to the address `target`.
    bool pack(const Place &lane, const PackKernel &kernel, std::uint64_t target,
              const std::vector<PackedArray> &arrays);
    // Launches a kernel in a lane.
    bool launch(const Place &lane, libcuda::Function function, unsigned blocks, unsigned threads, void **arguments);

    // The whole work of a call, with all waits.

    // Makes the copies in their order. A copy is work of its source's stream, which waits for the target's stream
    // before its first copy to it. The target's stream then waits for the copies.
    bool relay(const std::vector<Copy> &copies);
    // Launches a kernel that reads memory of `peers`, which then wait for the kernel if `releases`.
    bool add(const Place &place, const std::vector<Place> &peers, libcuda::Function function, unsigned blocks,
             unsigned threads, void **arguments, bool releases = true);

    // After a failure: waits for the work of the streams and of the lanes, so that their memory may be freed. Does
    // nothing during captures.
    void settle(const std::vector<Place> &places);

private:
    struct Lane {
        Place place, side;
    };

    bool done(int status, const char *call) {
        if (status == success)
            return true;
        status_ = status;
        failed_call_ = call;
        return false;
    }
    void settle(const Place &place);

    TransferDevices &devices_;
    WaitGuard *const guard_;
    const bool side_streams_;
    const libcuda::StreamCalls &streams_;
    const libcuda::TransferCalls &calls_;
    libcuda::Context before_ = 0, current_ = 0;
    int device_ = -1; // the device whose context this object has made current
    int status_ = success;
    bool is_refused_ = false; // whether the guard has refused a wait
    const char *failed_call_ = "";
    std::vector<Lane> lanes_; // that are open
};

} // namespace tcuda
