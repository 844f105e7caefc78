// The matrix products of float: the tiles of gemm_tiles.h with the vectors of an instruction set.
#include <vesta/core/cpu/gemm_tiles.h>

namespace vesta::cpu::VESTA_ISA_NS {
namespace { constexpr GemmKernels<float> kF32 = kernels_of<VecF32>(); }  // namespace

const GemmKernels<float>& float_kernels() { return kF32; }

}  // namespace vesta::cpu::VESTA_ISA_NS
