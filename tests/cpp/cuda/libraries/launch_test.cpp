// Launches that a GPU cannot take are refused by a sentence; none runs a part of what was asked for.
#include <vesta/cuda/check.h>

#include <catch2/catch.hpp>
#include <cstdint>

#include <vesta/core/base/error.h>

TEST_CASE("grids of more blocks than a GPU takes are refused", "[cuda]") {
  using vesta::cuda::block_count;
  CHECK(block_count(0, 256) == 0);
  CHECK(block_count(1, 256) == 1);
  CHECK(block_count(257, 256) == 2);
  constexpr uint64_t kMost = (uint64_t(1) << 31) - 1;
  CHECK(block_count(kMost * 256, 256) == kMost);
  CHECK_THROWS_WITH(block_count(kMost * 256 + 1, 256), Catch::Contains("2147483648 blocks of 256 threads"));
  CHECK_THROWS_AS(block_count(uint64_t(1) << 40, 256), vesta::Error);  // its low 32 bits are no error
  CHECK_THROWS_AS(block_count(UINT64_MAX, 32), vesta::Error);
}
