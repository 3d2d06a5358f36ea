// The memory that names a stream, by stream: the end of a stream must not look at all memory of the device.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <utility>

#include "driver/driver.hpp"
#include "memory/allocator/address_map.hpp"

namespace tcuda {

struct Heap;
struct Work;

// A stream from the first memory that names the stream until no memory names it any more. The driver may give the
// handle of a destroyed stream to another stream, which has another life.
struct StreamLife {
    Stream stream = 0;
    std::shared_ptr<Work> end; // the last work of the stream, once the stream is destroyed
    Heap *heaps = nullptr;     // the first heap of the stream; the others, in all pools, are linked by `after`
    std::size_t ties = 0;      // the number of blocks and waits that name the stream
    StreamLife *spare = nullptr;

    bool is_used() const { return ties != 0 || heaps != nullptr; }
};

// The lives of all streams that memory names. The lock of the device's ledger guards them.
class StreamLives {
public:
    StreamLives() = default;
    StreamLives(const StreamLives &) = delete;
    StreamLives &operator=(const StreamLives &) = delete;

    // The life of the stream that has the handle now. May throw std::bad_alloc.
    StreamLife &of(Stream stream) {
        if (StreamLife *known = find(stream))
            return *known;
        by_stream_.reserve_one();
        if (spare_ == nullptr) {
            store_.emplace_back();
            spare_ = &store_.back();
        }
        StreamLife *made = std::exchange(spare_, spare_->spare);
        made->stream = stream;
        by_stream_.insert(key_of_life(stream), made);
        return *made;
    }

    // The same, or null if no memory names the stream.
    StreamLife *find(Stream stream) const { return by_stream_.find(key_of_life(stream)); }

    // Notes the last work of a stream that is being destroyed.
    void end(StreamLife &life, std::shared_ptr<Work> end) {
        by_stream_.erase(key_of_life(life.stream));
        life.end = std::move(end);
        if (!life.is_used())
            remove(life);
    }

    void tie(StreamLife &life) { ++life.ties; }
    void untie(StreamLife &life) {
        --life.ties;
        forget_unused(life);
    }

    // Called when the heaps or the ties of a life have become fewer.
    void forget_unused(StreamLife &life) {
        if (life.is_used())
            return;
        if (life.end == nullptr)
            by_stream_.erase(key_of_life(life.stream));
        remove(life);
    }

private:
    // The key is never 0, because AddressMap uses 0 for an empty place.
    static std::uintptr_t key_of_life(Stream stream) { return stream + 1; }

    void remove(StreamLife &life) {
        life.end = nullptr;
        life.spare = std::exchange(spare_, &life);
    }

    std::deque<StreamLife> store_;
    AddressMap<StreamLife> by_stream_;
    StreamLife *spare_ = nullptr; // linked by `spare`
};

// Names a stream by its life, as long as the tie exists. A tie may be empty.
class StreamTie {
public:
    StreamTie() = default;
    StreamTie(StreamLives &lives, StreamLife &life) : lives_(&lives), life_(&life) { lives.tie(life); }
    StreamTie(StreamTie &&other) noexcept : lives_(other.lives_), life_(std::exchange(other.life_, nullptr)) {}
    StreamTie &operator=(StreamTie &&) = delete;
    ~StreamTie() { end(); }

    void end() {
        if (life_ != nullptr)
            lives_->untie(*std::exchange(life_, nullptr));
    }

    // The last work of the stream; null if the stream is not destroyed, or the tie is empty.
    std::shared_ptr<Work> last_work() const { return life_ == nullptr ? nullptr : life_->end; }
    bool is_gone() const { return life_ != nullptr && life_->end != nullptr; }

private:
    StreamLives *lives_ = nullptr;
    StreamLife *life_ = nullptr;
};

} // namespace tcuda
