// The driver table of CUDA for a process that runs Python.
#pragma once

#include "driver/cuda_driver.hpp"

namespace tcuda {

// Other threads of Python run while a call waits: the work that the call waits for may need Python.
class PythonCudaDriver : public CudaDriver {
public:
    int synchronize(int device, Event event) override;
    int synchronize_stream(int device, Stream stream) override;
    int synchronize_device(int device) override;
};

} // namespace tcuda
