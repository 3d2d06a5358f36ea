#include "bindings/threads/stack_keeper.hpp"

#include <nanobind/nanobind.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>

#include <algorithm>
#include <new>
#include <system_error>
#include <utility>

#include "bindings/threads/python_stacks.hpp"
#include "threads/published.hpp"

namespace tcuda {

void StackKeeper::begin(Duration patience) {
    const std::lock_guard lock(mutex_);
    patience_ = patience;
    ++users_;
    if (!running_ && !closed_)
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
    stop();
}

void StackKeeper::close() {
    {
        const std::lock_guard lock(mutex_);
        users_ = 0;
        closed_ = true;
    }
    stop();
}

void StackKeeper::stop() {
    std::thread thread;
    {
        const std::lock_guard lock(mutex_);
        running_ = false;
        thread = std::move(thread_);
        for (Request *const request : requests_)
            request->done = true;
        requests_.clear();
        has_requests_ = false;
        wanted_.notify_all();
        done_.notify_all();
    }
    if (thread.joinable()) {
        const nanobind::gil_scoped_release released; // the thread may wait for Python's lock
        thread.join();
    }
}

template <typename Condition> void StackKeeper::look_for(Condition condition) {
    const auto end = std::chrono::steady_clock::now() + wakefulness;
    while (!condition() && std::chrono::steady_clock::now() < end)
        sched_yield(); // the other thread may need this processor
}

StackId StackKeeper::note() {
    std::unique_lock lock(mutex_);
    if (!running_ || (in_vain_ >= tries && std::chrono::steady_clock::now() < no_wait_before_))
        return stack_without_frames;
    PyThreadState *const thread = PyGILState_GetThisThreadState();
    if (thread == nullptr) // Python does not know all threads
        return stack_without_frames;
    Request request;
    request.thread = thread;
    requests_.push_back(&request);
    has_requests_ = true;
    wanted_.notify_one();
    lock.unlock();
    look_for([&] { return request.done.load(); });
    if (request.done)
        return request.noted;
    lock.lock();
    if (done_.wait_for(lock, patience_, [&] { return request.done.load(); }))
        return request.noted;
    requests_.erase(std::find(requests_.begin(), requests_.end(), &request));
    if (++in_vain_ >= tries)
        no_wait_before_ = std::chrono::steady_clock::now() + rest * patience_;
    return stack_without_frames;
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
    // After stop(), another thread may be the keeper already.
    const auto goes_on = [&] { return running_ && thread_.get_id() == self; };
    while (goes_on()) {
        if (requests_.empty()) {
            lock.unlock();
            look_for([this] { return has_requests_.load(); });
            lock.lock();
            wanted_.wait(lock, [&] { return !requests_.empty() || !goes_on(); });
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
            request->noted = note_stack_of(request->thread);
        } catch (const std::bad_alloc &) {
        }
        request->done = true;
        in_vain_ = 0;
    }
    requests_.clear();
    has_requests_ = false;
    done_.notify_all();
}

// A child has no thread of the keeper. The old objects are not destroyed: they belong to the threads of the parent.
[[maybe_unused]] const int registered = pthread_atfork(nullptr, nullptr, [] { new (&stack_keeper()) StackKeeper; });

StackKeeper &stack_keeper() {
    static Published<StackKeeper> keeper;
    return keeper.get();
}

} // namespace tcuda
