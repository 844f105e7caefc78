// Everything about a pointwise call that is the same on every device: promotion, broadcasting, the destination,
// overlap, and the plan. A tour:
//
//   pointwise()           the hot path (same dtype and shape, contiguous) inline; everything else goes to Call
//   Call                  collects operands, decides dtype, shape and destination, then builds the plan
//   PlanBuilder           orders dimensions by stride, merges those that lie one behind the other
#include <vesta/core/ops/pointwise.h>

#include <algorithm>
#include <cstring>
#include <string_view>

#include <vesta/core/backend.h>
#include <vesta/core/base/warning.h>
#include <vesta/core/ops/copy.h>
#include <vesta/core/ops/destination.h>
#include <vesta/core/ops/promotion.h>
#include <vesta/core/ops/strided_iter.h>
#include <vesta/core/torch_rules.h>

namespace vesta {
namespace {

// Below this a call runs its loop at once on the calling thread: no plan, no device port. Tuned with
// benchmarks/compare_torch.py (small ops).
constexpr int64_t kDirect = 2048;

/// Returns which operator to write instead of one that bool does not have.
const char* instead_of_bool(std::string_view op) {
  if (op == "sub") {
    return " Subtraction, the `-` operator, with two bool tensors is not supported. Use the `^` or `logical_xor()` "
           "operator instead.";
  }
  return op == "neg" ? " Use the ~ operator or logical_not() for bool tensors." : "";
}

std::string accepted(DTypeSet s) {
  std::string r;
  for (int d = 0; d < kNumDTypes; ++d) {
    if (s.has(DType(d))) r += (r.empty() ? "" : ", ") + std::string(name(DType(d)));
  }
  return r;
}

DType result_dtype(const PointwiseInfo& info, DType compute) {
  if (info.result == Result::same) [[likely]]
    return compute;
  switch (info.result) {
    case Result::boolean: return DType::bool_;
    case Result::real: return real_type(compute);
    case Result::complex: return complex_type(compute);
    default: return compute;
  }
}

[[gnu::always_inline]] inline bool same_sizes(const TensorImpl& a, const TensorImpl& b) {
  return a.ndim() == b.ndim() && std::memcmp(a.sizes().data(), b.sizes().data(), size_t(a.ndim()) * 8) == 0;
}

Scalar read_scalar(const Tensor& t) {
  const char* p = t.impl()->data();
  return visit(t.dtype(), [&]<class T>() -> Scalar {
    T v;
    std::memcpy(&v, p, sizeof v);
    if constexpr (std::is_same_v<T, complex64>) return Scalar(complex128(v));
    else if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>) return Scalar(float(v));
    else return Scalar(v);
  });
}

/// Returns whether the value of a 0-d tensor wraps around in an integer type as an element of a tensor does. A Python
/// integer does so where PyTorch's rules hold; else it must fit the type.
bool wraps(const Tensor& t) {
  if (t.dtype() == DType::bool_) return false;
  return !t.impl()->wrapped_number || (t.dtype() == DType::int64 && follows_torch());
}

/// Writes the value of a 0-d CPU tensor as `to` into `bytes`; a number that does not wrap must fit the type.
void convert_scalar(const Tensor& t, DType to, bool wraps, const char* op, char* bytes) {
  visit(to, [&]<class T>() {
    T v;
    if (std::is_integral_v<T> && wraps) {
      Scalar s = read_scalar(t);
      const int64_t wide = s.is_integral() ? s.integer() : s.to<int64_t>(op);
      v = T(wide);
    } else {
      v = read_scalar(t).to<T>(op);
    }
    std::memcpy(bytes, &v, sizeof v);
  });
}

/// Writes the value of a 0-d CPU tensor in the type that elements of `d` compute in; `rounded`: as an element has it.
void compute_scalar(const Tensor& t, DType d, bool rounded, const char* op, char* bytes) {
  const DType c = compute_type(d);
  convert_scalar(t, c, wraps(t), op, bytes);
  if (c == d || !rounded) return;
  float v;
  std::memcpy(&v, bytes, sizeof v);
  v = d == DType::float16 ? float(Half(v)) : float(BFloat16(v));
  std::memcpy(bytes, &v, sizeof v);
}

/// Writes whether the value of a 0-d CPU tensor, in the type that elements of `d` compute in, is not 0.
void truth_of_scalar(const Tensor& t, DType d, bool rounded, const char* op, char* bytes) {
  alignas(16) char value[16];
  compute_scalar(t, d, rounded, op, value);
  visit(compute_type(d), [&]<class T>() { *bytes = *reinterpret_cast<const T*>(value) != T(0); });
}

bool fits(const Tensor& number, DType to) {
  if (!is_integral(to) || number.dtype() != DType::int64) return true;
  int64_t v = read_scalar(number).integer();
  return visit<kIntegers>(to, [&]<class T>() { return int64_t(T(v)) == v; });
}

class Call {
 public:
  Call(const char* op, int inputs, const Schema* schema = nullptr) : op_(op), schema_(schema), inputs_(inputs) {}
  const char* op_;
  const Schema* schema_;  // whose first parameters the inputs are; null for gradients and copies
  int inputs_;
  Tensor in_[kMaxInputs];
  bool typed_[kMaxInputs] = {};  // a mask, which keeps its own dtype
  bool rounds_numbers_ = false;
  std::optional<DType> truth_of_;  // operands count as bools: elements of this dtype that are not 0
  bool exact_out_ = false;  // out must have the result's dtype
  Device device_;
  Dims shape_;

