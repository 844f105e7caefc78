// Pointwise ops: one struct is the whole op. This header holds what is derived from the struct without knowing a
// device: the record an op is described by at run time, and the plan its kernels get.
#pragma once
#include <vesta/core/dispatch/op.h>
#include <vesta/core/ops/pointwise_traits.h>

namespace vesta {

/// Returns the dtype that values of `d` are computed in: float32 for 16-bit floats.
constexpr DType compute_type(DType d) { return d == DType::float16 || d == DType::bfloat16 ? DType::float32 : d; }

/// One run over contiguous elements: `out` and each input advance by one element, or stay (step 0, then the value is
/// repeated over 64 bytes). A value that stays is of the type of the computation, which holds numbers that the type of
/// the elements does not (65536 for float16); a masked op, which computes nothing, takes it as an element.
struct LoopArgs {
  char* out;
  const char* in[kMaxInputs];
  int64_t step[kMaxInputs];  // 1 or 0
  int64_t n;
  const double* params;
  char* second;  // of an op with two results: the memory of the second, laid out as the first
};
/// A CPU kernel of a pointwise op. Other devices keep their own function type behind the same pointer.
using Loop = void (*)(const LoopArgs&);
using AnyKernel = void (*)();
/// The CPU kernels of one op: [variant][dtype], as PointwiseInfo::kernels; null where there is none.
struct PointwiseLoops {
  Loop at[4][kNumDTypes] = {};
};

/// The run-time record of a pointwise op. Variant 0 is forward, variant 1 + i the gradient of input i.
struct PointwiseInfo {
  const Schema* schema = nullptr;
  const char* name = "";  // the schema's
  uint8_t inputs = 1;
  uint8_t params = 0;  // doubles that hold the parameters
  DTypeSet accepts;
  Result result = Result::same;
  Result second = Result::same;  // of the second of two results
  bool two_results = false;
  uint8_t values = 1;  // of the formula: 2 for two results, and for the parts of a complex one
  uint8_t slopes = 1;  // incoming gradients that a gradient takes: one per value that has one
  bool integers_to_float = false;  // integer inputs compute in the default float type
  bool bool_to_int64 = false;  // bool inputs compute in int64
  bool rounds_numbers = false;  // numbers are rounded to the elements' type: comparisons and choices
  // Of the finite parameters: they must be finite in the type computed in, or as elements.
  bool bounds_parameters = false, parameters_are_elements = false;
  bool of_truth = false;  // inputs of any dtype count as bools, x != 0
  bool mask_first = false;  // input 0 is a bool mask that takes no part in promotion (where)
  bool pass[3] = {};  // the gradient of input i is g
  bool zero[3] = {};  // the gradient of input i is 0
  // Bit k: the gradient of input i uses input k. Bits from `inputs` on: it uses that value of the formula. Bit `inputs
  // + values`: it uses the second incoming gradient.
  uint8_t uses[3] = {};
  void (*check)(const Tensor* const* in, const double* params) = nullptr;  // checks what shapes do not show
  AnyKernel kernels[kNumDeviceTypes][4][kNumDTypes] = {};
  // True if the gradient can use the result instead of the input, which an in-place op then need not copy.
  bool (*result_stands_in)(const double* params) = nullptr;
  bool (*pass_if[3])(const double* params) = {};  // the gradient of input i is g for these parameters: b's in a + 1 * b
};

/// Checks the operands of a sum with a complex factor, and returns the second one times the factor.
VESTA_API Tensor factored(const PointwiseInfo& info, const Tensor* const* in, Scalar factor);

/// An Op that carries its record. Layers and kernels look at `info`, which lives with the op.
template <class Signature>
struct PointwiseOp : Op<Signature> {
  PointwiseInfo info;
  template <class Casts, class Profiled = std::nullptr_t>
  constexpr PointwiseOp(const Schema& s, const PointwiseInfo& i, typename Op<Signature>::Fn kernel, Casts casts,
                        Profiled profiled = {})
      : Op<Signature>(s, nullptr, casts, profiled), info(i) {
    this->set_kernel(kernel);
  }
};

/// The arguments of a call of any pointwise op, apart by kind.
struct PointwiseArguments {
  const Tensor* in[3] = {};
  double params[kMaxParams] = {};
  Out out;
  int inputs = 0, used = 0;
  void see(const Tensor& t) { in[inputs++] = &t; }
  void see(const Out& o) { out = o; }
  template <class P>
  void see(const P& parameter) {
    traits::Packed<P>::write(parameter, params + used);
    used += traits::Packed<P>::size;
  }
};

/// The plan that a device runs: geometry after broadcasting and coalescing, dimension 0 innermost.
struct PointwisePlan {
  struct Operand {
    char* data = nullptr;  // of the first element; for `immediate`, of the value in host memory
    DType dtype = DType::float32;
    bool immediate = false;  // a host value of number_type(), to be repeated everywhere
    const int64_t* strides = nullptr;  // bytes, per plan dimension
  };
  const char* op = "copy";  // for messages and profiles
  AnyKernel kernel = nullptr;  // null: copy with conversion (one input)
  DType compute = DType::float32;  // of the operands the kernel reads
  DType result = DType::float32;  // of the values it writes; `out` may be converted to another
  bool mask_first = false;  // operand 0 is read as bool
  Device device;
  int ndim = 0;
  const int64_t* sizes = nullptr;
  int64_t numel = 0;
  Operand out;
  int inputs = 0;
  Operand in[kMaxInputs];
  const double* params = nullptr;
  char* second = nullptr;  // of two results, the second: its elements lie as those of `out`, which is dense
  DType second_dtype = DType::float32;
  /// Returns the dtype of an operand that is one value everywhere.
  DType number_type() const { return mask_first ? compute : compute_type(compute); }
};

/// Runs an op: promotes, broadcasts, allocates (or checks `out`), plans, and calls the device's kernel.
VESTA_API Tensor pointwise(const PointwiseInfo& info, const Tensor* const* in, const double* params, Out out);
/// Does the same under the name of the op that was called, a literal: errors, profiles and last_writer() show it. The
/// caller has checked and recorded: no layer runs. Parameters go by the names that they have in `info`.
VESTA_API Tensor pointwise_as(const char* name, const PointwiseInfo& info, const Tensor* const* in,
                              const double* params, Out out);
template <class... T>
Tensor pointwise_as(const char* name, const PointwiseInfo& info, const double* params, Out out, const T&... operand) {
  const Tensor* const in[] = {&operand...};
  return pointwise_as(name, info, in, params, out);
}
/// Runs an op with two results.
VESTA_API TensorPair pointwise_pair(const PointwiseInfo& info, const Tensor* const* in, const double* params);
/// Runs the fused gradient of input `i`: operands are g and what the gradient uses, in order. Where the device has no
/// fused kernel for the dtype, returns an undefined tensor.
VESTA_API Tensor pointwise_backward(const PointwiseInfo& info, int i, const Tensor* const* operands, int count,
                                    const double* params);
/// Computes a pointwise sum (add, addcmul, ...) whose second operand is multiplied by a factor that may be complex.
template <class PointwiseOp, class... T>
Tensor with_factor(const PointwiseOp& op, Out out, Scalar factor, const Tensor& input, const Tensor& first,
                   const T&... rest) {
  const Tensor* const in[] = {&input, &first, &rest...};
  return op(input, factored(op.info, in, factor), rest..., 1, out);
}
/// Copies `from` into `to` (same shape after broadcasting `from`), converting; any strides, devices and overlap.
VESTA_API void copy_into(const Tensor& to, const Tensor& from, const char* op, bool non_blocking = false);
/// Raises when `t` may not be written by `op`: read-only memory, elements that share memory, a tensor of inference
/// mode.
VESTA_API void check_writable(const Tensor& t, const char* op);
/// The possible overlap of two tensors' memory: `none`, `same` (identical geometry) or `partial`.
enum class Overlap : uint8_t { none, same, partial };
VESTA_API Overlap overlap(const Tensor& a, const Tensor& b);

}  // namespace vesta
