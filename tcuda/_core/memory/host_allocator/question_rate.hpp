// How often allocations of small blocks ask the devices about freed blocks.
#pragma once

#include <cstddef>

#include "memory/host_allocator/host_sizes.hpp"

namespace tcuda {

// A question answers for all blocks that were freed before. A program that allocates and frees one block again and
// again has one or two freed blocks when the program needs memory, and so asks at nearly each allocation. The reserve
// is one more segment for small blocks. With the reserve, the program asks once for all blocks of the reserve. Larger
// blocks need no reserve, because the copy of a larger block takes far longer than the question.
//
// The reserve is taken when the questions have taken about as long as the driver takes for the memory (some
// milliseconds). So a program that ends earlier takes no more memory, and no program loses more than that time.
class QuestionRate {
public:
    // A question made `bytes` free.
    void asked(std::size_t bytes) { questions_ = bytes < small_host_reserve ? questions_ + 1 : 0; }

    // Whether a reserve would have saved the time of a call of the driver.
    bool is_too_high() const { return questions_ >= most_questions; }
    void reset() { questions_ = 0; }

private:
    static constexpr unsigned most_questions = 4000; // a question takes about 1 microsecond

    unsigned questions_ = 0; // since a question made as much free as a reserve has
};

} // namespace tcuda
