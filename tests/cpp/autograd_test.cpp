// The tape: gradients of first and second order, views and in-place ops, errors, hooks, custom functions, threads,
// depth.
#include <catch2/catch.hpp>

#include <pthread.h>

#include <mutex>
#include <thread>

#include <vesta/autograd/engine.h>
#include <vesta/autograd/function.h>
#include <vesta/autograd/gradcheck.h>
#include <vesta/core/index.h>
#include <vesta/core/ops/ops.h>

using namespace vesta;
using autograd::gradcheck;
using autograd::gradgradcheck;
using In = const std::vector<Tensor>&;

namespace {

/// Returns float64 numbers without structure in (-1, 1), away from 0.
Tensor numbers(IntList sizes, double shift = 0) {
  Tensor t = zeros(sizes, DType::float64);
  double* p = static_cast<double*>(t.data_ptr());
  for (int64_t i = 0; i < t.numel(); ++i) p[i] = std::sin(1.7 * double(i) + 0.6 + shift) + (i % 2 ? 0.05 : -0.03);
  return t;
}
Tensor leaf(IntList sizes, double shift = 0) { return numbers(sizes, shift).set_requires_grad(); }
Tensor values(std::vector<double> v) {
  Tensor t = zeros(int64_t(v.size()), DType::float64);
  std::copy(v.begin(), v.end(), static_cast<double*>(t.data_ptr()));
  return t;
}
template <class F>
std::string message_of(F f) {
  try {
    f();
  } catch (const Error& e) {
    return e.what();
  }
  return "no error";
}
bool contains(const std::string& s, const char* part) { return s.find(part) != std::string::npos; }

bool both(const autograd::CheckedFunction& f, std::vector<Tensor> in) {
  return gradcheck(f, in) && gradgradcheck(f, in);
}

}  // namespace

TEST_CASE("a leaf accumulates", "[autograd]") {
  Tensor w = leaf({3}), x = numbers({3}, 1);
  (w * x).sum().backward();
  CHECK(equal(w.grad(), x));
  (w * x).sum().backward();
  CHECK(equal(w.grad(), x + x));
  CHECK_FALSE(x.requires_grad());
  CHECK(w.is_leaf());
  CHECK_FALSE((w * x).is_leaf());
}

TEST_CASE("gradients of pointwise ops, first and second order", "[autograd]") {
  Tensor a = leaf({2, 3}), b = leaf({3}, 2), p = (numbers({2, 3}, 4).abs() + 0.5).set_requires_grad();
  CHECK(both([](In v) { return v[0] * v[1] + v[0] / (v[1] * v[1] + 1.0) - v[1]; }, {a, b}));
  CHECK(both([](In v) { return v[0].exp() + v[0].sin() * v[0].cos() + v[0].tanh() + v[0].sigmoid(); }, {a}));
  CHECK(both([](In v) { return v[0].log() + v[0].sqrt() + v[0].reciprocal() + v[0].pow(v[1]); }, {p, b}));
  CHECK(both([](In v) { return v[0].relu() + v[0].leaky_relu(0.1) + v[0].gelu() + v[0].gelu("tanh") + v[0].erf(); },
             {a}));
  CHECK(
      both([](In v) { return maximum(v[0], v[1]) + minimum(v[0], v[1]) + v[0].abs() + v[0].clamp_min(0.1); }, {a, b}));
  CHECK(both([](In v) { return where(v[0] > 0.0, v[0] * 2.0, v[1]) - v[0].neg().square(); }, {a, b}));
  CHECK(both([](In v) { return add(v[0], v[1], 3) + sub(v[0], v[1], 0.5); }, {a, b}));
}

TEST_CASE("gradients of complex numbers", "[autograd]") {
  Tensor z = zeros({2, 2}, DType::complex128);
  for (int i = 0; i < 8; ++i) static_cast<double*>(z.data_ptr())[i] = std::sin(2.3 * i + 1);
  z.set_requires_grad();
  CHECK(gradcheck([](In v) { return v[0] * v[0] + v[0].exp(); }, {z}));
  CHECK(gradcheck([](In v) { return v[0].abs(); }, {z}));
  Tensor r = leaf({2, 2});
  CHECK(gradcheck([](In v) { return v[0] * v[1]; }, {z, r}));  // the real factor gets the real part
}

