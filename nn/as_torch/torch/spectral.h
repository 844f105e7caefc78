// Windows, and the short-time Fourier transform and its inverse.
#pragma once
#include <torch/exceptions.h>
#include <torch/functions.h>

#include <cmath>
#include <numbers>
#include <string_view>

namespace torch {

// ---- Windows (each of N values; a periodic one is that of N + 1 without its last) ----------------------------------
namespace detail {
/// Calls f with n / N for each n, of the dtype that the options state; 16-bit ones are computed in double.
template <class F>
Tensor window(const char* op, int64_t length, bool periodic, const TensorOptions& o, F f) {
  TORCH_CHECK(length >= 0, op, " requires non-negative window_length, got window_length=", length);
  TORCH_CHECK(vesta::is_float(o.dtype()), op, " expects floating point dtypes, got: ", o);
  if (length <= 1) return torch::ones({length}, o);
  const bool narrow = o.dtype() == kHalf || o.dtype() == kBFloat16;
  const TensorOptions plain = TensorOptions(narrow ? kDouble : o.dtype()).device(optional<Device>(o.device()));
  return o.finish(f(torch::arange(length, plain).div_(periodic ? length : length - 1)).to(o.dtype()));
}
/// Makes a window as a sum of cosines: a[0] - a[1] cos(2 pi n / N) + a[2] cos(4 pi n / N).
inline Tensor cosine_window(const char* op, int64_t length, bool periodic, const TensorOptions& o, double a0, double a1,
                            double a2 = 0) {
  return window(op, length, periodic, o, [=](const Tensor& n) {
    const Tensor angle = n * (2 * std::numbers::pi), w = angle.cos().mul_(-a1).add_(a0);
    return a2 == 0 ? w : w.add_(angle.mul(2).cos_(), a2);
  });
}
}  // namespace detail

inline Tensor hann_window(int64_t length, bool periodic = true, const TensorOptions& o = {}) {
  return detail::cosine_window("hann_window", length, periodic, o, 0.5, 0.5);
}
inline Tensor hamming_window(int64_t length, bool periodic = true, double alpha = 0.54, double beta = 0.46,
                             const TensorOptions& o = {}) {
  return detail::cosine_window("hamming_window", length, periodic, o, alpha, beta);
}
inline Tensor blackman_window(int64_t length, bool periodic = true, const TensorOptions& o = {}) {
  return detail::cosine_window("blackman_window", length, periodic, o, 0.42, 0.5, 0.08);
}
inline Tensor bartlett_window(int64_t length, bool periodic = true, const TensorOptions& o = {}) {
  return detail::window("bartlett_window", length, periodic, o, [](const Tensor& n) { return 1 - (n * 2 - 1).abs_(); });
}
inline Tensor kaiser_window(int64_t length, bool periodic = true, double beta = 12, const TensorOptions& o = {}) {
  return detail::window("kaiser_window", length, periodic, o, [=](const Tensor& n) {
    const Tensor shape = (1 - (n * 2 - 1).square_()).clamp_min_(0).sqrt_().mul_(beta).i0_();
    return shape.div_(std::cyl_bessel_i(0, std::abs(beta)));
  });
}
inline Tensor hann_window(int64_t length, const TensorOptions& o) { return hann_window(length, true, o); }
inline Tensor blackman_window(int64_t length, const TensorOptions& o) { return blackman_window(length, true, o); }
inline Tensor bartlett_window(int64_t length, const TensorOptions& o) { return bartlett_window(length, true, o); }
inline Tensor hamming_window(int64_t length, const TensorOptions& o) {
  return hamming_window(length, true, 0.54, 0.46, o);
}
inline Tensor hamming_window(int64_t length, bool periodic, const TensorOptions& o) {
  return hamming_window(length, periodic, 0.54, 0.46, o);
}
inline Tensor hamming_window(int64_t length, bool periodic, double alpha, const TensorOptions& o) {
  return hamming_window(length, periodic, alpha, 0.46, o);
}
inline Tensor kaiser_window(int64_t length, const TensorOptions& o) { return kaiser_window(length, true, 12, o); }
inline Tensor kaiser_window(int64_t length, bool periodic, const TensorOptions& o) {
  return kaiser_window(length, periodic, 12, o);
}

// ---- Transforms of frames ------------------------------------------------------------------------------------------
namespace detail {

/// The distance between frames and the window, which stands in the middle of n_fft values.
struct Frames {
  int64_t hop;
  Tensor window;
};
inline Frames frames_of(const char* op, int64_t n_fft, optional<int64_t> hop_length, optional<int64_t> win_length,
                        const optional<Tensor>& window, Dtype dtype, Device device) {
  const int64_t hop = hop_length.value_or(n_fft / 4), length = win_length.value_or(n_fft);
  TORCH_CHECK(n_fft > 0 && hop > 0 && length > 0 && length <= n_fft, op,
              ": expected n_fft > 0, hop_length > 0 and 0 < win_length <= n_fft, got n_fft=", n_fft,
              ", hop_length=", hop, ", win_length=", length);
  const bool given = window && window->defined();
  TORCH_CHECK(!given || (window->dim() == 1 && window->size(0) == length), op,
              ": expected a 1D window tensor of size equal to win_length=", length, ", but got window with size ",
              given ? window->sizes() : IntArrayRef());
  const Tensor weights = given ? *window : vesta::ones({length}, dtype, device);
  const int64_t left = (n_fft - length) / 2;
  return {hop, length == n_fft ? weights : vesta::constant_pad_nd(weights, {left, n_fft - length - left})};
}

}  // namespace detail

/// Returns the Fourier transforms [*, F, T] of windowed frames of a signal [*, T0], as complex values or as pairs.
/// `center` pads the signal by n_fft / 2 at both ends as pad_mode says. Error: sizes do not fit, or return_complex is
/// not given for a real signal.
inline Tensor stft(const Tensor& self, int64_t n_fft, optional<int64_t> hop_length = {},
                   optional<int64_t> win_length = {}, const optional<Tensor>& window = {}, bool center = true,
                   std::string_view pad_mode = "reflect", bool normalized = false, optional<bool> onesided = {},
                   optional<bool> return_complex = {}, optional<bool> align_to_window = {}) {
  TORCH_CHECK(self.defined(), "stft: expected a defined tensor.");
  TORCH_CHECK(!align_to_window.value_or(false), "stft: align_to_window is not available.");
  TORCH_CHECK(self.is_floating_point() || self.is_complex(),
              "stft: expected a tensor of floating point or complex values, got ", self.dtype(), ".");
  TORCH_CHECK(self.dim() == 1 || self.dim() == 2, "stft: expected a 1D or 2D tensor, but got ", self.dim(), "D tensor");
  const detail::Frames made =
      detail::frames_of("stft", n_fft, hop_length, win_length, window, self.dtype(), self.device());
  const bool real = !self.is_complex() && !made.window.is_complex();
  TORCH_CHECK(return_complex || !real, "stft requires the return_complex parameter be given for real inputs.");
  TORCH_CHECK(real || !onesided.value_or(false), "Cannot have onesided output if window or input is complex");
  Tensor signal = self.dim() == 2 ? self : self.unsqueeze(0);
  if (center) signal = vesta::pad(signal.unsqueeze(1), {n_fft / 2, n_fft / 2}, pad_mode).squeeze(1);
  TORCH_CHECK(signal.size(1) >= n_fft, "stft: expected 0 < n_fft <= ", signal.size(1), ", but got n_fft=", n_fft);
  const Tensor frames = signal.unfold(1, n_fft, made.hop) * made.window;
  const vesta::MaybeText norm = normalized ? vesta::MaybeText("ortho") : vesta::MaybeText();
  const Tensor spectrum =
      onesided.value_or(real) ? vesta::fft::rfft(frames, {}, -1, norm) : vesta::fft::fft(frames, {}, -1, norm);
  const Tensor result = self.dim() == 2 ? spectrum.transpose(1, 2) : spectrum.transpose(1, 2).squeeze(0);
  return return_complex.value_or(true) ? result : vesta::view_as_real(result.contiguous());
}
/// The same without `center`.
inline Tensor stft(const Tensor& self, int64_t n_fft, optional<int64_t> hop_length, optional<int64_t> win_length,
                   const optional<Tensor>& window, bool normalized, optional<bool> onesided = {},
                   optional<bool> return_complex = {}, optional<bool> align_to_window = {}) {
  return stft(self, n_fft, hop_length, win_length, window, false, "reflect", normalized, onesided, return_complex,
              align_to_window);
}

/// Returns the signal [*, T0] whose stft() is nearest to `self` [*, F, T] (Griffin and Lim, "Signal estimation from
/// modified short-time Fourier transform", 1984), cut or padded with zeros to `length`. Error: sizes do not fit, or
/// some values are under no window.
inline Tensor istft(const Tensor& self, int64_t n_fft, optional<int64_t> hop_length = {},
                    optional<int64_t> win_length = {}, const optional<Tensor>& window = {}, bool center = true,
                    bool normalized = false, optional<bool> onesided = {}, optional<int64_t> length = {},
                    bool return_complex = false) {
  TORCH_CHECK(self.defined(), "istft: expected a defined tensor.");
  TORCH_CHECK(self.is_complex(),
              "istft requires a complex-valued input tensor matching the output from stft with return_complex=True.");
  TORCH_CHECK(self.numel() > 0 && (self.dim() == 2 || self.dim() == 3),
              "istft: expected a tensor with 2 or 3 dimensions and elements, got ", self.sizes());
  const detail::Frames made = detail::frames_of("istft", n_fft, hop_length, win_length, window,
                                                self.dtype() == kComplexDouble ? kDouble : kFloat, self.device());
  const bool half = onesided.value_or(self.size(-2) != n_fft);
  const int64_t expected = half ? n_fft / 2 + 1 : n_fft;
  TORCH_CHECK(self.size(-2) == expected, "istft: expected the frequency dimension (3rd to the last) of the input ",
              "tensor to match n_fft: ", expected, ", but got ", self.size(-2));
  TORCH_CHECK(!return_complex || !half, "istft: cannot return complex values of a onesided transform");
  const Tensor spectrum = (self.dim() == 3 ? self : self.unsqueeze(0)).transpose(1, 2);
  const vesta::MaybeText norm = normalized ? vesta::MaybeText("ortho") : vesta::MaybeText();
  const Tensor frames = return_complex ? vesta::fft::ifft(spectrum, {}, -1, norm)
                                       : vesta::fft::irfft(spectrum.narrow(-1, 0, n_fft / 2 + 1), n_fft, -1, norm);
  const int64_t batch = frames.size(0), count = frames.size(1), total = n_fft + made.hop * (count - 1);
  const auto counted = [&](int64_t n) { return vesta::arange(n, kLong, self.device()); };
  const Tensor at = (counted(count).unsqueeze(1) * made.hop + counted(n_fft)).flatten();
  const Tensor values = (frames * made.window).reshape({batch, -1});
  const Tensor power = (made.window * made.window).expand({count, n_fft}).flatten();
  Tensor sums = values.new_zeros({batch, total}).index_add(1, at, values);
  Tensor envelope = power.new_zeros({total}).index_add(0, at, power);
  const int64_t start = center ? n_fft / 2 : 0;
  const int64_t end = length ? std::min(start + *length, total) : center ? total - n_fft / 2 : total;
  sums = sums.slice(1, start, end), envelope = envelope.slice(0, start, end);
  TORCH_CHECK(envelope.numel() == 0 || envelope.abs().min().item<double>() > 1e-11,
              "istft: window overlap add min: 1, some points of the signal lie under no window");
  Tensor result = sums / envelope;
  if (length && *length > result.size(1)) result = vesta::constant_pad_nd(result, {0, *length - result.size(1)});
  return self.dim() == 3 ? result : result.squeeze(0);
}

}  // namespace torch

