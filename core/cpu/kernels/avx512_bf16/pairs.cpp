// Products of bfloat16 with VDPBF16PS: Note [Pairs of bfloat16] in gemm_kernel.h.
#include <vesta/core/cpu/gemm_tiles.h>

namespace vesta::cpu::VESTA_ISA_NS {
namespace {

void interleave(std::int64_t n, const std::uint16_t* low, const std::uint16_t* high, float* out) {
  for (std::int64_t i = 0; i < n; i += 16) {
    const auto mask = static_cast<__mmask16>(n - i < 16 ? (1u << (n - i)) - 1 : 0xffff);
    const __m512i first = _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(mask, low + i));
    const __m512i second = high == nullptr
                               ? _mm512_setzero_si512()
                               : _mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(mask, high + i)), 16);
    _mm512_mask_storeu_epi32(out + i, mask, _mm512_or_si512(first, second));
  }
}

// VCVTNEPS2BF16 would do it in one instruction, but for subnormal numbers, of which it makes zeros.
void narrow(std::int64_t n, const float* in, std::uint16_t* out) {
  const __m512i one = _mm512_set1_epi32(1), half = _mm512_set1_epi32(0x7fff), quiet = _mm512_set1_epi32(0x40);
  for (std::int64_t i = 0; i < n; i += 16) {
    const auto mask = static_cast<__mmask16>(n - i < 16 ? (1u << (n - i)) - 1 : 0xffff);
    const __m512 value = _mm512_maskz_loadu_ps(mask, in + i);
    const __m512i bits = _mm512_castps_si512(value), top = _mm512_srli_epi32(bits, 16);
    const __m512i odd = _mm512_and_si512(top, one);
    const __m512i rounded = _mm512_srli_epi32(_mm512_add_epi32(bits, _mm512_add_epi32(half, odd)), 16);
    const __mmask16 nan = _mm512_cmp_ps_mask(value, value, _CMP_UNORD_Q);
    const __m512i result = _mm512_mask_or_epi32(rounded, nan, top, quiet);
    _mm256_mask_storeu_epi16(out + i, mask, _mm512_cvtepi32_epi16(result));
  }
}

constexpr PairKernels kPairs = {kernels_of<VecPairs>(), &interleave, &narrow};

}  // namespace

const PairKernels& pair_kernels() { return kPairs; }

}  // namespace vesta::cpu::VESTA_ISA_NS
