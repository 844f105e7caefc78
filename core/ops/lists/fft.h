// The op list, discrete Fourier transforms. See README.md.
#pragma once

// clang-format off
#define VESTA_OPS_FFT(OP)                                                                                              \
  OP(FUNCTION, Tensor, _fft_r2c, (const Tensor& input, IntList dim, int64_t normalization, bool onesided),             \
     (input, dim, normalization, onesided), hidden)                                                                    \
  OP(FUNCTION, Tensor, _fft_c2r, (const Tensor& input, IntList dim, int64_t normalization, int64_t last_dim_size),     \
     (input, dim, normalization, last_dim_size), hidden)                                                               \
  OP(FUNCTION, Tensor, _fft_c2c, (const Tensor& input, IntList dim, int64_t normalization, bool forward),              \
     (input, dim, normalization, forward), hidden)                                                                     \
  OP(IN, fft, Tensor, rfft2,                                                                                           \
     (const Tensor& input, const MaybeDims& s = {}, IntList dim = {-2, -1}, MaybeText norm = {}),                      \
     (input, s, dim, norm), composite, out)
