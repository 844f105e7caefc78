#include <vesta/autograd/grad_slot.h>

#include <algorithm>
#include <mutex>
#include <thread>

namespace vesta::autograd {

void TinyLock::wait() noexcept {
  for (int i = 0;; ++i) {
    while (held_.load(std::memory_order_relaxed)) {
      if (++i > 64) std::this_thread::yield();
    }
    if (!held_.exchange(true, std::memory_order_acquire)) return;
  }
}

GradMeta::~GradMeta() = default;

GradMeta& ensure_meta(const Tensor& t) {
  if (!t.impl()->autograd) t.impl()->autograd = new GradMeta;
  return *meta(t);
}

uint32_t output_nr(const Tensor& t) { return t.impl()->autograd ? meta(t)->output_nr : 0; }

namespace {
/// Returns the place of a retained gradient; another thread may be making it.
intrusive_ptr<RetainedGrad> place_of(GradMeta& m) {
  std::lock_guard lock(m.lock);
  return m.retained;
}
}  // namespace

Tensor grad(const Tensor& t) {
  if (!t.impl()->autograd) return {};
  GradMeta& m = *meta(t);
  if (auto place = place_of(m)) return place->get();
  std::lock_guard lock(m.lock);
  return m.grad;
}

void set_grad(const Tensor& t, const Tensor& g) {
  if (g.defined()) {
    VESTA_CHECK(!g.is_same(t), runtime, "grad: can't assign Variable as its own grad.");
    VESTA_CHECK(g.dtype() == t.dtype(), runtime, "grad: assigned grad has data of a different type: expected ",
                t.dtype(), ", got ", g.dtype(), ".");
    VESTA_CHECK(g.device() == t.device(), runtime,
                "grad: assigned grad has data located on a different device: expected ", t.device(), ", got ",
                g.device(), ".");
    VESTA_CHECK(std::ranges::equal(g.sizes(), t.sizes()), runtime,
                "grad: assigned grad has data of a different size: expected ", t.sizes(), ", got ", g.sizes(), ".");
  } else if (!t.impl()->autograd) {
    return;
  }
  GradMeta& m = ensure_meta(t);
  Tensor old;  // dies outside the lock
  if (auto place = place_of(m)) return place->set(g);
  std::lock_guard lock(m.lock);
  old = std::exchange(m.grad, g);
}

bool retains_grad(const Tensor& t) { return t.impl()->autograd && place_of(*meta(t)); }

void forget_base(const Tensor& t) {
  t.impl()->base.reset();
  t.impl()->view_without_grad = false;
  if (!t.impl()->autograd || !meta(t)->requires_grad) t.impl()->layers &= uint8_t(~bit(Layer::autograd));
}

bool held_only_here(const Tensor& t) {
  const TensorImpl& impl = *t.impl();
  if (impl.use_count() != 1) return false;
  if (!impl.base) return impl.storage()->use_count() == 1;
  return impl.base->use_count() == 1 && impl.storage()->use_count() == 2;
}

}  // namespace vesta::autograd