  void find_device(Out out) {
    int owner = -1;
    if (out.kind != Out::fresh) device_ = out.tensor->device();  // if all operands are numbers on the CPU
    for (int i = 0; i < inputs_; ++i) {
      const Tensor& t = in_[i];
      if (t.dim() == 0 && t.device().type() == DeviceType::cpu) continue;
      if (owner < 0) {
        owner = i, device_ = t.device();
      } else {
        VESTA_CHECK(t.device() == device_, device, op_, ": expected all tensors on one device, got ", device_, " (",
                    name_of(owner), ") and ", t.device(), " (", name_of(i), "). Move one with .to().");
      }
    }
  }
  std::string name_of(int i) const {
    return schema_ ? std::string(parameters_of(schema_->parameters)[size_t(i)].name) : text("operand ", i + 1);
  }
  void find_shape() {
    shape_ = Dims(in_[0].sizes());
    for (int i = 1; i < inputs_; ++i) {
      if (!std::ranges::equal(IntSpan(shape_), in_[i].sizes())) shape_ = broadcast_shapes(shape_, in_[i].sizes(), op_);
    }
  }
  Tensor run(AnyKernel kernel, DType compute, DType result, const double* params, Out out);
  TensorPair run_pair(AnyKernel kernel, DType compute, DType first, DType second, const double* params);

