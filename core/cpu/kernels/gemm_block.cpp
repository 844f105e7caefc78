// The matrix products of float and double: the tiles of gemm_tiles.h with the vectors of an instruction set.
#include <vesta/core/cpu/gemm_tiles.h>

namespace vesta::cpu::VESTA_ISA_NS {
namespace {

constexpr GemmKernels<float> kF32 = kernels_of<VecF32>();
constexpr GemmKernels<double> kF64 = kernels_of<VecF64>();

}  // namespace

const GemmKernels<float>& float_kernels() { return kF32; }
const GemmKernels<double>& double_kernels() { return kF64; }

}  // namespace vesta::cpu::VESTA_ISA_NS