TEST_CASE("gradients of reductions", "[autograd]") {
  Tensor a = leaf({2, 3, 4});
  CHECK(both([](In v) { return v[0].square().sum({0, 2}); }, {a}));
  CHECK(both([](In v) { return v[0].square().sum(1, true) + v[0].square().mean(); }, {a}));
  CHECK(both([](In v) { return v[0].square().amax(1) + v[0].amin({1}, false); }, {a}));
  CHECK(both([](In v) { return std::get<0>(v[0].square().max(2)) + std::get<0>(v[0].min(-1)); }, {a}));
}

TEST_CASE("gradients of views and copies", "[autograd]") {
  Tensor a = leaf({2, 3, 4});
  CHECK(both([](In v) { return v[0].square().view({6, 4}).transpose(0, 1).reshape({-1}); }, {a}));
  CHECK(both([](In v) { return v[0].square().permute({2, 0, 1}).select(0, 1).unsqueeze(1).expand({2, 5, 3}); }, {a}));
  CHECK(both([](In v) { return v[0].square().slice(2, 1, 4, 2).squeeze(); }, {a}));
  CHECK(both([](In v) { return v[0].square().diagonal(0, 1, 2).clone(); }, {a}));
  CHECK(both([](In v) { return v[0].square().as_strided({3, 3}, {2, 1}, 1); }, {a}));
  CHECK(both([](In v) { return cat({v[0], v[0].square()}, 1); }, {a}));
  CHECK(both([](In v) { return stack({v[0], v[0].square()}, 1) * stack(v[0].unbind(1), 1).unsqueeze(1); }, {a}));
}

TEST_CASE("gradients of indexing", "[autograd]") {
  Tensor a = leaf({4, 3}), v = leaf({2, 3}, 3);
  Tensor i = arange(0, 2, 1, DType::int64) + 1, twice = cat({i, i});
  CHECK(both([&](In x) { return x[0].square().index_select(0, twice); }, {a}));
  CHECK(both([&](In x) { return x[0].square()._index({twice, twice}); }, {a}));
  CHECK(both([&](In x) { return x[0].square().index_put({i}, x[1].square(), false); }, {a, v}));
  CHECK(both([&](In x) { return x[0].square().index_add(0, i, x[1].square(), 2); }, {a, v}));
  Tensor g = stack({i, i}, 0);
  CHECK(both([&](In x) { return x[0].square().gather(0, g); }, {a}));
  CHECK(both([&](In x) { return x[0].square().scatter_add(0, g, x[1].square()); }, {a, v}));
  CHECK(both([&](In x) { return embedding(x[0].square(), g); }, {a}));
}

TEST_CASE("gradients of products", "[autograd]") {
  Tensor m = leaf({3, 4}), n = leaf({4, 2}, 1), u = leaf({4}, 2), batch = leaf({2, 3, 4}, 3),
         other = leaf({2, 4, 2}, 4);
  auto product = [](In v) { return matmul(v[0].square(), v[1].square()); };
  CHECK(both(product, {m, n}));
  CHECK(both(product, {u, n}));
  CHECK(both(product, {m, u}));
  CHECK(both(product, {u, u.detach().clone().set_requires_grad()}));
  CHECK(both(product, {batch, n}));
  CHECK(both(product, {batch, u}));
  CHECK(both(product, {batch, other}));
  CHECK(both(product, {m, other}));
  CHECK(both([](In v) { return linear(v[0].square(), v[1].square(), v[2]); }, {batch, leaf({5, 4}, 5), leaf({5}, 6)}));
}

