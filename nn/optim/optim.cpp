#include <vesta/nn/optim/optim.h>

#include <algorithm>

namespace vesta::optim {

Optimizer::Optimizer(std::vector<Tensor> parameters) : parameters_(std::move(parameters)) {
  VESTA_CHECK(!parameters_.empty(), value, "optimizer got an empty parameter list.");
  for (size_t i = 0; i < parameters_.size(); ++i) {
    VESTA_CHECK(parameters_[i].defined() && parameters_[i].is_leaf(), value,
                "optimizer: can't optimize a non-leaf Tensor (parameter ", i, ").");
    for (size_t k = 0; k < i; ++k) {
      VESTA_CHECK(!parameters_[k].is_same(parameters_[i]), value, "optimizer: some parameters appear more than once (",
                  k, " and ", i, ").");
    }
  }
}

void Optimizer::zero_grad(bool set_to_none) {
  NoGrad off;
  for (const Tensor& p : parameters_) {
    Tensor g = p.grad();
    if (!g.defined()) continue;
    if (set_to_none) p.set_grad({});
    else g.detach().zero_();
  }
}

std::vector<size_t> Optimizer::with_grad() const {
  std::vector<size_t> r;
  for (size_t i = 0; i < parameters_.size(); ++i) {
    if (parameters_[i].grad().defined()) r.push_back(i);
  }
  return r;
}

namespace {
std::vector<Tensor> pick(const std::vector<Tensor>& from, const std::vector<size_t>& which) {
  std::vector<Tensor> r;
  r.reserve(which.size());
  for (size_t i : which) r.push_back(from[i]);
  return r;
}
std::vector<Tensor> grads_of(const std::vector<Tensor>& parameters) {
  std::vector<Tensor> r;
  for (const Tensor& p : parameters) r.push_back(p.grad());
  return r;
}
std::vector<Tensor> zeros_of(const std::vector<Tensor>& parameters) {
  std::vector<Tensor> r;
  for (const Tensor& p : parameters) r.push_back(zeros_like(p.detach()));
  return r;
}
}  // namespace

SGD::SGD(std::vector<Tensor> parameters, SGDOptions o) : Optimizer(std::move(parameters)), options(o) {
  VESTA_CHECK(o.lr >= 0, value, "SGD: Invalid learning rate: ", o.lr, ".");
  VESTA_CHECK(o.momentum >= 0, value, "SGD: Invalid momentum value: ", o.momentum, ".");
  VESTA_CHECK(o.weight_decay >= 0, value, "SGD: Invalid weight_decay value: ", o.weight_decay, ".");
  VESTA_CHECK(!o.nesterov || (o.momentum > 0 && o.dampening == 0), value,
              "SGD: Nesterov momentum requires a momentum and zero dampening.");
  momentum_.resize(parameters_.size());
}

void SGD::step() {
  NoGrad off;
  // Parameters that get their first gradient now start their momentum with it; the others continue theirs.
  std::vector<size_t> fresh, going;
  for (size_t i : with_grad()) (options.momentum != 0 && !momentum_[i].defined() ? fresh : going).push_back(i);
  for (size_t i : fresh) momentum_[i] = zeros_like(parameters_[i].detach());
  for (auto* which : {&fresh, &going}) {
    if (which->empty()) continue;
    auto parameters = pick(parameters_, *which);
    auto buffers = options.momentum != 0 ? pick(momentum_, *which) : std::vector<Tensor>();
    _fused_sgd_(parameters, grads_of(parameters), buffers, options.weight_decay, options.momentum, options.lr,
                options.dampening, options.nesterov, options.maximize, which == &fresh);
  }
}

Adam::Adam(std::vector<Tensor> parameters, AdamOptions o, bool decoupled)
    : Optimizer(std::move(parameters)), options(o), decoupled_(decoupled) {
  VESTA_CHECK(o.lr >= 0, value, "Adam: Invalid learning rate: ", o.lr, ".");
  VESTA_CHECK(o.eps >= 0, value, "Adam: Invalid epsilon value: ", o.eps, ".");
  VESTA_CHECK(o.beta1 >= 0 && o.beta1 < 1, value, "Adam: Invalid beta parameter at index 0: ", o.beta1, ".");
  VESTA_CHECK(o.beta2 >= 0 && o.beta2 < 1, value, "Adam: Invalid beta parameter at index 1: ", o.beta2, ".");
  VESTA_CHECK(o.weight_decay >= 0, value, "Adam: Invalid weight_decay value: ", o.weight_decay, ".");
  NoGrad off;
  mean_ = zeros_of(parameters_), square_ = zeros_of(parameters_);
  if (o.amsgrad) largest_ = zeros_of(parameters_);
  for (size_t i = 0; i < parameters_.size(); ++i) steps_.push_back(zeros(IntList(), DType::float32));
}

void Adam::step() {
  NoGrad off;
  auto which = with_grad();
  if (which.empty()) return;
  auto parameters = pick(parameters_, which);
  _fused_adam_(parameters, grads_of(parameters), pick(mean_, which), pick(square_, which),
               options.amsgrad ? pick(largest_, which) : std::vector<Tensor>(), pick(steps_, which), options.lr,
               options.beta1, options.beta2, options.weight_decay, options.eps, options.amsgrad, options.maximize,
               decoupled_);
}

RMSprop::RMSprop(std::vector<Tensor> parameters, RMSpropOptions o) : Optimizer(std::move(parameters)), options(o) {
  VESTA_CHECK(o.lr >= 0, value, "RMSprop: Invalid learning rate: ", o.lr, ".");
  VESTA_CHECK(o.eps >= 0, value, "RMSprop: Invalid epsilon value: ", o.eps, ".");
  VESTA_CHECK(o.momentum >= 0, value, "RMSprop: Invalid momentum value: ", o.momentum, ".");
  VESTA_CHECK(o.weight_decay >= 0, value, "RMSprop: Invalid weight_decay value: ", o.weight_decay, ".");
  VESTA_CHECK(o.alpha >= 0, value, "RMSprop: Invalid alpha value: ", o.alpha, ".");
  NoGrad off;
  square_ = zeros_of(parameters_);
  if (o.centered) mean_ = zeros_of(parameters_);
  if (o.momentum > 0) momentum_ = zeros_of(parameters_);
  for (size_t i = 0; i < parameters_.size(); ++i) steps_.push_back(zeros(IntList(), DType::float32));
}

void RMSprop::step() {
  NoGrad off;
  auto which = with_grad();
  if (which.empty()) return;
  auto parameters = pick(parameters_, which);
  auto some = [&](const std::vector<Tensor>& from, bool used) { return used ? pick(from, which) : TensorVector(); };
  _fused_rmsprop_(parameters, grads_of(parameters), pick(square_, which), some(mean_, options.centered),
                  some(momentum_, options.momentum > 0), pick(steps_, which), options.lr, options.alpha, options.eps,
                  options.weight_decay, options.momentum, options.centered, options.maximize);
}

}  // namespace vesta::optim
