// Interruptions of grids that run for long.
#pragma once

namespace tcuda {

class Grid;

// While it exists, `grid` is interrupted again and again, the first time after 50 to 100 ms. A thread of the process does
// so, which starts with the first watch and sleeps while there is none.
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
    bool seen_ = false; // by the thread, at the end of an interval
};

} // namespace tcuda
