// The matrix products of double: a file of its own, for the time that the tiles take to compile.
#include <vesta/core/cpu/gemm_tiles.h>

namespace vesta::cpu::VESTA_ISA_NS {
namespace { constexpr GemmKernels<double> kF64 = kernels_of<VecF64>(); }  // namespace

const GemmKernels<double>& double_kernels() { return kF64; }

}  // namespace vesta::cpu::VESTA_ISA_NS
