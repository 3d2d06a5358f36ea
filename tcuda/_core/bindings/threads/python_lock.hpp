// The test whether a thread holds Python's lock, and the hand-over of that lock while a thread waits.
#pragma once

namespace tcuda {

// Whether this thread runs Python code now, and so holds the lock.
bool holds_python_lock();

// Lets threads give Python's lock back while they wait for a lock of the core.
void connect_interpreter();

} // namespace tcuda
