#include "bindings/stack_keeper.hpp"

#include <nanobind/nanobind.h>
#include <pthread.h>
#include <signal.h>

#include <algorithm>
#include <new>
#include <system_error>
#include <utility>

#include "threads/published.hpp"

namespace tcuda {

void StackKeeper::begin(Duration patience) {
    const std::lock_guard lock(mutex_);
    patience_ = patience;
    ++users_;
    if (!running_)
        start();
}

// The thread handles no signals of the program.
void StackKeeper::start() {
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    try {
        thread_ = std::thread([this] { run(); });
        running_ = true;
        in_vain_ = 0;
    } catch (const std::system_error &) {
    }
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

void StackKeeper::end() {
    {
        const std::lock_guard lock(mutex_);
        if (users_ == 0 || --users_ > 0)
            return;
    }
    end_all();
}

void StackKeeper::end_all() {
    std::thread thread;
    {
        const std::lock_guard lock(mutex_);
        users_ = 0;
        running_ = false;
        thread = std::move(thread_);
        for (Request *const request : requests_)
            request->done = true;
        requests_.clear();
        wanted_.notify_all();
        done_.notify_all();
    }
    if (thread.joinable()) {
        const nanobind::gil_scoped_release released; // the thread may wait for Python's lock
        thread.join();
    }
}

bool StackKeeper::keep(const StackFrames &frames) {
    std::unique_lock lock(mutex_);
    if (!running_ || (in_vain_ >= tries && std::chrono::steady_clock::now() < no_wait_before_))
        return false;
    Request request{&frames};
    requests_.push_back(&request);
    wanted_.notify_one();
    if (done_.wait_for(lock, patience_, [&] { return request.done; })) {
        in_vain_ = 0;
        return request.kept;
    }
    requests_.erase(std::find(requests_.begin(), requests_.end(), &request));
    if (++in_vain_ >= tries)
        no_wait_before_ = std::chrono::steady_clock::now() + rest * patience_;
    return false;
}

// The thread keeps one thread state of Python for its whole life. Python 3.11 makes and deletes a thread state under a
// lock, without the interpreter lock: a child that is forked at that moment waits for that lock for ever.
void StackKeeper::run() {
    const PyGILState_STATE held = PyGILState_Ensure();
    PyThreadState *const thread = PyEval_SaveThread();
    serve_until_end();
    PyEval_RestoreThread(thread);
    PyGILState_Release(held);
}

void StackKeeper::serve_until_end() {
    const std::thread::id self = std::this_thread::get_id();
    std::unique_lock lock(mutex_);
    // After end_all(), another thread may be the keeper already.
    const auto goes_on = [&] { return running_ && thread_.get_id() == self; };
    while (goes_on()) {
        if (requests_.empty()) {
            wanted_.wait(lock);
            continue;
        }
        lock.unlock();
        {
            const nanobind::gil_scoped_acquire held;
            lock.lock();
            serve();
            lock.unlock();
        }
        lock.lock();
    }
}

void StackKeeper::serve() {
    for (Request *const request : requests_) {
        try {
            stack_table().keep(*request->frames);
            request->kept = true;
        } catch (const std::bad_alloc &) {
        }
        request->done = true;
    }
    requests_.clear();
    done_.notify_all();
}

// A child has no thread of the keeper. The old objects are not destroyed: they belong to the threads of the parent.
[[maybe_unused]] const int registered = pthread_atfork(nullptr, nullptr, [] { new (&stack_keeper()) StackKeeper; });

StackKeeper &stack_keeper() {
    static Published<StackKeeper> keeper;
    return keeper.get();
}

} // namespace tcuda
