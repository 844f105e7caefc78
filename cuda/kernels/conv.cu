// Convolutions as matrix products whose right-hand side is read through the window: nothing is unfolded in memory.
#include <vesta/cuda/kernels/conv.h>

#include <algorithm>

#include <vesta/cuda/kernels/product_tile.cuh>

namespace vesta::cuda {
namespace {

/// A division of numbers below 2^31 into digits: n = (quotient, rest).
struct Split {
  uint32_t quotient, rest;
  VESTA_HD Split(const FastDivisor& by, uint32_t n) : quotient(by.divide(n)), rest(n - quotient * by.divisor) {}
};

/// A position in a volume [depth, height, width], from its number.
struct Place {
  uint32_t at[3];
  VESTA_HD Place(const FastDivisor& area, const FastDivisor& width, uint32_t n) {
    const Split layer(area, n), row(width, layer.rest);
    at[0] = layer.quotient, at[1] = row.quotient, at[2] = row.rest;
  }
};

/// The geometry of a convolution on the device.
struct Geometry {
  int64_t batch, groups, in_channels, out_channels;  // of a group
  int in[3], out[3], stride[3], padding[3], dilation[3];
  int64_t strides[5];
  FastDivisor taps, kernel_area, kernel_width, in_area, in_width, out_volume, out_area, out_width;

  explicit Geometry(const ConvLaunch& l)
      : batch(l.batch),
        groups(l.groups),
        in_channels(l.channels / l.groups),
        out_channels(l.outputs / l.groups),
        taps(uint32_t(l.kernel[0] * l.kernel[1] * l.kernel[2])),
        kernel_area(uint32_t(l.kernel[1] * l.kernel[2])),
        kernel_width(uint32_t(l.kernel[2])),
        in_area(uint32_t(std::max(l.in[1] * l.in[2], 1))),
        in_width(uint32_t(std::max(l.in[2], 1))),
        out_volume(uint32_t(std::max(l.out[0] * l.out[1] * l.out[2], 1))),
        out_area(uint32_t(std::max(l.out[1] * l.out[2], 1))),
        out_width(uint32_t(std::max(l.out[2], 1))) {
    for (int d = 0; d < 3; ++d) {
      in[d] = l.in[d], out[d] = l.out[d], stride[d] = l.stride[d];
      padding[d] = l.padding[d], dilation[d] = l.dilation[d];
    }
    for (int d = 0; d < 5; ++d) strides[d] = l.image_strides[d];
  }
  VESTA_HD int64_t in_plane() const { return int64_t(in[0]) * in[1] * in[2]; }
  VESTA_HD int64_t out_plane() const { return int64_t(out[0]) * out[1] * out[2]; }
  /// Finds where output `at` of a plane reads the input through `tap` of the window; returns false in the padding.
  VESTA_HD bool input_of(uint32_t at, uint32_t tap, int64_t* offset) const {
    const Place o(out_area, out_width, at), k(kernel_area, kernel_width, tap);
    bool inside = true;
    *offset = 0;
    for (int d = 0; d < 3; ++d) {
      const int64_t p = int64_t(o.at[d]) * stride[d] - padding[d] + int64_t(k.at[d]) * dilation[d];
      *offset += p * strides[d + 2];
      inside = inside && p >= 0 && p < in[d];
    }
    return inside;
  }
  /// Finds which output reads input `at` of a plane through `tap`; returns false if none does.
  VESTA_HD bool output_of(uint32_t at, uint32_t tap, int64_t* offset) const {
    const Place i(in_area, in_width, at), k(kernel_area, kernel_width, tap);
    *offset = 0;
    for (int d = 0; d < 3; ++d) {
      const int64_t p = int64_t(i.at[d]) + padding[d] - int64_t(k.at[d]) * dilation[d];
      if (p < 0 || p % stride[d] != 0 || p / stride[d] >= out[d]) return false;
      *offset += p / stride[d] * strides[d + 2];
    }
    return true;
  }
};

/// y[o, position] = w[o, (c, tap)] @ x[(c, tap), position], for each image and group.
template <class T>
struct ForwardProduct {
  using S = sum_of<T>;
  Geometry g;
  int64_t m, n, k, count;
  bool a_along_k = true, b_along_k = false;
  const T *image, *weight, *bias;
  T* result;

