#include "bindings/memory/ledger_errors.hpp"

#include <new>

#include "bindings/python/containers.hpp"

namespace nb = nanobind;

namespace tcuda {
namespace {

nb::dict facts_of(const OutOfMemory &failure) {
    nb::dict facts = new_dict();
    facts["device"] = failure.device;
    facts["requested"] = failure.requested;
    facts["total"] = failure.total;
    facts["free"] = failure.free;
    facts["limit"] = failure.limited ? nb::object(nb::int_(failure.limit)) : nb::none();
    facts["allocated"] = failure.allocated;
    facts["reserved"] = failure.reserved;
    facts["largest_free"] = failure.largest_free;
    facts["rejected"] = failure.rejected;
    return facts;
}

} // namespace

void set_error(const PythonLedger &ledger) noexcept {
    if (Interruption::restore())
        return;
    try {
        try {
            throw;
        } catch (const OutOfMemory &failure) {
            ledger.fail_memory(**facts_of(failure));
        } catch (const DriverError &failure) {
            ledger.fail_driver(failure.status, failure.call);
        } catch (const HostMemoryError &failure) {
            ledger.fail_driver(failure.status, "cudaHostAlloc(), for page-locked memory of the host");
        } catch (const PoolAsleep &failure) {
            const bool common = failure.pool == common_pool;
            PyErr_Format(PyExc_RuntimeError,
                         "The memory is in %s of cuda:%d, which is asleep. Wake the pool first, by %s.",
                         common ? "the default pool" : "a pool", failure.device,
                         common ? "tcuda.memory.wake()" : "MemPool.wake()");
            return;
        } catch (const DuplicatePointer &failure) {
            PyErr_Format(PyExc_RuntimeError,
                         "The allocator returned %p, which it had returned before and which is still in use. Its alloc "
                         "function must return memory of its own for every call.",
                         reinterpret_cast<void *>(failure.address));
            return;
        }
        PyErr_SetString(PyExc_SystemError, "a failure of the ledger raised nothing");
    } catch (nb::python_error &error) {
        error.restore();
    } catch (const std::bad_alloc &) {
        PyErr_NoMemory();
    } catch (const std::exception &error) {
        PyErr_SetString(PyExc_RuntimeError, error.what());
    }
}

void raise_error(const PythonLedger &ledger) {
    set_error(ledger);
    nb::raise_python_error();
}

} // namespace tcuda
