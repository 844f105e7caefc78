// Random numbers as a function of (seed, offset, element index): Philox 4x32-10, uniform and normal numbers from it.
//
// Tour. A block is four 32-bit words: philox_block(seed, offset, b). Within one op call (one `offset`; a generator
// gives a fresh one to each call) element i of a tensor takes
//
//   float     uniform: word i % 4 of block i / 4                 normal: words (i % 4) & ~1 and the next one
//   double    uniform: words 2 (i % 2) and the next of block i / 2     normal: all four words of block i / 2
//
// so the value of an element depends on nothing but seed, offset and i, for any number of threads and any grid. CPU and
// CUDA give the same bits, the normal ones too: logarithm, sine and cosine are polynomials written here in products and
// sums that are rounded one by one (never contracted to an FMA), with division and square root, which both round
// correctly. All of it is branch-free, and a loop over blocks is vectorised by the compiler.
//
// Source: Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC11. The polynomials are our own
// minimax fits (Remez exchange); the error of each is stated beside it.
#pragma once

#include <vesta/core/base/macros.h>

#include <cmath>
#include <cstdint>
#include <type_traits>

#if defined(__SSE4_1__) && !defined(__CUDACC__)
#include <immintrin.h>
#endif

namespace vesta {

/// One block of the generator, or a counter.
struct Philox4 {
  std::uint32_t word[4];
};

/// Returns the 64-bit product of two 32-bit numbers. (nvcc takes a constant of 64 bits for one with a high half, and
/// adds that half's 0 after each product.)
VESTA_HD VESTA_INLINE constexpr std::uint64_t philox_product(std::uint32_t a, std::uint32_t b) {
#ifdef __CUDA_ARCH__
  std::uint64_t product = 0;
  asm("mul.wide.u32 %0, %1, %2;" : "=l"(product) : "r"(a), "r"(b));
  return product;
#else
  return std::uint64_t{a} * b;
#endif
}

/// Computes `rounds` rounds of Philox 4x32. (A recursion, because a loop here keeps compilers from vectorising a loop
/// over blocks.)
template <int rounds>
VESTA_HD VESTA_INLINE constexpr Philox4 philox_rounds(std::uint32_t c0, std::uint32_t c1, std::uint32_t c2,
                                                      std::uint32_t c3, std::uint32_t key0, std::uint32_t key1) {
  if constexpr (rounds == 0) {
    return {{c0, c1, c2, c3}};
  } else {
    const std::uint64_t product0 = philox_product(0xD2511F53u, c0);
    const std::uint64_t product1 = philox_product(0xCD9E8D57u, c2);
    return philox_rounds<rounds - 1>(static_cast<std::uint32_t>(product1 >> 32) ^ c1 ^ key0,
                                     static_cast<std::uint32_t>(product1),
                                     static_cast<std::uint32_t>(product0 >> 32) ^ c3 ^ key1,
                                     static_cast<std::uint32_t>(product0), key0 + 0x9E3779B9u, key1 + 0xBB67AE85u);
  }
}

/// Computes Philox 4x32-10 of a 128-bit counter under a 64-bit key.
VESTA_HD VESTA_INLINE constexpr Philox4 philox4x32(Philox4 counter, std::uint32_t key0, std::uint32_t key1) {
  return philox_rounds<10>(counter.word[0], counter.word[1], counter.word[2], counter.word[3], key0, key1);
}

/// Returns block `block` of the stream `offset` of `seed`.
VESTA_HD VESTA_INLINE constexpr Philox4 philox_block(std::uint64_t seed, std::uint64_t offset, std::uint64_t block) {
  const Philox4 counter{{static_cast<std::uint32_t>(block), static_cast<std::uint32_t>(block >> 32),
                         static_cast<std::uint32_t>(offset), static_cast<std::uint32_t>(offset >> 32)}};
  return philox4x32(counter, static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32));
}

/// Joins two words; the first is the high one.
VESTA_HD VESTA_INLINE constexpr std::uint64_t philox_join(std::uint32_t high, std::uint32_t low) {
  return (std::uint64_t{high} << 32) | low;
}

