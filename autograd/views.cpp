// Views and in-place ops on the tape.
//
// Note [Views and in-place]
// A view shares memory with its base, so a write through either changes both, and both must get the write's gradient.
//
//   x = zeros(3); x[0] = w * 2; x.sum().backward()   # w gets a gradient, although x required none when viewed
//
// *Who knows what.* alias(), which makes every view, notes the base in TensorImpl::base: the tensor at the root, never
// itself a view. It also wakes the autograd layer for the view, because its base may come to require grad at any time.
// A base does not know its views. It has a generation, raised whenever its history is replaced; a view keeps the
// generation it was made in. (Versions, in Storage, count writes and serve saved tensors. Generations count changes of
// history, so that a write under no_grad leaves views' histories as they are.)
//
// *A write through the base* (node N): the base's grad_fn becomes N and its generation rises. A view notices when its
// grad_fn is next asked for: its history is then the base's, followed by an as_strided with the view's geometry.
//
// *A write through a view* (node N over the view's elements): the base's grad_fn becomes CopySlices(N), whose edge 0
// goes to the base's old history and whose other edges are N's. CopySlices gives the gradient the base's layout,
// passes the view's part to N, and puts what N returns for the overwritten values in its place. The view itself, like
// all others, then takes its history from the base. N keeps its own edge to the view's old value: what it saved of its
// result is attached to N, and double backward goes on from there.
//
// *What is refused*, as in PyTorch: a leaf that requires grad, and views of one, are not written in place while
// recording (their gradient would be that of a value nobody can see); nor is a view made under no_grad, because the
// relation to its base was not recorded. A view whose base nobody else holds is not a view for this purpose: kernels
// that end in a reshape of their own scratch tensor make such views. detach() gives a tensor that shares memory and
// version but is no view here: writes through it change nobody's history, and versions catch them where they matter.
//
// *view_as_real and view_as_complex* count places in real numbers: see Places.
//
// *unbind, split and chunk* are made of single views here, so each of their results may be written in place (PyTorch
// must refuse: there they are outputs of one node).
//
// *Saved tensors*: an in-place op whose rule needs its input saves a recorded copy, made before the write; what its
// rule needs of the result is saved after the write, with the new version.
//
// Rejected: a list of views in the base (weak pointers on every view, and a lock); functionalising writes (copies);
// tracking only views of tensors that require grad (then the example above silently loses w's gradient).
#include <vesta/autograd/views.h>

#include <mutex>

#include <vesta/autograd/accumulate_grad.h>
#include <vesta/autograd/reduce_to.h>
#include <vesta/autograd/rules/as_strided.h>
#include <vesta/core/ops/copy.h>
#include <vesta/core/ops/factory.h>
#include <vesta/core/ops/view.h>

namespace vesta::autograd {
namespace {

bool is_tracked_view(const Tensor& t) { return t.impl()->base && !t.impl()->view_without_grad; }

GradMeta* meta_of_base(const Tensor& view) { return static_cast<GradMeta*>(view.impl()->base->autograd); }

uint32_t known_generation(const Tensor& view) { return view.impl()->autograd ? meta(view)->generation : 0; }

/// Returns whether the base's history was replaced since the view took its own.
bool is_stale(const Tensor& view) {
  if (view.impl()->view_without_grad) return false;
  GradMeta* b = meta_of_base(view);
  return b && b->requires_grad && b->generation != known_generation(view);
}

/// The places of a base and of a view of it, in elements of one type: in real numbers where one of the two is complex
/// and the other one is not (view_as_real, view_as_complex).
struct Places {
  rules::Geometry base, view;
  bool complex_base = false, complex_view = false;  // which of them was counted in real numbers
  Places(const Tensor& b, const Tensor& v) : base(b), view(v) {
    if (b.dtype() == v.dtype()) return;
    complex_base = b.is_complex(), complex_view = v.is_complex();
    if (complex_base) base = rules::in_reals(base);
    if (complex_view) view = rules::in_reals(view);
  }
  static Tensor counted(const Tensor& t, bool in_reals) { return in_reals ? view_as_real(t) : t; }
  static Tensor restored(const Tensor& t, bool in_reals) { return in_reals ? rules::as_complex(t) : t; }
};

/// The step from a base to a view of it, given by geometry alone.
class ViewOfBase final : public Node {
 public:
  ViewOfBase(const Tensor& base, const Tensor& view) : places_(base, view) {
    set_num_edges(1);
    edge(0) = gradient_edge(base);
    set_input_meta(0, 1, view);
  }
  GradList apply(GradList grads, Needs) override {
    const Tensor g = Places::counted(grads[0], places_.complex_view);
    return GradList(Places::restored(rules::as_strided_backward(g, places_.base, places_.view), places_.complex_base));
  }
  std::string name() const override { return "AsStridedBackward0"; }