  explicit ForwardProduct(const ConvLaunch& l)
      : g(l),
        m(g.out_channels),
        n(g.out_plane()),
        k(g.in_channels * g.taps.divisor),
        count(g.batch * g.groups),
        image(static_cast<const T*>(l.image)),
        weight(static_cast<const T*>(l.weight)),
        bias(static_cast<const T*>(l.bias)),
        result(static_cast<T*>(l.result)) {}
  struct One {
    const Geometry& g;
    const T *image, *weight, *bias;
    T* result;
    int64_t n, k;
    VESTA_HD S a(int64_t row, int64_t at) const { return convert<S>(weight[row * k + at]); }
    VESTA_HD S b(int64_t at, int64_t column) const {
      const Split channel(g.taps, uint32_t(at));
      int64_t offset;
      if (!g.input_of(uint32_t(column), channel.rest, &offset)) return S(0);
      return convert<S>(image[channel.quotient * g.strides[1] + offset]);
    }
    VESTA_HD void store(int64_t row, int64_t column, S sum) const {
      if (bias) sum = sum + convert<S>(bias[row]);
      result[row * n + column] = convert<T>(sum);
    }
  };
  VESTA_HD One at(int64_t number) const {
    const int64_t item = number / g.groups, group = number - item * g.groups;
    return {g,
            image + item * g.strides[0] + group * g.in_channels * g.strides[1],
            weight + group * m * k,
            bias ? bias + group * m : nullptr,
            result + number * m * n,
            n,
            k};
  }
};

/// gx[c, position] = w[c, (o, tap)] @ gy[(o, tap), position], for each image and group. `image` is gy.
template <class T>
struct InputProduct {
  using S = sum_of<T>;
  Geometry g;
  int64_t m, n, k, count;
  bool a_along_k = false, b_along_k = false;
  const T *image, *weight;
  T* result;

  explicit InputProduct(const ConvLaunch& l)
      : g(l),
        m(g.in_channels),
        n(g.in_plane()),
        k(g.out_channels * g.taps.divisor),
        count(g.batch * g.groups),
        image(static_cast<const T*>(l.image)),
        weight(static_cast<const T*>(l.weight)),
        result(static_cast<T*>(l.result)) {}
  struct One {
    const Geometry& g;
    const T *image, *weight;
    T* result;
    int64_t m, n;
    VESTA_HD S a(int64_t row, int64_t at) const {
      const Split output(g.taps, uint32_t(at));
      return convert<S>(weight[(output.quotient * m + row) * g.taps.divisor + output.rest]);
    }
    VESTA_HD S b(int64_t at, int64_t column) const {
      const Split output(g.taps, uint32_t(at));
      int64_t offset;
      if (!g.output_of(uint32_t(column), output.rest, &offset)) return S(0);
      return convert<S>(image[output.quotient * g.strides[1] + offset]);
    }
    VESTA_HD void store(int64_t row, int64_t column, S sum) const { result[row * n + column] = convert<T>(sum); }
  };
  VESTA_HD One at(int64_t number) const {
    const int64_t item = number / g.groups, group = number - item * g.groups;
    return {g,
            image + item * g.strides[0] + group * g.out_channels * g.strides[1],
            weight + group * m * k,
            result + number * m * n,
            m,
            n};
  }
};

/// The division of the weight gradient's sum: images per part, and number of parts. The sizes alone decide it.
struct Parts {
  int64_t images, count;
  explicit Parts(const ConvLaunch& l) {
    constexpr int64_t kPlaces = 2048, kMost = 128;
    const int64_t plane = std::max<int64_t>(int64_t(l.out[0]) * l.out[1] * l.out[2], 1);
    images = std::max<int64_t>({(kPlaces + plane - 1) / plane, (l.batch + kMost - 1) / kMost, 1});
    count = std::max<int64_t>((l.batch + images - 1) / images, 1);
  }
};

/// gw[o, (c, tap)] = gy[o, (item, position)] @ x[(item, position), (c, tap)], for each part of the batch and group. To
/// is the type written: S if there are parts, else T.
template <class T, class To>
struct WeightProduct {
  using S = sum_of<T>;
  Geometry g;
  int64_t m, n, k, count, images;
  bool a_along_k = true, b_along_k = true;
  int64_t grad_strides[5];
  const T *image, *grad;
  To* result;