namespace vesta {

inline Tensor Tensor::stft(int64_t n_fft, MaybeInt hop_length, MaybeInt win_length, const std::optional<Tensor>& window,
                           bool center, std::string_view pad_mode, bool normalized, std::optional<bool> onesided,
                           std::optional<bool> return_complex, std::optional<bool> align_to_window) const {
  return torch::stft(*this, n_fft, hop_length, win_length, window, center, pad_mode, normalized, onesided,
                     return_complex, align_to_window);
}
inline Tensor Tensor::stft(int64_t n_fft, MaybeInt hop_length, MaybeInt win_length, const std::optional<Tensor>& window,
                           bool normalized, std::optional<bool> onesided, std::optional<bool> return_complex,
                           std::optional<bool> align_to_window) const {
  return torch::stft(*this, n_fft, hop_length, win_length, window, normalized, onesided, return_complex,
                     align_to_window);
}
inline Tensor Tensor::istft(int64_t n_fft, MaybeInt hop_length, MaybeInt win_length,
                            const std::optional<Tensor>& window, bool center, bool normalized,
                            std::optional<bool> onesided, MaybeInt length, bool return_complex) const {
  return torch::istft(*this, n_fft, hop_length, win_length, window, center, normalized, onesided, length,
                      return_complex);
}

}  // namespace vesta