 private:
  Places places_;
};

/// The history of a base after a write through a view.
class CopySlices final : public Node {
 public:
  CopySlices(const Tensor& base, const Tensor& view, NodePtr write)
      : places_(base, view),
        view_sizes_(view.sizes()),
        dtype_(view.dtype()),
        buffer_dtype_(places_.complex_base ? view.dtype() : base.dtype()),
        device_(base.device()),
        write_(std::move(write)) {
    size_t n = write_->edges().size();
    set_num_edges(n);
    edge(0) = gradient_edge(base);
    for (size_t i = 1; i < n; ++i) edge(i) = write_->edges()[i];
    set_input_meta(0, 1, base);
    keeps_state_ = write_->keeps_state();
    releases_ = true;
  }
  GradList apply(GradList grads, Needs needs) override {
    VESTA_CHECK(
        !write_->released(), runtime,
        "Trying to backward through the graph a second time. Specify retain_graph=True the first time. The node is ",
        write_->name(), ", which wrote to a view.");
    const rules::Geometry &base = places_.base, &view = places_.view;
    Tensor buffer = zeros(rules::extent(base, view), buffer_dtype_, device_);
    Tensor whole = rules::geometry_of(buffer, base, rules::first(base, view));
    copy_(whole, Places::counted(grads[0], places_.complex_base));
    Tensor part = rules::geometry_of(buffer, view, rules::first(base, view));
    GradList inner;
    {
      RunningNode running(write_.get());
      inner = write_->apply(GradList(Places::restored(clone(part), places_.complex_view)), needs);
    }
    inner.grow(std::max(edges().size(), size_t(1)));
    if (inner[0].defined()) {
      copy_(part, Places::counted(reduce_to(inner[0], view_sizes_, dtype_), places_.complex_view));
    } else {
      fill_(part, 0);
    }
    inner[0] = Places::restored(whole, places_.complex_base);
    return inner;
  }
  std::string name() const override { return "CopySlices"; }
  // N releases what it saved, not this node: in a double backward N may be reached by itself, later in the same run.
  void release_saved() override {}