 private:
  struct Immediates;
  void read_immediates(DType compute, Immediates& values);
  void convert_number(int i, DType compute);
  void queue(const Tensor& to, const Tensor* second, Immediates& values, AnyKernel kernel, DType compute, DType result,
             const double* params);
  Tensor destination(DType result, Out out);
  Tensor fresh(DType result);
};

/// Allocates the result: contiguous, or in the order of the inputs' strides (transposed in, transposed out). The first
/// input alone decides if it has the result's shape.
Tensor Call::fresh(DType result) {
  const Tensor* first = nullptr;
  bool contiguous = true;
  for (int i = 0; i < inputs_; ++i) {
    if (in_[i].dim() == 0) continue;
    if (!first) first = &in_[i];
    contiguous = contiguous && in_[i].is_contiguous();
  }
  if (contiguous) return empty_tensor(shape_, result, device_);
  if (first->impl()->dense() && std::ranges::equal(IntSpan(shape_), first->sizes()))
    return empty_tensor_strided(shape_, first->strides(), result, device_);
  const Tensor* list[kMaxInputs];
  for (int i = 0; i < inputs_; ++i) list[i] = &in_[i];
  return empty_tensor_strided(shape_, strides_like(shape_, {list, size_t(inputs_)}), result, device_);
}

Tensor Call::destination(DType result, Out out) {
  if (out.kind == Out::fresh) return fresh(result);
  const Tensor& t = *out.tensor;
  VESTA_CHECK(can_cast(result, t.dtype()), type, op_, ": result type ", result,
              " can't be cast to the desired output type ", t.dtype(), ".");
  VESTA_CHECK(!exact_out_ || result == t.dtype(), runtime, op_, ": Expected out tensor to have dtype ", result,
              ", but got ", t.dtype(), " instead.");
  VESTA_CHECK(t.device() == device_, device, op_,
              out.kind == Out::inplace ? ": expected self on " : ": expected out on ", device_,
              ", where the other operands are, got ", t.device(), ".");
  check_writable(t, op_);
  if (!std::ranges::equal(t.sizes(), IntSpan(shape_))) {
    VESTA_CHECK(out.kind == Out::given, value, op_, ": output with shape ", t.sizes(),
                " doesn't match the broadcast shape ", IntSpan(shape_), " (an in-place op keeps its shape).");
    check_out_shape(t, shape_, op_);
    for (int i = 0; i < inputs_; ++i) {
      VESTA_CHECK(t.numel() == 0 || in_[i].impl()->storage() != t.impl()->storage(), value, op_,
                  ": expected an out of shape ", IntSpan(shape_), " or memory that no operand has, got ", t.sizes(),
                  ".");
    }
    resize_out(t, shape_, op_);
  }
  for (int i = 0; i < inputs_; ++i) {
    // A number is read before anything is written; a mask is read where it lies.
    if (in_[i].dim() == 0 && in_[i].device().type() == DeviceType::cpu && !typed_[i]) continue;
    if (overlap(t, in_[i]) == Overlap::partial) {
      Tensor copy = empty_tensor(in_[i].sizes(), in_[i].dtype(), in_[i].device());
      copy_into(copy, in_[i], op_);
      in_[i] = copy;
    }
  }
  return t;
}

/// Returns t, or a copy of the given dtype.
Tensor converted(const Tensor& t, DType to, const char* op) {
  if (t.dtype() == to) return t;
  Tensor copy = empty_tensor(t.sizes(), to, t.device());
  copy_into(copy, t, op);
  return copy;
}

/// The values of 0-d operands, which are read before the destination is touched.
struct Call::Immediates {
  alignas(16) char value[kMaxInputs][16];
  bool is[kMaxInputs] = {};
};

/// Makes a 0-d operand on a device, of another dtype than elements of 16 bits, what it is on the CPU: a number of the
/// type that they compute in, rounded as an element only if the op rounds numbers.
void Call::convert_number(int i, DType compute) {
  const DType wide = compute_type(compute);
  if (wide == compute || in_[i].dtype() == compute || typed_[0] || truth_of_) return;
  in_[i] = converted(in_[i], wide, op_);
  if (rounds_numbers_) in_[i] = converted(in_[i], compute, op_);
}

void Call::read_immediates(DType compute, Immediates& values) {
  for (int i = 0; i < inputs_; ++i) {
    if (in_[i].dim() != 0) continue;
    if (in_[i].device().type() != DeviceType::cpu) {
      convert_number(i, compute);
      continue;
    }
    if (typed_[i]) {  // the CPU's loops read a mask where it lies; another device cannot
      if (device_.type() == DeviceType::cpu) continue;
      convert_scalar(in_[i], DType::bool_, true, op_, values.value[i]);
      values.is[i] = true;
      continue;
    }
    if (shape_.empty() && device_.type() == DeviceType::cpu && in_[i].dtype() == compute) continue;
    if (typed_[0]) convert_scalar(in_[i], compute, !in_[i].impl()->wrapped_number, op_, values.value[i]);
    else if (truth_of_) truth_of_scalar(in_[i], *truth_of_, rounds_numbers_, op_, values.value[i]);
    else compute_scalar(in_[i], compute, rounds_numbers_, op_, values.value[i]);
    values.is[i] = true;
  }
}

void Call::queue(const Tensor& to, const Tensor* second, Immediates& values, AnyKernel kernel, DType compute,
                 DType result, const double* params) {
  PlanBuilder plan(shape_, device_);
  plan.set_out(to);
  for (int i = 0; i < inputs_; ++i) {
    const DType immediate = typed_[i] ? DType::bool_ : typed_[0] ? compute : compute_type(compute);
    if (values.is[i]) plan.add_immediate(values.value[i], immediate);
    else plan.add_input(in_[i]);
  }
  PointwisePlan& p = plan.finish();
  p.op = op_;
  p.kernel = kernel, p.compute = compute, p.result = result, p.mask_first = typed_[0], p.params = params;
  if (second) p.second = second->impl()->data(), p.second_dtype = second->dtype();
  if (p.numel) backend(device_.type()).run(p);
}

Tensor Call::run(AnyKernel kernel, DType compute, DType result, const double* params, Out out) {
  Immediates values;
  read_immediates(compute, values);
  Tensor to = destination(result, out);
  queue(to, nullptr, values, kernel, compute, result, params);
  if (out.kind != Out::fresh) to.impl()->bump(op_);
  return to;
}

/// Runs a kernel with two results, which get the same strides. Neither is one of out=: one would be written before the
/// other is refused.
TensorPair Call::run_pair(AnyKernel kernel, DType compute, DType first, DType second, const double* params) {
  Immediates values;
  read_immediates(compute, values);
  Tensor a = fresh(first), b = empty_tensor_strided(shape_, a.strides(), second, device_);
  queue(a, &b, values, kernel, compute, first, params);
  return {std::move(a), std::move(b)};
}

/// Returns whether all elements of a tensor are one element of its memory.
bool has_one_value(const Tensor& t) {
  for (int d = 0; d < t.dim(); ++d) {
    if (t.size(d) != 1 && t.strides()[size_t(d)] != 0) return false;
  }
  return t.numel() != 0;
}

DType dtype_of_numbers(const Tensor* const* in, int count) {
  DType d = in[0]->dtype();
  for (int i = 1; i < count; ++i) d = promote(d, in[i]->dtype());
  return d;
}

/// What is decided about a call before its result is allocated.
struct Decided {
  DType compute;
  bool numbers;  // nothing but Python numbers
  AnyKernel kernel;
};

/// Finds dtype, device, shape and kernel, and makes all checks.
Decided decide(Call& call, const PointwiseInfo& info, const Tensor* const* in, const double* params, Out out) {
  call.rounds_numbers_ = info.rounds_numbers, call.exact_out_ = info.schema->exact_out;
  Promotion promotion;
  bool numbers = !info.mask_first;
  for (int i = 0; i < info.inputs; ++i) {
    VESTA_CHECK(in[i]->defined(), type, call.op_, ": expected a tensor, got None (",
                parameters_of(info.schema->parameters)[size_t(i)].name, ").");
    VESTA_CHECK(!in[i]->is_sparse(), not_implemented, call.op_, ": expected dense tensors, got a sparse one.");
    call.in_[i] = *in[i];
    numbers = numbers && in[i]->impl()->wrapped_number;
    if (info.mask_first && i == 0) {
      const DType d = in[0]->dtype();
      VESTA_CHECK(d == DType::bool_ || (d == DType::uint8 && follows_torch()), type, call.op_,
                  ": expected condition to be a boolean tensor, got ", d, ".");
      if (d != DType::bool_) {
        warn(text(call.op_, " received a uint8 condition tensor. This behavior is deprecated. Use a boolean one."));
        call.in_[0] = converted(*in[0], DType::bool_, call.op_);
      }
      call.typed_[0] = true;
    } else {
      promotion.see(*in[i]);
    }
  }
  // Of numbers alone comes a number: the constants of a formula that is evaluated with tensors (x ** (b - 1)) keep
  // their precision.
  DType compute = numbers ? dtype_of_numbers(in, info.inputs) : promotion.result();
  DType promoted = compute;
  if (info.integers_to_float && !is_differentiable(compute)) compute = numbers ? DType::float64 : default_dtype();
  if (info.bool_to_int64 && compute == DType::bool_) compute = DType::int64;
  if (info.result == Result::boolean && is_integral(compute)) {  // 300 compares with uint8 values as itself
    for (int i = 0; i < info.inputs; ++i) {
      if (in[i]->impl()->wrapped_number && !fits(*in[i], compute)) compute = DType::int64;
    }
  }
  if (info.of_truth) {
    for (int i = 0; i < info.inputs; ++i) {  // a number on another device counts as an element, too
      Tensor& t = call.in_[i];
      if (t.dim() == 0 && t.device().type() != DeviceType::cpu) t = converted(t, compute, call.op_);
    }
    call.truth_of_ = compute, compute = DType::bool_;
  }
  if (is_float(compute) && itemsize(compute) == 2) {  // a 0-d operand alone is a number that is not rounded
    for (int i = 0; i < info.inputs; ++i) {
      Tensor& t = call.in_[i];
      if (!call.typed_[i] && t.dim() > 0 && t.dtype() != compute && has_one_value(t))
        t = converted(t, compute, call.op_);
    }
  }
  VESTA_CHECK(info.accepts.has(compute), type, call.op_, ": expected a dtype of ", accepted(info.accepts), ", got ",
              promoted, ".", promoted == DType::bool_ ? instead_of_bool(info.name) : "");
  VESTA_CHECK(out.kind != Out::inplace || info.result != Result::real || !is_complex(compute), type, "In-place ",
              call.op_, " is not supported for complex tensors: its result is real. Use ", call.op_, "().");
  if (info.result == Result::real && is_complex(compute))
    call.exact_out_ = false;  // abs writes into any, as in PyTorch
  call.find_device(out);
  call.find_shape();
  if (info.check) info.check(in, params);
  if (info.bounds_parameters) {
    for (int k = 0; k < info.params; ++k) {
      check_range(params[k], info.parameters_are_elements ? compute : compute_type(compute), call.op_);
    }
  }
  AnyKernel kernel = info.kernels[int(call.device_.type())][0][int(compute)];
  VESTA_CHECK(kernel, not_implemented, call.op_, ": no kernel for ", compute, " on ", call.device_, " in this build.");
  return {compute, numbers, kernel};
}

[[gnu::noinline]] Tensor general(const PointwiseInfo& info, const Tensor* const* in, const double* params, Out out,
                                 const char* name = nullptr) {
  Call call(name ? name : info.name, info.inputs, info.schema);
  const Decided d = decide(call, info, in, params, out);
  Tensor r = call.run(d.kernel, d.compute, result_dtype(info, d.compute), params, out);
  if (d.numbers && out.kind == Out::fresh && r.dtype() != DType::bool_) r.impl()->wrapped_number = true;
  return r;
}

/// Returns whether every dtype holds the parameters.
bool held_by_all(const double* params, int count) {
  constexpr double kNarrowest = 65504;  // the largest float16
  bool held = true;
  for (int k = 0; k < count; ++k) held = held && std::abs(params[k]) <= kNarrowest;
  return held;
}

/// Returns whether a Python number leaves the computation in `d`, the dtype of a dimensioned tensor, and fits it.
bool number_keeps(DType d, const TensorImpl& number) {
  DType n = number.dtype();
  if (n == DType::bool_) return false;
  if (is_float(d)) return !is_complex(n);
  if (is_complex(d)) return true;
  if (!is_integral(d) || n != DType::int64) return false;
  int64_t v;
  std::memcpy(&v, number.data(), sizeof v);
  return visit<kIntegers>(d, [&]<class T>() { return int64_t(T(v)) == v; });
}

/// Repeats the first value of `item` bytes over the 64 bytes that a loop may read.
void repeat_first(int64_t item, char* buffer) {
  for (int64_t filled = item; filled < 64; filled *= 2) std::memcpy(buffer + filled, buffer, size_t(filled));
}

/// Repeats an element of `d` in the type that it computes in.
void repeat_element(const char* element, DType d, char* buffer) {
  visit<kFloats | kComplexes>(d, [&]<class T>() {
    T v;
    std::memcpy(&v, element, sizeof v);
    const auto c = compute_t<T>(v);
    std::memcpy(buffer, &c, sizeof c);
    repeat_first(sizeof c, buffer);
  });
}

/// Repeats a Python number, in the type that `d` computes in, over the 64 bytes that a loop may read of it.
void repeat_number(const Tensor& number, DType d, bool rounded, char* buffer) {
  if (number.dtype() == DType::float64 && (d == DType::float32 || (!rounded && compute_type(d) == DType::float32))) {
    double v;
    std::memcpy(&v, number.impl()->data(), sizeof v);
    std::fill_n(reinterpret_cast<float*>(buffer), 16, float(v));
    return;
  }
  compute_scalar(number, d, rounded, "number", buffer);
  repeat_first(itemsize(compute_type(d)), buffer);
}

/// Writes whether each of n elements is not 0.
void truth_of_elements(const char* elements, DType d, int64_t n, bool* truth) {
  visit(d, [&]<class T>() {
    const T* const x = reinterpret_cast<const T*>(elements);
    for (int64_t i = 0; i < n; ++i) truth[i] = x[i] != T(0);
  });
}

/// The most elements whose truth is found one by one sooner than a plan is made (`logical_and` of floats, called from
/// Python: 8 took 329 ns with a plan and take 147; of 256 it would be 328 and 424).
constexpr int64_t kFewTruths = 128;

/// Runs a small op on truth values at once: contiguous CPU operands of one shape, of any dtypes, into fresh memory.
/// Returns an undefined tensor where that is not so.
Tensor small_truth(const PointwiseInfo& info, const Tensor* const* in, const double* params) {
  const TensorImpl& first = *in[0]->impl();
  bool truth[2][kFewTruths];
  LoopArgs args;
  for (int i = 0; i < info.inputs; ++i) {
    const TensorImpl* t = in[i]->impl();
    if (!t || t->wrapped_number || !t->contiguous() || t->device().type() != DeviceType::cpu ||
        t->numel() > kFewTruths || (i > 0 && !same_sizes(first, *t))) {
      return {};
    }
    if (t->dtype() != DType::bool_) truth_of_elements(t->data(), t->dtype(), t->numel(), truth[i]);
    args.in[i] = t->dtype() == DType::bool_ ? t->data() : reinterpret_cast<const char*>(truth[i]), args.step[i] = 1;
  }
  Tensor r(TensorImpl::make_contiguous(first.sizes(), first.numel(), DType::bool_, first.device()));
  args.out = r.impl()->data(), args.n = first.numel(), args.params = params;
  reinterpret_cast<Loop>(info.kernels[int(DeviceType::cpu)][0][int(DType::bool_)])(args);
  return r;
}

}  // namespace

