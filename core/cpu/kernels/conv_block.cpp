// Direct convolution of float and double: the tiles of conv_tiles.h with the vectors of an instruction set.
#include <vesta/core/cpu/conv_tiles.h>

namespace vesta::cpu::VESTA_ISA_NS {
namespace {

constexpr DirectKernels<float> kF32 = kernels_of<VecF32>();
constexpr DirectKernels<double> kF64 = kernels_of<VecF64>();

}  // namespace

const DirectKernels<float>& direct_float_kernels() { return kF32; }
const DirectKernels<double>& direct_double_kernels() { return kF64; }

}  // namespace vesta::cpu::VESTA_ISA_NS