  WeightProduct(const ConvLaunch& l, const Parts& parts, void* to)
      : g(l),
        m(g.out_channels),
        n(g.in_channels * g.taps.divisor),
        k(parts.images * g.out_plane()),
        count(parts.count * g.groups),
        images(parts.images),
        image(static_cast<const T*>(l.image)),
        grad(static_cast<const T*>(l.weight)),
        result(static_cast<To*>(to)) {
    for (int d = 0; d < 5; ++d) grad_strides[d] = l.grad_strides[d];
  }
  struct One {
    const WeightProduct& all;
    const T *image, *grad;
    To* result;
    int64_t first;  // item
    VESTA_HD S a(int64_t row, int64_t at) const {
      const Split item(all.g.out_volume, uint32_t(at));
      if (first + item.quotient >= all.g.batch) return S(0);
      const Place place(all.g.out_area, all.g.out_width, item.rest);
      int64_t offset = item.quotient * all.grad_strides[0] + row * all.grad_strides[1];
      for (int d = 0; d < 3; ++d) offset += place.at[d] * all.grad_strides[d + 2];
      return convert<S>(grad[offset]);
    }
    VESTA_HD S b(int64_t at, int64_t column) const {
      const Split item(all.g.out_volume, uint32_t(at)), channel(all.g.taps, uint32_t(column));
      int64_t offset;
      if (first + item.quotient >= all.g.batch || !all.g.input_of(item.rest, channel.rest, &offset)) return S(0);
      return convert<S>(image[item.quotient * all.g.strides[0] + channel.quotient * all.g.strides[1] + offset]);
    }
    VESTA_HD void store(int64_t row, int64_t column, S sum) const { result[row * all.n + column] = convert<To>(sum); }
  };
  VESTA_HD One at(int64_t number) const {
    const int64_t part = number / g.groups, group = number - part * g.groups, first = part * images;
    return {*this, image + first * g.strides[0] + group * g.in_channels * g.strides[1],
            grad + first * grad_strides[0] + group * m * grad_strides[1], result + number * m * n, first};
  }
};

/// Sums the parts of each element, in order.
template <class S, class T>
VESTA_KERNEL void sum_parts(const S* parts, T* to, int64_t n, int64_t count) {
  for (int64_t i = int64_t(global_index()); i < n; i += int64_t(gridDim.x) * blockDim.x) {
    S sum = parts[i];
    for (int64_t p = 1; p < count; ++p) sum = sum + parts[p * n + i];
    to[i] = convert<T>(sum);
  }
}

int64_t weight_numel(const ConvLaunch& l) {
  return l.outputs * (l.channels / l.groups) * l.kernel[0] * l.kernel[1] * l.kernel[2];
}

template <class T>
void queue_weight_gradient(const ConvLaunch& l) {
  using S = sum_of<T>;
  const Parts parts(l);
  if (parts.count == 1) return run_product<S>(l.name, l.stream, WeightProduct<T, T>(l, parts, l.result));
  run_product<S>(l.name, l.stream, WeightProduct<T, S>(l, parts, l.partial));
  const int64_t n = weight_numel(l);
  launch_independent(l.name, sum_parts<S, T>, linear_shape(uint64_t(std::min<int64_t>(n, 1 << 24)), 256, l.stream),
                     static_cast<const S*>(l.partial), static_cast<T*>(l.result), n, parts.count);
}

}  // namespace

void run_conv_forward(const ConvLaunch& l) {
  visit_device<kFloats>(l.dtype, [&]<class T>() { run_product<sum_of<T>>(l.name, l.stream, ForwardProduct<T>(l)); });
}
void run_conv_input_gradient(const ConvLaunch& l) {
  visit_device<kFloats>(l.dtype, [&]<class T>() { run_product<sum_of<T>>(l.name, l.stream, InputProduct<T>(l)); });
}
void run_conv_weight_gradient(const ConvLaunch& l) {
  visit_device<kFloats>(l.dtype, [&]<class T>() { queue_weight_gradient<T>(l); });
}
int64_t partial_bytes(const ConvLaunch& l) {
  const Parts parts(l);
  return parts.count == 1 ? 0 : parts.count * weight_numel(l) * (l.dtype == DType::float64 ? 8 : 4);
}

}  // namespace vesta::cuda
