#include <vesta/cuda/pointwise.h>

#include <algorithm>
#include <cstring>
#include <unordered_map>

#include <vesta/core/ops/activation.h>
#include <vesta/core/ops/arithmetic.h>
#include <vesta/core/ops/compare.h>
#include <vesta/core/ops/explog.h>
#include <vesta/core/ops/numbers.h>
#include <vesta/core/ops/pointwise_table.h>
#include <vesta/core/ops/select.h>
#include <vesta/core/ops/special.h>
#include <vesta/core/ops/strided_iter.h>
#include <vesta/core/ops/topics.h>
#include <vesta/core/ops/trigonometric.h>
#include <vesta/cuda/stream.h>

namespace vesta::cuda {

#define VESTA_X(topic, LIST) void kernels_of_##topic(PointwiseKernels* to);
VESTA_POINTWISE_TOPICS(VESTA_X)
#undef VESTA_X
void register_conversions();

namespace {

constexpr int64_t kMaxElements = int64_t(1) << 30;  // of one launch: element numbers are 31 bits
constexpr int64_t kMaxTotal = int64_t(1) << 31;

/// The kernels of mixed dtypes that stand in for one of float32.
std::unordered_map<AnyKernel, MixedKernels>& mixed_kernels() {
  static auto& kernels = *new std::unordered_map<AnyKernel, MixedKernels>;
  return kernels;
}

void enter(PointwiseInfo& info, const PointwiseKernels& kernels) {
  if (kernels.mixed.at[0][0]) {
    mixed_kernels()[reinterpret_cast<AnyKernel>(kernels.at[0][int(DType::float32)])] = kernels.mixed;
  }
  for (int variant = 0; variant < 4; ++variant) {
    for (int d = 0; d < kNumDTypes; ++d) {
      info.kernels[int(DeviceType::cuda)][variant][d] = reinterpret_cast<AnyKernel>(kernels.at[variant][d]);
    }
  }
}

/// Returns whether an operand is a number beside 16-bit floats, 0-dimensional and on the device: their promotion leaves
/// no other one of float32. It counts as it is.
bool is_number(const PointwisePlan& p, int i) {
  const bool half = p.compute == DType::float16 || p.compute == DType::bfloat16;
  if (!p.kernel || !half || p.mask_first || p.in[i].immediate || p.in[i].dtype != DType::float32) return false;
  return std::all_of(p.in[i].strides, p.in[i].strides + p.ndim, [](int64_t stride) { return stride == 0; });
}

PointwiseLaunch launch_of(const PointwisePlan& p) {
  PointwiseLaunch l;
  l.name = p.op;
  l.stream = current_stream(p.device.index()).handle();
  l.numel = p.numel, l.inputs = p.inputs;
  l.out = p.out.data, l.second = p.second;
  for (int i = 0; i < p.inputs; ++i) {
    if (p.in[i].immediate) std::memcpy(l.in[i].value, p.in[i].data, size_t(itemsize(p.in[i].dtype)));
    else if (is_number(p, i)) l.in[i].held = p.in[i].data;
    else l.in[i].data = p.in[i].data;
  }
  if (p.params) std::memcpy(l.params, p.params, sizeof l.params);
  return l;
}

/// Moves a launch's results on by `bytes` of the first.
void advance(const PointwisePlan& p, PointwiseLaunch& l, int64_t bytes) {
  l.out += bytes;
  if (l.second) l.second += bytes / itemsize(p.out.dtype) * itemsize(p.second_dtype);
}

/// Returns the highest dimension that an operand strides over in more bytes than a launch has bits for, or -1.
int wide_dimension(const PointwiseLaunch& l) {
  const auto wide = [](int64_t stride) { return stride > INT32_MAX || stride < INT32_MIN; };
  for (int d = l.ndim - 1; d >= 0; --d) {
    if (l.sizes[d] == 1) continue;
    if (wide(l.out_strides[d])) return d;
    for (int i = 0; i < l.inputs; ++i) {
      if (wide(l.in[i].strides[d])) return d;
    }
  }
  return -1;
}

/// Takes dimension d out of a launch.
void remove_dimension(PointwiseLaunch& l, int d) {
  --l.ndim;
  for (int e = d; e < l.ndim; ++e) {
    l.sizes[e] = l.sizes[e + 1], l.out_strides[e] = l.out_strides[e + 1];
    for (int i = 0; i < l.inputs; ++i) l.in[i].strides[e] = l.in[i].strides[e + 1];
  }
}

/// Queues a launch, in parts along dimensions whose strides are wide: these are few, in tensors of gigabytes.
void run_narrow(const PointwisePlan& p, const PointwiseLaunch& l, PointwiseKernel kernel) {
  const int d = wide_dimension(l);
  if (d < 0) return kernel(l);
  for (int64_t k = 0; k < l.sizes[d]; ++k) {
    PointwiseLaunch part = l;
    part.numel = l.numel / l.sizes[d];
    advance(p, part, k * l.out_strides[d]);
    for (int i = 0; i < l.inputs; ++i) {
      if (l.in[i].data) part.in[i].data += k * l.in[i].strides[d];
    }
    remove_dimension(part, d);
    run_narrow(p, part, kernel);
  }
}

/// Queues dimensions [0, ndim) of a plan; the pointers of `l` account for the outer ones.
void run_inner(const PointwisePlan& p, PointwiseLaunch l, int ndim, PointwiseKernel kernel) {
  int64_t numel = 1;
  for (int d = 0; d < ndim; ++d) numel *= p.sizes[d];
  if (ndim <= kLaunchDims && numel <= kMaxElements) {
    l.numel = numel, l.ndim = ndim;
    for (int d = 0; d < ndim; ++d) {
      l.sizes[d] = p.sizes[d];
      l.out_strides[d] = p.out.strides[d];
      for (int i = 0; i < p.inputs; ++i) l.in[i].strides[d] = l.in[i].data ? p.in[i].strides[d] : 0;
    }
    return run_narrow(p, l, kernel);
  }
  if (ndim == 1) {  // one long run: split it into parts
    for (int64_t at = 0; at < p.sizes[0]; at += kMaxElements) {
      PointwiseLaunch part = l;
      part.numel = part.sizes[0] = std::min(kMaxElements, p.sizes[0] - at);
      part.ndim = 1;
      advance(p, part, at * p.out.strides[0]);
      part.out_strides[0] = p.out.strides[0];
      for (int i = 0; i < p.inputs; ++i) {
        if (!l.in[i].data) continue;
        part.in[i].data += at * p.in[i].strides[0], part.in[i].strides[0] = p.in[i].strides[0];
      }
      run_narrow(p, part, kernel);
    }
    return;
  }
  const int last = ndim - 1;
  for (int64_t k = 0; k < p.sizes[last]; ++k) {
    PointwiseLaunch part = l;
    advance(p, part, k * p.out.strides[last]);
    for (int i = 0; i < p.inputs; ++i) {
      if (l.in[i].data) part.in[i].data += k * p.in[i].strides[last];
    }
    run_inner(p, part, last, kernel);
  }
}

void run_copy(const PointwisePlan& p) {
  const DType from = p.in[0].immediate ? p.compute : p.in[0].dtype;
  PointwiseKernel kernel = conversion_kernels[int(from)][int(p.out.dtype)];
  run_inner(p, launch_of(p), p.ndim, kernel);
}

/// A contiguous copy of an operand in another dtype, in the order of a plan's dimensions; dimensions that the operand
/// repeats along have size 1.
struct Converted {
  Tensor tensor;
  int64_t numel = 1, sizes[kMaxDims], strides[kMaxDims];
  Converted(const PointwisePlan& p, const PointwisePlan::Operand& of, DType dtype) {
    for (int d = 0; d < p.ndim; ++d) {
      const bool repeats = of.strides[d] == 0;
      sizes[d] = repeats ? 1 : p.sizes[d], strides[d] = repeats ? 0 : numel * itemsize(dtype);
      numel *= sizes[d];
    }
    tensor = empty_tensor({{numel}}, dtype, p.device);
  }
};

/// Returns the kernel that reads the operands of a plan as they are, if they are float32 and one 16-bit float, and the
/// op has one; else null.
AnyKernel mixed_kernel(const PointwisePlan& p) {
  if (p.compute != DType::float32 || p.inputs != 2) return nullptr;
  const auto is_half = [&](int i) {
    return !p.in[i].immediate && (p.in[i].dtype == DType::float16 || p.in[i].dtype == DType::bfloat16);
  };
  const int other = is_half(0) ? 0 : 1;
  if (!is_half(other) || p.in[1 - other].dtype != DType::float32) return nullptr;
  const auto found = mixed_kernels().find(p.kernel);
  if (found == mixed_kernels().end()) return nullptr;
  return reinterpret_cast<AnyKernel>(found->second.at[other][p.in[other].dtype == DType::bfloat16]);
}

}  // namespace

void run_plan(const PointwisePlan& plan) {
  DeviceGuard guard(plan.device.index());
  if (!plan.kernel) return run_copy(plan);
  PointwisePlan p = plan;
  const AnyKernel mixed = mixed_kernel(p);
  if (mixed) p.kernel = mixed;
  std::vector<std::unique_ptr<Converted>> temporaries;
  auto temporary = [&](const PointwisePlan::Operand& of, DType d) -> Converted& {
    temporaries.push_back(std::make_unique<Converted>(p, of, d));
    return *temporaries.back();
  };
  for (int i = 0; i < p.inputs; ++i) {
    const DType wanted = i == 0 && p.mask_first ? DType::bool_ : p.compute;
    if (mixed || p.in[i].immediate || p.in[i].dtype == wanted || is_number(p, i)) continue;
    Converted& c = temporary(p.in[i], wanted);
    PointwisePlan copy = p;
    copy.kernel = nullptr, copy.inputs = 1, copy.in[0] = p.in[i];
    copy.sizes = c.sizes, copy.numel = c.numel;
    copy.out = {c.tensor.impl()->data(), wanted, false, c.strides};
    run_copy(copy);
    p.in[i] = copy.out;
  }
  Converted* result = nullptr;
  if (p.out.dtype != p.result) {
    result = &temporary(p.out, p.result);
    p.out = {result->tensor.impl()->data(), p.result, false, result->strides};
  }
  run_inner(p, launch_of(p), p.ndim, reinterpret_cast<PointwiseKernel>(p.kernel));
  if (!result) return;
  PointwisePlan copy = plan;
  copy.kernel = nullptr, copy.inputs = 1, copy.in[0] = p.out;
  run_copy(copy);
}

void register_pointwise() {
  register_conversions();
#define VESTA_X(topic, LIST)                                                     \
  {                                                                              \
    PointwiseInfo* const infos[] = {VESTA_POINTWISE_INFOS(LIST)};                \
    PointwiseKernels kernels[std::size(infos)];                                  \
    kernels_of_##topic(kernels);                                                 \
    for (size_t i = 0; i < std::size(infos); ++i) enter(*infos[i], kernels[i]);  \
  }
  VESTA_POINTWISE_TOPICS(VESTA_X)
#undef VESTA_X
}

}  // namespace vesta::cuda
