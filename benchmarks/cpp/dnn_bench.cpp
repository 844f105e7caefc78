// Matrix products and convolutions of the CPU backend beside oneDNN called directly: same memory, same visible layouts
// (row-major, NCHW). oneDNN's weights are packed beforehand; forward convolutions are conv2d under no_grad, as users
// call them, which keeps what it has packed (Note [Kept weights] in core/cpu/kept_weights.h).
//
//     dnn_bench [matmul|conv|all|NAME] [threads...]   prints us and GFLOP/s; best of several runs, the two alternating
//
// NAME is part of a layer's name: "7, 7".
//
// With one thread it counts CPU time, which a busy machine disturbs less. Compile it against the library's objects and
// oneDNN: both sides then share one OpenMP pool.
#include <vesta/core/cpu/convolution.h>
#include <vesta/core/cpu/gemm.h>
#include <vesta/core/cpu/parallel.h>
#include <vesta/core/ops/ops.h>

#include <oneapi/dnnl/dnnl.hpp>
#include <omp.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <random>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace {

using namespace vesta::cpu;
using dnnl::memory;
using std::int64_t;
using vesta::conv2d, vesta::DType, vesta::empty_tensor, vesta::IntSpan, vesta::NoGrad, vesta::Tensor;

std::vector<float> values(int64_t n, unsigned seed) {
  std::mt19937 engine(seed);
  std::uniform_real_distribution<float> draw(-1, 1);
  std::vector<float> out(static_cast<std::size_t>(n));
  for (float& v : out) v = draw(engine);
  return out;
}

