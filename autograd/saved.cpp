#include <vesta/autograd/saved.h>

#include <vesta/autograd/grad_meta.h>
#include <vesta/autograd/hooks.h>

namespace vesta::autograd {

struct PackedSave {
  std::unique_ptr<PackedTensor> packed;
  Edge edge;  // where the history of an input goes on; an unpacked leaf points at its accumulator
  TensorMeta meta;  // kernels of gradients rely on the form of what was saved

  /// Gets the tensor back from the hooks.
  Tensor unpack() const {
    Tensor t = packed->unpack();
    const auto form = [](IntSpan sizes, DType dtype, Device device) { return text(sizes, " ", dtype, " on ", device); };
    VESTA_CHECK(t.defined() && meta.fits(t), runtime, "saved_tensors_hooks: unpack returned ",
                t.defined() ? form(t.sizes(), t.dtype(), t.device()) : std::string("nothing"),
                " where a tensor of shape ", form(meta.sizes(), meta.dtype(), meta.device()),
                " was packed; it must give back the same shape, dtype and device.");
    return t;
  }
};

void Saved::DeletePacked::operator()(PackedSave* p) const noexcept { delete p; }

namespace {
constinit thread_local int hooks_depth __attribute__((tls_model("initial-exec"))) = 0;
std::vector<std::shared_ptr<SavedTensorHooks>>& hooks_stack() {
  static thread_local std::vector<std::shared_ptr<SavedTensorHooks>> stack;
  return stack;
}

PackedSave* pack(const Tensor& t, Edge edge) {
  std::shared_ptr<SavedTensorHooks> hooks = hooks_stack().back();
  NoGrad off;
  return new PackedSave{hooks->pack(t), std::move(edge), TensorMeta(t)};
}

std::string role(const Tensor& t, bool is_result) { return text(is_result ? "its result " : "its input ", t.sizes()); }
}  // namespace

constinit thread_local uint32_t saves_made __attribute__((tls_model("initial-exec"))) = 0;

void push_saved_tensor_hooks(std::shared_ptr<SavedTensorHooks> hooks) {
  hooks_stack().push_back(std::move(hooks));
  ++hooks_depth;
}
void pop_saved_tensor_hooks() {
  VESTA_CHECK(hooks_depth > 0, runtime, "pop_saved_tensor_hooks: expected hooks on the stack, got none.");
  hooks_stack().pop_back();
  --hooks_depth;
}
SavedTensorHooksGuard::SavedTensorHooksGuard(std::shared_ptr<SavedTensorHooks> hooks) {
  push_saved_tensor_hooks(std::move(hooks));
}
SavedTensorHooksGuard::~SavedTensorHooksGuard() { pop_saved_tensor_hooks(); }

void Saved::save_input(const Tensor& t) {
  VESTA_CHECK(!t.impl()->inference, runtime,
              "Inference tensors cannot be saved for backward. To work around you can make a clone to get a normal "
              "tensor and use it in autograd, or make it under no_grad() in place of inference_mode().");
  ++saves_made;
  if (hooks_depth > 0) [[unlikely]] {
    packed_.reset(pack(t, gradient_edge(t)));
    return;
  }
  tensor_ = t;
  version_ = t.version();
}

Saved Saved::result(const Tensor& t, uint32_t output_nr) {
  Saved s;
  ++saves_made;
  s.is_result_ = true;
  s.output_nr_ = uint16_t(output_nr);
  if (hooks_depth > 0) [[unlikely]] {
    s.packed_.reset(pack(t.detach(), {}));
    return s;
  }
  s.tensor_ = t.detach();
  s.version_ = t.version();
  return s;
}

void Saved::reset() noexcept {
  tensor_ = Tensor();
  packed_.reset();
}

Tensor Saved::attached() const {
  Node* node = running_node();
  Tensor t = packed_ ? packed_->unpack().detach() : tensor_.detach();
  if (node) set_history(t, NodePtr(node), output_nr_);
  return t;
}

Tensor Saved::unpack_other() const {
  if (!packed_) return {};
  if (is_result_) return GradMode::enabled() ? attached() : packed_->unpack();
  Tensor t = packed_->unpack();
  if (!packed_->edge) return t;
  t = t.detach();
  set_history(t, packed_->edge.node, packed_->edge.input_nr);
  return t;
}

Tensor Saved::with_history() const {
  if (!defined()) return {};
  if (packed_) return is_result_ ? attached() : unpack_other();
  if (tensor_.version() != version_) raise_overwritten();
  return is_result_ ? attached() : tensor_;
}

void Saved::raise_overwritten() const {
  Node* node = running_node();
  std::string writer = tensor_.impl()->last_writer();  // for a pointwise op this is the name that all its forms share
  if (!writer.empty() && writer.back() != '_' && writer.find(' ') == writer.npos) writer += '_';
  fail(Cause::runtime,
       "one of the variables needed for gradient computation has been modified by an inplace operation: ",
       node ? node->op() : "a node", " saved ", role(tensor_, is_result_), " at version ", version_, "; ", writer,
       " wrote to it (version ", tensor_.version(), "). Save a clone, or use the out-of-place form.");
}

}  // namespace vesta::autograd
