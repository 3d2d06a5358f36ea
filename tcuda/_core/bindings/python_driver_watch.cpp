#include "bindings/python_driver_watch.hpp"

#include <dlfcn.h>

#include <stdexcept>

#include "bindings/python_stacks.hpp"

namespace nb = nanobind;

namespace tcuda {
namespace {

watch::DriverQuestions questions_of(const std::string &driver) {
    void *const library = dlopen(driver.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr)
        throw std::runtime_error(driver + " cannot be loaded: " + dlerror());
    const auto made = watch::DriverQuestions::from([&](const char *name) { return dlsym(library, name); });
    if (!made.complete())
        throw std::runtime_error(driver + " lacks functions that the race detector needs: the driver is too old");
    return made;
}

} // namespace

PythonDriverWatch::PythonDriverWatch(nb::object made_for, const std::string &cupti, const std::string &driver)
    : detector(std::move(made_for)), library_(cupti), questions_(questions_of(driver)),
      watch_(told().detector, questions_, note_python_stack,
             [this](FoundRaces::Races &&found) { found_.add(std::move(found)); }) {
    subscription_.emplace(library_, watch_);
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
}

void PythonDriverWatch::deliver() { told().tell(found_.take()); }

} // namespace tcuda
