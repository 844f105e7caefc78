// Convolution against a direct loop in double, over shapes, layouts and element types; and equal bits across paths.
#include <catch2/catch.hpp>

#include <vesta/core/cpu/conv_winograd.h>
#include <vesta/core/cpu/convolution.h>
#include <vesta/core/cpu/gemm_kernel.h>
#include <vesta/core/cpu/parallel.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

namespace {

using namespace vesta::cpu;
using std::int64_t;

struct Layer {
  ConvShape shape;
  int64_t inputs() const { return shape.in_channels / shape.groups; }
  int64_t kernel() const { return shape.kernel[0] * shape.kernel[1] * shape.kernel[2]; }
  int64_t x_count() const { return shape.batch * shape.in_channels * shape.in[0] * shape.in[1] * shape.in[2]; }
  int64_t y_count() const { return shape.batch * shape.out_channels * shape.out[0] * shape.out[1] * shape.out[2]; }
  int64_t w_count() const { return shape.out_channels * inputs() * kernel(); }
};

Layer layer(int64_t batch, int64_t ci, int64_t co, int64_t groups, Spatial in, Spatial kernel,
            Spatial stride = {1, 1, 1}, Spatial pad = {0, 0, 0}, Spatial dilation = {1, 1, 1}) {
  Layer l{{.batch = batch,
           .in_channels = ci,
           .out_channels = co,
           .groups = groups,
           .in = in,
           .kernel = kernel,
           .out = {},
           .stride = stride,
           .dilation = dilation,
           .pad = pad}};
  for (int d = 0; d < 3; ++d) l.shape.out[d] = conv_out_size(in[d], kernel[d], stride[d], pad[d], dilation[d]);
  return l;
}

std::vector<Layer> layers() {
  return {
      layer(3, 1, 6, 1, {1, 28, 28}, {1, 5, 5}, {1, 1, 1}, {0, 2, 2}),
      layer(2, 6, 16, 1, {1, 14, 14}, {1, 5, 5}),
      layer(20, 3, 5, 1, {1, 8, 8}, {1, 3, 3}, {1, 1, 1}, {0, 1, 1}),
      layer(2, 40, 37, 1, {1, 9, 11}, {1, 3, 3}, {1, 1, 1}, {0, 1, 1}),
      layer(1, 70, 20, 1, {1, 60, 33}, {1, 3, 3}, {1, 1, 1}, {0, 1, 1}),
      layer(2, 8, 12, 4, {1, 10, 7}, {1, 3, 2}, {1, 2, 3}, {0, 1, 2}),
      layer(2, 6, 6, 6, {1, 12, 12}, {1, 3, 3}, {1, 2, 2}, {0, 1, 1}),
      layer(3, 5, 5, 5, {1, 70, 69}, {1, 3, 3}, {1, 1, 1}, {0, 1, 1}),  // depthwise, from here on: long chains
      layer(9, 20, 20, 20, {1, 7, 7}, {1, 3, 3}, {1, 1, 1}, {0, 1, 1}),
      layer(2, 18, 18, 18, {1, 13, 16}, {1, 7, 5}, {1, 1, 2}, {0, 3, 2}, {1, 1, 2}),
      layer(2, 3, 3, 3, {4, 5, 6}, {3, 2, 3}, {2, 1, 1}, {1, 1, 0}, {1, 2, 1}),
      layer(1, 4, 4, 4, {1, 9, 53}, {1, 3, 3}, {1, 1, 1}, {0, 1, 1}),  // rows of several vectors
      layer(2, 3, 3, 3, {1, 12, 45}, {1, 7, 7}, {1, 1, 1}, {0, 3, 3}),
      layer(2, 3, 3, 3, {1, 7, 66}, {1, 3, 3}, {1, 2, 2}, {0, 1, 1}),
      layer(2, 3, 3, 3, {1, 8, 61}, {1, 3, 4}, {1, 3, 3}, {0, 1, 2}),
      layer(2, 5, 5, 5, {1, 20, 41}, {1, 3, 3}, {1, 2, 2}),  // every other column of 3 x 3 neighbours
      layer(2, 3, 3, 3, {1, 13, 34}, {1, 3, 3}, {1, 2, 2}, {0, 2, 2}),
      layer(2, 3, 3, 3, {1, 9, 40}, {1, 3, 3}, {1, 1, 2}, {0, 1, 1}),
      layer(1, 2, 2, 2, {1, 5, 600}, {1, 3, 3}, {1, 2, 2}, {0, 1, 1}),
      layer(2, 2, 2, 2, {1, 1, 4200}, {1, 1, 4}, {1, 1, 1}, {0, 0, 3}),
      layer(2, 2, 2, 2, {1, 1, 17}, {1, 3, 3}, {1, 2, 2}, {0, 1, 1}),  // gradients without rows, or columns
      layer(2, 2, 2, 2, {1, 17, 1}, {1, 3, 3}, {1, 2, 2}, {0, 1, 1}),
      layer(2, 2, 2, 2, {1, 1, 1}, {3, 3, 3}, {2, 2, 2}, {1, 1, 1}),
      layer(2, 3, 8, 1, {1, 23, 20}, {1, 7, 7}, {1, 2, 2}, {0, 3, 3}),
      layer(2, 5, 4, 1, {1, 17, 19}, {1, 3, 3}, {1, 1, 2}, {0, 4, 3}, {1, 2, 3}),
      layer(2, 9, 8, 1, {1, 8, 8}, {1, 1, 1}),
      layer(2, 9, 8, 1, {1, 9, 8}, {1, 1, 1}, {1, 2, 2}),
      layer(9, 70, 110, 1, {1, 7, 7}, {1, 1, 1}),  // chains over the positions of several samples
      layer(5, 35, 20, 1, {3, 9, 9}, {1, 1, 1}, {1, 2, 2}),
      layer(2, 3, 4, 1, {1, 6, 6}, {1, 1, 1}, {1, 1, 1}, {0, 2, 1}),  // padding wider than the kernel reaches
      layer(2, 3, 4, 1, {1, 1, 30}, {1, 1, 4}, {1, 1, 3}, {0, 0, 1}),
      layer(2, 3, 4, 2 - 1, {5, 6, 7}, {3, 2, 3}, {2, 1, 1}, {1, 1, 0}, {1, 2, 1}),
      layer(1, 4, 6, 2, {4, 5, 6}, {2, 2, 2}, {1, 2, 1}, {0, 1, 1}),
      layer(3, 17, 33, 1, {1, 7, 7}, {1, 3, 3}, {1, 1, 1}, {0, 1, 1}),  // from here on with channels for whole vectors
      layer(2, 16, 16, 1, {1, 6, 31}, {1, 5, 3}, {1, 1, 1}, {0, 3, 1}),
      layer(2, 32, 31, 1, {1, 9, 2}, {1, 3, 3}, {1, 1, 1}, {0, 2, 1}, {1, 2, 1}),
      layer(1, 34, 16, 1, {1, 5, 14}, {1, 3, 3}, {1, 1, 1}, {0, 5, 1}),  // rows that no tap reaches
      layer(2, 32, 64, 2, {1, 8, 8}, {1, 3, 3}, {1, 1, 1}, {0, 1, 1}),
      layer(2, 16, 32, 1, {1, 15, 17}, {1, 3, 3}, {1, 2, 2}, {0, 1, 1}),
      layer(2, 3, 48, 1, {1, 20, 30}, {1, 7, 7}, {1, 2, 2}, {0, 3, 3}),
      layer(1, 16, 16, 1, {3, 5, 6}, {3, 3, 3}, {1, 1, 1}, {1, 1, 1}),
      layer(2, 16, 16, 1, {1, 1, 40}, {1, 1, 3}, {1, 1, 1}, {0, 0, 1}),
      layer(1, 40, 150, 1, {1, 300, 1}, {1, 3, 1}, {1, 1, 1}, {0, 1, 0}),  // tasks of some columns and channels
      layer(1, 130, 150, 1, {1, 61, 1}, {1, 5, 1}, {1, 2, 1}, {0, 2, 0}),  // weights read as they lie
      layer(2, 40, 210, 2, {1, 40, 1}, {1, 3, 1}, {1, 2, 1}, {0, 0, 0}),
      layer(1, 10, 20, 1, {1, 21, 23}, {1, 3, 3}, {1, 1, 1}, {0, 1, 1}),
      layer(3, 270, 130, 1, {1, 7, 5}, {1, 1, 1}),  // from here on with few columns and many weights
      layer(2, 140, 260, 1, {1, 9, 8}, {1, 1, 1}, {1, 2, 2}, {0, 1, 1}),
      layer(1, 520, 70, 1, {1, 3, 4}, {1, 1, 1}),
      layer(2, 140, 260, 1, {1, 6, 8}, {1, 2, 2}, {1, 2, 2}),  // gradients of one tap for each residue of the stride
      layer(1, 130, 270, 1, {1, 9, 7}, {1, 2, 2}, {1, 2, 2}, {0, 1, 1}),
      layer(1, 190, 180, 1, {2, 4, 3}, {2, 2, 1}, {2, 2, 2}),
      layer(1, 200, 170, 1, {1, 9, 9}, {1, 2, 2}, {1, 2, 2}, {0, 0, 0}, {1, 3, 3}),  // whose taps reach back
  };
}

template <class T>
std::vector<T> values(int64_t n, unsigned seed) {
  std::mt19937 engine(seed);
  std::uniform_real_distribution<double> draw(-1, 1);
  std::vector<T> out(static_cast<std::size_t>(n));
  for (T& v : out) v = static_cast<T>(draw(engine));
  return out;
}

struct Tap {
  int64_t x, k, y;  // position of the input, element of the kernel, position of the output
};

// Returns what meets within the images of a channel: the places are divided up once, not for every product.
std::vector<Tap> taps(const Layer& l) {
  const ConvShape& s = l.shape;
  std::vector<Tap> found;
  for (int64_t y = 0; y < s.out[0] * s.out[1] * s.out[2]; ++y)
    for (int64_t k = 0; k < l.kernel(); ++k) {
      const Spatial q{y / (s.out[1] * s.out[2]), y / s.out[2] % s.out[1], y % s.out[2]};
      const Spatial t{k / (s.kernel[1] * s.kernel[2]), k / s.kernel[2] % s.kernel[1], k % s.kernel[2]};
      int64_t x = 0;
      bool inside = true;
      for (int d = 0; d < 3; ++d) {
        const int64_t p = q[d] * s.stride[d] + t[d] * s.dilation[d] - s.pad[d];
        inside = inside && p >= 0 && p < s.in[d];
        x = x * s.in[d] + p;
      }
      if (inside) found.push_back({x, k, y});
    }
  return found;
}

// Calls f(input, weight, output, output channel) with dense flat indices for every product of the convolution.
template <class F>
void each_product(const Layer& l, F&& f) {
  const ConvShape& s = l.shape;
  const int64_t per_group = s.out_channels / s.groups;
  const int64_t in_plane = s.in[0] * s.in[1] * s.in[2], out_plane = s.out[0] * s.out[1] * s.out[2];
  const std::vector<Tap> plane = taps(l);
  for (int64_t n = 0; n < s.batch; ++n)
    for (int64_t o = 0; o < s.out_channels; ++o)
      for (int64_t c = 0; c < l.inputs(); ++c) {
        const int64_t x = (n * s.in_channels + o / per_group * l.inputs() + c) * in_plane;
        const int64_t w = (o * l.inputs() + c) * l.kernel(), y = (n * s.out_channels + o) * out_plane;
        for (const Tap& t : plane) f(x + t.x, w + t.k, y + t.y, o);
      }
}

template <class T>
void check_close(const std::vector<T>& got, const std::vector<double>& want, double tolerance) {
  REQUIRE(got.size() == want.size());
  double worst = 0;
  for (std::size_t i = 0; i < got.size(); ++i) {
    worst = std::max(worst, std::abs(static_cast<double>(got[i]) - want[i]) / (1 + std::abs(want[i])));
  }
  CHECK(worst < tolerance);
}

// Reorders a dense [n, c, plane] tensor to [n, plane, c], or back.
template <class T>
std::vector<T> moved(const std::vector<T>& in, int64_t n, int64_t c, int64_t plane, bool to_last) {
  std::vector<T> out(in.size());
  for (int64_t i = 0; i < n; ++i)
    for (int64_t j = 0; j < c; ++j)
      for (int64_t p = 0; p < plane; ++p) {
        const auto first = static_cast<std::size_t>((i * c + j) * plane + p);
        const auto last = static_cast<std::size_t>((i * plane + p) * c + j);
        (to_last ? out[last] : out[first]) = to_last ? in[first] : in[last];
      }
  return out;
}

template <class T>
struct Results {
  std::vector<T> y, gx, gw, gb;
  bool operator==(const Results& o) const {
    const auto same = [](const std::vector<T>& a, const std::vector<T>& b) {
      return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0;
    };
    return same(y, o.y) && same(gx, o.gx) && same(gw, o.gw) && same(gb, o.gb);
  }
};

template <class T>
Results<T> compute(Elem elem, const Layer& l, const std::vector<T>& x, const std::vector<T>& w, const std::vector<T>& b,
                   const std::vector<T>& gy, bool last = false) {
  const ConvShape& s = l.shape;
  const int64_t in_plane = s.in[0] * s.in[1] * s.in[2], out_plane = s.out[0] * s.out[1] * s.out[2];
  const ImageStrides xs = last ? channels_last_strides(s.in_channels, s.in) : dense_strides(s.in_channels, s.in);
  const ImageStrides ys = last ? channels_last_strides(s.out_channels, s.out) : dense_strides(s.out_channels, s.out);
  const std::vector<T> xv = last ? moved(x, s.batch, s.in_channels, in_plane, true) : x;
  const std::vector<T> gv = last ? moved(gy, s.batch, s.out_channels, out_plane, true) : gy;
  // Filled with a wrong value, so that what is not written shows.
  Results<T> r{std::vector<T>(gy.size(), T(77)), std::vector<T>(x.size(), T(77)), std::vector<T>(w.size(), T(77)),
               std::vector<T>(b.size(), T(77))};
  conv_forward(elem, s, xv.data(), xs, w.data(), b.data(), r.y.data(), ys);
  conv_backward_data(elem, s, gv.data(), ys, w.data(), nullptr, r.gx.data(), xs);
  conv_backward_weights(elem, s, xv.data(), xs, gv.data(), ys, r.gw.data(), r.gb.data());
  if (last) {
    r.y = moved(r.y, s.batch, s.out_channels, out_plane, false);
    r.gx = moved(r.gx, s.batch, s.in_channels, in_plane, false);
  }
  return r;
}

template <class T>
void check_layer(Elem elem, const Layer& l, double tolerance) {
  const auto x = values<T>(l.x_count(), 1), w = values<T>(l.w_count(), 2), b = values<T>(l.shape.out_channels, 3),
             gy = values<T>(l.y_count(), 4);
  std::vector<double> y(gy.size()), gx(x.size()), gw(w.size()), gb(b.size());
  const int64_t plane = l.shape.out[0] * l.shape.out[1] * l.shape.out[2];
  for (std::size_t i = 0; i < y.size(); ++i) {
    const std::size_t o = i / plane % l.shape.out_channels;
    y[i] = b[o];
    gb[o] += gy[i];
  }
  each_product(l, [&](int64_t xi, int64_t wi, int64_t yi, int64_t) {
    y[yi] += static_cast<double>(x[xi]) * w[wi];
    gx[xi] += static_cast<double>(gy[yi]) * w[wi];
    gw[wi] += static_cast<double>(gy[yi]) * x[xi];
  });
  const Results<T> dense = compute(elem, l, x, w, b, gy);
  check_close(dense.y, y, tolerance);
  check_close(dense.gx, gx, tolerance);
  check_close(dense.gw, gw, tolerance * 10);
  check_close(dense.gb, gb, tolerance * 10);
  CHECK(compute(elem, l, x, w, b, gy, true) == dense);  // the bits do not depend on the layout
}

std::string describe(const Layer& l) {
  std::string text = "in " + std::to_string(l.shape.in_channels) + " out " + std::to_string(l.shape.out_channels);
  for (int d = 0; d < 3; ++d) {
    text += " | " + std::to_string(l.shape.in[d]) + " k" + std::to_string(l.shape.kernel[d]) + " s" +
            std::to_string(l.shape.stride[d]) + " p" + std::to_string(l.shape.pad[d]);
  }
  return text;
}

}  // namespace

