// Packed weights that are kept: when, for how long, how many, and that they are never old. What Python hands out and
// what it writes with: tests/python/test_kept_weights.py.
#include <catch2/catch.hpp>

#include <vesta/core/cpu/kept_weights.h>
#include <vesta/core/index.h>
#include <vesta/core/ops/from_data.h>
#include <vesta/core/ops/ops.h>
#include <vesta/core/ops/pointwise.h>
#include <vesta/nn/functional.h>

#include <atomic>
#include <functional>
#include <thread>
#include <vector>

namespace {

using namespace vesta;
using cpu::drop_packed_weights;
using cpu::kept_weights;

/// A guard that begins and ends without kept weights.
struct Fresh {
  Fresh() { drop_packed_weights(); }
  ~Fresh() { drop_packed_weights(); }
};

/// A guard of the most bytes that are kept.
struct MostKept {
  explicit MostKept(int64_t bytes) : before(cpu::limit_kept_weights(bytes)) {}
  ~MostKept() { cpu::limit_kept_weights(before); }
  int64_t before;
};

Tensor served(const Tensor& x, const Tensor& w) {
  NoGrad off;
  return linear(x, w);
}

TEST_CASE("a weight is kept from its second product on, with the same bits", "[kept_weights]") {
  const Fresh fresh;
  const Tensor x = randn({40, 300}), w = randn({200, 300});
  const Tensor expected = linear(x, w);
  CHECK(kept_weights().count == 0);  // what may be recorded keeps nothing
  for (const int64_t count : {0, 1, 1}) {
    CHECK(equal(served(x, w), expected));
    CHECK(kept_weights().count == count);
  }
  CHECK(kept_weights().bytes >= 200 * 300 * 4);
  CHECK(equal(served(x.narrow(0, 3, 17), w), expected.narrow(0, 3, 17)));  // of other rows
  CHECK(kept_weights().count == 1);
}

TEST_CASE("kept weights die with their weight", "[kept_weights]") {
  const Fresh fresh;
  const Tensor x = randn({40, 300});
  {
    const Tensor w = randn({200, 300}), half = w.narrow(0, 0, 100);
    for (int i = 0; i < 3; ++i) served(x, w), served(x, half);
    CHECK(kept_weights().count == 2);
  }
  CHECK(kept_weights().count == 0);
  CHECK(kept_weights().bytes == 0);
  for (int i = 0; i < 20; ++i) served(x, randn({200, 300}));  // in the memory of the one before, as likely as not
  CHECK(kept_weights().count == 0);
}

TEST_CASE("a weight that was written is packed anew", "[kept_weights]") {
  const Fresh fresh;
  const Tensor x = randn({40, 300});
  Tensor w = randn({200, 300});
  const Tensor other = randn({200, 300}), rows = zeros({2}, DType::int64);
  const std::vector<std::function<void()>> writers = {
      [&] { w.fill_(0.5); },
      [&] { w.uniform_(); },
      [&] { w.copy_(other); },
      [&] { w.add_(other); },
      [&] { w.variable_data().mul_(2.0); },
      [&] { w.detach().zero_(); },
      [&] { w.t().narrow(0, 5, 7).copy_(other.t().narrow(0, 5, 7)); },
      [&] { w.index_add_(0, rows, other.narrow(0, 0, 2), 1); },
      [&] { w.index_put_({1, Slice(0, 4)}, other.narrow(0, 0, 1).narrow(1, 0, 4)); },
      [&] { w.masked_fill_(other > 0, 1.0); },
      [&] { w.clamp_(-0.5, 0.5); },
      [&] { w.resize_({200, 300}); },
  };
  for (size_t i = 0; i < writers.size(); ++i) {
    INFO("writer " << i);
    for (int k = 0; k < 3; ++k) served(x, w);
    REQUIRE(kept_weights().count == 1);
    NoGrad off;
    writers[i]();
    CHECK(equal(served(x, w), served(x, w.clone())));
  }
}

TEST_CASE("an in-place op that fails in the middle counts as a write", "[kept_weights]") {
  const Tensor w = randn({64, 64});
  const uint32_t before = w.impl()->storage()->writes(), version = w.version();
  CHECK_THROWS(w.add_(randn({3, 3})));  // refused before it begins: it may count or not
  check_writable(w, "test");
  CHECK(w.impl()->storage()->writes() > before);
  CHECK(w.version() == version);
}

TEST_CASE("nothing is kept of memory whose address is known", "[kept_weights]") {
  const Fresh fresh;
  const Tensor x = randn({40, 300}), w = randn({200, 300});
  for (int i = 0; i < 3; ++i) served(x, w);
  CHECK(kept_weights().count == 1);
  float* const at = w.data_ptr<float>();
  CHECK(kept_weights().count == 0);
  for (int i = 0; i < 3; ++i) {
    at[17] = float(i);
    CHECK(equal(served(x, w), served(x, w.clone())));
  }
  CHECK(kept_weights().count == 0);
  std::vector<float> mine(200 * 300, 1.0f);
  const Tensor borrowed = from_blob(mine.data(), {200, 300}, DType::float32);
  for (int i = 0; i < 3; ++i) {
    mine[0] = float(i);
    CHECK(equal(served(x, borrowed), served(x, borrowed.clone())));
  }
  CHECK(kept_weights().count == 0);
}

TEST_CASE("what is kept has a bound, and a network beyond it keeps a part", "[kept_weights]") {
  const Fresh fresh;
  const Tensor x = randn({40, 256});
  const MostKept limit(600 * 1024);  // of 256 KiB each: two
  std::vector<Tensor> layers;
  layers.reserve(5);
  for (int i = 0; i < 5; ++i) layers.push_back(randn({256, 256}));
  for (int round = 0; round < 8; ++round) {
    for (const Tensor& w : layers) served(x, w);
    CHECK(kept_weights().bytes <= 600 * 1024);
  }
  CHECK(kept_weights().count == 2);
  const Tensor another = randn({256, 256});  // the only one that is used now gets room
  for (int i = 0; i < 100; ++i) served(x, another);
  const int64_t before = kept_weights().bytes;
  layers.clear();
  CHECK(kept_weights().count == 1);
  CHECK(kept_weights().bytes < before);
}

TEST_CASE("a backward pass keeps nothing", "[kept_weights]") {
  const Fresh fresh;
  const Tensor x = randn({40, 300}), w = randn({200, 300});
  x.set_requires_grad();
  for (int i = 0; i < 4; ++i) linear(x, w).sum().backward();
  CHECK(kept_weights().count == 0);
}

TEST_CASE("convolutions keep their weights in either layout", "[kept_weights]") {
  const Fresh fresh;
  const Tensor x = randn({1, 64, 14, 14});
  for (const int64_t kernel : {1, 3, 5}) {
    Tensor w = randn({96, 64, kernel, kernel});
    for (const bool last : {false, true}) {
      const Tensor v = last ? w.contiguous("channels_last") : w;
      const Tensor expected = conv2d(x, v, {}, {2}, {kernel / 2});
      NoGrad off;
      for (int i = 0; i < 4; ++i) CHECK(equal(conv2d(x, v, {}, {2}, {kernel / 2}), expected));
      v.mul_(2.0);
      for (int i = 0; i < 4; ++i) CHECK(equal(conv2d(x, v, {}, {2}, {kernel / 2}), expected * 2.0));
      if (kernel == 5) CHECK(kept_weights().count >= 1);
    }
  }
  const int64_t none = 0;
  // Square weights of 1 x 1, one the transpose of the other in the same memory.
  const Tensor square = randn({64, 64, 1, 1}), turned = square.transpose(0, 1);
  const Tensor first = conv2d(x, square, {}, {1}, {none});
  const Tensor second = conv2d(x, turned, {}, {1}, {none});
  NoGrad off;
  for (int i = 0; i < 4; ++i) {
    CHECK(equal(conv2d(x, square, {}, {1}, {none}), first));
    CHECK(equal(conv2d(x, turned, {}, {1}, {none}), second));
  }
}

TEST_CASE("a transposed convolution's kept weights depend on the geometry", "[kept_weights]") {
  const Fresh fresh;
  const Tensor w = randn({32, 48, 5, 5});
  for (int round = 0; round < 3; ++round) {
    for (const int64_t padding : {0, 1, 2}) {
      for (const int64_t side : {5, 8}) {
        const Tensor x = randn({1, 32, side, side});
        const Tensor expected = conv_transpose2d(x, w, {}, {3}, {padding});
        NoGrad off;
        for (int i = 0; i < 3; ++i) CHECK(equal(conv_transpose2d(x, w, {}, {3}, {padding}), expected));
      }
    }
  }
}

TEST_CASE("threads serve one weight, and one writes it", "[kept_weights]") {
  const Fresh fresh;
  const Tensor x = ones({40, 256});
  const Tensor w = zeros({128, 256});
  std::atomic<bool> done{false};
  std::atomic<int> wrong{0};
  std::vector<std::thread> servers;
  servers.reserve(3);
  for (int t = 0; t < 3; ++t) {
    servers.emplace_back([&] {
      while (!done) {
        if (served(x, w).numel() != 40 * 128) ++wrong;
      }
    });
  }
  for (int i = 1; i <= 200; ++i) {
    NoGrad off;
    w.fill_(double(i));
    const Tensor y = served(x, w);  // this thread's own write, whatever the others keep meanwhile
    if (!equal(y, full({40, 128}, 256.0 * i))) ++wrong;
  }
  done = true;
  for (std::thread& t : servers) t.join();
  CHECK(wrong == 0);
}

}  // namespace