TEST_CASE("gradients of networks' ops", "[autograd]") {
  Tensor x = leaf({2, 2, 4, 4}), w = leaf({3, 2, 3, 3}, 1), b = leaf({3}, 2);
  CHECK(both([](In v) { return conv2d(v[0].square(), v[1].square(), v[2], 1, 1); }, {x, w, b}));
  CHECK(both([](In v) { return max_pool2d(v[0].square(), 2); }, {x}));
  CHECK(both([](In v) { return softmax(v[0].square(), 1) + log_softmax(v[0].square(), -1); }, {x}));
  Tensor gamma = leaf({2}, 3), beta = leaf({2}, 4), mean = numbers({2}, 5), var = numbers({2}, 6).square() + 0.5;
  CHECK(both([](In v) { return batch_norm(v[0], {}, {}, v[1], v[2], true).square(); }, {x, gamma, beta}));
  CHECK(both([&](In v) { return batch_norm(v[0], mean, var, v[1], v[2], false).square(); }, {x, gamma, beta}));
  Tensor logits = leaf({3, 4}), target = arange(0, 3, 1, DType::int64), weight = numbers({4}, 7).abs();
  CHECK(both([&](In v) { return cross_entropy(v[0].square(), target); }, {logits}));
  CHECK(both([&](In v) { return cross_entropy(v[0].square(), target, weight, 1, "sum", 0.1); }, {logits}));
  CHECK(both([&](In v) { return nll_loss(log_softmax(v[0], 1), target, weight); }, {logits}));
  CHECK(both([&](In v) { return mse_loss(v[0], numbers({3, 4}, 8)); }, {logits}));
}

TEST_CASE("the engine sums and casts a gradient once", "[autograd]") {
  Tensor w = ones({1, 3}).set_requires_grad(), d = ones({2, 1}, DType::float64).set_requires_grad();
  (w * d).sum().backward();
  CHECK(w.grad().dtype() == DType::float32);
  CHECK(equal(w.grad(), full({1, 3}, 2.0)));
  CHECK(d.grad().dtype() == DType::float64);
  CHECK(equal(d.grad(), full({2, 1}, 3.0, DType::float64)));
  Tensor h = ones({4}, DType::bfloat16).set_requires_grad();
  (h.to(DType::float32) * 3.0).sum().backward();
  CHECK(h.grad().dtype() == DType::bfloat16);
}

TEST_CASE("a write through a view reaches the base and its other views", "[autograd]") {
  Tensor w = leaf({2, 3});
  Tensor out = zeros({2, 3}, DType::float64);
  out[0].copy_(w[0] * 2.0);  // out requires nothing before this
  CHECK(out.requires_grad());
  out.sum().backward();
  CHECK(equal(w.grad(), stack({full({3}, 2.0, DType::float64), zeros({3}, DType::float64)}, 0)));

  CHECK(both(
      [](In v) {
        Tensor base = v[0].square();
        Tensor row = base[0], all = base.view({6});
        row.mul_(v[1][0]);
        base.add_(all.view({2, 3}).exp());
        return row * base[1] + all.slice(0, 0, 3);
      },
      {w, leaf({2, 3}, 1)}));
  CHECK(both(
      [](In v) {
        Tensor base = v[0] * 1.0;
        Tensor column = base.transpose(0, 1).select(0, 1);
        column.fill_(0.5);
        column.mul_(column);
        return base * v[0];
      },
      {w}));
}

TEST_CASE("what a write on a view saves of its result leads to the old value", "[autograd]") {
  CHECK(both(
      [](In v) {
        Tensor y = v[0].clone();
        y[1].exp_();
        return y;
      },
      {leaf({2, 3})}));
  Tensor w = leaf({2}), y = w * 1.0;
  y[0].exp_();
  y.sum().backward();
  CHECK(contains(message_of([&] { y.sum().backward(); }), "a second time"));
}

TEST_CASE("a plain view takes part when its base is written", "[autograd]") {
  Tensor w = leaf({3}), p = zeros({3}, DType::float64), v = p.slice(0, 0, 2);
  p.add_(w);
  CHECK(v.requires_grad());
  v.sum().backward();
  CHECK(equal(w.grad(), values({1, 1, 0})));
}