Tensor pointwise(const PointwiseInfo& info, const Tensor* const* in, const double* params, Out out) {
  // The hot path: CPU operands of one dtype and one shape, contiguous, or Python numbers, into fresh memory or onto the
  // first operand.
  if (info.mask_first || !in[0]->defined()) return general(info, in, params, out);
  int lead = in[0]->impl()->wrapped_number && info.inputs > 1 ? 1 : 0;
  const TensorImpl* a = in[lead]->impl();
  if (!a || !a->contiguous() || a->device().type() != DeviceType::cpu || a->numel() > kDirect || a->wrapped_number)
      [[unlikely]] {
    return general(info, in, params, out);
  }
  const DType d = a->dtype();
  auto loop = reinterpret_cast<Loop>(info.kernels[0][0][int(d)]);
  if (!loop) {
    if (info.of_truth && out.kind == Out::fresh) {
      if (Tensor r = small_truth(info, in, params); r.defined()) return r;
    }
    return general(info, in, params, out);
  }
  const bool is_alpha_of_one = info.params == 1 && params[0] == 1;  // which needs no check
  if (!is_differentiable(d) && (info.integers_to_float || (info.check && !is_alpha_of_one))) {
    return general(info, in, params, out);
  }
  if (info.check && !info.accepts.has(DType::int64)) info.check(in, params);  // one about the parameters
  if (info.bounds_parameters && !is_alpha_of_one && !held_by_all(params, info.params)) {
    return general(info, in, params, out);
  }
  alignas(64) char numbers[kMaxInputs][64];
  LoopArgs args;
  args.in[lead] = a->data(), args.step[lead] = 1;
  for (int i = 0; i < info.inputs; ++i) {
    if (i == lead) continue;
    const TensorImpl* b = in[i]->impl();
    if (!b) return general(info, in, params, out);
    if (b->wrapped_number) {
      if (a->ndim() == 0 || !number_keeps(d, *b)) return general(info, in, params, out);
      repeat_number(*in[i], d, info.rounds_numbers, numbers[i]);
      args.in[i] = numbers[i], args.step[i] = 0;
    } else {
      if (b->dtype() != d || !b->contiguous() || b->device().type() != DeviceType::cpu || !same_sizes(*a, *b)) {
        return general(info, in, params, out);
      }
      args.in[i] = b->data(), args.step[i] = 1;
    }
  }
  args.n = a->numel(), args.params = params;
  if (out.kind == Out::fresh) [[likely]] {
    Tensor r(TensorImpl::make_contiguous(a->sizes(), a->numel(), result_dtype(info, d), a->device()));
    args.out = r.impl()->data();
    loop(args);
    return r;
  }
  // In place: only onto the first operand itself, and never where another one is shifted over it.
  if (lead != 0 || out.tensor->impl() != a || result_dtype(info, d) != d || a->storage()->read_only()) {
    return general(info, in, params, out);
  }
  for (int i = 1; i < info.inputs; ++i) {
    if (in[i]->impl()->storage() == a->storage() && args.in[i] != args.in[0]) return general(info, in, params, out);
  }
  args.out = a->data();
  loop(args);
  a->bump(info.name);
  return *out.tensor;
}

