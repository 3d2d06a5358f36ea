#include "sanitizer/_cpp/bindings/python_race_detector.hpp"

#include <stdexcept>
#include <utility>

#include "bindings/memory/python_ledger.hpp"
#include "sanitizer/_cpp/bindings/host_reports.hpp"
#include "sanitizer/_cpp/bindings/pending_races.hpp"
#include "sanitizer/_cpp/bindings/python_race.hpp"

namespace nb = nanobind;

namespace tcuda {

PythonRaceDetector::PythonRaceDetector(nb::object on_race) : on_race(std::move(on_race)) {
    pending_races().close_at_exit();
}

PythonRaceDetector::~PythonRaceDetector() {
    end_host_reports(*this);
    detach();
    pending_races().forget(this);
}

void PythonRaceDetector::tell(const races::RaceDetector::Races &found) {
    if (found.empty())
        return;
    const nb::object call = on_race;
    for (const auto &race : found)
        call(PythonRace{race});
}

void PythonRaceDetector::attach(nb::object target) {
    Ledger &devices = nb::cast<PythonLedger &>(target).ledger;
    if (ledger.is_valid())
        throw std::runtime_error("the detector is attached to a ledger already: call detach() first");
    devices.each([](const DeviceLedger &device) {
        if (device.is_observed())
            throw std::runtime_error("another detector is attached to the ledger: call its detach() first");
    });
    ledger = std::move(target);
    devices.each([&](DeviceLedger &device) { device.observe(&detector); });
    devices.host().observe(&detector);
}

void PythonRaceDetector::detach() {
    if (!ledger.is_valid())
        return;
    const nb::object attached = std::move(ledger);
    Ledger &ledger = nb::cast<PythonLedger &>(attached).ledger;
    ledger.each([](DeviceLedger &device) { device.observe(nullptr); });
    ledger.host().observe(nullptr);
}

} // namespace tcuda