/// Returns k / 2^24 in [0, 1) from the top 24 bits of a word.
VESTA_HD VESTA_INLINE constexpr float uniform_float(std::uint32_t word) {
  return static_cast<float>(static_cast<std::int32_t>(word >> 8)) * 0x1p-24f;
}
/// Returns k / 2^53 in [0, 1), k from the top 27 bits of `high` and the top 26 of `low`.
VESTA_HD VESTA_INLINE constexpr double uniform_double(std::uint32_t high, std::uint32_t low) {
  const double top = static_cast<double>(static_cast<std::int32_t>(high >> 5));
  const double rest = static_cast<double>(static_cast<std::int32_t>(low >> 6));
  return (top * 0x1p26 + rest) * 0x1p-53;  // every step is exact
}
/// Returns k / 2^53 in [0, 1) from 64 random bits.
VESTA_HD VESTA_INLINE constexpr double uniform_double(std::uint64_t bits) {
  return uniform_double(static_cast<std::uint32_t>(bits >> 32), static_cast<std::uint32_t>(bits));
}

/// Returns the last word for which an event of probability p > 0 happens (of 2^32 words).
VESTA_HD VESTA_INLINE constexpr std::uint32_t last_event(double p) {
  const double events = p * 0x1p32;
  return events < 1 ? 0u : static_cast<std::uint32_t>(static_cast<std::uint64_t>(events) - 1);
}

/// Two independent numbers of the standard normal distribution.
template <class T>
struct NormalPair {
  T first, second;
};

namespace philox_detail {

// Note [Rounded one by one]
// nvcc fuses a * b + c by default and GCC does so when it may use FMA. On a device these intrinsics are never fused; on
// the host the build forbids it (-ffp-contract=off).
#ifdef __CUDA_ARCH__
VESTA_HD VESTA_INLINE float mul(float a, float b) { return __fmul_rn(a, b); }
VESTA_HD VESTA_INLINE float add(float a, float b) { return __fadd_rn(a, b); }
VESTA_HD VESTA_INLINE float quotient(float a, float b) { return __fdiv_rn(a, b); }
VESTA_HD VESTA_INLINE float root(float x) { return __fsqrt_rn(x); }
/// Rounds a quotient, or a root, correctly: the steps of quotient() and root() after their checks of the range: a / b
/// for a = 0 or 2^-24 <= |a| < b < 4, b > 1, and the root of x = 0 or 2^-24 < x < 64.
VESTA_HD VESTA_INLINE float quotient_in_range(float a, float b) {
  float near;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(near) : "f"(b));
  near = __fmaf_rn(near, __fmaf_rn(-b, near, 1.0f), near);
  const float q = __fmul_rn(a, near);
  return __fmaf_rn(near, __fmaf_rn(-b, q, a), q);
}
VESTA_HD VESTA_INLINE float root_in_range(float x) {
  float near;
  asm("rsqrt.approx.ftz.f32 %0, %1;" : "=f"(near) : "f"(x));
  const float r = __fmul_rn(x, near);
  return x == 0.0f ? x : __fmaf_rn(__fmaf_rn(-r, r, x), __fmul_rn(near, 0.5f), r);
}
VESTA_HD VESTA_INLINE double mul(double a, double b) { return __dmul_rn(a, b); }
VESTA_HD VESTA_INLINE double add(double a, double b) { return __dadd_rn(a, b); }
VESTA_HD VESTA_INLINE double quotient(double a, double b) { return __ddiv_rn(a, b); }
VESTA_HD VESTA_INLINE double root(double x) { return __dsqrt_rn(x); }
#else
VESTA_HD VESTA_INLINE float mul(float a, float b) { return a * b; }
VESTA_HD VESTA_INLINE float add(float a, float b) { return a + b; }
VESTA_HD VESTA_INLINE float quotient(float a, float b) { return a / b; }
VESTA_HD VESTA_INLINE float root(float x) { return ::sqrtf(x); }
VESTA_HD VESTA_INLINE float quotient_in_range(float a, float b) { return a / b; }
VESTA_HD VESTA_INLINE float root_in_range(float x) { return ::sqrtf(x); }
VESTA_HD VESTA_INLINE double mul(double a, double b) { return a * b; }
VESTA_HD VESTA_INLINE double add(double a, double b) { return a + b; }
VESTA_HD VESTA_INLINE double quotient(double a, double b) { return a / b; }
VESTA_HD VESTA_INLINE double root(double x) { return ::sqrt(x); }
#endif

/// Evaluates c0 + z c1 + z^2 c2 + ... by Horner's rule.
template <class T>
VESTA_HD VESTA_INLINE T horner(T, T c) {
  return c;
}
template <class T, class... Rest>
VESTA_HD VESTA_INLINE T horner(T z, T c, Rest... rest) {
  return add(c, mul(z, horner(z, rest...)));
}

