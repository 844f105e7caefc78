// Pairs of calls from two threads that share a graph: hooks, gradients, flags and metadata are touched while graphs are
// built and run. A program of its own, so that it can be built with ThreadSanitizer (make campaign), which says where
// two threads meet without a lock; without it the pairs show crashes and lost gradients.
#include <catch2/catch.hpp>

#include <atomic>
#include <functional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <vesta/autograd/engine.h>
#include <vesta/autograd/grad_meta.h>
#include <vesta/autograd/hooks.h>
#include <vesta/core/index.h>
#include <vesta/core/ops/ops.h>
#include <vesta/core/cpu/parallel.h>

using namespace vesta;

namespace {

/// What two threads share: a leaf, another one whose flag changes, and a graph on the first one.
struct Shared {
  Tensor x = ones({3}, DType::float64).set_requires_grad();
  Tensor w = ones({3}, DType::float64).set_requires_grad();
  Tensor y = x * 2.0;
  Tensor view = y.view({3, 1});
  Tensor loss = (y * y).sum();
};

using Touch = std::pair<std::string, std::function<void(Shared&)>>;

Tensor pass(const Tensor& g) { return g * 1.0; }

const std::vector<Touch>& touches() {
  using namespace autograd;
  static const std::vector<Touch> list = {
      {"backward", [](Shared& s) { backward({s.loss}, {}, true); }},
      {"build and run", [](Shared& s) { (s.x * s.w + s.x).sum().backward(); }},
      {"recorded backward", [](Shared& s) { vesta::grad({(s.x * s.x).sum()}, {s.x}, {}, true, true); }},
      {"gradient of a non-leaf", [](Shared& s) { vesta::grad({s.loss}, {s.y}, {}, true); }},
      {"build without running", [](Shared& s) { (s.y * s.x).exp(); }},
      {"hook of a leaf", [](Shared& s) { remove_hook(s.x, register_hook(s.x, tensor_hook(pass))); }},
      {"hook of a result", [](Shared& s) { remove_hook(s.y, register_hook(s.y, tensor_hook(pass))); }},
      {"gradient read", [](Shared& s) { s.x.grad(); }},
      {"gradient dropped", [](Shared& s) { set_grad(s.x, {}); }},
      {"gradient given", [](Shared& s) { set_grad(s.x, ones({3}, DType::float64)); }},
      {"requires_grad", [](Shared& s) { s.w.set_requires_grad(false), s.w.set_requires_grad(true); }},
      {"flags read", [](Shared& s) { (void)(s.w.requires_grad() || s.x.is_leaf() || s.y.is_leaf()); }},
      {"retained gradient", [](Shared& s) { retain_grad(s.y), grad(s.y); }},
      {"detached", [](Shared& s) { s.x.detach().view({3, 1}); }},
      {"node read", [](Shared& s) { (void)(grad_fn(s.view) && grad_fn(s.y)); }},
      {"view", [](Shared& s) { s.y.view({1, 3}) * 2.0; }},
  };
  return list;
}

/// Runs two touches at once; returns what one of them raised.
std::string run_pair(const Touch& a, const Touch& b, int times) {
  Shared s;
  std::atomic<int> waiting{2};
  std::string raised[2];
  auto work = [&](const Touch& touch, int i) {
    cpu::set_num_threads(1);
    --waiting;
    while (waiting.load()) std::this_thread::yield();
    try {
      for (int k = 0; k < times; ++k) touch.second(s);
    } catch (const std::exception& e) {
      raised[i] = e.what();
    }
  };
  std::thread other([&] { work(b, 1); });
  work(a, 0);
  other.join();
  return raised[0] + raised[1];
}

/// Returns whether a touch may find a graph that another one has changed under it, and say so.
bool may_raise(const std::string& message) { return message.find("does not require grad") != std::string::npos; }

}  // namespace

TEST_CASE("two threads touch one graph", "[threads]") {
  for (size_t i = 0; i < touches().size(); ++i) {
    for (size_t k = i; k < touches().size(); ++k) {
      const Touch &a = touches()[i], &b = touches()[k];
      INFO(a.first << " and " << b.first);
      std::string raised = run_pair(a, b, 60);
      CHECK((raised.empty() || may_raise(raised) ? "" : raised) == "");
    }
  }
}

TEST_CASE("no gradient is lost between two threads", "[threads]") {
  Shared s;
  autograd::retain_grad(s.y);
  const int times = 500;
  auto work = [&] {
    cpu::set_num_threads(1);
    for (int i = 0; i < times; ++i) backward({s.loss}, {}, true);
  };
  std::thread other(work);
  work();
  other.join();
  CHECK(equal(s.x.grad(), full({3}, 8.0 * 2 * times, DType::float64)));
  CHECK(equal(s.y.grad(), full({3}, 4.0 * 2 * times, DType::float64)));
}
