// The kernels of kernels.cpp, compiled as emulated devices compile kernels.
extern "C" {

// Every thread gets `rounds` times the sum of the numbers of all threads.
__global__ void sum(int *out, int rounds) {
    __shared__ int total;
    int seen = 0;
    for (int round = 0; round < rounds; ++round) {
        if (threadIdx.x == 0) total = 0;
        __syncthreads();
        int part = threadIdx.x;
        for (int lanes = 16; lanes; lanes /= 2) {
            int other = __shfl_down_sync(0xffffffff, part, lanes);
            if ((threadIdx.x & 31) + lanes < 32 && threadIdx.x + lanes < blockDim.x) part += other;
        }
        if (threadIdx.x % 32 == 0) atomicAdd(&total, part);
        __syncthreads();
        seen += total;
        __syncthreads();
    }
    out[threadIdx.x] = seen;
}
__global__ void half(int *out) {
    if (threadIdx.x < 32) __syncthreads();
    out[0] = 1;
}
__global__ void trap(int *out, int thread) {
    out[1] = __activemask();
    if (threadIdx.x == thread) __trap();
}
__global__ void spin(volatile int *flag) {
    if (threadIdx.x == 7) *flag = 1;
    else while (*flag == 0) {}
}

}

TCUDA_KERNEL("sum", sum)
TCUDA_KERNEL("half", half)
TCUDA_KERNEL("trap", trap)
TCUDA_KERNEL("spin", spin)