 private:
  Places places_;
  Dims view_sizes_;
  DType dtype_, buffer_dtype_;
  Device device_;
  NodePtr write_;
};

/// Gives a new history to a tensor that is not a view (or is the base of some).
void replace_history(const Tensor& t, NodePtr node) {
  GradMeta& m = ensure_meta(t);
  if (m.retained) {  // retain_grad() is about the tensor, not about the node that made its old value
    if (m.grad_fn) m.grad_fn->ensure_hooks().retained.remove(m.retained);
    node->ensure_hooks().retained.add(0, m.retained);
  }
  m.grad_fn = std::move(node);
  m.output_nr = 0;
  m.requires_grad = true;
  ++m.generation;
  t.impl()->layers |= bit(Layer::autograd);
}

}  // namespace

bool view_requires_grad(const Tensor& t) {
  if (t.impl()->autograd && meta(t)->requires_grad) return true;
  return is_stale(t);
}

NodePtr grad_fn(const Tensor& t) {
  if (t.impl()->base && is_stale(t)) {
    static std::mutex mutex;  // two threads may look at one view; rare and short
    std::lock_guard lock(mutex);
    if (is_stale(t)) {
      Tensor base(t.impl()->base);
      GradMeta& m = ensure_meta(t);
      m.grad_fn = NodePtr(new ViewOfBase(base, t));
      m.output_nr = 0;
      m.requires_grad = true;
      m.generation = meta(base)->generation;
    }
  }
  return t.impl()->autograd ? meta(t)->grad_fn : NodePtr();
}

Edge gradient_edge(const Tensor& t) {
  if (!requires_grad(t)) return {};
  if (!t.impl()->base) {
    GradMeta& m = *meta(t);
    if (m.grad_fn) return {m.grad_fn, m.output_nr};
    return {grad_accumulator(t), 0};
  }
  if (NodePtr fn = grad_fn(t)) return {std::move(fn), output_nr(t)};
  return {grad_accumulator(t), 0};
}

void set_history(const Tensor& result, NodePtr node, uint32_t output_nr) {
  TensorImpl& impl = *result.impl();
  if (impl.base) forget_base(result);
  GradMeta& m = ensure_meta(result);
  m.grad_fn = std::move(node);
  m.output_nr = output_nr;
  m.requires_grad = true;
  impl.layers |= bit(Layer::autograd);
}

void set_view_history(const Tensor& view, NodePtr node, uint32_t output_nr) {
  GradMeta& m = ensure_meta(view);
  m.grad_fn = std::move(node);
  m.output_nr = output_nr;
  m.requires_grad = true;
  if (view.impl()->base) {
    GradMeta* b = meta_of_base(view);
    m.generation = b ? b->generation : 0;
  }
  view.impl()->layers |= bit(Layer::autograd);
}

Tensor view_base(const Tensor& t) { return t.impl()->base ? Tensor(t.impl()->base) : Tensor(); }

void detach_(const Tensor& t) {
  VESTA_CHECK(!t.impl()->base || !requires_grad(t), runtime,
              "detach_: Can't detach views in-place. Use detach() instead.");
  if (!t.impl()->autograd) return;
  GradMeta& m = *meta(t);
  m.grad_fn.reset();
  m.retained.reset();
  m.output_nr = 0;
  m.requires_grad = false;
  t.impl()->layers &= uint8_t(~bit(Layer::autograd));
}

void check_inplace(const Tensor& t, bool records, const char* op) {
  const TensorImpl& impl = *t.impl();
  VESTA_CHECK(!impl.inference || layer_state.inference, runtime, op,
              ": Inplace update to inference tensor outside InferenceMode is not allowed. Clone it first.");
  if (impl.base && impl.view_without_grad) {
    Tensor base(impl.base);
    bool shared = impl.base->use_count() > 2;  // the view's own reference and the one just taken
    VESTA_CHECK(!shared || !(records || requires_grad(base)), runtime, op,
                ": A view was created in no_grad mode and is being modified inplace with grad mode enabled. Given that "
                "this use case is ambiguous and error-prone, it is forbidden. Move both the view and the in-place op "
                "inside the no_grad block, or both outside.");
    return;
  }
  if (impl.base) {
    Tensor base(impl.base);
    VESTA_CHECK(!requires_grad(base) || meta(base)->grad_fn, runtime, op,
                ": a view of a leaf Variable that requires grad is being used in an in-place operation. Write under "
                "no_grad(), or to a clone.");
  }
  VESTA_CHECK(!requires_grad(t) || grad_fn(t), runtime, op,
              ": a leaf Variable that requires grad is being used in an in-place operation. Write under no_grad(), or "
              "to a clone.");
}

void rebase_history(const Tensor& t, NodePtr node) {
  if (!is_tracked_view(t)) {
    if (t.impl()->base) forget_base(t);  // nobody else holds its base: check_inplace has seen to that
    replace_history(t, std::move(node));
    return;
  }
  Tensor base(t.impl()->base);
  replace_history(base, NodePtr(new CopySlices(base, t, std::move(node))));
  grad_fn(t);  // its history is the base's now
}

void become_view(const Tensor& t, const Tensor& view, const char* op) {
  if (layer_state.grad_enabled) check_inplace(t, false, op);
  const bool recorded = layer_state.grad_enabled && requires_grad(t);
  NodePtr node = recorded ? grad_fn(view) : NodePtr();  // its edge goes to the old history of t
  const uint32_t output = node ? output_nr(view) : 0;
  t.impl()->set_geometry(view.sizes(), view.strides(), view.storage_offset(), op);
  t.impl()->bump(op);
  if (!node) return;
  if (t.impl()->base) set_view_history(t, std::move(node), output);
  else replace_history(t, std::move(node));
}

}  // namespace vesta::autograd
