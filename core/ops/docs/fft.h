// Docs of the topic fft: what help() and the reference show.
#pragma once

namespace vesta::doc {

inline constexpr char _fft_r2c[] =
    "_fft_r2c(input, dim, normalization, onesided): forward transform of real values over `dim`; onesided leaves out "
    "the second half of the last of `dim`, which mirrors the first. normalization: 0 none, 1 by sqrt(n), 2 by n.";
inline constexpr char _fft_c2r[] =
    "_fft_c2r(input, dim, normalization, last_dim_size): backward transform over `dim` of a spectrum whose last of "
    "`dim` is the first half, last_dim_size // 2 + 1, of a Hermitian one; the result is real.";
inline constexpr char _fft_c2c[] =
    "_fft_c2c(input, dim, normalization, forward): transform of complex values over `dim`, or the backward one.";
inline constexpr char fft_rfft2[] =
    "fft.rfft2(input, s=None, dim=(-2, -1), norm=None): discrete Fourier transform of real values over two dimensions. "
    "Of the last one the result holds the frequencies 0 to size // 2; the others are their complex conjugates. s: "
    "sizes to pad with zeros or trim to first (-1: as it is). norm: 'backward' (the default) scales nothing, 'ortho' "
    "by 1 / sqrt(n), 'forward' by 1 / n. float32 or float64; integers become the default dtype.";

}  // namespace vesta::doc
