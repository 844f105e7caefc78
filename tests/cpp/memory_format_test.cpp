// Layouts of images: which one an op follows, and convolutions of raw memory in both.
#include <catch2/catch.hpp>

#include <algorithm>

#include <vesta/core/ops/memory_format.h>
#include <vesta/core/ops/ops.h>

using namespace vesta;

namespace {

Tensor with_strides(Dims sizes, Dims strides) {
  int64_t span = 1;
  for (size_t i = 0; i < sizes.size(); ++i) span += (sizes[i] - 1) * strides[i];
  return as_strided(empty_tensor({{span}}, DType::float32), sizes, strides);
}

}  // namespace

TEST_CASE("strides say which layout an op follows", "[layouts]") {
  CHECK(suggests_channels_last(with_strides({2, 3, 4, 5}, {60, 1, 15, 3})));
  CHECK_FALSE(suggests_channels_last(with_strides({2, 3, 4, 5}, {60, 20, 5, 1})));
  CHECK(suggests_channels_last(with_strides({2, 3, 4, 5}, {100, 1, 25, 5})));  // a slice
  // sizes of 1 leave it open
  CHECK(suggests_channels_last(with_strides({2, 3, 1, 1}, {3, 1, 3, 3})));
  CHECK_FALSE(suggests_channels_last(with_strides({2, 3, 1, 1}, {3, 1, 1, 1})));
  CHECK(suggests_channels_last(with_strides({2, 1, 4, 5}, {20, 1, 5, 1})));
  CHECK_FALSE(suggests_channels_last(with_strides({2, 1, 4, 5}, {20, 20, 5, 1})));
  CHECK_FALSE(suggests_channels_last(with_strides({2, 1, 1, 1}, {1, 1, 1, 1})));
  CHECK(suggests_channels_last(with_strides({2, 3, 4, 5, 6}, {360, 1, 90, 18, 3})));
  CHECK_FALSE(suggests_channels_last(with_strides({2, 3, 4}, {12, 1, 3})));
}

TEST_CASE("results have exact strides", "[layouts]") {
  const Tensor rows = empty_tensor(Dims{2, 1, 4, 5}, DType::float32);
  const Tensor last = dense_image(rows, true);
  CHECK(std::ranges::equal(last.strides(), Dims{20, 1, 5, 1}));
  CHECK(last.impl()->data() == rows.impl()->data());  // the same elements
  CHECK(std::ranges::equal(dense_image(last, false).strides(), Dims{20, 20, 5, 1}));
  const Tensor x = with_strides({2, 3, 4, 5}, {60, 1, 15, 3}), w = empty_tensor(Dims{4, 3, 1, 1}, DType::float32);
  const Tensor y = conv2d(x, w, {}, IntList(1), IntList(0), IntList(1), 1);
  CHECK(std::ranges::equal(y.strides(), Dims{80, 1, 20, 4}));
}
