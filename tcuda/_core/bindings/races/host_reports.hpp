// The accesses of the host to page-locked memory in use, as a detector hears of them.
#pragma once

namespace tcuda {

struct PythonRaceDetector;

// How a race that an access makes reaches the detector's `on_race`: in the thread of the access, whose program gets the
// exception after the access, or by pending_races().
enum class HostReports { at_once, pending };

// Lets `detector` hear of the accesses, until end_host_reports(). A process has one such detector, the last one. An
// access of a thread without Python code, such as a thread of the driver or of BLAS, is not reported: the thread must
// not wait for Python's lock. Nor is an access in a call of the driver. Does nothing on a machine that does not tell
// reads from writes. The caller holds Python's lock. Throws std::bad_alloc, or std::system_error if the system refuses
// the handler.
void begin_host_reports(PythonRaceDetector &detector, HostReports way);

// Ends the reports of `detector`, and waits until no other thread reports. No page is protected after the call. The
// caller holds Python's lock, which is given back while the function waits.
void end_host_reports(PythonRaceDetector &detector) noexcept;

} // namespace tcuda
