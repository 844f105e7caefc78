// Reading images at positions of a grid, block by block of positions. With channels last the kernels read pixels, and a
// block's outputs are transposed in the cache: they are planes in any case, as PyTorch's are.
#include <algorithm>
#include <limits>

#include <vesta/core/cpu/copy.h>
#include <vesta/core/cpu/grid_sample_kernels.h>
#include <vesta/core/cpu/parallel.h>
#include <vesta/core/cpu/register.h>
#include <vesta/core/cpu/scratch.h>
#include <vesta/core/cpu/tensor_memory.h>
#include <vesta/core/dtype_set.h>
#include <vesta/core/ops/copy_values.h>
#include <vesta/core/ops/grid_sample.h>
#include <vesta/core/ops/memory_format.h>

namespace vesta::cpu {
namespace {

constexpr int64_t kChannels = 64;  // of pixels, that are computed together: a block of outputs stays in the cache
constexpr int64_t kFewChannels = 8;  // of pixels, below which each channel is a plane of its own

GridSampleKernels<float> single_samplers;
GridSampleKernels<double> double_samplers;
template <class T>
const GridSampleKernels<T>& sample_kernels() {
  if constexpr (std::is_same_v<T, float>) return single_samplers;
  else return double_samplers;
}

/// The operands in the dtype of computation. Images are dense, planes or pixels; the grid is contiguous.
template <class T>
class Sampler {
 public:
  Sampler(const GridSampling& sizes, const Tensor& input, const Tensor& grid)
      : s_(sizes),
        last_(suggests_channels_last(input)),
        by_pixels_(last_ && s_.channels >= kFewChannels),
        image_{s_.rows<T>(), s_.columns<T>(), s_.width, last_ ? s_.channels : 1, s_.nearest, false},
        x_(dense_image(input.to(dtype_of<T>), last_)),
        grid_(contiguous_values(grid.to(dtype_of<T>))),
        blocks_((s_.places() + kGridPlaces - 1) / kGridPlaces),
        c_(s_.channels) {}

  void read(const Tensor& y) const {
    const auto& kernels = sample_kernels<T>();
    T* const to = elements<T>(y);
    parallel_for(s_.batch * blocks_, grain(c_), [&](int64_t begin, int64_t end) {
      GridBlock<T> block;
      for (int64_t t = begin; t < end; ++t) {
        const int64_t n = t / blocks_;
        T* const out = to + n * c_ * s_.places() + find(n, t % blocks_, block);
        if (!by_pixels_) {
          kernels.read_planes(planes(x(), n), block, {out, s_.places(), c_});
          continue;
        }
        each_chunk(kChannels, [&](int64_t c, int64_t count) {
          T* const room = scratch(count);
          kernels.read_pixels({x() + n * image_size() + c, count}, block, room);
          constexpr int64_t item = sizeof(T);
          transpose_matrix({reinterpret_cast<const char*>(room), reinterpret_cast<char*>(out + c * s_.places()),
                            count * item, s_.places() * item, block.count, count, item});
        });
      }
    });
  }

  /// Returns the gradient of the input, in its layout. A task has some channels of an image, position by position.
  Tensor input_gradient(const Tensor& grad) const {
    const auto& kernels = sample_kernels<T>();
    const T* const g = elements<T>(grad);
    Tensor result = empty_image(x_.sizes(), last_, dtype_of<T>);
    // Few tasks leave threads idle; each finds the positions anew.
    const int64_t fair = s_.batch * c_ / 16;
    const int64_t chunk =
        by_pixels_ ? std::clamp<int64_t>(fair / 16 * 32, 16, kChannels) : std::clamp<int64_t>(fair, 4, 16);
    const int64_t chunks = (c_ + chunk - 1) / chunk;
    parallel_for(s_.batch * chunks, 1, [&](int64_t begin, int64_t end) {
      GridBlock<T> block;
      for (int64_t t = begin; t < end; ++t) {
        const int64_t n = t / chunks, c = t % chunks * chunk, count = std::min(chunk, c_ - c);
        T* const to = elements<T>(result) + n * image_size() + (last_ ? c : c * s_.plane());
        if (last_) {
          for (int64_t i = 0; i < s_.plane(); ++i) std::fill_n(to + i * c_, count, T(0));
        } else {
          std::fill_n(to, count * s_.plane(), T(0));
        }
        for (int64_t b = 0; b < blocks_; ++b) {
          const int64_t first = find(n, b, block);
          const GridPlanes<const T> from{g + (n * c_ + c) * s_.places() + first, s_.places(), count};
          if (by_pixels_) kernels.add_pixels(as_pixels(from, block), block, {to, count});
          else kernels.add_planes(from, block, {to, last_ ? 1 : s_.plane(), count});
        }
      }
    });
    return result;
  }

  Tensor grid_backward(const Tensor& grad) {
    image_.slopes = true;
    const auto& kernels = sample_kernels<T>();
    const T* const g = elements<T>(grad);
    Tensor result = empty_tensor(grid_.sizes(), dtype_of<T>);
    parallel_for(s_.batch * blocks_, grain(c_), [&](int64_t begin, int64_t end) {
      GridBlock<T> block;
      for (int64_t t = begin; t < end; ++t) {
        const int64_t n = t / blocks_, first = find(n, t % blocks_, block);
        T* const out = elements<T>(result) + (n * s_.places() + first) * 2;
        const T *const from = g + n * c_ * s_.places() + first, *const image = x() + n * image_size();
        if (!by_pixels_) {
          kernels.slopes_of_planes({from, s_.places(), c_}, planes(x(), n), block, out);
          continue;
        }
        constexpr size_t kSums = 2 * kGridPlaces * kGridChains;
        T* const sums = static_cast<T*>(thread_scratch(Scratch::operand_b, kSums * sizeof(T)));
        std::fill_n(sums, kSums, T(0));
        each_chunk(kChannels, [&](int64_t c, int64_t count) {
          const T* const packed = as_pixels({from + c * s_.places(), s_.places(), count}, block);
          kernels.add_slopes_of_pixels(packed, {image + c, count}, block, sums);
        });
        kernels.slopes_of_sums(sums, block, out);
      }
    });
    return result;
  }