TEST_CASE("convolution agrees with a direct loop", "[convolution]") {
  for (const Isa isa : {Isa::baseline, Isa::avx2, Isa::avx512}) {
    limit_gemm_isa(isa);
    for (const Layer& l : layers()) {
      INFO(describe(l) << ", isa " << name(gemm_isa()));
      check_layer<float>(Elem::f32, l, goes_winograd(l.shape) ? 4e-5 : 2e-5);  // by test_winograd.py
      check_layer<double>(Elem::f64, l, 1e-13);
    }
  }
}

TEST_CASE("16-bit convolutions are the float ones of the widened operands, rounded once", "[convolution]") {
  limit_gemm_isa(Isa::avx512);  // bfloat16 has instructions of its own
  struct Half {
    Elem elem;
    void (*widen)(int64_t, const std::uint16_t*, float*);
    void (*narrow)(int64_t, const float*, std::uint16_t*);
  };
  for (const Half& half : {Half{Elem::bf16, bf16_to_f32, f32_to_bf16}, Half{Elem::f16, f16_to_f32, f32_to_f16}}) {
    for (const Layer& l : layers()) {
      INFO(describe(l));
      const auto narrowed = [&](const std::vector<float>& in) {
        std::vector<std::uint16_t> out(in.size());
        half.narrow(static_cast<int64_t>(in.size()), in.data(), out.data());
        return out;
      };
      const auto widened = [&](const std::vector<std::uint16_t>& in) {
        std::vector<float> out(in.size());
        half.widen(static_cast<int64_t>(in.size()), in.data(), out.data());
        return out;
      };
      const auto x = narrowed(values<float>(l.x_count(), 1)), w = narrowed(values<float>(l.w_count(), 2)),
                 b = narrowed(values<float>(l.shape.out_channels, 3)), gy = narrowed(values<float>(l.y_count(), 4));
      const auto want = compute<float>(Elem::f32, l, widened(x), widened(w), widened(b), widened(gy));
      const Results<std::uint16_t> rounded{narrowed(want.y), narrowed(want.gx), narrowed(want.gw), narrowed(want.gb)};
      CHECK(compute(half.elem, l, x, w, b, gy) == rounded);
    }
  }
}