/// Computes log((1 + s) / (1 - s)) = 2 s + s^3 Q(s^2) for |s| <= 3 - 2 sqrt 2. Error of Q: float 2^-30, double 2^-59 of
/// the result.
VESTA_HD VESTA_INLINE float log_ratio(float s) {
  const float z = mul(s, s);
  const float q = horner(z, 0x1.55557ap-1f, 0x1.995edp-2f, 0x1.31e0dep-2f);
  return add(add(s, s), mul(mul(s, z), q));
}
VESTA_HD VESTA_INLINE double log_ratio(double s) {
  const double z = mul(s, s);
  const double q = horner(z, 0x1.5555555555592p-1, 0x1.999999997fee9p-2, 0x1.24924941e0c06p-2, 0x1.c71c52164dce6p-3,
                          0x1.74663c534db5fp-3, 0x1.39a1fba035bfep-3, 0x1.2f02e5956b025p-3);
  return add(add(s, s), mul(mul(s, z), q));
}

/// Computes log u for u in (0, 1] and normal. Never positive.
VESTA_HD VESTA_INLINE float log_unit(float u) {
  const auto bits = __builtin_bit_cast(std::uint32_t, u);
  const std::uint32_t biased = (bits + (0x3f800000u - 0x3f3504f3u)) >> 23;  // splits at sqrt(1/2)
  const float m = __builtin_bit_cast(float, bits - (biased << 23) + 0x3f800000u);
  const float e = static_cast<float>(static_cast<std::int32_t>(biased) - 127);
  const float s = quotient_in_range(add(m, -1.0f), add(m, 1.0f));
  return add(mul(e, 0x1.62e43p-1f), log_ratio(s));
}
VESTA_HD VESTA_INLINE double log_unit(double u) {
  const auto bits = __builtin_bit_cast(std::uint64_t, u);
  const std::uint64_t biased = (bits + (0x3ff0000000000000u - 0x3fe6a09e667f3bcdu)) >> 52;
  const double m = __builtin_bit_cast(double, bits - (biased << 52) + 0x3ff0000000000000u);
  // The exponent to double through the mantissa of 2^52: before AVX-512, vectors cannot convert 64-bit integers.
  const double e = add(__builtin_bit_cast(double, biased | 0x4330000000000000u), -(0x1p52 + 1023));
  const double s = quotient(add(m, -1.0), add(m, 1.0));
  return add(mul(e, 0x1.62e42fefa39efp-1), log_ratio(s));
}

/// Computes sin(x pi / 2) and cos(x pi / 2) for |x| <= 1/2. Error of the polynomials: float 2^-28, double 2^-58.
VESTA_HD VESTA_INLINE float sine_quarter(float x) {
  return mul(x, horner(mul(x, x), 0x1.921fb6p+0f, -0x1.4abbbap-1f, 0x1.465e92p-4f, -0x1.2d9302p-8f));
}
VESTA_HD VESTA_INLINE float cosine_quarter(float x) {
  return horner(mul(x, x), 1.0f, -0x1.3bd3ccp+0f, 0x1.03c1dep-2f, -0x1.55c5ep-6f, 0x1.d9d57ep-11f);
}
VESTA_HD VESTA_INLINE double sine_quarter(double x) {
  return mul(x, horner(mul(x, x), 0x1.921fb54442d18p+0, -0x1.4abbce625be41p-1, 0x1.466bc677587p-4, -0x1.32d2cce2d536p-8,
                       0x1.50782fca38b8dp-13, -0x1.e30063a029a09p-19, 0x1.e3eed5ce51ec2p-25));
}
VESTA_HD VESTA_INLINE double cosine_quarter(double x) {
  return horner(mul(x, x), 1.0, -0x1.3bd3cc9be45dep+0, 0x1.03c1f081b5aaep-2, -0x1.55d3c7e3c928p-6,
                0x1.e1f5068367b1ep-11, -0x1.a6d1ec7e0b7b7p-16, 0x1.f9cc40aca39a9p-22, -0x1.b263c34887901p-28);
}