Tensor pointwise_as(const char* name, const PointwiseInfo& info, const Tensor* const* in, const double* params,
                    Out out) {
  return general(info, in, params, out, name);
}

TensorPair pointwise_pair(const PointwiseInfo& info, const Tensor* const* in, const double* params) {
  Call call(info.name, info.inputs, info.schema);
  const Decided d = decide(call, info, in, params, {});
  const DType second = info.second == Result::int32     ? DType::int32
                       : info.second == Result::boolean ? DType::bool_
                                                        : d.compute;
  return call.run_pair(d.kernel, d.compute, result_dtype(info, d.compute), second, params);
}

namespace {
/// Returns whether all elements are one in memory: a number, or an expanded one (the gradient of a sum).
bool is_one_value(const TensorImpl& t) {
  for (size_t k = 0; k < t.sizes().size(); ++k) {
    if (t.strides()[k] != 0 && t.sizes()[k] != 1) return false;
  }
  return t.numel() > 0;
}

/// Runs a small gradient at once: CPU operands of one dtype and shape, each contiguous or one value everywhere. Returns
/// an undefined tensor where that is not so.
Tensor small_gradient(const PointwiseInfo& info, AnyKernel kernel, const Tensor* const* operands, int count,
                      const double* params) {
  const TensorImpl* shape = nullptr;
  for (int k = 0; k < count && !shape; ++k) {
    if (operands[k]->impl()->contiguous() && !operands[k]->impl()->wrapped_number) shape = operands[k]->impl();
  }
  if (!shape || shape->numel() > kDirect) return {};
  const DType d = operands[0]->dtype();
  alignas(64) char numbers[kMaxInputs][64];
  LoopArgs args;
  for (int k = 0; k < count; ++k) {
    const TensorImpl& t = *operands[k]->impl();
    if (t.wrapped_number && shape->ndim() > 0 && number_keeps(d, t)) {
      repeat_number(*operands[k], d, info.rounds_numbers, numbers[k]);
      args.in[k] = numbers[k], args.step[k] = 0;
      continue;
    }
    if (t.dtype() != d || t.device().type() != DeviceType::cpu || !same_sizes(*shape, t)) return {};
    args.in[k] = t.data(), args.step[k] = 1;
    if (t.contiguous()) continue;
    if (!is_one_value(t)) return {};
    repeat_element(t.data(), d, numbers[k]);
    args.in[k] = numbers[k], args.step[k] = 0;
  }
  Tensor r(TensorImpl::make_contiguous(shape->sizes(), shape->numel(), d, shape->device()));
  args.out = r.impl()->data(), args.n = shape->numel(), args.params = params;
  reinterpret_cast<Loop>(kernel)(args);
  return r;
}
}  // namespace