TEST_CASE("convolutions of bfloat16 with its instructions: close to double, the same bits however they are computed",
          "[convolution][bits]") {
  limit_gemm_isa(Isa::avx512_amx);
  const int threads = num_threads();
  auto cases = layers();
  cases.push_back(layer(1, 64, 64, 1, {1, 30, 30}, {1, 5, 5}, {1, 2, 2}, {0, 2, 2}));
  cases.push_back(layer(17, 33, 34, 1, {1, 6, 6}, {1, 3, 3}, {1, 2, 2}, {0, 1, 1}));
  cases.push_back(layer(2, 1040, 40, 1, {1, 5, 5}, {1, 1, 1}));
  cases.push_back(layer(3, 70, 150, 1, {1, 9, 9}, {1, 3, 3}, {1, 1, 1}, {0, 1, 1}));  // several blocks of k
  cases.push_back(layer(2, 50, 36, 2, {2, 7, 6}, {2, 3, 3}, {1, 1, 1}, {1, 1, 2}, {1, 2, 1}));
  for (const Layer& l : cases) {
    INFO(describe(l));
    const auto drawn = [](int64_t count, unsigned seed, std::vector<double>& wide) {
      const auto in = values<float>(count, seed);
      std::vector<std::uint16_t> out(in.size());
      std::vector<float> rounded(in.size());
      f32_to_bf16(count, in.data(), out.data());
      bf16_to_f32(count, out.data(), rounded.data());
      wide.assign(rounded.begin(), rounded.end());
      return out;
    };
    std::vector<double> xd, wd, bd, gd;
    const auto x = drawn(l.x_count(), 1, xd), w = drawn(l.w_count(), 2, wd), b = drawn(l.shape.out_channels, 3, bd),
               gy = drawn(l.y_count(), 4, gd);
    const auto want = compute<double>(Elem::f64, l, xd, wd, bd, gd);
    const auto dense = compute(Elem::bf16, l, x, w, b, gy);
    const auto close = [](const std::vector<std::uint16_t>& got, const std::vector<double>& exact) {
      std::vector<float> wide(got.size());
      bf16_to_f32(static_cast<int64_t>(got.size()), got.data(), wide.data());
      check_close(wide, exact, 0x1p-8 + 1e-4);  // half a unit of bfloat16, and sums in float
    };
    close(dense.y, want.y);
    close(dense.gx, want.gx);
    close(dense.gw, want.gw);
    close(dense.gb, want.gb);
    for (const int count : {1, 2, 4}) {
      set_num_threads(count);
      CHECK(compute(Elem::bf16, l, x, w, b, gy) == dense);
      CHECK(compute(Elem::bf16, l, x, w, b, gy, true) == dense);
    }
    set_num_threads(threads);
    for (const bool last : {false, true}) {
      Layer one = l;
      one.shape.batch = 1;
      const int64_t xs = one.x_count(), ys = one.y_count();
      const std::vector<std::uint16_t> px(x.end() - xs, x.end()), pg(gy.end() - ys, gy.end());
      const auto some = compute(Elem::bf16, one, px, w, b, pg, last);
      CHECK(std::equal(some.y.begin(), some.y.end(), dense.y.end() - ys));
      CHECK(std::equal(some.gx.begin(), some.gx.end(), dense.gx.end() - xs));
    }
  }
}

