// The forward pass of the network, which network.py writes as operations on arrays.
// PIXELS and CLASSES are defined where the source is compiled.

constexpr unsigned ALL_LANES = 0xffffffff;

// hidden = max(pixels @ weight + bias, 0). Each block computes the hidden units of an image.
extern "C" __global__ void hidden_layer(const float* pixels, const float* weight, const float* bias, float* hidden,
                                        int units) {
    __shared__ float image[PIXELS]; // Every thread of the block reads all pixels.
    for (int pixel = threadIdx.x; pixel < PIXELS; pixel += blockDim.x)
        image[pixel] = pixels[blockIdx.x * PIXELS + pixel];
    __syncthreads();
    for (int unit = threadIdx.x; unit < units; unit += blockDim.x) {
        float sum = bias[unit];
        for (int pixel = 0; pixel < PIXELS; ++pixel)
            sum += image[pixel] * weight[pixel * units + unit];
        hidden[blockIdx.x * units + unit] = fmaxf(sum, 0);
    }
}

// The logarithm of the softmax of hidden @ weight + bias. Each block is a warp and computes the classes of an image, a
// class in each of the first lanes.
extern "C" __global__ void output_layer(const float* hidden, const float* weight, const float* bias,
                                        float* log_probabilities, int units) {
    const int lane = threadIdx.x;
    const bool has_class = lane < CLASSES;
    float score = -3e38f; // Lanes without a class keep this number, which is less than every score.
    if (has_class) {
        score = bias[lane];
        for (int unit = 0; unit < units; ++unit)
            score += hidden[blockIdx.x * units + unit] * weight[unit * CLASSES + lane];
    }
    // Each exchange combines the values of lanes at another distance. After all exchanges, every lane has the result.
    float largest = score;
    for (int distance = warpSize / 2; distance > 0; distance /= 2)
        largest = fmaxf(largest, __shfl_xor_sync(ALL_LANES, largest, distance));
    float sum = has_class ? expf(score - largest) : 0; // Without `largest` expf() could overflow.
    for (int distance = warpSize / 2; distance > 0; distance /= 2)
        sum += __shfl_xor_sync(ALL_LANES, sum, distance);
    if (has_class)
        log_probabilities[blockIdx.x * CLASSES + lane] = score - largest - logf(sum);
}
