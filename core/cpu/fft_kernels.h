// The interface between Fourier transforms and their kernels, which transform as many lines at once as a vector has
// lanes.
#pragma once
#include <cstdint>
#include <vector>

#include <vesta/core/cpu/isa.h>

namespace vesta::cpu {

/// The widest vector, in bytes: what the buffer of a group of lines is sized by.
inline constexpr int kFftVectorBytes = 64;
/// The largest prime factor that the kernels take, and the longest transform.
inline constexpr std::int64_t kFftLargestFactor = 13, kFftLongest = 8192;

/// One pass of a transform: blocks of `length` points, transformed already, are combined to blocks of radix * length.
struct FftPass {
  int radix;
  std::int64_t length;
  std::int64_t roots;  // where its roots of unity begin in FftTables::roots
};

/// The tables of a forward transform of n points: Cooley and Tukey's decimation in time. Note [Lines in lanes]
/// (fft_lanes.h).
template <class T>
struct FftTables {
  std::int64_t n;
  std::vector<FftPass> passes;
  std::vector<std::int32_t> place;  // where point k stands before the first pass; an identity entry [n] follows
  std::vector<T> roots;  // of each pass, for p >= 1: exp(-2 pi i p j / (radix length)), j = 1 to radix - 1
  std::vector<T> halves;  // exp(-2 pi i k / (2 n)), k = 0 to n / 2: what real transforms of 2 n points need
};

/// Lines in memory: number k of line l lies at data[lanes[l] + k * step], its imaginary part `imaginary` behind it.
template <class P>
struct FftLines {
  P* data;
  const std::int64_t* lanes;
  std::int64_t step, imaginary;
};

/// The kind of a transform of a line. The tables are those of half as many points for a real line of even length.
enum class FftKind : std::uint8_t {
  complex,  // n to n points
  from_real,  // n real points to `out` points
  from_pairs,  // real points as n pairs to n + 1 points: the half spectrum of 2 n real points
  to_pairs,  // a half spectrum of n + 1 points to n pairs
  to_odd_reals,  // a half spectrum of n / 2 + 1 points to n real ones, n odd
};

/// A group of lines.
template <class T>
struct FftGroup {
  const FftTables<T>* tables;
  FftKind kind;
  bool forward;
  int lines;  // 1 to the lanes of a vector
  std::int64_t out;  // how many points are written
  FftLines<const T> from;
  FftLines<T> to;
  T scale;
  T* buffer;  // (n + 1) points of two vectors each, aligned
  const T* turns;  // n rows of complex numbers that point k of the lines is multiplied by, or null
  std::int64_t turns_row;  // numbers between rows
};

/// The kernels of one instruction set and their lanes.
struct FftKernels {
  void (*of_float)(const FftGroup<float>&);
  void (*of_double)(const FftGroup<double>&);
  int lanes_of_float;
};

}  // namespace vesta::cpu

VESTA_DECLARE_ON_ISA(void register_fft_kernels(vesta::cpu::FftKernels& kernels))
