// The elements of a run that a mask chooses, side by side: without a branch, as masks have no order that a processor
// foresees.
#include <vesta/core/cpu/mask.h>

#include <type_traits>

#include <vesta/core/cpu/elements.h>
#include <vesta/core/cpu/simd.h>

namespace vesta::cpu::VESTA_ISA_NS {
namespace {

#if defined(VESTA_SIMD_AVX2) && !defined(VESTA_SIMD_AVX512)
/// The lanes of a vector of 8 that each mask of 8 bits chooses, in order, and then lane 0; and the mask of both lanes
/// of each pair that a mask of 4 bits chooses.
struct ChosenLanes {
  alignas(8) uint8_t of[256][8] = {};
  uint8_t pairs[16] = {};
  constexpr ChosenLanes() {
    for (unsigned mask = 0; mask < 256; ++mask) {
      for (uint8_t lane = 0, at = 0; lane < 8; ++lane) {
        if (mask >> lane & 1) of[mask][at++] = lane;
      }
    }
    for (unsigned mask = 0; mask < 16; ++mask) {
      for (unsigned pair = 0; pair < 4; ++pair) pairs[mask] |= uint8_t((mask >> pair & 1) * 3 << 2 * pair);
    }
  }
};
constexpr ChosenLanes kChosenLanes;

/// Returns the elements of 32 bits that the mask chooses, side by side.
VESTA_INLINE __m256i chosen(__m256i v, unsigned mask) {
  const __m128i lanes = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(kChosenLanes.of[mask]));
  return _mm256_permutevar8x32_epi32(v, _mm256_cvtepu8_epi32(lanes));
}
#endif

/// Moves the elements from whole vectors, as long as a vector of them may be written; returns how many were read.
template <class T>
VESTA_INLINE int64_t compress_vectors([[maybe_unused]] const T* x, [[maybe_unused]] const uint8_t* mask,
                                      [[maybe_unused]] int64_t n, [[maybe_unused]] T* out,
                                      [[maybe_unused]] int64_t count, [[maybe_unused]] int64_t& at) {
  int64_t i = 0;
#if defined(VESTA_SIMD_AVX512)
  if constexpr (sizeof(T) == 4) {
    for (; i + 16 <= n && at + 16 <= count; i += 16) {
      const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(mask + i));
      const __mmask16 taken = _mm_test_epi8_mask(bytes, bytes);
      _mm512_storeu_si512(out + at, _mm512_maskz_compress_epi32(taken, _mm512_loadu_si512(x + i)));
      at += __builtin_popcount(taken);
    }
  } else if constexpr (sizeof(T) == 8) {
    for (; i + 8 <= n && at + 8 <= count; i += 8) {
      const __m128i bytes = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(mask + i));
      const auto taken = static_cast<__mmask8>(_mm_test_epi8_mask(bytes, bytes));
      _mm512_storeu_si512(out + at, _mm512_maskz_compress_epi64(taken, _mm512_loadu_si512(x + i)));
      at += __builtin_popcount(taken);
    }
  }
#elif defined(VESTA_SIMD_AVX2)
  if constexpr (sizeof(T) == 4 || sizeof(T) == 8) {
    constexpr int64_t N = 32 / sizeof(T);
    for (; i + N <= n && at + N <= count; i += N) {
      std::conditional_t<N == 8, long long, int> bytes;
      __builtin_memcpy(&bytes, mask + i, sizeof bytes);
      const __m128i zeros = _mm_cmpeq_epi8(_mm_cvtsi64_si128(bytes), _mm_setzero_si128());
      const unsigned taken = ~unsigned(_mm_movemask_epi8(zeros)) & ((1u << N) - 1u);
      const __m256i v = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(x + i));
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(out + at), chosen(v, N == 8 ? taken : kChosenLanes.pairs[taken]));
      at += __builtin_popcount(taken);
    }
  }
#endif
  return i;
}

template <class T>
void compress(const char* from, const uint8_t* mask, int64_t n, char* to, int64_t count) {
  const T* const x = reinterpret_cast<const T*>(from);
  T* const out = reinterpret_cast<T*>(to);
  int64_t at = 0;
  for (int64_t i = compress_vectors(x, mask, n, out, count, at); i < n && at < count; ++i) {
    out[at] = x[i];
    at += mask[i] != 0;
  }
}

}  // namespace

void register_mask_kernels(MaskKernels& k) {
  k = {{&compress<uint8_t>, &compress<uint16_t>, &compress<uint32_t>, &compress<uint64_t>, &compress<Wide>}};
}

}  // namespace vesta::cpu::VESTA_ISA_NS
