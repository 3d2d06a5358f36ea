// Interruptions of grids that run for long.
#pragma once

namespace tcuda {

class Grid;

// While the watch exists, a thread of the process interrupts `grid` again and again, the first time after 50 to 100 ms.
// The thread starts with the first watch, and sleeps while there is no watch.
class Watch {
public:
    explicit Watch(Grid &grid);
    ~Watch();
    Watch(const Watch &) = delete;
    Watch &operator=(const Watch &) = delete;

private:
    friend class Watchdog;

    Grid &grid_;
    Watch *next_;
    Watch *previous_ = nullptr;
    bool seen_ = false; // whether the thread has seen the watch at the end of an interval
};

} // namespace tcuda
