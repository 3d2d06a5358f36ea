// Puts thunks into the import table of mpi4py, and takes the thunks out again.
#pragma once

#include <string>
#include <vector>

namespace tcuda::mpi {

// Notices the calls that mpi4py makes from now on. Does nothing if mpi4py is not loaded, or if its calls are noticed
// already.
void begin_interception();
void end_interception();

// The names of the functions that are noticed.
std::vector<std::string> noticed_functions();

} // namespace tcuda::mpi
