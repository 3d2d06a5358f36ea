// Reports of the accesses of the host to page-locked memory in use.
#pragma once

namespace tcuda {

struct PythonRaceDetector;

// How a race with an access reaches the detector's `on_race`. `at_once`: in the thread of the access. The program gets
// an exception of `on_race` after the access. `pending`: by pending_races().
enum class HostReports { at_once, pending };

// Reports the accesses to `detector`, until end_host_reports(). A process has one such detector, the last one. An
// access of a thread without Python code, such as a thread of the driver or of BLAS, is not reported: the thread must
// not wait for Python's lock. An access in a call of the driver is not reported either. Does nothing on a machine that
// does not tell reads from writes. The caller holds Python's lock. Throws std::bad_alloc, or std::system_error if the
// system refuses the handler.
void begin_host_reports(PythonRaceDetector &detector, HostReports way);

// Ends the reports of `detector`, and waits until no other thread reports. No page is protected after the call. The
// caller holds Python's lock, which is given back while the function waits.
void end_host_reports(PythonRaceDetector &detector) noexcept;

} // namespace tcuda