 private:
  static_assert(kChannels % kGridChains == 0);
  const T* x() const { return elements<T>(x_); }
  int64_t image_size() const { return c_ * s_.plane(); }
  GridPlanes<const T> planes(const T* images, int64_t n) const {
    return {images + n * image_size(), last_ ? 1 : s_.plane(), c_};
  }
  static int64_t grain(int64_t channels) {
    return std::max<int64_t>(1, 8192 / (kGridPlaces * std::max<int64_t>(1, channels)));
  }
  static T* scratch(int64_t channels) {
    return static_cast<T*>(thread_scratch(Scratch::operand_a, sizeof(T) * size_t(kGridPlaces * channels)));
  }
  /// Finds what block b of image n reads; returns its first position.
  int64_t find(int64_t n, int64_t b, GridBlock<T>& block) const {
    const int64_t first = b * kGridPlaces, count = std::min(kGridPlaces, s_.places() - first);
    sample_kernels<T>().find(elements<T>(grid_) + (n * s_.places() + first) * 2, count, image_, block);
    return first;
  }
  template <class F>
  void each_chunk(int64_t chunk, F f) const {
    for (int64_t c = 0; c < c_; c += chunk) f(c, std::min(chunk, c_ - c));
  }
  /// Returns a block's part of planes as [place][channel].
  static const T* as_pixels(const GridPlanes<const T>& planes, const GridBlock<T>& block) {
    T* const room = scratch(planes.count);
    constexpr int64_t item = sizeof(T);
    transpose_matrix({reinterpret_cast<const char*>(planes.data), reinterpret_cast<char*>(room), planes.step * item,
                      planes.count * item, planes.count, block.count, item});
    return room;
  }

  GridSampling s_;
  bool last_, by_pixels_;
  GridImage<T> image_;
  Tensor x_, grid_;
  int64_t blocks_, c_;
};

/// Returns the dtype that positions are found and elements are computed in. float32 cannot tell the positions of longer
/// lines, and its blocks have 32 bits for where an element lies.
DType sampling_dtype(const GridSampling& s, DType dtype) {
  constexpr int64_t kLongest = 1 << 24, kLargest = std::numeric_limits<int32_t>::max();
  const bool large = std::max(s.height, s.width) > kLongest || s.plane() > kLargest / std::max<int64_t>(s.channels, 1);
  return large ? DType::float64 : compute_type(dtype);
}

Tensor grid_sampler_kernel(const Tensor& input, const Tensor& grid, int64_t interpolation_mode, int64_t padding_mode,
                           bool align_corners) {
  const GridSampling s = check_grid_sampler_2d(input, grid, interpolation_mode, padding_mode, align_corners);
  const DType wide = sampling_dtype(s, input.dtype());
  const Tensor y = empty_tensor(s.result_sizes(), wide);
  if (y.numel() > 0) {
    if (wide == DType::float64) Sampler<double>(s, input, grid).read(y);
    else Sampler<float>(s, input, grid).read(y);
  }
  return y.to(input.dtype());
}

template <class T>
TensorPair gradients(const GridSampling& s, const Tensor& grad, const Tensor& input, const Tensor& grid, bool of_input,
                     bool of_grid) {
  Sampler<T> sampler(s, input, grid);
  const Tensor g = contiguous_values(grad.to(dtype_of<T>));
  Tensor of_x, of_places;
  if (of_input) of_x = sampler.input_gradient(g).to(input.dtype());
  if (of_grid) of_places = sampler.grid_backward(g).to(grid.dtype());
  return {of_x, of_places};
}

TensorPair grid_sampler_backward_kernel(const Tensor& grad, const Tensor& input, const Tensor& grid,
                                        int64_t interpolation_mode, int64_t padding_mode, bool align_corners,
                                        bool of_input, bool of_grid) {
  const GridSampling s =
      check_grid_sampler_2d_backward(grad, input, grid, interpolation_mode, padding_mode, align_corners);
  Tensor of_nothing;
  if (of_grid && (s.nearest || input.numel() == 0)) {
    of_nothing = empty_tensor(grid.sizes(), grid.dtype());
    fill_values(of_nothing, 0, "grid_sampler");
  }
  const bool slopes = of_grid && !of_nothing.defined();
  if (input.numel() == 0) return {of_input ? empty_tensor(input.sizes(), input.dtype()) : Tensor(), of_nothing};
  auto [of_x, of_places] = sampling_dtype(s, input.dtype()) == DType::float64
                               ? gradients<double>(s, grad, input, grid, of_input, slopes)
                               : gradients<float>(s, grad, input, grid, of_input, slopes);
  return {of_x, slopes ? of_places : of_nothing};
}

}  // namespace

void register_grid_sample() {
  VESTA_ON_ISA(register_grid_sample, single_samplers, double_samplers);
  ops::_grid_sampler_2d.set_kernel(DeviceType::cpu, grid_sampler_kernel);
  ops::_grid_sampler_2d_backward.set_kernel(DeviceType::cpu, grid_sampler_backward_kernel);
}

}  // namespace vesta::cpu
