// The op list, discrete Fourier transforms. See README.md.
#pragma once

// clang-format off
#define VESTA_OPS_FFT(OP)                                                                                              \
  OP(FUNCTION, Tensor, _fft_r2c, (const Tensor& input, IntList dim, int64_t normalization, bool onesided),             \
     (input, dim, normalization, onesided), hidden, accepts(kBool | kIntegers | kWideFloats), gives(Gives::complex))   \
  OP(FUNCTION, Tensor, _fft_c2r, (const Tensor& input, IntList dim, int64_t normalization, int64_t last_dim_size),     \
     (input, dim, normalization, last_dim_size), hidden, accepts(kBool | kIntegers | kWideFloats),                     \
     gives(Gives::complex))                                                                                            \
  OP(FUNCTION, Tensor, _fft_c2c, (const Tensor& input, IntList dim, int64_t normalization, bool forward),              \
     (input, dim, normalization, forward), hidden, accepts(kBool | kIntegers | kWideFloats), gives(Gives::complex))    \
  OP(IN, fft, Tensor, rfft2,                                                                                           \
     (const Tensor& input, const MaybeDims& s = {}, IntList dim = {-2, -1}, MaybeText norm = {}),                      \
     (input, s, dim, norm), composite, out, accepts(kBool | kIntegers | kWideFloats), gives(Gives::complex))           \
  OP(IN, fft, Tensor, fft, (const Tensor& input, MaybeInt n = {}, int64_t dim = -1, MaybeText norm = {}),              \
     (input, n, dim, norm), composite, out, accepts(kBool | kIntegers | kWideFloats | kComplexes),                     \
     gives(Gives::complex))                                                                                            \
  OP(IN, fft, Tensor, fft2,                                                                                            \
     (const Tensor& input, const MaybeDims& s = {}, IntList dim = {-2, -1}, MaybeText norm = {}),                      \
     (input, s, dim, norm), composite, out, accepts(kBool | kIntegers | kWideFloats | kComplexes),                     \
     gives(Gives::complex))                                                                                            \
  OP(IN, fft, Tensor, fftn,                                                                                            \
     (const Tensor& input, const MaybeDims& s = {}, const MaybeDims& dim = {}, MaybeText norm = {}),                   \
     (input, s, dim, norm), composite, out, accepts(kBool | kIntegers | kWideFloats | kComplexes),                     \
     gives(Gives::complex))                                                                                            \
  OP(IN, fft, Tensor, ifft, (const Tensor& input, MaybeInt n = {}, int64_t dim = -1, MaybeText norm = {}),             \
     (input, n, dim, norm), composite, out, accepts(kBool | kIntegers | kWideFloats | kComplexes),                     \
     gives(Gives::complex))                                                                                            \
  OP(IN, fft, Tensor, ifft2,                                                                                           \
     (const Tensor& input, const MaybeDims& s = {}, IntList dim = {-2, -1}, MaybeText norm = {}),                      \
     (input, s, dim, norm), composite, out, accepts(kBool | kIntegers | kWideFloats | kComplexes),                     \
     gives(Gives::complex))                                                                                            \
  OP(IN, fft, Tensor, ifftn,                                                                                           \
     (const Tensor& input, const MaybeDims& s = {}, const MaybeDims& dim = {}, MaybeText norm = {}),                   \
     (input, s, dim, norm), composite, out, accepts(kBool | kIntegers | kWideFloats | kComplexes),                     \
     gives(Gives::complex))                                                                                            \
  OP(IN, fft, Tensor, rfft, (const Tensor& input, MaybeInt n = {}, int64_t dim = -1, MaybeText norm = {}),             \
     (input, n, dim, norm), composite, out, accepts(kBool | kIntegers | kWideFloats), gives(Gives::complex))           \
  OP(IN, fft, Tensor, rfftn,                                                                                           \
     (const Tensor& input, const MaybeDims& s = {}, const MaybeDims& dim = {}, MaybeText norm = {}),                   \
     (input, s, dim, norm), composite, out, accepts(kBool | kIntegers | kWideFloats), gives(Gives::complex))           \
  OP(IN, fft, Tensor, irfft, (const Tensor& input, MaybeInt n = {}, int64_t dim = -1, MaybeText norm = {}),            \
     (input, n, dim, norm), composite, out, accepts(kBool | kIntegers | kWideFloats | kComplexes),                     \
     gives(Gives::real_floating))                                                                                      \
  OP(IN, fft, Tensor, irfft2,                                                                                          \
     (const Tensor& input, const MaybeDims& s = {}, IntList dim = {-2, -1}, MaybeText norm = {}),                      \
     (input, s, dim, norm), composite, out, accepts(kBool | kIntegers | kWideFloats | kComplexes),                     \
     gives(Gives::real_floating))                                                                                      \
  OP(IN, fft, Tensor, irfftn,                                                                                          \
     (const Tensor& input, const MaybeDims& s = {}, const MaybeDims& dim = {}, MaybeText norm = {}),                   \
     (input, s, dim, norm), composite, out, accepts(kBool | kIntegers | kWideFloats | kComplexes),                     \
     gives(Gives::real_floating))                                                                                      \
  OP(IN, fft, Tensor, hfft, (const Tensor& input, MaybeInt n = {}, int64_t dim = -1, MaybeText norm = {}),             \
     (input, n, dim, norm), composite, out, accepts(kBool | kIntegers | kWideFloats | kComplexes),                     \
     gives(Gives::real_floating))                                                                                      \
  OP(IN, fft, Tensor, hfft2,                                                                                           \
     (const Tensor& input, const MaybeDims& s = {}, IntList dim = {-2, -1}, MaybeText norm = {}),                      \
     (input, s, dim, norm), composite, out, accepts(kBool | kIntegers | kWideFloats | kComplexes),                     \
     gives(Gives::real_floating))                                                                                      \
  OP(IN, fft, Tensor, hfftn,                                                                                           \
     (const Tensor& input, const MaybeDims& s = {}, const MaybeDims& dim = {}, MaybeText norm = {}),                   \
     (input, s, dim, norm), composite, out, accepts(kBool | kIntegers | kWideFloats | kComplexes),                     \
     gives(Gives::real_floating))                                                                                      \
  OP(IN, fft, Tensor, ihfft, (const Tensor& input, MaybeInt n = {}, int64_t dim = -1, MaybeText norm = {}),            \
     (input, n, dim, norm), composite, out, accepts(kBool | kIntegers | kWideFloats), gives(Gives::complex))           \
  OP(IN, fft, Tensor, ihfft2,                                                                                          \
     (const Tensor& input, const MaybeDims& s = {}, IntList dim = {-2, -1}, MaybeText norm = {}),                      \
     (input, s, dim, norm), composite, out, accepts(kBool | kIntegers | kWideFloats), gives(Gives::complex))           \
  OP(IN, fft, Tensor, ihfftn,                                                                                          \
     (const Tensor& input, const MaybeDims& s = {}, const MaybeDims& dim = {}, MaybeText norm = {}),                   \
     (input, s, dim, norm), composite, out, accepts(kBool | kIntegers | kWideFloats), gives(Gives::complex))           \
  OP(IN, fft, Tensor, fftshift, (const Tensor& input, const MaybeDims& dim = {}), (input, dim), composite)             \
  OP(IN, fft, Tensor, ifftshift, (const Tensor& input, const MaybeDims& dim = {}), (input, dim), composite)            \
  OP(IN, fft, Tensor, fftfreq, (int64_t n, double d = 1.0, Kw<MaybeDType> dtype = {}, MaybeDevice device = {}),        \
     (n, d, dtype, device), composite, out, factory)                                                                   \
  OP(IN, fft, Tensor, rfftfreq, (int64_t n, double d = 1.0, Kw<MaybeDType> dtype = {}, MaybeDevice device = {}),       \
     (n, d, dtype, device), composite, out, factory)
