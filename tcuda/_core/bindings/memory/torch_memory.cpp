#include "bindings/memory/torch_memory.hpp"

#include <stdexcept>

#include "bindings/memory/ledger_errors.hpp"
#include "bindings/memory/python_relief.hpp"
#include "driver/stream_key.hpp"
#include "memory/ledger/torch_face.hpp"

namespace nb = nanobind;

namespace tcuda {
namespace {

class TorchMemory : public Shared {
public:
    explicit TorchMemory(PythonLedger &self) : self_(self) {}

    void *allocate(std::size_t size, int device, Stream stream) override {
        try {
            PythonRelief relief(self_);
            return reinterpret_cast<void *>(self_.ledger.allocate(device, size, key_of(stream), nullptr, &relief));
        } catch (...) {
            const nb::gil_scoped_acquire lock;
            set_error(self_);
            const nb::python_error error;
            // torch has no error that could stand for an exception such as KeyboardInterrupt.
            if (!error.matches(PyExc_Exception)) {
                Interruption::keep(error);
                Interruption::deliver();
            }
            throw std::runtime_error(nb::str(error.value()).c_str());
        }
    }
    void free(Address address, int device) override { self_.ledger.of(device).free(address); }
    void record_stream(Address address, Stream stream) override {
        self_.ledger.each([&](DeviceLedger &ledger) { ledger.record_stream(address, key_of(stream)); });
    }

private:
    PythonLedger &self_;
};

} // namespace

void share_with_torch(PythonLedger &ledger) {
    nb::find(ledger).inc_ref();
    share(new TorchMemory(ledger));
}

} // namespace tcuda
