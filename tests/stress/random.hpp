// Random numbers of a thread.
#pragma once

#include <cstddef>
#include <cstdint>

// splitmix64
class Random {
public:
    explicit Random(std::uint64_t start) : state_(start * 0xD1B54A32D192ED03ull + 1) {}
    std::uint64_t operator()() {
        std::uint64_t x = state_ += 0x9E3779B97F4A7C15ull;
        x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9ull;
        x = (x ^ x >> 27) * 0x94D049BB133111EBull;
        return x ^ x >> 31;
    }
    std::size_t below(std::size_t bound) { return (*this)() % bound; }
    bool one_in(std::size_t chances) { return below(chances) == 0; }

private:
    std::uint64_t state_;
};
