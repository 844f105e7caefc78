#include <vesta/core/cpu/conv_depthwise.h>
#include <vesta/core/cpu/conv_kernel.h>
#include <vesta/core/cpu/gemm_kernel.h>

#include <algorithm>

#if defined(VESTA_AVX512_AMX)
#include <asm/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace vesta::cpu {
namespace {

Isa limit = Isa::avx512_amx;

// The instruction set whose namespace holds the kernels that exist for all.
Isa vector_isa() { return std::min(gemm_isa(), Isa::avx512); }

#if defined(VESTA_AVX512_AMX)
// Asks the kernel to let this process use tiles. It refuses where a signal handler has a stack too small for them.
bool may_use_tiles() {
  constexpr int kTileData = 18;  // a component of the state of a CPU
  return syscall(SYS_arch_prctl, ARCH_REQ_XCOMP_PERM, kTileData) == 0;
}
#endif

// The instruction set of products of pairs. Tiles are asked for by the first such product and not before: from then on
// the kernel refuses small stacks of signal handlers.
Isa pair_isa() {
#if defined(VESTA_AVX512_AMX)
  if (gemm_isa() == Isa::avx512_amx) {
    static const bool has_tiles = may_use_tiles();
    return has_tiles ? Isa::avx512_amx : Isa::avx512_bf16;
  }
#endif
  return gemm_isa();
}

}  // namespace

Isa gemm_isa() { return std::min(isa(), limit); }

void limit_gemm_isa(Isa isa) { limit = isa; }

template <>
const GemmKernels<float>& gemm_kernels() {
  switch (vector_isa()) {
#if defined(__x86_64__)
    case Isa::avx512: return avx512::float_kernels();
    case Isa::avx2: return avx2::float_kernels();
#endif
    default: return baseline::float_kernels();
  }
}

template <>
const GemmKernels<double>& gemm_kernels() {
  switch (vector_isa()) {
#if defined(__x86_64__)
    case Isa::avx512: return avx512::double_kernels();
    case Isa::avx2: return avx2::double_kernels();
#endif
    default: return baseline::double_kernels();
  }
}

const PairKernels* pair_kernels() {
#if defined(VESTA_AVX512_AMX)
  if (pair_isa() == Isa::avx512_amx) return &avx512_amx::pair_kernels();
#endif
#if defined(VESTA_AVX512_BF16)
  if (pair_isa() == Isa::avx512_bf16) return &avx512_bf16::pair_kernels();
#endif
  return nullptr;
}

const DirectKernels<float>* pair_direct_kernels() {
#if defined(VESTA_AVX512_BF16)
  if (pair_isa() == Isa::avx512_bf16) return &avx512_bf16::pair_direct_kernels();
#endif
  return nullptr;
}

const WinogradKernels& winograd_kernels() {
  switch (vector_isa()) {
#if defined(__x86_64__)
    case Isa::avx512: return avx512::winograd_float_kernels();
    case Isa::avx2: return avx2::winograd_float_kernels();
#endif
    default: return baseline::winograd_float_kernels();
  }
}

template <>
const DirectKernels<float>& direct_kernels() {
  switch (vector_isa()) {
#if defined(__x86_64__)
    case Isa::avx512: return avx512::direct_float_kernels();
    case Isa::avx2: return avx2::direct_float_kernels();
#endif
    default: return baseline::direct_float_kernels();
  }
}

template <>
const DirectKernels<double>& direct_kernels() {
  switch (vector_isa()) {
#if defined(__x86_64__)
    case Isa::avx512: return avx512::direct_double_kernels();
    case Isa::avx2: return avx2::direct_double_kernels();
#endif
    default: return baseline::direct_double_kernels();
  }
}

template <>
const DepthwiseKernels<float>& depthwise_kernels() {
  switch (vector_isa()) {
#if defined(__x86_64__)
    case Isa::avx512: return avx512::depthwise_float_kernels();
    case Isa::avx2: return avx2::depthwise_float_kernels();
#endif
    default: return baseline::depthwise_float_kernels();
  }
}

template <>
const DepthwiseKernels<double>& depthwise_kernels() {
  switch (vector_isa()) {
#if defined(__x86_64__)
    case Isa::avx512: return avx512::depthwise_double_kernels();
    case Isa::avx2: return avx2::depthwise_double_kernels();
#endif
    default: return baseline::depthwise_double_kernels();
  }
}

}  // namespace vesta::cpu