TEST_CASE("images of bfloat16 may lie anyhow", "[convolution][bits]") {
  for (const auto& l :
       {layer(2, 6, 5, 1, {1, 9, 8}, {1, 3, 3}, {1, 2, 1}, {0, 1, 1}), layer(2, 7, 6, 1, {1, 5, 4}, {1, 1, 1}),
        layer(1, 8, 6, 2, {1, 5, 4}, {1, 1, 1}), layer(2, 18, 20, 1, {1, 9, 8}, {1, 3, 3}, {1, 1, 1}, {0, 1, 1})}) {
    INFO(describe(l));
    const ConvShape& s = l.shape;
    const auto bits = [](int64_t count, unsigned seed) {
      const auto in = values<float>(count, seed);
      std::vector<std::uint16_t> out(in.size());
      f32_to_bf16(count, in.data(), out.data());
      return out;
    };
    const auto x = bits(l.x_count(), 1), w = bits(l.w_count(), 2), b = bits(s.out_channels, 3),
               gy = bits(l.y_count(), 4);
    const auto want = compute(Elem::bf16, l, x, w, b, gy);
    const auto strides = [](int64_t channels, const Spatial& size, int order) -> ImageStrides {
      if (order == 0) return {channels * size[1] * size[2] * 3 + 5, 3 * size[1] * size[2], {0, 3 * size[2], 3}};
      if (order == 1) return {channels * size[1] * size[2] * 2 + 1, 1, {0, 2 * channels * size[2], 2 * channels}};
      return {channels * size[1] * size[2], size[1], {0, 1, channels * size[1]}};  // columns first
    };
    const auto spread = [&](const std::vector<std::uint16_t>& in, int64_t channels, const Spatial& size,
                            const ImageStrides& to, bool back) {
      std::vector<std::uint16_t> out(back ? static_cast<std::size_t>(s.batch * channels * size[1] * size[2]) : 9000);
      std::size_t i = 0;
      for (int64_t n = 0; n < s.batch; ++n)
        for (int64_t c = 0; c < channels; ++c)
          for (int64_t r = 0; r < size[1]; ++r)
            for (int64_t q = 0; q < size[2]; ++q, ++i) {
              const auto at =
                  static_cast<std::size_t>(n * to.batch + c * to.channel + r * to.spatial[1] + q * to.spatial[2]);
              if (back) out[i] = in[at];
              else out[at] = in[i];
            }
      return out;
    };
    for (int order = 0; order < 3; ++order) {
      const ImageStrides xs = strides(s.in_channels, s.in, order), ys = strides(s.out_channels, s.out, order);
      const auto xv = spread(x, s.in_channels, s.in, xs, false), gv = spread(gy, s.out_channels, s.out, ys, false);
      std::vector<std::uint16_t> y(9000, 77), gx(9000, 77), gw(w.size()), gb(b.size());
      conv_forward(Elem::bf16, s, xv.data(), xs, w.data(), b.data(), y.data(), ys);
      conv_backward_data(Elem::bf16, s, gv.data(), ys, w.data(), nullptr, gx.data(), xs);
      conv_backward_weights(Elem::bf16, s, xv.data(), xs, gv.data(), ys, gw.data(), gb.data());
      CHECK(spread(y, s.out_channels, s.out, ys, true) == want.y);
      CHECK(spread(gx, s.in_channels, s.in, xs, true) == want.gx);
      CHECK(gw == want.gw);
      CHECK(gb == want.gb);
    }
  }
}

