// The memory of a pool.
#pragma once

#include <cstddef>
#include <deque>
#include <type_traits>
#include <vector>

#include "emulation/_cpp/kernels/races/reserved_memory.hpp"
#include <tcuda_races.h>

namespace tcuda {

// Gives the pool more objects when the pool has none left. An object keeps its place, so no growth copies objects.
template <typename Object> class PoolMemory {
public:
    explicit PoolMemory(Pool<Object> &pool) : pool_(pool) { pool_ = {nullptr, Pool<Object>::none}; }
    ~PoolMemory() { pool_ = {nullptr, Pool<Object>::none}; }
    PoolMemory(const PoolMemory &) = delete;
    PoolMemory &operator=(const PoolMemory &) = delete;

    // The number of an object with any contents.
    unsigned take() {
        if (pool_.free == Pool<Object>::none)
            grow();
        return pool_.take();
    }

private:
    static_assert(std::is_trivially_copyable_v<Object>);

    void grow() {
        constexpr unsigned count = Pool<Object>::chunk;
        constexpr std::size_t bytes = count * sizeof(Object), chunks_of_piece = 16;
        if (left_ == 0) {
            // The first pieces are small, because most launches use little memory.
            left_ = pieces_.size() < 2 ? 1 : chunks_of_piece;
            pieces_.emplace_back(left_ * bytes);
            if (left_ > 1)
                pieces_.back().use_large_pages(0, left_ * bytes);
            next_ = static_cast<Object *>(pieces_.back().begin());
        }
        addresses_.push_back(next_);
        next_ += count;
        --left_;
        pool_.chunks = addresses_.data();
        for (unsigned left = count; left != 0; --left) // The first object is the first to be taken.
            pool_.give_back(static_cast<unsigned>(addresses_.size() - 1) * count + left - 1);
    }

    Pool<Object> &pool_;
    std::deque<ReservedMemory> pieces_;
    std::vector<Object *> addresses_; // of the chunks
    Object *next_ = nullptr;          // the next chunk
    std::size_t left_ = 0;            // the chunks that the last piece has left
};

} // namespace tcuda
