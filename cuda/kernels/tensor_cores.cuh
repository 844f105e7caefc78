// Products by tensor cores: a warp multiplies 16 rows with 8 columns and adds to sums in float, all in registers.
//
// With g = lane / 4 and t = lane % 4, a lane has of the sums those of rows g and g + 8, columns 2t and 2t + 1:
//
//   sum[0] = (g, 2t)   sum[1] = (g, 2t + 1)   sum[2] = (g + 8, 2t)   sum[3] = (g + 8, 2t + 1)
//
// A step takes two registers of each row (a) and column (b): 8 floats deep, a register an element, or 16 numbers of 16
// bits, a register two neighbours. Which of the terms a register holds does not matter as long as a and b agree:
//
//   a[0], a[2] = of row g   a[1], a[3] = of row g + 8   b[0], b[1] = of column g       b[i] meets a[2i] and a[2i + 1]
//
// Tensor cores take floats of 11 bits (TF32) and cut off the rest. A product of floats is therefore three: each factor
// is the sum of two such numbers, of whose four products the smallest, 2^-22 of the largest, is left out (Ootomo and
// Yokota, "Recovering single precision accuracy from Tensor Cores while avoiding the FP32 theoretical peak
// performance", 2022). Sums are cut off too, not rounded, which adds up to 2^-24 of a sum for each step: large terms
// and small ones have sums of their own, and chains are short (some steps), after which the caller adds in registers.
// An infinite factor has parts that make NaN (0 times infinity) where the product is infinite: the caller computes sums
// that are NaN again.
//
// The emulated device exchanges the same registers lane by lane, and cuts off too.
#pragma once
#include <vesta/cuda/kernels/packs.cuh>

#ifndef __CUDACC__
#include <cmath>
#endif

namespace vesta::cuda {

#ifdef __CUDACC__

/// Adds a step. All lanes of the warp take part.
template <class T>
VESTA_DEVICE void add_step(float (&sum)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
#define VESTA_STEP(shape, type)                                                                                       \
  asm("mma.sync.aligned." shape ".row.col.f32." type "." type                                                         \
      ".f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"                                                    \
      : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])                                                        \
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1))
  if constexpr (std::is_same_v<T, float>) VESTA_STEP("m16n8k8", "tf32");
  else if constexpr (std::is_same_v<T, Half>) VESTA_STEP("m16n8k16", "f16");
  else VESTA_STEP("m16n8k16", "bf16");
#undef VESTA_STEP
}
/// Loads four matrices of 8 x 8 numbers of 16 bits from shared memory, turned: lane 8m + r has the address of row r of
/// matrix m, 16 bytes, and gets of matrix m the elements of rows 2t and 2t + 1 in column g.
VESTA_DEVICE void load_turned(uint32_t (&to)[4], const void* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
               : "r"(unsigned(__cvta_generic_to_shared(row))));
}
VESTA_DEVICE uint32_t bits_of(float v) { return __float_as_uint(v); }
/// Computes 2^x to 2 units in the last place; denormal results are 0.
VESTA_DEVICE float fast_exp2(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
/// Lets the compiler not put off to compute `v` until after a branch, across which it would keep all that v needs.
VESTA_DEVICE void compute_here(float& v) { asm volatile("" : "+f"(v)); }
/// Copies `bytes` to shared memory, and zeros up to `size` (4 or 16), of which both addresses are multiples. The copy
/// is there after wait_copies() of this thread.
template <int size>
VESTA_DEVICE void start_copy(void* to, const void* from, int bytes) {
  const unsigned shared = unsigned(__cvta_generic_to_shared(to));
  const size_t global = __cvta_generic_to_global(from);
  if constexpr (size == 16) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared), "l"(global), "r"(bytes) : "memory");
  } else {
    asm volatile("cp.async.ca.shared.global [%0], [%1], %3, %2;" ::"r"(shared), "l"(global), "r"(bytes), "n"(size)
                 : "memory");
  }
}
VESTA_DEVICE void wait_copies() { asm volatile("cp.async.wait_all;" ::: "memory"); }

#else

/// The factors that the lanes of each warp of a block exchange.
struct GivenFactors {
  uint32_t a[4], b[2];
  const void* row;
};
inline GivenFactors given_factors[32][32];

VESTA_DEVICE uint32_t bits_of(float v) { return __builtin_bit_cast(uint32_t, v); }
VESTA_DEVICE float fast_exp2(float x) { return std::exp2(x); }
VESTA_DEVICE void compute_here(float&) {}
template <class T>
void add_step(float (&sum)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
  const unsigned lane = lane_index(), g = lane / 4, t = lane % 4;
  GivenFactors* given = given_factors[warp_index()];
  for (int i = 0; i < 4; ++i) given[lane].a[i] = a[i];
  given[lane].b[0] = b0, given[lane].b[1] = b1;
  warp_barrier();
  for (int e = 0; e < 4; ++e) {
    double total = double(sum[e]);
    for (unsigned from = 0; from < 4; ++from) {
      const GivenFactors &row = given[4 * g + from], &column = given[4 * (2 * t + unsigned(e % 2)) + from];
      for (int i = 0; i < 2; ++i) {
        const uint32_t x = row.a[2 * i + e / 2], y = column.b[i];
        if constexpr (std::is_same_v<T, float>) {
          total += double(float_of_bits(x & 0xffffe000u)) * double(float_of_bits(y & 0xffffe000u));
        } else {
          for (int half = 0; half < 2; ++half) {
            total += double(float(T::from_bits(uint16_t(x >> 16 * half)))) *
                     double(float(T::from_bits(uint16_t(y >> 16 * half))));
          }
        }
      }
    }
    sum[e] = float(total);
    if (std::isfinite(sum[e]) && std::abs(double(sum[e])) > std::abs(total)) sum[e] = std::nextafter(sum[e], 0.0f);
  }
  warp_barrier();
}
VESTA_DEVICE void load_turned(uint32_t (&to)[4], const void* row) {
  const unsigned lane = lane_index(), g = lane / 4, t = lane % 4;
  GivenFactors* given = given_factors[warp_index()];
  given[lane].row = row;
  warp_barrier();
  for (unsigned m = 0; m < 4; ++m) {
    const auto at = [&](unsigned r) { return uint32_t(static_cast<const uint16_t*>(given[8 * m + r].row)[g]); };
    to[m] = at(2 * t) | at(2 * t + 1) << 16;
  }
  warp_barrier();
}
template <int size>
VESTA_DEVICE void start_copy(void* to, const void* from, int bytes) {
  if ((reinterpret_cast<uintptr_t>(to) | reinterpret_cast<uintptr_t>(from)) % size != 0) __builtin_trap();
  __builtin_memset(to, 0, size);
  __builtin_memcpy(to, from, size_t(bytes));
}
VESTA_DEVICE void wait_copies() {}

#endif

/// Splits a float into two, whose first 11 bits sum up to it within 2^-23: those are what tensor cores take. Cut off
/// instead of rounded, `high` would be too small on average, and every product with it. Numbers below 1e-34 lose
/// digits: `low` would be smaller than any normal number.
VESTA_DEVICE void split_float(uint32_t v, uint32_t& high, uint32_t& low) {
  high = v + 0x1000u;
  low = bits_of(float_of_bits(v) - float_of_bits(high & 0xffffe000u));
}

}  // namespace vesta::cuda
