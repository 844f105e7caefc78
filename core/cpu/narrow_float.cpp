// 16-bit floats to and from float, whole arrays at a time; with AVX2 and F16C if the machine has them.
#include <immintrin.h>

#include <vesta/core/cpu/gemm.h>

#include <bit>

namespace vesta::cpu {

using std::int64_t;

std::int64_t elem_size(Elem elem) {
  switch (elem) {
    case Elem::u8:
    case Elem::i8: return 1;
    case Elem::bf16:
    case Elem::f16:
    case Elem::i16: return 2;
    case Elem::f32:
    case Elem::i32: return 4;
    case Elem::f64:
    case Elem::c64:
    case Elem::i64: return 8;
    case Elem::c128: return 16;
  }
  return 0;
}

namespace {

constexpr std::uint32_t kQuiet = 0x00400000u;

float widen_f16(std::uint16_t half) {
  const std::uint32_t sign = static_cast<std::uint32_t>(half & 0x8000u) << 16, exponent = (half >> 10) & 31u,
                      fraction = half & 0x3ffu;
  if (exponent == 31) {
    return std::bit_cast<float>(sign | 0x7f800000u | (fraction << 13) | (fraction != 0 ? kQuiet : 0u));
  }
  if (exponent != 0) return std::bit_cast<float>(sign | ((exponent + 112) << 23) | (fraction << 13));
  const float value = static_cast<float>(fraction) * 0x1p-24f;  // subnormal or zero: exact in float
  return sign != 0 ? -value : value;
}

std::uint16_t narrow_f16(float value) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value), sign = (bits >> 16) & 0x8000u,
                      magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return static_cast<std::uint16_t>(sign | 0x7e00u | ((magnitude >> 13) & 0x3ffu));
  if (magnitude >= 0x477ff000u) return static_cast<std::uint16_t>(sign | 0x7c00u);  // 65520 and above round to infinity
  if (magnitude < 0x38800000u) {  // below 2^-14: adding 0.5 lets the addition round at 2^-24
    const float rounded = std::bit_cast<float>(magnitude) + 0.5f;
    return static_cast<std::uint16_t>(sign | (std::bit_cast<std::uint32_t>(rounded) - 0x3f000000u));
  }
  const std::uint32_t odd = (magnitude >> 13) & 1u;
  return static_cast<std::uint16_t>(sign | ((magnitude - (112u << 23) + 0xfffu + odd) >> 13));
}

[[gnu::target("avx2,f16c")]] int64_t widen_f16_avx2(int64_t n, const std::uint16_t* in, float* out) {
  int64_t i = 0;
  for (; i + 8 <= n; i += 8) {
    _mm256_storeu_ps(out + i, _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(in + i))));
  }
  return i;
}

[[gnu::target("avx2,f16c")]] int64_t narrow_f16_avx2(int64_t n, const float* in, std::uint16_t* out) {
  int64_t i = 0;
  for (; i + 8 <= n; i += 8) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(out + i), _mm256_cvtps_ph(_mm256_loadu_ps(in + i), 0));
  }
  return i;
}

[[gnu::target("avx2")]] int64_t widen_bf16_avx2(int64_t n, const std::uint16_t* in, float* out) {
  int64_t i = 0;
  for (; i + 8 <= n; i += 8) {
    const __m256i wide = _mm256_cvtepu16_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(in + i)));
    _mm256_storeu_ps(out + i, _mm256_castsi256_ps(_mm256_slli_epi32(wide, 16)));
  }
  return i;
}

[[gnu::target("avx2")]] int64_t narrow_bf16_avx2(int64_t n, const float* in, std::uint16_t* out) {
  int64_t i = 0;
  for (; i + 8 <= n; i += 8) {
    const __m256 value = _mm256_loadu_ps(in + i);
    const __m256i bits = _mm256_castps_si256(value), high = _mm256_srli_epi32(bits, 16);
    const __m256i odd = _mm256_and_si256(high, _mm256_set1_epi32(1));
    const __m256i raised = _mm256_add_epi32(_mm256_add_epi32(bits, _mm256_set1_epi32(0x7fff)), odd);
    const __m256i quiet = _mm256_or_si256(high, _mm256_set1_epi32(0x40));
    const __m256i is_nan = _mm256_castps_si256(_mm256_cmp_ps(value, value, _CMP_UNORD_Q));
    const __m256i rounded = _mm256_blendv_epi8(_mm256_srli_epi32(raised, 16), quiet, is_nan);
    const __m256i packed = _mm256_packus_epi32(rounded, rounded);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(out + i),
                     _mm256_castsi256_si128(_mm256_permute4x64_epi64(packed, 0xd8)));
  }
  return i;
}

bool has_avx2() {
  static const bool has = __builtin_cpu_supports("avx2") != 0;
  return has;
}
bool has_f16c() {
  static const bool has = __builtin_cpu_supports("f16c") && has_avx2();
  return has;
}

}  // namespace

void bf16_to_f32(int64_t n, const std::uint16_t* in, float* out) {
  for (int64_t i = has_avx2() ? widen_bf16_avx2(n, in, out) : 0; i < n; ++i) {
    out[i] = std::bit_cast<float>(static_cast<std::uint32_t>(in[i]) << 16);
  }
}

void f32_to_bf16(int64_t n, const float* in, std::uint16_t* out) {
  for (int64_t i = has_avx2() ? narrow_bf16_avx2(n, in, out) : 0; i < n; ++i) {
    const std::uint32_t bits = std::bit_cast<std::uint32_t>(in[i]);
    const std::uint32_t rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
    out[i] = static_cast<std::uint16_t>((bits & 0x7fffffffu) > 0x7f800000u ? (bits >> 16) | 0x40u : rounded);
  }
}

void f16_to_f32(int64_t n, const std::uint16_t* in, float* out) {
  for (int64_t i = has_f16c() ? widen_f16_avx2(n, in, out) : 0; i < n; ++i) out[i] = widen_f16(in[i]);
}

void f32_to_f16(int64_t n, const float* in, std::uint16_t* out) {
  for (int64_t i = has_f16c() ? narrow_f16_avx2(n, in, out) : 0; i < n; ++i) out[i] = narrow_f16(in[i]);
}

}  // namespace vesta::cpu