TEST_CASE("in-place ops that cannot be recorded are refused", "[autograd]") {
  Tensor w = leaf({3});
  CHECK(contains(message_of([&] { w.mul_(2.0); }), "a leaf Variable that requires grad is being used in an in-place"));
  CHECK(contains(message_of([&] { w.view({3}).mul_(2.0); }), "a view of a leaf Variable that requires grad"));
  Tensor v;
  {
    NoGrad off;
    v = w.view({3});
    v.mul_(2.0);
  }
  CHECK(contains(message_of([&] { v.mul_(2.0); }), "A view was created in no_grad mode"));
  CHECK(contains(message_of([&] { add_out(empty({3}, DType::float64), w, w); }),
                 "don't support automatic differentiation"));
  Tensor i;
  {
    InferenceMode on;
    i = ones({3}, DType::float64);
  }
  CHECK(contains(message_of([&] { i* w; }), "Inference tensors cannot be saved"));
  CHECK(contains(message_of([&] { ones({2}, DType::int64).set_requires_grad(); }), "only Tensors of floating point"));
  CHECK(contains(message_of([&] { (w * 1.0).set_requires_grad(false); }), "leaf variables"));
}

TEST_CASE("a stale saved tensor names who saved and who wrote", "[autograd]") {
  Tensor w = leaf({2, 3}), x = numbers({2, 3});
  Tensor y = w * x;
  x.relu_();
  std::string m = message_of([&] { y.sum().backward(); });
  CHECK(contains(m, "mul saved its input [2, 3] at version 0; relu_ wrote to it (version 1)"));
  Tensor e = w.exp();
  e.detach().add_(1.0);
  CHECK(contains(message_of([&] { e.sum().backward(); }), "exp saved its result"));
}

TEST_CASE("backward says what is wrong", "[autograd]") {
  Tensor w = leaf({3}), other = leaf({3});
  Tensor y = (w * w).sum();
  y.backward();
  CHECK(contains(message_of([&] { y.backward(); }), "Trying to backward through the graph a second time"));
  CHECK(contains(message_of([&] { (w * 2.0).backward(); }), "grad can be implicitly created only for scalar outputs"));
  CHECK(contains(message_of([&] { (w * 2.0).backward(ones({4})); }), "Mismatch in shape: grad_output[0]"));
  CHECK(contains(message_of([&] { ones({}).backward(); }), "element 0 of tensors does not require grad"));
  CHECK(
      contains(message_of([&] { vesta::grad({(w * 2.0).sum()}, {other}); }), "index 0 appears to not have been used"));
  CHECK_FALSE(vesta::grad({(w * 2.0).sum()}, {other}, {}, {}, false, true)[0].defined());
  Tensor s = (w + w).sum();
  s.backward();
  s.backward();  // nothing was saved, so nothing was released
  Tensor r = (w * w).sum();
  r.backward({}, true);
  r.backward();
}

TEST_CASE("grad and backward with inputs run what is needed", "[autograd]") {
  Tensor a = leaf({3}), b = leaf({3}, 1), m = a * b, y = (m * m).sum();
  auto g = vesta::grad({y}, {m, a}, {}, true);
  CHECK(equal(g[0], m * 2.0));
  CHECK(equal(g[1], m * 2.0 * b));
  CHECK_FALSE(a.grad().defined());
  vesta::backward({y}, {}, true, false, {b});
  CHECK_FALSE(a.grad().defined());
  CHECK(equal(b.grad(), m * 2.0 * a));
  Tensor second = vesta::grad({vesta::grad({y}, {a}, {}, true, true)[0].sum()}, {b})[0];
  CHECK(equal(second.detach(), (a * b * 4.0).detach()));  // d/db sum(2 a b^2)
}

