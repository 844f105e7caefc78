// Times the vector functions of core/cpu/simd.h on one core, beside SLEEF's where the function is our own: nanoseconds
// per element, the best of many passes, over arrays that fit the first cache and over 2^20 numbers.
//
//   cmake --build build --target benchmarks && taskset -c 0 build/bin/simd_functions_avx2 [name]
#include <vesta/core/base/philox.h>
#include <vesta/core/cpu/simd.h>
#include <vesta/core/ops/math.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <vector>

namespace {

namespace simd = vesta::cpu::VESTA_ISA_NS;
namespace math = vesta::math;
using simd::Vec;

const char* wanted = nullptr;

template <class T, class F>
__attribute__((noinline)) void run(const T* x, T* y, std::int64_t n, F function) {
  for (std::int64_t i = 0; i + Vec<T>::N <= n; i += Vec<T>::N) function(Vec<T>::load(x + i)).store(y + i);
}

// Returns the nanoseconds per element of `pass`, which processes n elements: the best of `passes`.
template <class F>
double best_time(F pass, std::int64_t n, int passes) {
  double best = 1e30;
  for (int i = 0; i < passes; ++i) {
    const auto start = std::chrono::steady_clock::now();
    pass();
    const std::chrono::duration<double, std::nano> taken = std::chrono::steady_clock::now() - start;
    best = std::min(best, taken.count() / static_cast<double>(n));
  }
  return best;
}

template <class T, class F>
void measure(const char* name, F function, double low, double high) {
  if (wanted != nullptr && std::strstr(name, wanted) == nullptr) return;
  double times[2];
  const std::int64_t sizes[2] = {4096, 1 << 20};
  for (int k = 0; k < 2; ++k) {
    std::vector<T> x(static_cast<std::size_t>(sizes[k])), y(x.size());
    vesta::random_fill<T, false>(1, 0, 0, sizes[k], x.data());
    for (T& value : x) value = static_cast<T>(low + (high - low) * static_cast<double>(value));
    times[k] = best_time([&] { run<T>(x.data(), y.data(), sizes[k], function); }, sizes[k], k == 0 ? 1000 : 40);
  }
  const char* type = sizeof(T) == 4 ? "float" : "double";
  std::printf("%-18s %-6s  4096: %7.3f   2^20: %7.3f ns\n", name, type, times[0], times[1]);
}

template <class T, bool Normal>
void measure_random(const char* name) {
  if (wanted != nullptr && std::strstr(name, wanted) == nullptr) return;
  std::vector<T> y(1 << 20);
  const auto n = static_cast<std::int64_t>(y.size());
  const double time = best_time([&] { vesta::random_fill<T, Normal>(1, 2, 0, n, y.data()); }, n, 20);
  std::printf("%-18s %-6s                  2^20: %7.3f ns\n", name, sizeof(T) == 4 ? "float" : "double", time);
}

}  // namespace

#define BOTH(name, low, high)                                                                  \
  measure<float>(#name, [](Vec<float> x) { return math::name(x); }, low, high);                \
  measure<double>(#name, [](Vec<double> x) { return math::name(x); }, low, high)
#define OWN(name, low, high)                                                                   \
  BOTH(name, low, high);                                                                       \
  measure<float>(#name " (SLEEF)", [](Vec<float> x) { return simd::sleef::name(x); }, low, high)

int main(int argc, char* argv[]) {
  if (argc > 1) wanted = argv[1];
  measure<float>("copy", [](Vec<float> x) { return x; }, 0, 1);
  OWN(exp, -10, 10);
  OWN(expm1, -10, 10);
  OWN(log, 0.01, 100);
  OWN(tanh, -5, 5);
  OWN(erf, -5, 5);
  OWN(erfc, -5, 5);
  BOTH(normal_cdf, -5, 5);
  BOTH(sigmoid, -10, 10);
  BOTH(exp2, -10, 10);
  BOTH(log2, 0.01, 100);
  BOTH(log10, 0.01, 100);
  BOTH(log1p, -0.9, 100);
  BOTH(sqrt, 0, 10);
  BOTH(rsqrt, 0.1, 10);
  BOTH(cbrt, -10, 10);
  BOTH(sin, -10, 10);
  BOTH(cos, -10, 10);
  BOTH(tan, -10, 10);
  BOTH(asin, -1, 1);
  BOTH(acos, -1, 1);
  BOTH(atan, -10, 10);
  BOTH(sinh, -10, 10);
  BOTH(cosh, -10, 10);
  BOTH(asinh, -10, 10);
  BOTH(acosh, 1, 10);
  BOTH(atanh, -1, 1);
  BOTH(lgamma, -5, 5);
  BOTH(floor, -10, 10);
  BOTH(round, -10, 10);
  measure<float>("pow(x, 1.7)", [](Vec<float> x) { return math::pow(x, Vec<float>(1.7f)); }, 0, 5);
  measure<double>("pow(x, 1.7)", [](Vec<double> x) { return math::pow(x, Vec<double>(1.7)); }, 0, 5);
  measure<float>("fmod(x, 1.5)", [](Vec<float> x) { return math::fmod(x, Vec<float>(1.5f)); }, 0, 100);
  measure<float>("atan2(x, 1.5)", [](Vec<float> x) { return math::atan2(x, Vec<float>(1.5f)); }, -5, 5);
  measure<float>("hypot(x, 1.5)", [](Vec<float> x) { return math::hypot(x, Vec<float>(1.5f)); }, -5, 5);
  measure_random<float, false>("uniform");
  measure_random<float, true>("normal");
  measure_random<double, false>("uniform");
  measure_random<double, true>("normal");
  return 0;
}