Tensor pointwise_backward(const PointwiseInfo& info, int i, const Tensor* const* operands, int count,
                          const double* params) {
  const DType d = operands[0]->dtype();
  if (AnyKernel kernel = info.kernels[int(DeviceType::cpu)][1 + i][int(d)]) {
    Tensor r = small_gradient(info, kernel, operands, count, params);
    if (r.defined()) return r;
  }
  Call call(info.name, count);
  call.rounds_numbers_ = info.rounds_numbers;
  for (int k = 0; k < count; ++k) call.in_[k] = *operands[k];
  call.find_device({});
  AnyKernel kernel = info.kernels[int(call.device_.type())][1 + i][int(d)];
  if (!kernel) return {};
  call.find_shape();
  return call.run(kernel, d, d, params, {});
}

void copy_into(const Tensor& to, const Tensor& from, const char* op, bool non_blocking) {
  Call call(op, 1);
  call.in_[0] = from;
  call.device_ = to.device();
  call.shape_ = Dims(to.sizes());
  if (!std::ranges::equal(to.sizes(), from.sizes())) {
    Dims both = broadcast_shapes(to.sizes(), from.sizes(), op);
    VESTA_CHECK(std::ranges::equal(IntSpan(both), to.sizes()), value, op, ": shape ", from.sizes(),
                " does not broadcast to ", to.sizes(), ".");
  }
  check_writable(to, op);
  if (from.device() != to.device()) {
    copy_across(to, from, op, non_blocking);
    to.impl()->bump(op);
    return;
  }
  if (overlap(to, from) == Overlap::partial) {
    call.in_[0] = empty_tensor(from.sizes(), from.dtype(), from.device());
    copy_into(call.in_[0], from, op);
  }
  PlanBuilder plan(call.shape_, call.device_);
  plan.set_out(to);
  plan.add_input(call.in_[0]);
  PointwisePlan& p = plan.finish();
  p.kernel = nullptr, p.compute = p.result = to.dtype();
  if (p.numel) backend(call.device_.type()).run(p);
  to.impl()->bump(op);
}

void check_writable(const Tensor& t, const char* op) {
  VESTA_CHECK(!t.impl()->storage()->read_only(), runtime, op,
              ": expected a writable tensor, got one over read-only memory. Clone it first.");
  VESTA_CHECK(t.impl()->dense() || !self_overlaps(t), runtime, op,
              ": unsupported operation: more than one element of the written-to tensor refers to a single memory "
              "location. Clone the tensor before performing the operation.");
  t.impl()->storage()->begin_write();  // what is interrupted in the middle has written, too
}

}  // namespace vesta