TEST_CASE("convolution gives the same bits for any number of threads", "[convolution][bits]") {
  limit_gemm_isa(Isa::avx512_amx);
  const int threads = num_threads();
  auto cases = layers();
  cases.push_back(layer(33, 16, 24, 1, {1, 15, 15}, {1, 3, 3}, {1, 1, 1}, {0, 1, 1}));
  cases.push_back(layer(1, 64, 64, 1, {1, 40, 40}, {1, 3, 3}, {1, 1, 1}, {0, 1, 1}));
  cases.push_back(layer(5, 300, 200, 1, {1, 7, 7}, {1, 3, 3}, {1, 1, 1}, {0, 1, 1}));
  for (const Layer& l : cases) {
    INFO(describe(l));
    const auto x = values<float>(l.x_count(), 1), w = values<float>(l.w_count(), 2),
               b = values<float>(l.shape.out_channels, 3), gy = values<float>(l.y_count(), 4);
    set_num_threads(1);
    const auto one = compute(Elem::f32, l, x, w, b, gy);
    for (const int n : {2, 4}) {
      set_num_threads(n);
      CHECK(compute(Elem::f32, l, x, w, b, gy) == one);
    }
  }
  set_num_threads(threads);
}

TEST_CASE("AVX2 and AVX-512 give the same bits, infinite weights included", "[convolution][bits]") {
  for (const Layer& l : layers()) {
    INFO(describe(l));
    const auto x = values<float>(l.x_count(), 1), b = values<float>(l.shape.out_channels, 3),
               gy = values<float>(l.y_count(), 4);
    auto w = values<float>(l.w_count(), 2);
    limit_gemm_isa(Isa::avx512_amx);
    const auto wide = compute(Elem::f32, l, x, w, b, gy);
    limit_gemm_isa(Isa::avx2);
    CHECK(compute(Elem::f32, l, x, w, b, gy) == wide);
    w[w.size() / 2] = std::numeric_limits<float>::infinity();
    const auto finite = [&](Isa isa) {
      limit_gemm_isa(isa);
      auto results = compute(Elem::f32, l, x, w, b, gy);
      for (auto* part : {&results.y, &results.gx}) {
        for (float& v : *part) v = std::isnan(v) ? 1e30f : v;  // one NaN is not equal to another
      }
      return results;
    };
    CHECK(finite(Isa::avx2) == finite(Isa::avx512));
  }
  limit_gemm_isa(Isa::avx512_amx);
}

