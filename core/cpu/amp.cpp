// Gradient scaling and clipping on the CPU: lists of tensors in one parallel loop.
#include <vesta/core/ops/amp.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <vector>

#include <vesta/core/cpu/optim_kernels.h>
#include <vesta/core/cpu/parallel.h>
#include <vesta/core/cpu/register.h>
#include <vesta/core/cpu/tensor_memory.h>
#include <vesta/core/ops/copy.h>
#include <vesta/core/ops/optim.h>
#include <vesta/core/ops/optim_call.h>

namespace vesta::cpu {
namespace {

constexpr int64_t kUnscaleGrain = 16384;  // elements a thread takes at a time, as in the optimizer steps

void unscale_kernel(TensorList grads, const Tensor& found_inf, const Tensor& inv_scale) {
  constexpr const char* op = "_amp_unscale_";
  check_amp_unscale(grads, found_inf, inv_scale);
  const double factor = *elements<float>(inv_scale);
  std::atomic<bool> finite{true};
  for (const Tensor& g : grads) {
    const Tensor dense = g.impl()->dense() ? g : clone(g, "contiguous_format");
    const int64_t item = itemsize(g.dtype());
    auto run = optim_kernels(g.dtype()).unscale;
    char* data = dense.impl()->data();
    parallel_for(g.numel(), kUnscaleGrain, [&](int64_t b, int64_t e) {
      if (!run(data + b * item, e - b, factor)) finite.store(false, std::memory_order_relaxed);
    });
    if (dense.is_same(g)) g.impl()->bump(op);
    else copy_into(g, dense, op);
  }
  if (finite) return;
  *elements<float>(found_inf) = 1;
  found_inf.impl()->bump(op);
}

void update_kernel(const Tensor& scale, const Tensor& growth_tracker, const Tensor& found_inf, double growth_factor,
                   double backoff_factor, int64_t growth_interval) {
  constexpr const char* op = "_amp_update_scale_";
  check_amp_update_scale(scale, growth_tracker, found_inf, growth_interval);
  float& s = *elements<float>(scale);
  int32_t& tracker = *elements<int32_t>(growth_tracker);
  if (*elements<float>(found_inf) != 0) {
    s = float(double(s) * backoff_factor), tracker = 0;
  } else if (++tracker >= growth_interval) {
    const float grown = float(double(s) * growth_factor);
    if (std::isfinite(grown)) s = grown;
    tracker = 0;
  }
  scale.impl()->bump(op);
  growth_tracker.impl()->bump(op);
}

/// The memory of a list's tensors, in order or cut into parts: one loop runs over all.
class Parts {
 public:
  /// A run of elements of one tensor.
  struct Part {
    char* at;
    int64_t n;
    DType dtype;
  };
  explicit Parts(const char* op) : memory_(op) {}

  /// Adds a tensor in parts of at most `most` elements.
  void add(const Tensor& t, int64_t most) {
    char* const data = memory_.of(t);
    const int64_t n = t.numel(), item = itemsize(t.dtype());
    for (int64_t i = 0; i < n; i += most) parts_.push_back({data + i * item, std::min(most, n - i), t.dtype()});
    total_ += n;
  }
  /// Calls f(part, its number) for all, on several threads.
  template <class F>
  void run(F f) const {
    const int64_t n = int64_t(parts_.size()),
                  many = kElementGrain / std::max<int64_t>(total_ / std::max<int64_t>(n, 1), 1);
    parallel_for(n, std::max<int64_t>(many, 1), [&](int64_t b, int64_t e) {
      for (int64_t i = b; i < e; ++i) f(parts_[size_t(i)], size_t(i));
    });
  }
  size_t size() const { return parts_.size(); }
  void written(TensorList list) const { memory_.written(list); }

 private:
  DenseMemory memory_;
  std::vector<Part> parts_;
  int64_t total_ = 0;
};

constexpr int64_t kNormPart = 16384;  // elements that are summed alone: the order does not depend on other tensors

Tensor norms_kernel(TensorList tensors, double ord, bool total) {
  const NormKind kind = check_list_norms(tensors, ord);
  Tensor r = empty_norms(tensors, total);
  Parts parts("_list_norms");
  std::vector<size_t> ends;
  for (const Tensor& t : tensors) {
    parts.add(t, kNormPart);
    ends.push_back(parts.size());
  }
  if (total) ends = {parts.size()};
  std::vector<double> sums(parts.size());
  parts.run([&](const Parts::Part& p, size_t i) { sums[i] = optim_kernels(p.dtype).norm_part(p.at, p.n, kind); });
  size_t i = 0;
  for (size_t k = 0; k < ends.size(); ++k) {
    double v = 0;
    for (; i < ends[k]; ++i) v = kind != NormKind::greatest ? v + sums[i] : v != v || v > sums[i] ? v : sums[i];
    if (kind == NormKind::squares) v = std::sqrt(v);
    if (r.dtype() == DType::float64) reinterpret_cast<double*>(r.impl()->data())[k] = v;
    else reinterpret_cast<float*>(r.impl()->data())[k] = float(v);
  }
  return r;
}

/// Calls f(list) once for tensors that do not overlap in memory, else for each alone.
template <class F>
void one_by_one_if_overlapping(TensorList tensors, F f) {
  if (!overlapping(tensors)) return f(tensors);
  for (size_t i = 0; i < tensors.size(); ++i) f(TensorList(tensors.subspan(i, 1)));
}

void mul_kernel(TensorList tensors, MaybeTensor by, double factor, bool clip) {
  const ListFactor f = check_list_mul(tensors, by, factor, clip);
  const double narrow = multiplier<float>(f), wide = multiplier<double>(f);
  one_by_one_if_overlapping(tensors, [&](TensorList list) {
    Parts parts("_list_mul_");
    for (const Tensor& t : list) {
      if ((t.dtype() == DType::float64 ? wide : narrow) != 1) parts.add(t, kElementGrain);
      else if (!t.impl()->dense()) t.impl()->bump("_list_mul_");
    }
    parts.run([&](const Parts::Part& p, size_t) {
      optim_kernels(p.dtype).scale(p.at, p.n, p.dtype == DType::float64 ? wide : narrow);
    });
    parts.written(list);
  });
}

void zero_kernel(TensorList tensors) {
  check_list_zero(tensors);
  Parts parts("_list_zero_");  // all write the same, in any order
  for (const Tensor& t : tensors) parts.add(t, kElementGrain);
  parts.run([](const Parts::Part& p, size_t) { std::memset(p.at, 0, size_t(p.n * itemsize(p.dtype))); });
  parts.written(tensors);
}

}  // namespace

void register_amp() {
  ops::_list_norms.set_kernel(DeviceType::cpu, norms_kernel);
  ops::_list_mul_.set_kernel(DeviceType::cpu, mul_kernel);
  ops::_list_zero_.set_kernel(DeviceType::cpu, zero_kernel);
  ops::_amp_unscale_.set_kernel(DeviceType::cpu, unscale_kernel);
  ops::_amp_update_scale_.set_kernel(DeviceType::cpu, update_kernel);
}

}  // namespace vesta::cpu
