// The kernels for the arrays of several devices: the copy of many arrays into one, and the sum over peers.
// tcuda/_core/transfers/ launches them.

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;

// 16 bytes that are loaded and stored at once.
struct alignas(16) Words {
    u32 of[4];
};

// --- The copy of many arrays into one ---

// The same struct is in pack_tables.hpp.
template <int capacity> struct PackTable {
    u64 target;
    u32 count, blocks;
    u64 sources[capacity];
    u32 offsets[capacity], bytes[capacity], first_blocks[capacity];
};

constexpr u32 bytes_of_block = 16 << 10;

template <typename Word> __device__ void copy_words(u64 target, u64 source, u32 bytes) {
    Word *const to = reinterpret_cast<Word *>(target);
    const Word *const from = reinterpret_cast<const Word *>(source);
    const u32 words = bytes / sizeof(Word);
    constexpr u32 lanes = 4; // loads that are under way at the same time
    u32 place = threadIdx.x;
    for (; place + (lanes - 1) * blockDim.x < words; place += lanes * blockDim.x) {
        Word loaded[lanes];
#pragma unroll
        for (u32 lane = 0; lane < lanes; ++lane)
            loaded[lane] = from[place + lane * blockDim.x];
#pragma unroll
        for (u32 lane = 0; lane < lanes; ++lane)
            to[place + lane * blockDim.x] = loaded[lane];
    }
    for (; place < words; place += blockDim.x)
        to[place] = from[place];
    for (u32 byte = words * sizeof(Word) + threadIdx.x; byte < bytes; byte += blockDim.x)
        reinterpret_cast<u8 *>(target)[byte] = reinterpret_cast<const u8 *>(source)[byte];
}

template <int capacity> __global__ void pack(PackTable<capacity> table) {
    // The last array whose first block is not after this block
    u32 array = 0, end = table.count;
    while (end - array > 1) {
        const u32 middle = (array + end) / 2;
        if (table.first_blocks[middle] <= blockIdx.x)
            array = middle;
        else
            end = middle;
    }
    const u32 begin = (blockIdx.x - table.first_blocks[array]) * bytes_of_block;
    const u32 left = table.bytes[array] - begin;
    const u32 bytes = left < bytes_of_block ? left : bytes_of_block;
    const u64 source = table.sources[array] + begin;
    const u64 target = table.target + table.offsets[array] + begin;
    const u32 alignment = static_cast<u32>(source | target) & 15;
    if (alignment == 0)
        copy_words<Words>(target, source, bytes);
    else if (alignment % 8 == 0)
        copy_words<u64>(target, source, bytes);
    else if (alignment % 4 == 0)
        copy_words<u32>(target, source, bytes);
    else if (alignment % 2 == 0)
        copy_words<u16>(target, source, bytes);
    else
        copy_words<u8>(target, source, bytes);
}

// --- The sum over peers ---

// The elements as CuPy adds them: integers wrap, and the sum of two booleans is "or".
struct Bool {
    u8 value;
};
template <typename Real> struct Complex {
    Real real, imaginary;
};

template <typename Number> __device__ Number sum(Number left, Number right) {
    return static_cast<Number>(left + right);
}
__device__ inline Bool sum(Bool left, Bool right) {
    return {static_cast<u8>(left.value || right.value)};
}
template <typename Real> __device__ Complex<Real> sum(Complex<Real> left, Complex<Real> right) {
    return {left.real + right.real, left.imaginary + right.imaginary};
}
#ifdef TCUDA_HALF
__device__ inline __half sum(__half left, __half right) {
    return __float2half_rn(__half2float(left) + __half2float(right));
}
#endif
#ifdef TCUDA_BFLOAT16
__device__ inline __nv_bfloat16 sum(__nv_bfloat16 left, __nv_bfloat16 right) {
    return __float2bfloat16_rn(__bfloat162float(left) + __bfloat162float(right));
}
#endif

// The arrays of the inputs, on any devices.
template <int count> struct Inputs {
    u64 of[count];
};

// Some elements that are loaded and stored at once.
template <typename Number, int width> struct alignas(width == 1 ? alignof(Number) : 16) Row {
    Number of[width];
};

template <typename Number, int count, int width>
__device__ void add_rows(u64 out, const Inputs<count> &inputs, u64 begin, u64 end) {
    typedef Row<Number, width> Loaded;
    constexpr int lanes = count <= 4 ? 2 : 1;
    const u64 threads = static_cast<u64>(gridDim.x) * blockDim.x;
    u64 place = begin / width + static_cast<u64>(blockIdx.x) * blockDim.x + threadIdx.x;
    const u64 rows = end / width;
    for (; place < rows; place += lanes * threads) {
        Loaded loaded[lanes][count];
#pragma unroll
        for (int lane = 0; lane < lanes; ++lane)
#pragma unroll
            for (int input = 0; input < count; ++input)
                if (place + lane * threads < rows)
                    loaded[lane][input] = reinterpret_cast<const Loaded *>(inputs.of[input])[place + lane * threads];
#pragma unroll
        for (int lane = 0; lane < lanes; ++lane) {
            Loaded total = loaded[lane][count - 1];
#pragma unroll
            for (int input = count - 2; input >= 0; --input)
#pragma unroll
                for (int element = 0; element < width; ++element)
                    total.of[element] = sum(loaded[lane][input].of[element], total.of[element]);
            if (place + lane * threads < rows)
                reinterpret_cast<Loaded *>(out)[place + lane * threads] = total;
        }
    }
}

// Sets `out` to inputs[0] + (inputs[1] + (...)). The core launches blocks of 512 threads, for which the elements of many
// inputs would need more registers than a multiprocessor has.
template <typename Number, int count> __global__ void __launch_bounds__(512)
    add(u64 out, Inputs<count> inputs, u64 size) {
    constexpr int width = 16 / sizeof(Number);
    u64 addresses = out;
    for (int input = 0; input < count; ++input)
        addresses |= inputs.of[input];
    const u64 whole = addresses % 16 == 0 ? size / width * width : 0;
    add_rows<Number, count, width>(out, inputs, 0, whole);
    add_rows<Number, count, 1>(out, inputs, whole, size);
}
