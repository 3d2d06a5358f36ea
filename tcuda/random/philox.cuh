// Random numbers as torch.cuda draws them, so that the same seed and offset give the same bits.
//
// The generator is Philox4x32-10: Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC 2011.
// As in cuRAND, the seed is the key. The low half of the counter is the position in a subsequence, and the high half is
// the number of the subsequence. tcuda/_core/random/philox_passes.hpp says which thread fills which elements.

using u32 = unsigned int;
using u64 = unsigned long long;

struct Bits {
    u32 x, y, z, w;
};

__device__ Bits philox(u64 key, u64 position, u64 subsequence) {
    Bits bits{u32(position), u32(position >> 32), u32(subsequence), u32(subsequence >> 32)};
    u32 first = u32(key), second = u32(key >> 32);
    for (int round = 0; round < 10; ++round) {
        const u64 left = u64(0xD2511F53u) * bits.x, right = u64(0xCD9E8D57u) * bits.z;
        bits = {u32(right >> 32) ^ bits.y ^ first, u32(right), u32(left >> 32) ^ bits.w ^ second, u32(left)};
        first += 0x9E3779B9u;
        second += 0xBB67AE85u;
    }
    return bits;
}

// The conversion of bits to numbers

// Returns a number in (0, 1], in steps of 2**-32.
__device__ float unit(u32 bits) { return fmaf(float(bits), 0x1p-32f, 0x1p-33f); }

// Returns a number in (0, 1], in steps of 2**-53.
__device__ double unit(u32 low, u32 high) { return fma(double(u64(low) ^ u64(high) << 21), 0x1p-53, 0x1p-54); }

struct Uniforms {
    float values[4];
    __device__ explicit Uniforms(Bits bits) : values{unit(bits.x), unit(bits.y), unit(bits.z), unit(bits.w)} {}
};

struct DoubleUniforms {
    double values[2];
    __device__ explicit DoubleUniforms(Bits bits) : values{unit(bits.x, bits.y), unit(bits.z, bits.w)} {}
};

// The method of Box and Muller: two uniform numbers give two normal numbers.
struct Normals {
    float values[4];
    __device__ explicit Normals(Bits bits) {
        pair(bits.x, bits.y, values);
        pair(bits.z, bits.w, values + 2);
    }
    __device__ static void pair(u32 bits, u32 more, float *values) {
        constexpr float turn = 2.3283064e-10f * 6.2831855f;
        const float length = sqrtf(-2.0f * logf(unit(bits)));
        float sine, cosine;
        __sincosf(fmaf(float(more), turn, turn / 2.0f), &sine, &cosine);
        values[0] = sine * length;
        values[1] = cosine * length;
    }
};

struct DoubleNormals {
    double values[2];
    __device__ explicit DoubleNormals(Bits bits) {
        const double length = sqrt(-2.0 * log(unit(bits.x, bits.y)));
        double sine, cosine;
        sincospi(2.0 * unit(bits.z, bits.w), &sine, &cosine);
        values[0] = sine * length;
        values[1] = cosine * length;
    }
};

struct Words {
    u32 values[4];
    __device__ explicit Words(Bits bits) : values{bits.x, bits.y, bits.z, bits.w} {}
};

struct LongWords {
    u64 values[2];
    __device__ explicit LongWords(Bits bits)
        : values{u64(bits.x) << 32 | bits.y, u64(bits.z) << 32 | bits.w} {}
};

// The rules that turn a number into an element

// An element in [low, high).
template <typename Real> struct Between {
    using Parameter = double;
    const Real low, high, range;
    __device__ Between(double low, double high) : low(low), high(high), range(this->high - this->low) {}
    __device__ Real operator()(Real value) const {
        const Real scaled = fma(value, range, low);
        return scaled == high ? low : scaled;
    }
};

template <typename Real> struct Scaled {
    using Parameter = double;
    const Real location, scale;
    __device__ Scaled(double location, double scale) : location(location), scale(scale) {}
    __device__ Real operator()(Real value) const { return fma(value, scale, location); }
};

__device__ float exponential(float value) { return __expf(value); } // torch uses __expf too
__device__ double exponential(double value) { return exp(value); }

template <typename Real> struct Exponential {
    using Parameter = double;
    const Scaled<Real> scaled;
    __device__ Exponential(double location, double scale) : scaled(location, scale) {}
    __device__ Real operator()(Real value) const { return exponential(scaled(value)); }
};

// An element in [low, low + range). A range of 0 stands for all values of a word.
template <typename Word> struct From {
    using Parameter = u64;
    const u64 low;
    const Word range;
    __device__ From(u64 low, u64 range) : low(low), range(range) {}
    __device__ u64 operator()(Word word) const { return low + (range == 0 ? word : word % range); }
};

template <typename Out, typename Numbers, typename Rule>
__device__ void fill_from(u64 seed, u64 offset, Out *out, u64 elements, typename Rule::Parameter first,
                          typename Rule::Parameter second) {
    constexpr u32 lanes = sizeof(Numbers) / sizeof(Numbers{Bits{}}.values[0]);
    const Rule rule(first, second);
    const u32 size = elements, threads = gridDim.x * blockDim.x, thread = blockIdx.x * blockDim.x + threadIdx.x;
    u64 position = offset / 4;
    for (u32 base = thread; base < size; base += lanes * threads) {
        const Numbers numbers(philox(seed, position++, thread));
#pragma unroll
        for (u32 lane = 0; lane < lanes; ++lane) {
            const u32 index = base + lane * threads;
            if (index < size)
                out[index] = rule(numbers.values[lane]);
        }
    }
}

template <typename Out, typename Numbers, typename Rule>
__global__ void __launch_bounds__(256)
    fill(Out *out, u64 elements, u64 seed, u64 offset, typename Rule::Parameter first, typename Rule::Parameter second) {
    fill_from<Out, Numbers, Rule>(seed, offset, out, elements, first, second);
}

// Does the same in a graph, where each launch has its own state. The kernel is separate from fill(), because the
// compiler does not know that a seed in memory is the same for all threads. Filling a large array then takes a fifth
// longer.
template <typename Out, typename Numbers, typename Rule>
__global__ void __launch_bounds__(256)
    fill_captured(Out *out, u64 elements, const u64 *state, u64 offset, typename Rule::Parameter first,
                  typename Rule::Parameter second) {
    fill_from<Out, Numbers, Rule>(state[0], state[1] + offset, out, elements, first, second);
}

// Writes the state that the kernels of a graph read.
__global__ void put(u64 *state, u64 seed, u64 offset) {
    state[0] = seed;
    state[1] = offset;
}