/// Returns radius * (cos, sin) of the angle (quadrant + x) pi / 2. The quadrant swaps sine and cosine and sets signs
/// by bits, because a choice between floating-point numbers is not vectorised everywhere.
template <class T>
VESTA_HD VESTA_INLINE NormalPair<T> turn(T radius, std::uint32_t quadrant, T x) {
  using Bits = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;
  constexpr int kSignShift = static_cast<int>(sizeof(T)) * 8 - 1;
  const Bits s = __builtin_bit_cast(Bits, sine_quarter(x)), c = __builtin_bit_cast(Bits, cosine_quarter(x));
  const Bits q = quadrant;
  const Bits swap = Bits(0) - (q & 1u);
  const Bits across = ((s & swap) | (c & ~swap)) ^ (((q ^ (q >> 1)) & 1u) << kSignShift);  // minus in quadrants 1, 2
  const Bits up = ((c & swap) | (s & ~swap)) ^ ((q >> 1) << kSignShift);  // minus in quadrants 2, 3
  return {mul(radius, __builtin_bit_cast(T, across)), mul(radius, __builtin_bit_cast(T, up))};
}

}  // namespace philox_detail

/// Returns two normal numbers made from two words (Box and Muller): the radius sqrt(-2 log u), u = (a + 1/2) / 2^32
/// rounded to float, and an angle of b / 2^32 turns. |result| <= 6.77; error below 5e-7 of the radius.
VESTA_HD VESTA_INLINE NormalPair<float> normal_pair(std::uint32_t a, std::uint32_t b) {
  using namespace philox_detail;
  const float high = mul(static_cast<float>(static_cast<std::int32_t>(a >> 16)), 65536.0f);
  const float low = add(static_cast<float>(static_cast<std::int32_t>(a & 0xffffu)), 0.5f);
  const float u = mul(add(high, low), 0x1p-32f);
  const float radius = root_in_range(mul(-2.0f, log_unit(u)));
  const std::uint32_t quadrant = (b + 0x20000000u) >> 30;
  const auto within = static_cast<std::int32_t>(b - (quadrant << 30));
  return turn(radius, quadrant, mul(static_cast<float>(within), 0x1p-30f));
}

/// Returns two normal numbers made from a block: u = (k + 1) / 2^53 from words 0 and 1, the angle from words 2 and 3
/// (53 bits). |result| <= 8.58; error below 1e-15 of the radius.
VESTA_HD VESTA_INLINE NormalPair<double> normal_pair(Philox4 block) {
  using namespace philox_detail;
  const double u = add(uniform_double(block.word[0], block.word[1]), 0x1p-53);
  const double radius = root(mul(-2.0, log_unit(u)));
  const std::uint32_t quadrant = (block.word[2] + 0x20000000u) >> 30;
  const auto high = static_cast<std::int32_t>(block.word[2] - (quadrant << 30));
  const auto low = static_cast<std::int32_t>(block.word[3] >> 11);
  const double x = mul(add(mul(static_cast<double>(high), 0x1p21), static_cast<double>(low)), 0x1p-51);
  return turn(radius, quadrant, x);
}

/// Returns the random word of element i.
VESTA_HD VESTA_INLINE std::uint32_t random_word(std::uint64_t seed, std::uint64_t offset, std::uint64_t i) {
  const Philox4 block = philox_block(seed, offset, i / 4);
  return block.word[i % 4];
}
/// Returns the 64 random bits of element i.
VESTA_HD VESTA_INLINE std::uint64_t random_bits64(std::uint64_t seed, std::uint64_t offset, std::uint64_t i) {
  const Philox4 block = philox_block(seed, offset, i / 2);
  return philox_join(block.word[2 * (i % 2)], block.word[2 * (i % 2) + 1]);
}
/// Returns element i of a uniform tensor, in [0, 1).
template <class T>
VESTA_HD VESTA_INLINE T random_uniform(std::uint64_t seed, std::uint64_t offset, std::uint64_t i) {
  if constexpr (std::is_same_v<T, double>) {
    return uniform_double(random_bits64(seed, offset, i));
  } else {
    return uniform_float(random_word(seed, offset, i));
  }
}
/// Returns element i of a standard normal tensor.
template <class T>
VESTA_HD VESTA_INLINE T random_normal(std::uint64_t seed, std::uint64_t offset, std::uint64_t i) {
  if constexpr (std::is_same_v<T, double>) {
    const NormalPair<double> pair = normal_pair(philox_block(seed, offset, i / 2));
    return i % 2 == 0 ? pair.first : pair.second;
  } else {
    const Philox4 block = philox_block(seed, offset, i / 4);
    const NormalPair<float> pair = normal_pair(block.word[i % 4 & ~1u], block.word[(i % 4 & ~1u) + 1]);
    return i % 2 == 0 ? pair.first : pair.second;
  }
}

