// Sums, differences and products of float32 with a 16-bit float: a residual connection under autocast adds one to the
// other, and a copy in float32 would be written and read for it (18 bytes an element instead of 10).
#include <vesta/core/ops/lists/arithmetic.h>
#include <vesta/core/ops/pointwise/arithmetic.h>
#include <vesta/cuda/kernels/loops.cuh>

namespace vesta::cuda {
namespace {

template <class D>
constexpr bool is_mixed = std::is_same_v<D, def::Add> || std::is_same_v<D, def::Sub> || std::is_same_v<D, def::Mul>;

template <class D, class P>
void enter_mixed(PointwiseKernels& k) {
  if constexpr (is_mixed<D>) {
    k.mixed.at[0][0] = &run_loop<MixedForward<D, Half, 0, P>>;
    k.mixed.at[0][1] = &run_loop<MixedForward<D, BFloat16, 0, P>>;
    k.mixed.at[1][0] = &run_loop<MixedForward<D, Half, 1, P>>;
    k.mixed.at[1][1] = &run_loop<MixedForward<D, BFloat16, 1, P>>;
  }
}

}  // namespace

#undef VESTA_ENTER_POINTWISE
#define VESTA_ENTER_POINTWISE(name, Struct, parameters, ...)                  \
  {                                                                           \
    [[maybe_unused]] auto signature = [] parameters {};                       \
    using Counts = traits::Arity<decltype(&decltype(signature)::operator())>; \
    enter_mixed<def::Struct, typename Counts::Params>(to[at++]);              \
  }
void kernels_of_arithmetic_mixed(PointwiseKernels* to) {
  int at = 0;
  VESTA_OPS_ARITHMETIC(VESTA_ENTER)
}

}  // namespace vesta::cuda
