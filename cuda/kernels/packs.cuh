// Packs: elements that a thread loads and stores at once, and their conversion. Two 16-bit floats lie in a word, and
// are converted there: one instruction for each to float, half of one back.
#pragma once
#include <vesta/cuda/kernels/types.cuh>

namespace vesta::cuda {

/// N elements that are loaded and stored at once.
template <class T, int N>
struct alignas(N * sizeof(T) <= 16 ? N * sizeof(T) : 16) Elements {
  T v[N];
};

#ifdef __CUDA_ARCH__
inline constexpr bool kOnGpu = true;
VESTA_DEVICE float float_of_bits(unsigned bits) { return __uint_as_float(bits); }
/// Rounds two floats to 16 bits, `low` into the low half of a word.
template <class T>
VESTA_DEVICE unsigned two_rounded(float low, float high) {
  unsigned word;
  if constexpr (std::is_same_v<T, BFloat16>) asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(word) : "f"(high), "f"(low));
  else asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(word) : "f"(high), "f"(low));
  return word;
}
#else
inline constexpr bool kOnGpu = false;
VESTA_DEVICE float float_of_bits(unsigned bits) { return __builtin_bit_cast(float, bits); }
template <class T>
VESTA_DEVICE unsigned two_rounded(float low, float high) {
  return unsigned(T(low).bits) | unsigned(T(high).bits) << 16;
}
#endif

/// Converts a pack to the type of the computation, exactly.
template <class T, int N>
VESTA_DEVICE void widen(const Elements<T, N>& from, compute_of<T>* to) {
  if constexpr (kOnGpu && std::is_same_v<T, BFloat16> && N % 2 == 0) {
    unsigned words[N / 2];
    __builtin_memcpy(words, &from, sizeof words);
    VESTA_UNROLL
    for (int j = 0; j < N / 2; ++j) {
      to[2 * j] = float_of_bits(words[j] << 16), to[2 * j + 1] = float_of_bits(words[j] & 0xffff0000u);
    }
  } else {
    VESTA_UNROLL
    for (int j = 0; j < N; ++j) to[j] = convert<compute_of<T>>(from.v[j]);
  }
}

/// Rounds a pack to T, as convert does.
template <class T, int N>
VESTA_DEVICE Elements<T, N> narrowed(const compute_of<T>* from) {
  Elements<T, N> pack;
  if constexpr (kOnGpu && is_half_type<T> && N % 2 == 0) {
    unsigned words[N / 2];
    VESTA_UNROLL
    for (int j = 0; j < N / 2; ++j) words[j] = two_rounded<T>(from[2 * j], from[2 * j + 1]);
    __builtin_memcpy(&pack, words, sizeof words);
  } else {
    VESTA_UNROLL
    for (int j = 0; j < N; ++j) pack.v[j] = convert<T>(from[j]);
  }
  return pack;
}

/// Stores an aligned pack in device memory by one instruction, where nvcc would store each element.
template <class T, int N>
VESTA_DEVICE void store_whole(T* to, const Elements<T, N>& pack) {
#ifdef __CUDA_ARCH__
  if constexpr (sizeof pack % 16 == 0) {
    unsigned words[sizeof pack / 4];
    __builtin_memcpy(words, &pack, sizeof pack);
    VESTA_UNROLL
    for (unsigned i = 0; i < sizeof pack / 4; i += 4) {
      asm volatile("st.global.v4.b32 [%0], {%1, %2, %3, %4};"
                   :
                   : "l"(reinterpret_cast<char*>(to) + 4 * i), "r"(words[i]), "r"(words[i + 1]), "r"(words[i + 2]),
                     "r"(words[i + 3])
                   : "memory");
    }
  } else
#endif
    *reinterpret_cast<Elements<T, N>*>(to) = pack;
}

/// Returns the larger of two, or the smaller; NaN if there is one. For floats one instruction, so that which of two
/// zeros it returns is unspecified.
template <bool smallest = false, class C>
VESTA_DEVICE C extremum(C a, C b) {
#ifdef __CUDA_ARCH__
  if constexpr (std::is_same_v<C, float>) {
    float r;
    if constexpr (smallest) asm("min.NaN.f32 %0, %1, %2;" : "=f"(r) : "f"(a), "f"(b));
    else asm("max.NaN.f32 %0, %1, %2;" : "=f"(r) : "f"(a), "f"(b));
    return r;
  } else
#endif
    return smallest ? math::minimum(a, b) : math::maximum(a, b);
}
/// Returns the same for the N values of a pack, as a tree.
template <int N, bool smallest = false, class C>
VESTA_DEVICE C pack_extremum(const C* v) {
  if constexpr (N == 1) return v[0];
  else return extremum<smallest>(pack_extremum<N / 2, smallest>(v), pack_extremum<N / 2, smallest>(v + N / 2));
}

}  // namespace vesta::cuda
