// Calls of the C library that the watch of pages has to know of.
#pragma once

namespace tcuda::system_calls {

// From now on, these calls of the modules that are loaded now go through thunks, until the process ends:
//
// * Functions that let the system read or write memory, such as read() and send(). The system gets no signal at a
//   protected page, and such a call would fail with EFAULT. The thunk opens the pages, and tells the access.
// * Functions that install the handler of a signal. The handler of the watch then stays above the new handler.
//
// While nothing is watched, a thunk only asks for that. A second call adds the modules that were loaded since. Takes
// the lock of the loader. Throws std::bad_alloc.
void notice();

} // namespace tcuda::system_calls