TEST_CASE("a sample's output and input gradient do not depend on its batch", "[convolution][bits]") {
  limit_gemm_isa(Isa::avx512_amx);
  for (Layer l : layers()) {
    INFO(describe(l));
    l.shape.batch = 33;
    const auto x = values<float>(l.x_count(), 1), w = values<float>(l.w_count(), 2),
               b = values<float>(l.shape.out_channels, 3), gy = values<float>(l.y_count(), 4);
    const auto whole = compute(Elem::f32, l, x, w, b, gy);
    Layer part = l;
    for (const int64_t batch : {1, 2, 16}) {
      part.shape.batch = batch;
      for (const int64_t first : {int64_t{0}, 33 - batch}) {
        const int64_t xs = l.x_count() / 33, ys = l.y_count() / 33;
        const std::vector<float> px(x.begin() + first * xs, x.begin() + (first + batch) * xs),
            pg(gy.begin() + first * ys, gy.begin() + (first + batch) * ys);
        const auto some = compute(Elem::f32, part, px, w, b, pg);
        CHECK(std::memcmp(some.y.data(), whole.y.data() + first * ys, some.y.size() * sizeof(float)) == 0);
        CHECK(std::memcmp(some.gx.data(), whole.gx.data() + first * xs, some.gx.size() * sizeof(float)) == 0);
      }
    }
  }
}