namespace philox_detail {

inline constexpr int kPiece = 32;  // blocks that random_fill takes at a time: 2 KiB of words stay in the first cache

// Note [Philox in vectors]
// A compiler does not find the widening product of 32-bit lanes by itself (its vectorised loop is no faster than the
// scalar one), so the code for a register of blocks is written out: products of the even and of the odd lanes, then a
// blend.
#if defined(__CUDACC__) || !defined(__SSE4_1__)
inline constexpr int kLanes = 0;
#elif defined(__AVX512F__)
using Lanes = __m512i;
typedef std::uint32_t Words __attribute__((vector_size(64)));
inline constexpr int kLanes = 16;
VESTA_INLINE Lanes all_lanes(std::uint32_t x) { return _mm512_set1_epi32(static_cast<int>(x)); }
VESTA_INLINE Lanes lane_numbers() { return _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0); }
VESTA_INLINE Lanes product_of_even(Lanes a, Lanes b) { return _mm512_maskz_mul_epu32(0xff, a, b); }
VESTA_INLINE Lanes odd_to_even(Lanes a) { return _mm512_maskz_srli_epi64(0xff, a, 32); }
VESTA_INLINE Lanes even_to_odd(Lanes a) { return _mm512_maskz_slli_epi64(0xff, a, 32); }
VESTA_INLINE Lanes even_and_odd(Lanes even, Lanes odd) { return _mm512_mask_blend_epi32(0xaaaa, even, odd); }
VESTA_INLINE void put(std::uint32_t* p, Lanes a) { _mm512_storeu_si512(p, a); }
#elif defined(__AVX2__)
using Lanes = __m256i;
typedef std::uint32_t Words __attribute__((vector_size(32)));
inline constexpr int kLanes = 8;
VESTA_INLINE Lanes all_lanes(std::uint32_t x) { return _mm256_set1_epi32(static_cast<int>(x)); }
VESTA_INLINE Lanes lane_numbers() { return _mm256_set_epi32(7, 6, 5, 4, 3, 2, 1, 0); }
VESTA_INLINE Lanes product_of_even(Lanes a, Lanes b) { return _mm256_mul_epu32(a, b); }
VESTA_INLINE Lanes odd_to_even(Lanes a) { return _mm256_srli_epi64(a, 32); }
VESTA_INLINE Lanes even_to_odd(Lanes a) { return _mm256_slli_epi64(a, 32); }
VESTA_INLINE Lanes even_and_odd(Lanes even, Lanes odd) { return _mm256_blend_epi32(even, odd, 0xaa); }
VESTA_INLINE void put(std::uint32_t* p, Lanes a) { _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), a); }
#else
using Lanes = __m128i;
typedef std::uint32_t Words __attribute__((vector_size(16)));
inline constexpr int kLanes = 4;
VESTA_INLINE Lanes all_lanes(std::uint32_t x) { return _mm_set1_epi32(static_cast<int>(x)); }
VESTA_INLINE Lanes lane_numbers() { return _mm_set_epi32(3, 2, 1, 0); }
VESTA_INLINE Lanes product_of_even(Lanes a, Lanes b) { return _mm_mul_epu32(a, b); }
VESTA_INLINE Lanes odd_to_even(Lanes a) { return _mm_srli_epi64(a, 32); }
VESTA_INLINE Lanes even_to_odd(Lanes a) { return _mm_slli_epi64(a, 32); }
VESTA_INLINE Lanes even_and_odd(Lanes even, Lanes odd) { return _mm_blend_epi16(even, odd, 0xcc); }
VESTA_INLINE void put(std::uint32_t* p, Lanes a) { _mm_storeu_si128(reinterpret_cast<__m128i*>(p), a); }
#endif

