#include <vesta/core/ops/copy.h>

#include <vesta/core/ops/define.h>
#include <vesta/core/ops/docs/copy.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include <vesta/core/autograd_port.h>
#include <vesta/core/backend.h>
#include <vesta/core/ops/destination.h>
#include <vesta/core/ops/promotion.h>
#include <vesta/core/ops/register.h>
#include <vesta/core/ops/strided_iter.h>

namespace vesta {

VESTA_DEFINE_OPS(VESTA_OPS_COPY)

namespace {

// Below this many bytes a contiguous copy or fill is done here and now: no plan, no device port.
constexpr int64_t kDirectBytes = 16384;

bool direct(const Tensor& t) {
  return t.is_contiguous() && t.device().type() == DeviceType::cpu && t.numel() * t.element_size() <= kDirectBytes;
}

void run_copy(PlanBuilder& plan, const Tensor& to) {
  PointwisePlan& p = plan.finish();
  p.compute = p.result = to.dtype();
  if (p.numel) backend(to.device().type()).run(p);
}

/// Returns whether strides are those of a fresh contiguous tensor, for dimensions of size 1 too.
bool has_contiguous_strides(const Tensor& t) {
  int64_t step = 1;
  for (size_t d = size_t(t.dim()); d-- > 0;) {
    if (t.strides()[d] != step) return false;
    step *= std::max<int64_t>(t.sizes()[d], 1);
  }
  return true;
}

}  // namespace

Tensor empty_preserving(const Tensor& t, DType dtype, Device device) {
  // strides of dimensions of size 1 are kept too: they tell the memory format of [N, C, 1, 1]
  if (t.is_contiguous() && has_contiguous_strides(t)) return empty_tensor(t.sizes(), dtype, device);
  if (t.impl()->dense()) return empty_tensor_strided(t.sizes(), t.strides(), dtype, device);
  const Tensor* one = &t;
  return empty_tensor_strided(t.sizes(), strides_like(t.sizes(), {&one, 1}), dtype, device);
}

Dims strides_in(Text memory_format, IntSpan sizes, const char* op) {
  if (memory_format == "contiguous_format") return contiguous_strides(sizes);
  const size_t dims = memory_format == "channels_last" ? 4 : memory_format == "channels_last_3d" ? 5 : 0;
  VESTA_CHECK(dims, type, op, ": expected preserve_format, contiguous_format, channels_last or channels_last_3d, got ",
              memory_format, " (memory_format).");
  VESTA_CHECK(sizes.size() == dims, runtime, op, ": expected a tensor of ", dims, " dimensions for ", memory_format,
              ", got one of ", sizes.size(), ".");
  Dims last(sizes);  // the sizes with the channels behind
  std::rotate(last.begin() + 1, last.begin() + 2, last.end());
  Dims strides = contiguous_strides(last);
  std::rotate(strides.begin() + 1, strides.end() - 1, strides.end());
  return strides;
}

bool lies_in(const Tensor& t, Text memory_format) {
  const Dims want = strides_in(memory_format, t.sizes(), "contiguous");
  for (size_t d = 0; d < want.size(); ++d) {
    if (t.sizes()[d] != 1 && t.strides()[d] != want[d] && t.numel() != 0) return false;
  }
  return true;
}

void copy_values(const Tensor& to, const Tensor& from) {
  if (to.dtype() == from.dtype() && direct(to) && from.is_contiguous() && to.numel() == from.numel()) {
    if (to.numel()) std::memcpy(to.impl()->data(), from.impl()->data(), size_t(to.numel() * to.element_size()));
    return;
  }
  PlanBuilder plan(to.sizes(), to.device());
  plan.set_out(to);
  plan.add_input(from);
  run_copy(plan, to);
}

Tensor contiguous_values(const Tensor& t) {
  if (t.is_contiguous()) return t;
  Tensor r = empty_tensor(t.sizes(), t.dtype(), t.device());
  copy_values(r, t);
  return r;
}

void copy_across(const Tensor& to, const Tensor& from, const char* op, bool non_blocking) {
  VESTA_CHECK(from.device().type() != DeviceType::meta, not_implemented, op,
              ": Cannot copy out of meta tensor; no data! Make memory by empty_like(x, device=...), for a module by "
              "Module.to_empty() instead of Module.to(), and fill it.");
  if (to.numel() == 0 || to.device().type() == DeviceType::meta) return;
  Tensor source = from;
  if (from.dtype() != to.dtype() || !from.is_contiguous() || from.numel() != to.numel()) {
    // Made ready where it lies, but for a cast that would send more bytes over the bus.
    const bool narrow = itemsize(from.dtype()) < itemsize(to.dtype());
    source = empty_tensor(to.sizes(), narrow ? from.dtype() : to.dtype(), from.device());
    copy_into(source, from, op);
  }
  const bool direct = to.is_contiguous() && source.dtype() == to.dtype();
  Tensor target = direct ? to : empty_tensor(to.sizes(), source.dtype(), to.device());
  const Device device = to.device().type() == DeviceType::cpu ? from.device() : to.device();
  backend(device.type())
      .transfer(target.impl()->data(), to.device(), source.impl()->data(), from.device(),
                size_t(source.numel() * source.element_size()), non_blocking && direct);
  if (!direct) copy_values(to, target);
}

void fill_values(const Tensor& to, Scalar value, const char* op) {
  check_range(value, to.dtype(), op);
  visit(to.dtype(), [&]<class T>() {
    T v = value.to<T>(op);
    if (direct(to)) {
      std::fill_n(reinterpret_cast<T*>(to.impl()->data()), to.numel(), v);
      return;
    }
    PlanBuilder plan(to.sizes(), to.device());
    plan.set_out(to);
    plan.add_immediate(reinterpret_cast<char*>(&v), to.dtype());
    run_copy(plan, to);
  });
}

bool is_pinned(const Tensor& t) {
  return t.device().type() == DeviceType::cpu && is_loaded(DeviceType::cuda) &&
         backend(DeviceType::cuda).is_pinned(t.impl()->storage()->data());
}

Tensor pin_memory(const Tensor& t) {
  VESTA_CHECK(t.device().type() == DeviceType::cpu, runtime, "pin_memory: expected a CPU tensor, got one on ", t.device(),
              ". Only host memory can be page-locked.");
  Backend& b = backend(DeviceType::cuda);
  if (is_pinned(t)) return t;
  const size_t nbytes = size_t(t.numel() * t.element_size());
  Memory m = b.allocate_pinned(nbytes);
  StoragePtr storage = Storage::wrap(m.data, nbytes, Device(), m.context, m.deleter ? m.deleter : [](void*) {});
  Dims strides(size_t(t.dim()), 1);
  for (size_t d = strides.size(); d-- > 1;) strides[d - 1] = strides[d] * std::max<int64_t>(t.sizes()[d], 1);
  Tensor r(TensorImpl::make(std::move(storage), t.sizes(), strides, 0, t.dtype(), "pin_memory"));
  copy_values(r, t);
  return r;
}

void record_stream(const Tensor& t, uint32_t stream) {
  VESTA_CHECK(t.device().type() != DeviceType::cpu, device, "record_stream: expected a CUDA tensor, got one on the CPU.");
  backend(t.device().type()).record_use(*t.impl()->storage(), stream);
}

namespace copy_ops {
namespace {

Tensor _to_copy(const Tensor& t, MaybeDType dtype, MaybeDevice device, bool non_blocking) {
  Device d = resolved(device.value_or(t.device()));
  backend(d.type());  // says so where there is no such device
  Tensor r = empty_preserving(t, dtype.value_or(t.dtype()), d);
  if (d == t.device()) copy_values(r, t);
  else copy_across(r, t, "to", non_blocking);
  return r;
}

Tensor clone(const Tensor& t, Text memory_format) {
  Tensor r =
      memory_format == "preserve_format"
          ? empty_preserving(t, t.dtype(), t.device())
          : empty_tensor_strided(t.sizes(), strides_in(memory_format, t.sizes(), "clone"), t.dtype(), t.device());
  copy_values(r, t);
  return r;
}

Tensor copy_(const Tensor& to, const Tensor& src, bool non_blocking) {
  check_defined(src, "copy_", "src");
  if (to.is_same(src)) return to;
  copy_into(to, src, "copy_", non_blocking);
  return to;
}

Tensor fill_(const Tensor& t, Scalar value) {
  // One value everywhere: elements that share memory agree, so that only read-only memory is refused.
  VESTA_CHECK(!t.impl()->storage()->read_only(), runtime,
              "fill_: expected a writable tensor, got one over read-only memory. Clone it first.");
  t.impl()->storage()->begin_write();
  fill_values(t, value, "fill_");
  t.impl()->bump("fill_");
  return t;
}

}  // namespace
}  // namespace copy_ops

Tensor write_result(const Tensor& to, const Tensor& result, const char* op) {
  VESTA_CHECK(can_cast(result.dtype(), to.dtype()), runtime, op, ": result type ", result.dtype(),
              " can't be cast to the desired output type ", to.dtype(), ".");
  VESTA_CHECK(std::ranges::equal(result.sizes(), to.sizes()), runtime, op, ": output with shape ", to.sizes(),
              " doesn't match the broadcast shape ", result.sizes(), " (an in-place op keeps its shape).");
  return ops::copy_(to, result, false);
}

bool may_overwrite(const Tensor& to, bool recorded, const char* op) {
  if (recorded || to.impl()->inference || to.is_sparse()) return false;
  if (layer_state.grad_enabled) autograd_port.check_inplace(to, op);
  check_writable(to, op);
  return true;
}

Tensor write_result(Out out, const Tensor& result, const char* op) {
  if (out.kind == Out::fresh) return result;
  if (out.kind == Out::inplace) return write_result(*out.tensor, result, op);
  write_out(*out.tensor, result, op);
  return *out.tensor;
}

void register_copy_ops() {
  ops::clone.set_kernel(&copy_ops::clone);
  ops::_to_copy.set_kernel(&copy_ops::_to_copy);
  ops::copy_.set_kernel(&copy_ops::copy_);
  ops::fill_.set_kernel(&copy_ops::fill_);
}

}  // namespace vesta