TEST_CASE("a transposed convolution adds its bias everywhere", "[convolution]") {
  const Layer l = layer(2, 3, 4, 1, {1, 9, 9}, {1, 2, 2}, {1, 3, 3});  // stride past the kernel: untouched positions
  const auto w = values<float>(l.w_count(), 2), gy = values<float>(l.y_count(), 4), bias = values<float>(3, 5);
  std::vector<float> plain(static_cast<std::size_t>(l.x_count())), with(plain);
  const ImageStrides xs = dense_strides(3, l.shape.in), ys = dense_strides(4, l.shape.out);
  conv_backward_data(Elem::f32, l.shape, gy.data(), ys, w.data(), nullptr, plain.data(), xs);
  conv_backward_data(Elem::f32, l.shape, gy.data(), ys, w.data(), bias.data(), with.data(), xs);
  for (std::size_t i = 0; i < plain.size(); ++i) CHECK(with[i] == plain[i] + bias[i / 81 % 3]);
}

TEST_CASE("sizes of zero are fine in every place", "[convolution]") {
  std::vector<float> x(150, 1.f), w(150, 1.f), y(150, 7.f), gw(150, 7.f), gb(150, 7.f);
  Layer none = layer(0, 3, 4, 1, {1, 5, 5}, {1, 3, 3});
  conv_forward(Elem::f32, none.shape, x.data(), dense_strides(3, none.shape.in), w.data(), nullptr, y.data(),
               dense_strides(4, none.shape.out));
  CHECK(y[0] == 7.f);
  conv_backward_weights(Elem::f32, none.shape, x.data(), dense_strides(3, none.shape.in), y.data(),
                        dense_strides(4, none.shape.out), gw.data(), gb.data());
  CHECK(gw[0] == 0.f);
  CHECK(gb[3] == 0.f);
  Layer blind = layer(1, 0, 2, 1, {1, 5, 5}, {1, 3, 3});  // no input channels: only the bias is left
  const std::vector<float> bias{3.f, 4.f};
  conv_forward(Elem::f32, blind.shape, x.data(), dense_strides(0, blind.shape.in), w.data(), bias.data(), y.data(),
               dense_strides(2, blind.shape.out));
  CHECK(y[8] == 3.f);
  CHECK(y[9] == 4.f);
  conv_backward_weights(Elem::f32, blind.shape, x.data(), dense_strides(0, blind.shape.in), y.data(),
                        dense_strides(2, blind.shape.out), gw.data(), gb.data());
  CHECK(gb[1] == 36.f);
}