/// Writes word k of kPiece blocks from `block` on into words[k].
VESTA_INLINE void block_words(std::uint64_t seed, std::uint64_t offset, std::uint64_t block,
                              std::uint32_t (&words)[4][kPiece]) {
#if !defined(__CUDACC__) && defined(__SSE4_1__)
  const auto low = static_cast<std::uint32_t>(block);
  if (low <= 0xffffffffu - kPiece) {  // else the counter's second word changes within the piece
    const Lanes m0 = all_lanes(0xD2511F53u), m1 = all_lanes(0xCD9E8D57u);
    for (int b = 0; b < kPiece; b += kLanes) {
      Lanes c0 = (Lanes)((Words)all_lanes(low + static_cast<std::uint32_t>(b)) + (Words)lane_numbers());
      Lanes c1 = all_lanes(static_cast<std::uint32_t>(block >> 32)), c2 = all_lanes(static_cast<std::uint32_t>(offset));
      Lanes c3 = all_lanes(static_cast<std::uint32_t>(offset >> 32));
      auto key0 = static_cast<std::uint32_t>(seed), key1 = static_cast<std::uint32_t>(seed >> 32);
#pragma GCC unroll 10
      for (int round = 0; round < 10; ++round) {
        const Lanes even0 = product_of_even(c0, m0), odd0 = product_of_even(odd_to_even(c0), m0);
        const Lanes even1 = product_of_even(c2, m1), odd1 = product_of_even(odd_to_even(c2), m1);
        c0 = even_and_odd(odd_to_even(even1), odd1) ^ c1 ^ all_lanes(key0);
        c2 = even_and_odd(odd_to_even(even0), odd0) ^ c3 ^ all_lanes(key1);
        c1 = even_and_odd(even1, even_to_odd(odd1));
        c3 = even_and_odd(even0, even_to_odd(odd0));
        key0 += 0x9E3779B9u;
        key1 += 0xBB67AE85u;
      }
      put(&words[0][b], c0);
      put(&words[1][b], c1);
      put(&words[2][b], c2);
      put(&words[3][b], c3);
    }
    return;
  }
#endif
  for (int b = 0; b < kPiece; ++b) {
    const Philox4 random = philox_block(seed, offset, block + static_cast<std::uint64_t>(b));
    for (int k = 0; k < 4; ++k) words[k][b] = random.word[k];
  }
}

/// Converts kPiece blocks, given word by word, to the numbers of their elements, in element order within a block.
template <class T, bool Normal>
VESTA_INLINE void convert_piece(const std::uint32_t (&words)[4][kPiece], T (&out)[16 / sizeof(T)][kPiece]) {
  if constexpr (std::is_same_v<T, double> && Normal) {
    for (int b = 0; b < kPiece; ++b) {
      const NormalPair<double> pair = normal_pair(Philox4{{words[0][b], words[1][b], words[2][b], words[3][b]}});
      out[0][b] = pair.first;
      out[1][b] = pair.second;
    }
  } else if constexpr (std::is_same_v<T, double>) {
    for (int k = 0; k < 2; ++k) {
      for (int b = 0; b < kPiece; ++b) out[k][b] = uniform_double(words[2 * k][b], words[2 * k + 1][b]);
    }
  } else if constexpr (Normal) {
    for (int k = 0; k < 4; k += 2) {
      for (int b = 0; b < kPiece; ++b) {
        const NormalPair<float> pair = normal_pair(words[k][b], words[k + 1][b]);
        out[k][b] = pair.first;
        out[k + 1][b] = pair.second;
      }
    }
  } else {
    for (int k = 0; k < 4; ++k) {
      for (int b = 0; b < kPiece; ++b) out[k][b] = uniform_float(words[k][b]);
    }
  }
}

}  // namespace philox_detail

/// Writes the values of elements first to first + n - 1, with the bits of random_uniform<T> or random_normal<T>.
/// `first` is a multiple of 4 (float) or 2 (double). Compiled per instruction set, its loops are vectorised.
template <class T, bool Normal>
VESTA_INLINE void random_fill(std::uint64_t seed, std::uint64_t offset, std::int64_t first, std::int64_t n, T* out) {
  using philox_detail::kPiece;
  constexpr int kPerBlock = 16 / sizeof(T);
  constexpr int kCount = kPerBlock * kPiece;
  std::uint32_t words[4][kPiece];
  T piece[kPerBlock][kPiece];
  for (std::int64_t done = 0; done < n; done += kCount) {
    const std::uint64_t block = static_cast<std::uint64_t>(first + done) / kPerBlock;
    philox_detail::block_words(seed, offset, block, words);
    philox_detail::convert_piece<T, Normal>(words, piece);
    T* const at = out + done;
    if (n - done >= kCount) {
      for (int b = 0; b < kPiece; ++b) {
        for (int k = 0; k < kPerBlock; ++k) at[b * kPerBlock + k] = piece[k][b];
      }
    } else {
      for (int j = 0; j < n - done; ++j) at[j] = piece[j % kPerBlock][j / kPerBlock];
    }
  }
}

}  // namespace vesta
