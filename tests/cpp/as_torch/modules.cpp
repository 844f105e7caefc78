// Modules, handles, registration and errors; modules.txt is what libtorch prints.
#include <torch/torch.h>
#include <iostream>
namespace nn = torch::nn;
struct FcImpl : nn::Cloneable<FcImpl> {
  FcImpl(int64_t i, int64_t o) : i(i), o(o) { reset(); }
  void reset() override {
    w = register_parameter("weight", torch::ones({o, i}));
    b = register_parameter("bias", torch::zeros({o}));
    c = register_buffer("count", torch::zeros({1}));
  }
  void pretty_print(std::ostream& s) const override { s << "Fc(" << i << ", " << o << ")"; }
  torch::Tensor forward(const torch::Tensor& x) { return torch::matmul(x, w.t()) + b; }
  int64_t i, o;
  torch::Tensor w, b, c;
};
TORCH_MODULE(Fc);
struct Net : nn::Module {
  Net() : a(register_module("a", Fc(2, 3))) {
    b = register_module("b", Fc(3, 1));
    register_parameter("none", {}, false);
  }
  torch::Tensor forward(torch::Tensor x) { return b->forward(a(x)); }
  Fc a{nullptr}, b{nullptr};
};
struct DeepImpl : nn::Cloneable<DeepImpl> {
  DeepImpl() { reset(); }
  void reset() override {
    in = register_module("in", Fc(2, 2));
    out = register_module("out", Fc(2, 1));
    scale = register_parameter("scale", torch::ones({1}));
  }
  std::tuple<torch::Tensor, int> forward(const torch::Tensor& x, int k = 2) { return {out(in(x)) * scale, k}; }
  Fc in{nullptr}, out{nullptr};
  torch::Tensor scale;
};
TORCH_MODULE(Deep);
namespace {
struct Anon : nn::Module {};
struct Named : nn::Module {
  Named() : nn::Module("MyName") {}
};
}  // namespace
template <class F> void raises(F f) {
  try {
    f();
    std::cout << "no error\n";
  } catch (const c10::Error& e) {
    std::string w = e.what();
    std::cout << "error: " << w.substr(0, w.find('\n')) << "\n";
  } catch (const std::exception& e) {
    std::cout << "std: " << e.what() << "\n";
  }
}
int main() {
  auto net = std::make_shared<Net>();
  std::cout << net->forward(torch::ones({4, 2})).sum().item<float>() << "\n";
  std::cout << *net << "\n" << net->a << "\n" << net->name() << "\n";
  for (auto& p : net->named_parameters())
    std::cout << p.key() << " " << p.value().numel() << " " << p->requires_grad() << "\n";
  for (const auto& p : net->named_parameters(false)) std::cout << "own " << p.key() << "\n";
  for (auto& p : net->named_buffers()) std::cout << p.key() << " " << (*p).numel() << " " << p->requires_grad() << "\n";
  for (auto& p : net->named_modules()) std::cout << "[" << p.key() << "] " << p.value()->name() << "\n";
  for (auto& p : net->named_modules("x", false)) std::cout << "[" << p.key() << "]\n";
  for (auto& p : net->named_modules("x")) std::cout << "[" << p.key() << "]\n";
  std::cout << net->modules().size() << net->modules(false).size() << net->children().size() << net->parameters().size()
            << "\n";
  net->apply([](nn::Module& m) { std::cout << "& " << m.name() << "\n"; });
  std::const_pointer_cast<const Net>(net)->apply([](const nn::Module& m) { std::cout << "c& " << m.name() << "\n"; });
  net->apply([](const std::string& n, nn::Module& m) { std::cout << n << " " << m.name() << "\n"; }, "pre");
  net->apply([](const std::shared_ptr<nn::Module>& m) { std::cout << "p " << m->name() << "\n"; });
  net->apply(
      [](const std::string& n, const std::shared_ptr<nn::Module>& m) { std::cout << n << " p " << m->name() << "\n"; });
  net->eval();
  std::cout << net->is_training() << net->a->is_training() << "\n";
  net->train();
  std::cout << net->b->is_training() << "\n";
  net->to(torch::kFloat64);
  std::cout << (net->a->w.dtype() == torch::kFloat64) << (net->a->c.dtype() == torch::kFloat64) << "\n";
  net->to(torch::kCPU);
  net->to(torch::kCPU, torch::kFloat);
  std::cout << (net->a->w.dtype() == torch::kFloat) << net->a->w.requires_grad() << "\n";
  auto loss = net->forward(torch::ones({1, 2})).sum();
  loss.backward();
  std::cout << net->a->w.grad().sum().item<float>() << "\n";
  net->zero_grad(false);
  std::cout << net->a->w.grad().sum().item<float>() << "\n";
  net->zero_grad();
  std::cout << net->a->w.grad().defined() << "\n";
  nn::Module* m = net.get();
  std::cout << (m->as<Net>() != nullptr) << (m->as<FcImpl>() != nullptr) << (net->children()[0]->as<Fc>() != nullptr)
            << (dynamic_cast<Net*>(m) != nullptr) << "\n";
  raises([&] { net->clone(); });
  raises([&] { net->register_module("x.y", Fc(1, 1)); });
  raises([&] { net->register_module("a", Fc(1, 1)); });
  raises([&] { net->register_parameter("", torch::ones({1})); });
  raises([&] { net->register_parameter("none", torch::ones({1})); });
  raises([&] { net->register_buffer("a.b", torch::ones({1})); });
  raises([&] { net->unregister_module("zzz"); });
  raises([&] { net->replace_module("zzz", Fc(1, 1)); });
  raises([&] {
    Net on_stack;
    on_stack.modules();
  });
  raises([&] {
    Fc f{nullptr};
    f->forward(torch::ones({1}));
  });
  raises([&] {
    Fc f = nullptr;
    net->register_module("f", f);
  });
  net->replace_module("b", Fc(3, 2));
  std::cout << net->named_parameters()["b.weight"].numel() << "\n";
  net->unregister_module("b");
  std::cout << net->parameters().size() << "\n";
  Deep deep;
  deep->in->w.detach().fill_(3);
  auto copy = std::dynamic_pointer_cast<DeepImpl>(deep->clone());
  deep->in->w.detach().fill_(5);
  std::cout << copy->in->w.sum().item<float>() << " " << (copy->in->w.is_same(copy->parameters()[1]))
            << copy->scale.requires_grad() << "\n"
            << *copy << "\n";
  auto [y, k] = copy->forward(torch::ones({1, 2}));
  std::cout << y.item<float>() << " " << k << "\n";
  auto [y2, k2] = deep(torch::ones({1, 2}), 7);
  std::cout << y2.item<float>() << " " << k2 << "\n";
  std::cout << Anon() << " " << Named() << "\n";
  Fc f1(1, 2);
  Fc f2 = f1;
  Fc f3(f1);
  std::cout << (f2.get() == f1.get()) << (f3.ptr() == f1.ptr()) << bool(f1) << f1.is_empty() << "\n";
  const auto& cf = f1;
  std::cout << cf->i << (*cf).o << "\n";
}
