// Direct convolution of pairs of bfloat16: Note [Pairs of channels] in conv_half.h.
#include <vesta/core/cpu/conv_tiles.h>

namespace vesta::cpu::VESTA_ISA_NS {
namespace { constexpr DirectKernels<float> kPairs = kernels_of<VecPairs>(); }  // namespace

const DirectKernels<float>& pair_direct_kernels() { return kPairs; }

}  // namespace vesta::cpu::VESTA_ISA_NS
