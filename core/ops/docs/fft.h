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
inline constexpr char fft_fft[] =
    "fft.fft(input, n=None, dim=-1, norm=None): the discrete Fourier transform, along `dim`. "
    "n: the size of the dimension, padded with zeros or trimmed to first. norm: as for fft.rfft2.";
inline constexpr char fft_fft2[] =
    "fft.fft2(input, s=None, dim=(-2, -1), norm=None): the discrete Fourier transform, over two dimensions. "
    "s: the sizes of the dimensions, padded with zeros or trimmed to first. norm: as for fft.rfft2.";
inline constexpr char fft_fftn[] =
    "fft.fftn(input, s=None, dim=None, norm=None): the discrete Fourier transform, over several dimensions (dim=None: "
    "all, or the last len(s)). "
    "s: the sizes of the dimensions, padded with zeros or trimmed to first. norm: as for fft.rfft2.";
inline constexpr char fft_ifft[] =
    "fft.ifft(input, n=None, dim=-1, norm=None): the inverse of fft, along `dim`. "
    "n: the size of the dimension, padded with zeros or trimmed to first. norm: as for fft.rfft2.";
inline constexpr char fft_ifft2[] =
    "fft.ifft2(input, s=None, dim=(-2, -1), norm=None): the inverse of fft, over two dimensions. "
    "s: the sizes of the dimensions, padded with zeros or trimmed to first. norm: as for fft.rfft2.";
inline constexpr char fft_ifftn[] =
    "fft.ifftn(input, s=None, dim=None, norm=None): the inverse of fft, over several dimensions (dim=None: all, or the "
    "last len(s)). "
    "s: the sizes of the dimensions, padded with zeros or trimmed to first. norm: as for fft.rfft2.";
inline constexpr char fft_rfft[] =
    "fft.rfft(input, n=None, dim=-1, norm=None): the frequencies 0 to size // 2 of the transform of real values, along "
    "`dim`. "
    "n: the size of the dimension, padded with zeros or trimmed to first. norm: as for fft.rfft2.";
inline constexpr char fft_rfftn[] =
    "fft.rfftn(input, s=None, dim=None, norm=None): the frequencies 0 to size // 2 of the transform of real values, "
    "over several dimensions (dim=None: all, or the last len(s)). "
    "s: the sizes of the dimensions, padded with zeros or trimmed to first. norm: as for fft.rfft2.";
inline constexpr char fft_irfft[] =
    "fft.irfft(input, n=None, dim=-1, norm=None): the inverse of rfft: real values, along `dim`. "
    "n: the size of the dimension of the result. norm: as for fft.rfft2.";
inline constexpr char fft_irfft2[] =
    "fft.irfft2(input, s=None, dim=(-2, -1), norm=None): the inverse of rfft: real values, over two dimensions. "
    "s: the sizes of the dimensions of the result. norm: as for fft.rfft2.";
inline constexpr char fft_irfftn[] =
    "fft.irfftn(input, s=None, dim=None, norm=None): the inverse of rfft: real values, over several dimensions "
    "(dim=None: all, or the last len(s)). "
    "s: the sizes of the dimensions of the result. norm: as for fft.rfft2.";
inline constexpr char fft_hfft[] =
    "fft.hfft(input, n=None, dim=-1, norm=None): the real transform of a Hermitian signal, of which the first half is "
    "given, along `dim`. "
    "n: the size of the dimension of the result. norm: as for fft.rfft2.";
inline constexpr char fft_hfft2[] =
    "fft.hfft2(input, s=None, dim=(-2, -1), norm=None): the real transform of a Hermitian signal, of which the first "
    "half is given, over two dimensions. "
    "s: the sizes of the dimensions of the result. norm: as for fft.rfft2.";
inline constexpr char fft_hfftn[] =
    "fft.hfftn(input, s=None, dim=None, norm=None): the real transform of a Hermitian signal, of which the first half "
    "is given, over several dimensions (dim=None: all, or the last len(s)). "
    "s: the sizes of the dimensions of the result. norm: as for fft.rfft2.";
inline constexpr char fft_ihfft[] =
    "fft.ihfft(input, n=None, dim=-1, norm=None): the inverse of hfft: the first half, along `dim`. "
    "n: the size of the dimension, padded with zeros or trimmed to first. norm: as for fft.rfft2.";
inline constexpr char fft_ihfft2[] =
    "fft.ihfft2(input, s=None, dim=(-2, -1), norm=None): the inverse of hfft: the first half, over two dimensions. "
    "s: the sizes of the dimensions, padded with zeros or trimmed to first. norm: as for fft.rfft2.";
inline constexpr char fft_ihfftn[] =
    "fft.ihfftn(input, s=None, dim=None, norm=None): the inverse of hfft: the first half, over several dimensions "
    "(dim=None: all, or the last len(s)). "
    "s: the sizes of the dimensions, padded with zeros or trimmed to first. norm: as for fft.rfft2.";
inline constexpr char fft_fftshift[] =
    "fft.fftshift(input, dim=None): the frequencies of fft in rising order: 0 moves to the middle of each dimension.";
inline constexpr char fft_ifftshift[] = "fft.ifftshift(input, dim=None): the inverse of fft.fftshift.";
inline constexpr char fft_fftfreq[] =
    "fft.fftfreq(n, d=1.0, *, dtype=None, device=None): the frequencies of fft of n samples at a distance of d, [n].";
inline constexpr char fft_rfftfreq[] =
    "fft.rfftfreq(n, d=1.0, *, dtype=None, device=None): the frequencies of rfft, [n // 2 + 1].";

}  // namespace vesta::doc
