// Matrix products of integers and complex numbers, row by row in the order of k. Internal to gemm.cpp.
#pragma once

#include <vesta/core/cpu/gemm_tasks.h>

#include <algorithm>
#include <complex>
#include <cstdint>
#include <type_traits>

namespace vesta::cpu {

/// The arithmetic of T. Integers wrap around: it is that of the unsigned type of the same width.
template <class T>
struct Arithmetic {
  using U = std::make_unsigned_t<T>;
  static void multiply_add(T& sum, T a, T b) {
    sum = static_cast<T>(static_cast<U>(static_cast<U>(sum) + static_cast<std::uint64_t>(static_cast<U>(a)) *
                                                                  static_cast<std::uint64_t>(static_cast<U>(b))));
  }
  static T add(T a, T b) { return static_cast<T>(static_cast<U>(static_cast<U>(a) + static_cast<U>(b))); }
};

template <class T>
struct Arithmetic<std::complex<T>> {
  using C = std::complex<T>;
  static void multiply_add(C& sum, C a, C b) {
    sum = C(sum.real() + (a.real() * b.real() - a.imag() * b.imag()),
            sum.imag() + (a.real() * b.imag() + a.imag() * b.real()));
  }
  static C add(C a, C b) { return a + b; }
};

/// Computes one row of a product: c[j] += a[k] * b[k, j] for k in order.
template <class T>
void multiply_row(const Matrices<T>& p, std::int64_t i) {
  T* const c = p.c + i * p.c_row;
  if (!p.accumulate) std::fill(c, c + p.n, T(0));
  for (std::int64_t k = 0; k < p.k; ++k) {
    const T a = p.a[i * p.a_row + k * p.a_col];
    const T* const b = p.b + k * p.b_row;
    if (p.b_col == 1) {
      for (std::int64_t j = 0; j < p.n; ++j) Arithmetic<T>::multiply_add(c[j], a, b[j]);
    } else {
      for (std::int64_t j = 0; j < p.n; ++j) Arithmetic<T>::multiply_add(c[j], a, b[j * p.b_col]);
    }
  }
  if (p.bias != nullptr) {
    for (std::int64_t j = 0; j < p.n; ++j) c[j] = Arithmetic<T>::add(c[j], p.bias[j]);
  }
}

/// Computes the products.
template <class T>
void exact_gemm(const Gemm& args) {
  const Matrices<T> p = typed<T>(args);
  const BatchSteps steps{args.batch};
  const std::int64_t grain = std::max<std::int64_t>(1, 65536 / std::max<std::int64_t>(p.n * p.k, 1));
  parallel_for(steps.count() * p.m, grain, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t t = begin; t < end; ++t) multiply_row(shifted(p, steps.at(t / p.m)), t % p.m);
  });
}

}  // namespace vesta::cpu
