#include "sanitizer/_cpp/bindings/python_driver_watch.hpp"

#include <dlfcn.h>

#include <stdexcept>

#include "bindings/threads/python_stacks.hpp"
#include "sanitizer/_cpp/bindings/host_reports.hpp"
#include "sanitizer/_cpp/bindings/pending_races.hpp"
#include "sanitizer/_cpp/watch/kernel_table.hpp"

namespace nb = nanobind;

namespace tcuda {
namespace {

watch::FindFunction functions_of(const std::string &driver) {
    void *const library = dlopen(driver.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr)
        throw std::runtime_error(driver + " cannot be loaded: " + dlerror());
    return [library](const char *name) { return dlsym(library, name); };
}

watch::DriverQuestions questions_of(const watch::FindFunction &find, const std::string &driver) {
    const auto made = watch::DriverQuestions::from(find);
    if (!made.complete())
        throw std::runtime_error(driver + " lacks functions that the race detector needs: the driver is too old");
    return made;
}

} // namespace

PythonDriverWatch::PythonDriverWatch(nb::object made_for, const std::string &cupti, const std::string &driver)
    : detector(std::move(made_for)), told_(nb::cast<PythonRaceDetector &>(detector)), library_(cupti),
      find_(functions_of(driver)), questions_(questions_of(find_, driver)),
      kernel_questions_(watch::KernelQuestions::from(find_)), graph_questions_(watch::GraphQuestions::from(find_)),
      launches_(told_.detector, watch::kernel_table(), kernel_questions_),
      graphs_(told_.detector, launches_, graph_questions_),
      watch_(told_.detector, launches_, graphs_, questions_, note_any_stack,
             [this](races::RaceDetector::Races &&found) { pending_races().add(told_, found); }) {
    begin_stack_notes();
    try {
        begin_host_reports(told_, HostReports::pending);
        const nb::gil_scoped_release released; // the driver may wait for a function of the host that needs the lock
        subscription_.emplace(library_, watch_);
    } catch (...) {
        end_host_reports(told_);
        end_stack_notes();
        throw;
    }
}

// A callback may wait for Python's lock.
void PythonDriverWatch::end() noexcept {
    if (!subscription_)
        return;
    {
        const nb::gil_scoped_release released;
        subscription_->end();
    }
    subscription_.reset();
    end_host_reports(told_); // the detector learns of no waits any more
    end_stack_notes();
    watch::kernel_table().forget_all(); // modules come and go unseen from now on
}

} // namespace tcuda