TEST_CASE("hooks see and replace gradients", "[autograd]") {
  Tensor w = leaf({3}), h = w * 2.0;
  int calls = 0;
  auto id = autograd::register_hook(h, autograd::tensor_hook([&](const Tensor& g) { return ++calls, g * 10.0; }));
  autograd::register_hook(w, autograd::tensor_hook([&](const Tensor&) { return ++calls, Tensor(); }));
  autograd::retain_grad(h);
  h.sum().backward({}, true);
  CHECK(calls == 2);
  CHECK(equal(w.grad(), full({3}, 20.0, DType::float64)));
  CHECK(equal(h.grad(), full({3}, 10.0, DType::float64)));
  autograd::remove_hook(h, id);
  w.set_grad({});
  h.sum().backward();
  CHECK(equal(w.grad(), full({3}, 2.0, DType::float64)));

  struct After final : autograd::PostAccumulateHook {
    void call(const Tensor& t) override { t.set_grad({}); }
  };
  autograd::register_post_accumulate_hook(w, std::make_shared<After>());
  (w * 3.0).sum().backward();
  CHECK_FALSE(w.grad().defined());
}

TEST_CASE("a backward inside a hook, and callbacks at the end", "[autograd]") {
  Tensor w = leaf({3}), inner = leaf({3}, 1), y = w * 2.0;
  std::string order;
  autograd::register_hook(y, autograd::tensor_hook([&](const Tensor&) {
                            autograd::queue_callback([&] { order += "end"; });
                            EnableGrad on;  // a run that is not recorded calls its hooks without recording
                            (inner * inner).sum().backward();
                            order += "hook ";
                            return Tensor();
                          }));
  y.sum().backward();
  CHECK(order == "hook end");
  CHECK(equal(inner.grad(), inner * 2.0));
}

namespace {
struct Packed final : autograd::PackedTensor {
  Tensor t;
  int* unpacked;
  Packed(Tensor tensor, int* n) : t(std::move(tensor)), unpacked(n) {}
  Tensor unpack() override { return ++*unpacked, t; }
};
struct Count final : autograd::SavedTensorHooks {
  int packed = 0, unpacked = 0;
  std::unique_ptr<autograd::PackedTensor> pack(const Tensor& t) override {
    return ++packed, std::make_unique<Packed>(t.detach().clone(), &unpacked);
  }
};
struct Cube : autograd::Function<Cube> {
  static Tensor forward(autograd::Context& ctx, const Tensor& x, double scale) {
    ctx.save_for_backward({x});
    ctx.values["scale"] = scale;
    return x * x * x * scale;
  }
  static TensorVector backward(autograd::Context& ctx, const TensorVector& g) {
    return {g[0] * 3.0 * ctx.saved()[0].square() * std::any_cast<double>(ctx.values["scale"])};
  }
};
}  // namespace

TEST_CASE("saved tensors go through hooks and keep their history", "[autograd]") {
  Tensor a = leaf({3}), b = leaf({3}, 1);
  auto hooks = std::make_shared<Count>();
  auto f = [&](In v) {
    autograd::SavedTensorHooksGuard guard(hooks);
    return (v[0] * v[1]).exp();
  };
  CHECK(both(f, {a, b}));
  CHECK(hooks->packed > 0);
  CHECK(hooks->unpacked > 0);
}

TEST_CASE("custom functions", "[autograd]") {
  Tensor x = leaf({3});
  CHECK(both([](In v) { return Cube::apply(v[0], 2.0); }, {x}));
  Tensor y = Cube::apply(x, 2.0).sum();
  y.backward();
  CHECK(contains(message_of([&] { y.backward(); }), "a second time"));
}

TEST_CASE("accumulators can add into a given view", "[autograd]") {
  Tensor w = leaf({2, 2}), bucket = zeros({8}, DType::float64);
  auto node = autograd::grad_accumulator(w);
  CHECK(node.get() == autograd::grad_accumulator(w).get());
  node->set_target(bucket.slice(0, 4, 8).view({2, 2}));
  for (int i = 0; i < 2; ++i) (w * 3.0).sum().backward();
  CHECK(equal(bucket, cat({zeros({4}, DType::float64), full({4}, 6.0, DType::float64)})));
}