double now() {
  timespec time{};
  clock_gettime(num_threads() == 1 ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

double seconds(auto&& f, int repeats) {
  const double start = now();
  for (int i = 0; i < repeats; ++i) f();
  return (now() - start) / repeats;
}

// The best time of each, measured in turns so that another busy process slows both alike.
struct Pair {
  double ours, theirs;
};

Pair race(auto&& ours, auto&& theirs, double work) {
  ours();
  theirs();
  const int repeats = static_cast<int>(std::clamp(2e7 / work, 1.0, 2000.0)), rounds = work > 5e8 ? 8 : 25;
  Pair best{1e9, 1e9};
  for (int i = 0; i < rounds; ++i) {
    best.ours = std::min(best.ours, seconds(ours, repeats));
    best.theirs = std::min(best.theirs, seconds(theirs, repeats));
  }
  return best;
}

void print(const std::string& what, double flop, const Pair& time, const std::string& implementation) {
  std::printf("%-44s %10.2f us %7.1f GFLOP/s | oneDNN %10.2f us %7.1f GFLOP/s | %5.2f x  %s\n", what.c_str(),
              time.ours * 1e6, flop / time.ours / 1e9, time.theirs * 1e6, flop / time.theirs / 1e9,
              time.theirs / time.ours, implementation.c_str());
}

const dnnl::engine& engine() {
  static const dnnl::engine cpu(dnnl::engine::kind::cpu, 0);
  return cpu;
}

dnnl::stream& stream() {
  static dnnl::stream cpu(engine());
  return cpu;
}

memory wrap(const memory::desc& desc, std::vector<float>& data) { return memory(desc, engine(), data.data()); }

void bench_matmul(int64_t m, int64_t n, int64_t k) {
  auto a = values(m * k, 1), b = values(k * n, 2), c = values(m * n, 3);
  const auto desc = [](int64_t rows, int64_t cols) {
    return memory::desc({rows, cols}, memory::data_type::f32, memory::format_tag::ab);
  };
  const dnnl::matmul::primitive_desc pd(engine(), desc(m, k), desc(k, n), desc(m, n));
  const dnnl::matmul matmul(pd);
  const std::unordered_map<int, memory> args{{DNNL_ARG_SRC, wrap(desc(m, k), a)},
                                             {DNNL_ARG_WEIGHTS, wrap(desc(k, n), b)},
                                             {DNNL_ARG_DST, wrap(desc(m, n), c)}};
  const Gemm gemm_args{.m = m,
                       .n = n,
                       .k = k,
                       .a = a.data(),
                       .a_row = k,
                       .a_col = 1,
                       .b = b.data(),
                       .b_row = n,
                       .b_col = 1,
                       .c = c.data(),
                       .c_row = n};
  const double flop = 2.0 * static_cast<double>(m * n) * static_cast<double>(k);
  const Pair time = race([&] { gemm(Elem::f32, gemm_args); },
                         [&] {
                           matmul.execute(stream(), args);
                           stream().wait();
                         },
                         flop);
  char what[64];
  std::snprintf(what, sizeof what, "matmul %ld x %ld x %ld", static_cast<long>(m), static_cast<long>(n),
                static_cast<long>(k));
  print(what, flop, time, pd.impl_info_str());
}

struct Layer {
  const char* name;
  int64_t batch, in_channels, size, out_channels, kernel, stride, pad;
};

// A convolution of plain images: those that the implementation needs in another order are reordered around it.
class Direct {
 public:
  // Prepares `pd` with the plain memories of its arguments; `packed` names the one that is reordered only once.
  template <class Primitive, class Desc>
  void prepare(const Desc& pd, const std::vector<std::pair<int, std::pair<memory, memory::desc>>>& inputs, int out,
               const memory& plain_out, const memory::desc& out_desc, int packed) {
    primitive_ = Primitive(pd);
    for (const auto& [arg, want] : inputs) {
      const auto& [plain, desc] = want;
      if (plain.get_desc() == desc) {
        args_[arg] = plain;
        continue;
      }
      memory ordered(desc, engine());
      args_[arg] = ordered;
      dnnl::reorder reorder(plain, ordered);
      if (arg == packed) {
        reorder.execute(stream(), {{DNNL_ARG_FROM, plain}, {DNNL_ARG_TO, ordered}});
        stream().wait();
      } else {
        before_.push_back({reorder, {{DNNL_ARG_FROM, plain}, {DNNL_ARG_TO, ordered}}});
      }
    }
    args_[out] = plain_out;
    if (plain_out.get_desc() != out_desc) {
      memory ordered(out_desc, engine());
      args_[out] = ordered;
      after_.push_back({dnnl::reorder(ordered, plain_out), {{DNNL_ARG_FROM, ordered}, {DNNL_ARG_TO, plain_out}}});
    }
  }
  void add(int arg, const memory& plain) { args_[arg] = plain; }

  void operator()() {
    for (auto& [reorder, args] : before_) reorder.execute(stream(), args);
    primitive_.execute(stream(), args_);
    for (auto& [reorder, args] : after_) reorder.execute(stream(), args);
    stream().wait();
  }

 private:
  using Args = std::unordered_map<int, memory>;
  dnnl::primitive primitive_;
  Args args_;
  std::vector<std::pair<dnnl::reorder, Args>> before_, after_;
};

/// Returns a tensor of a copy of the values, whose address nobody else knows.
Tensor tensor_of(const memory::dims& sizes, const std::vector<float>& v) {
  const Tensor t = empty_tensor(IntSpan(sizes.data(), sizes.size()), DType::float32);
  std::memcpy(t.impl()->data(), v.data(), v.size() * sizeof(float));
  return t;
}

void bench_layer(const Layer& l) {
  using Tag = memory::format_tag;
  using dnnl::algorithm;
  using dnnl::prop_kind;
  ConvShape s{.batch = l.batch,
              .in_channels = l.in_channels,
              .out_channels = l.out_channels,
              .in = {1, l.size, l.size},
              .kernel = {1, l.kernel, l.kernel},
              .out = {1, 1, 1},
              .stride = {1, l.stride, l.stride},
              .pad = {0, l.pad, l.pad}};
  for (int d = 1; d < 3; ++d) s.out[d] = conv_out_size(l.size, l.kernel, l.stride, l.pad, 1);
  const memory::dims xd{l.batch, l.in_channels, l.size, l.size}, wd{l.out_channels, l.in_channels, l.kernel, l.kernel},
      bd{l.out_channels}, yd{l.batch, l.out_channels, s.out[1], s.out[2]}, stride{l.stride, l.stride},
      pad{l.pad, l.pad};
  // What is padded after the image need not equal what is padded before it when the stride does not divide the size.
  const int64_t last = (s.out[1] - 1) * l.stride + l.kernel - l.size - l.pad;
  const memory::dims pad_after{last, last}, dense{0, 0};
  const auto product = [](const memory::dims& dims) {
    int64_t n = 1;
    for (const int64_t d : dims) n *= d;
    return n;
  };
  auto x = values(product(xd), 1), w = values(product(wd), 2), b = values(product(bd), 3), y = values(product(yd), 4);
  const auto any = [](const memory::dims& d) { return memory::desc(d, memory::data_type::f32, Tag::any); };
  const memory::desc bias_desc(bd, memory::data_type::f32, Tag::a);
  const memory xm = wrap({xd, memory::data_type::f32, Tag::nchw}, x),
               wm = wrap({wd, memory::data_type::f32, Tag::oihw}, w), bm = wrap(bias_desc, b),
               ym = wrap({yd, memory::data_type::f32, Tag::nchw}, y);
  const ImageStrides xs = dense_strides(l.in_channels, s.in), ys = dense_strides(l.out_channels, s.out);
  const double flop = 2.0 * static_cast<double>(product(yd)) * static_cast<double>(l.in_channels * l.kernel * l.kernel);
  const std::string name = l.name;
  const Tensor tx = tensor_of(xd, x), tw = tensor_of(wd, w), tb = tensor_of(bd, b);

  const dnnl::convolution_forward::primitive_desc fwd(engine(), prop_kind::forward_training,
                                                      algorithm::convolution_direct, any(xd), any(wd), bias_desc,
                                                      any(yd), stride, dense, pad, pad_after);
  Direct forward;
  forward.prepare<dnnl::convolution_forward>(
      fwd, {{DNNL_ARG_SRC, {xm, fwd.src_desc()}}, {DNNL_ARG_WEIGHTS, {wm, fwd.weights_desc()}}}, DNNL_ARG_DST, ym,
      fwd.dst_desc(), DNNL_ARG_WEIGHTS);
  forward.add(DNNL_ARG_BIAS, bm);
  const auto served = [&] {
    const NoGrad off;
    conv2d(tx, tw, tb, {l.stride, l.stride}, {l.pad, l.pad});
  };
  print(name + " forward", flop, race(served, forward, flop), fwd.impl_info_str());

  const dnnl::convolution_backward_data::primitive_desc bwd(engine(), algorithm::convolution_direct, any(xd), any(wd),
                                                            any(yd), stride, dense, pad, pad_after, fwd);
  Direct backward;
  backward.prepare<dnnl::convolution_backward_data>(
      bwd, {{DNNL_ARG_DIFF_DST, {ym, bwd.diff_dst_desc()}}, {DNNL_ARG_WEIGHTS, {wm, bwd.weights_desc()}}},
      DNNL_ARG_DIFF_SRC, xm, bwd.diff_src_desc(), DNNL_ARG_WEIGHTS);
  print(name + " backward data", flop,
        race([&] { conv_backward_data(Elem::f32, s, y.data(), ys, w.data(), nullptr, x.data(), xs); }, backward, flop),
        bwd.impl_info_str());

  const dnnl::convolution_backward_weights::primitive_desc bww(engine(), algorithm::convolution_direct, any(xd),
                                                               any(wd), bias_desc, any(yd), stride, dense, pad,
                                                               pad_after, fwd);
  Direct weights;
  weights.prepare<dnnl::convolution_backward_weights>(
      bww, {{DNNL_ARG_SRC, {xm, bww.src_desc()}}, {DNNL_ARG_DIFF_DST, {ym, bww.diff_dst_desc()}}},
      DNNL_ARG_DIFF_WEIGHTS, wm, bww.diff_weights_desc(), -1);
  weights.add(DNNL_ARG_DIFF_BIAS, bm);
  print(
      name + " backward weights", flop,
      race([&] { conv_backward_weights(Elem::f32, s, x.data(), xs, y.data(), ys, w.data(), b.data()); }, weights, flop),
      bww.impl_info_str());
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view what = argc > 1 ? argv[1] : "all";
  std::vector<int> counts;
  for (int i = 2; i < argc; ++i) counts.push_back(std::max(1, std::atoi(argv[i])));
  if (counts.empty()) counts = {1, num_threads()};
  for (const int threads : counts) {
    set_num_threads(threads);
    omp_set_num_threads(threads);
    std::printf("%d thread(s)\n", threads);
    const bool named = what != "conv" && what != "matmul" && what != "all";
    if (what != "conv" && !named) {
      for (const int64_t n : {8, 32, 64, 128, 256, 512, 1000, 1024}) bench_matmul(n, n, n);
      bench_matmul(32, 64, 64);
      bench_matmul(1, 1024, 1024);
      bench_matmul(32, 1024, 1024);
      bench_matmul(1024, 64, 1024);
      bench_matmul(64, 64, 8192);
    }
    if (what == "matmul") continue;
    for (const Layer& l : {Layer{"LeNet 1 5x5 (64, 1, 28, 28)", 64, 1, 28, 6, 5, 1, 2},
                           Layer{"LeNet 2 5x5 (64, 6, 14, 14)", 64, 6, 14, 16, 5, 1, 0},
                           Layer{"digits 1 3x3 (64, 1, 8, 8)", 64, 1, 8, 16, 3, 1, 1},
                           Layer{"digits 2 3x3 (64, 16, 8, 8)", 64, 16, 8, 32, 3, 1, 1},
                           Layer{"ResNet 3x3 (16, 64, 56, 56)", 16, 64, 56, 64, 3, 1, 1},
                           Layer{"ResNet 3x3 (16, 128, 28, 28)", 16, 128, 28, 128, 3, 1, 1},
                           Layer{"ResNet 3x3 (16, 256, 14, 14)", 16, 256, 14, 256, 3, 1, 1},
                           Layer{"ResNet 3x3 (16, 512, 7, 7)", 16, 512, 7, 512, 3, 1, 1},
                           Layer{"ResNet 1x1 (16, 64, 56, 56)", 16, 64, 56, 256, 1, 1, 0},
                           Layer{"ResNet 3x3/2 (16, 128, 56, 56)", 16, 128, 56, 128, 3, 2, 1},
                           Layer{"ResNet 7x7/2 (4, 3, 224, 224)", 4, 3, 224, 64, 7, 2, 3},
                           Layer{"ResNet 3x3 (1, 64, 56, 56)", 1, 64, 56, 64, 3, 1, 1}}) {
      if (!named || std::string_view(l.name).find(what) != std::string_view::npos) bench_layer(l);
    }
  }
}
