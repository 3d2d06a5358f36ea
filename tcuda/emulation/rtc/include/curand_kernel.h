#error curand_kernel.h is not available on an emulated device; create random numbers with xp.random and pass them to the kernel
