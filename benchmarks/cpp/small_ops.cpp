// Times the smallest ops and layers from C++, and serves callgrind: `small_ops add 1000` runs one op a fixed number of
// times.
//
//   build/bin/small_ops                                         nanoseconds per op
//   valgrind --tool=callgrind build/bin/small_ops add 20000     instructions: where the nanoseconds go
#include <chrono>
#include <cstdio>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include <vesta/vesta.h>

using namespace vesta;

int main(int argc, char** argv) {
  Tensor a = rand({8}), b = rand({8}), m = rand({8, 8}), w = rand({8});
  w.set_requires_grad();
  nn::Linear layer(8, 8);
  nn::Sequential layers{nn::make<nn::Linear>(8, 8), nn::make<nn::ReLU>(), nn::make<nn::Linear>(8, 8)};
  std::vector<std::pair<std::string, std::function<void()>>> cases = {
      {"add", [&] { Tensor c = a + b; }},
      {"add_recorded", [&] { Tensor c = w + b; }},
      {"mul_scalar", [&] { Tensor c = a * 2.0; }},
      {"exp", [&] { Tensor c = a.exp(); }},
      {"add_", [&] { a.add_(b); }},
      {"view", [&] { Tensor c = a.view({2, 4}); }},
      {"select", [&] { Tensor c = a.select(0, 3); }},
      {"sum", [&] { Tensor c = a.sum(); }},
      {"matmul", [&] { Tensor c = m.matmul(m); }},
      {"zeros", [&] { Tensor c = zeros({8}); }},
      {"layer", [&] { Tensor c = layer(a); }},
      {"layers", [&] { Tensor c = layers(a); }},
      {"backward",
       [&] {
         w.set_grad({});
         (w * b).sum().backward();
       }},
  };
  const long fixed = argc > 2 ? std::atol(argv[2]) : 0;
  for (auto& [name, run] : cases) {
    if (argc > 1 && name != argv[1]) continue;
    if (fixed) {
      for (long i = 0; i < fixed; ++i) run();
      continue;
    }
    double best = 1e9;
    for (int round = 0; round < 20; ++round) {
      constexpr int kCount = 20000;
      auto start = std::chrono::steady_clock::now();
      for (int i = 0; i < kCount; ++i) run();
      std::chrono::duration<double, std::nano> spent = std::chrono::steady_clock::now() - start;
      best = std::min(best, spent.count() / kCount);
    }
    std::printf("%-14s %7.1f ns\n", name.c_str(), best);
  }
}