TEST_CASE("an accumulator asks where the first gradient goes", "[autograd]") {
  struct Places final : autograd::GradPlace {
    Tensor next;
    int asked = 0;
    Tensor place() override { return ++asked, next; }
  };
  Tensor w = leaf({2, 2});
  auto places = std::make_shared<Places>();
  auto node = autograd::grad_accumulator(w);
  node->set_place(places);
  places->next = zeros({2, 2}, DType::float64);
  for (int i = 0; i < 2; ++i) (w * 3.0).sum().backward();
  CHECK(places->asked == 1);  // the second is added to the first
  CHECK(w.grad().is_same(places->next));
  CHECK(equal(places->next, full({2, 2}, 6.0, DType::float64)));
  w.set_grad({});
  places->next = {};
  (w * 3.0).sum().backward();
  CHECK((places->asked == 2 && w.grad().defined()));
  w.set_grad({});
  node->set_place(nullptr);
  (w * 3.0).sum().backward();
  CHECK(places->asked == 2);
}

TEST_CASE("callbacks wait for their own run, or for the outermost", "[autograd]") {
  std::vector<std::string> order;
  Tensor w = leaf({2}), inner = leaf({2});
  Tensor y = w * 2.0;
  autograd::register_hook(y, autograd::tensor_hook([&](const Tensor&) {
                            EnableGrad on;  // hooks run with recording off
                            Tensor z = inner * 1.0;
                            autograd::register_hook(z, autograd::tensor_hook([&](const Tensor&) {
                                                      autograd::queue_final_callback([&] { order.push_back("last"); });
                                                      autograd::queue_callback([&] { order.push_back("inner"); });
                                                      return Tensor();
                                                    }));
                            z.sum().backward();
                            order.push_back("after inner");
                            return Tensor();
                          }));
  y.sum().backward();
  CHECK(order == std::vector<std::string>{"inner", "after inner", "last"});
}

TEST_CASE("threads share leaves and graphs", "[autograd]") {
  Tensor w = leaf({64}), trunk = (w * 2.0).exp();
  Tensor grown = trunk.detach() * 2.0;
  constexpr int kThreads = 4, kRuns = 50;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < kRuns; ++i) trunk.sum().backward({}, true);
    });
  }
  for (auto& t : threads) t.join();
  Tensor expected = grown * double(kThreads * kRuns);
  CHECK(((w.grad() - expected).abs() <= expected.abs() * 1e-9).all().item<bool>());
}

TEST_CASE("a chain of a million nodes runs and dies on a small stack", "[autograd]") {
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, 512 * 1024);
  pthread_t thread;
  auto work = [](void*) -> void* {
    Tensor w = ones({1}).set_requires_grad(), y = w;
    for (int i = 0; i < 1000000; ++i) y = i % 2 ? y * w : y + w.detach();
    {
      Tensor z = ones({1}).set_requires_grad();
      for (int i = 0; i < 100000; ++i) z = z.exp().log();
    }
    y.sum().backward();
    return w.grad().defined() ? reinterpret_cast<void*>(1) : nullptr;
  };
  REQUIRE(pthread_create(&thread, &attributes, work, nullptr) == 0);
  void* result = nullptr;
  pthread_join(thread, &result);
  CHECK(result != nullptr);
}

TEST_CASE("no tensor outlives its graph", "[autograd]") {
  int64_t before = pool::live();
  {
    Tensor w = leaf({3});
    Tensor y = w.exp() * w.tanh();
    y[0].mul_(2.0);
    auto g = vesta::grad({y.sum()}, {w}, {}, true, true);
    g[0].sum().backward();
    w.set_grad({});  // a gradient that was recorded holds the graph that holds the leaf
  }
  CHECK(pool::live() == before);
}

TEST_CASE("a tensor that dies on a thread that never made one is counted", "[autograd]") {
  const int64_t before = pool::live();
  Tensor t = zeros({3});
  CHECK(pool::live() == before + 1);
  std::mutex held;  // the thread lives while its tensor is counted
  held.lock();
  std::atomic<bool> dropped{false};
  std::thread thread([&, mine = std::move(t)]() mutable {
    mine = Tensor();
    dropped = true;
    std::lock_guard wait(held);
  });
  while (!dropped) std::this_thread::yield();
  CHECK(pool::live() == before);
  held.unlock();
  thread.join();
  CHECK(pool::live() == before);
}
