// cuDNN plans of our convolutions, made for an H200 that need not be present: the library's heuristics, support checks
// and code generation run; nothing executes. Ends with status 77, "cannot run here", if cuDNN 9 is not installed.
#include <catch2/catch.hpp>
#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include <vesta/cuda/lib/cudnn_attention.h>
#include <vesta/cuda/lib/cudnn_conv.h>
#include <vesta/cuda/lib/library.h>

namespace {

using namespace vesta;
using namespace vesta::cuda;
using cudnn::Direction;

/// An H200 in the form that cuDNN reads (CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION).
constexpr const char* kH200 = R"({"maxGridSize": [2147483647, 65535, 65535], "maxBlockSize": [1024, 1024, 64],
  "regsPerBlock": 65536, "multiProcessorCount": 132, "warpSize": 32, "maxSharedMemoryPerBlock": 49152,
  "maxSharedMemoryPerBlockOptin": 232448, "reservedSharedMemoryPerBlock": 1024, "maxRegistersPerSM": 65536,
  "maxCtasPerSM": 32, "maxThreadsPerBlock": 1024, "maxThreadsPerSM": 2048, "pciDeviceId": 0, "isTccDriver": 0,
  "supportCoopLaunch": 1, "totalGlobalMem": 150110011392, "smClockRateKHz": 1980000, "memClockRateKHz": 3201000,
  "l2CacheSize": 62914560, "deviceName": "NVIDIA H200", "cudaDeviceId": 0, "deviceVer": 900, "driverVer": 13000})";

const cudnn::Target& h200() {
  static const auto* target = new cudnn::Target(cudnn::Target::of_json(kH200));
  return *target;
}

struct Row {
  const char* name;
  int64_t batch, channels, outputs, groups, size, kernel, stride, padding, dilation;
  int64_t dims = 2;
};
constexpr Row kRows[] = {
    {"first layer of a ResNet", 32, 3, 64, 1, 224, 7, 2, 3, 1},
    {"3x3", 32, 64, 64, 1, 56, 3, 1, 1, 1},
    {"3x3 with a stride", 32, 128, 256, 1, 28, 3, 2, 1, 1},
    {"1x1", 32, 256, 64, 1, 56, 1, 1, 0, 1},
    {"dilated", 8, 64, 64, 1, 32, 3, 1, 2, 2},
    {"grouped", 16, 64, 128, 4, 28, 3, 1, 1, 1},
    {"depthwise", 16, 96, 96, 96, 28, 3, 1, 1, 1},
    {"ResNet-50, 1x1 of 56", 32, 64, 64, 1, 56, 1, 1, 0, 1},
    {"ResNet-50, 1x1 to four times", 32, 64, 256, 1, 56, 1, 1, 0, 1},
    {"ResNet-50, 3x3 with a stride, 56 to 28", 32, 128, 128, 1, 56, 3, 2, 1, 1},
    {"ResNet-50, 1x1 with a stride, 56 to 28", 32, 256, 512, 1, 56, 1, 2, 0, 1},
    {"ResNet-50, 3x3 of 28", 32, 128, 128, 1, 28, 3, 1, 1, 1},
    {"ResNet-50, 1x1 with a stride, 28 to 14", 32, 512, 1024, 1, 28, 1, 2, 0, 1},
    {"ResNet-50, 3x3 of 14", 32, 256, 256, 1, 14, 3, 1, 1, 1},
    {"ResNet-50, 1x1 of 14", 32, 1024, 256, 1, 14, 1, 1, 0, 1},
    {"ResNet-50, 1x1 with a stride, 14 to 7", 32, 1024, 2048, 1, 14, 1, 2, 0, 1},
    {"ResNet-50, 3x3 of 7", 32, 512, 512, 1, 7, 3, 1, 1, 1},
    {"ResNet-50, 1x1 of 7", 32, 512, 2048, 1, 7, 1, 1, 0, 1},
    {"LeNet on digits", 64, 1, 6, 1, 28, 5, 1, 2, 1},
    {"odd channels", 4, 6, 17, 1, 13, 5, 1, 0, 1},
    {"transposed, as in a generator", 16, 128, 256, 1, 32, 4, 2, 1, 1},
    {"lines", 16, 64, 128, 1, 1000, 3, 1, 1, 1, 1},
    {"volumes", 2, 32, 64, 1, 16, 3, 1, 1, 1, 3},
    {"first layer of a network for volumes", 2, 3, 32, 1, 32, 7, 2, 3, 1, 3},
    {"2x2x2, as between levels of a U-Net", 2, 32, 64, 1, 16, 2, 2, 0, 1, 3},
    {"dilated volumes", 1, 16, 16, 1, 16, 3, 1, 2, 2, 3},
    {"grouped volumes", 2, 32, 32, 4, 16, 3, 1, 1, 1, 3},
};

ConvDesc describe(const Row& r, DType dtype) {
  ConvDesc d;
  d.dtype = dtype, d.batch = r.batch, d.channels = r.channels, d.outputs = r.outputs, d.groups = r.groups;
  const int64_t out = (r.size + 2 * r.padding - r.dilation * (r.kernel - 1) - 1) / r.stride + 1;
  const auto each = [&](int64_t number, int64_t neutral) {
    return Spatial{r.dims == 3 ? number : neutral, r.dims >= 2 ? number : neutral, number};
  };
  d.window = {r.dims,          each(r.kernel, 1), each(r.stride, 1), each(r.padding, 0), each(r.dilation, 1),
              each(r.size, 1), each(out, 1)};
  return d;
}

struct AttentionRow {
  const char* name;
  int64_t batch, heads, shared_heads, queries, keys, key_size, value_size;
  bool heads_in_rows;  // [batch, rows, heads, size] in memory
};
constexpr AttentionRow kAttentions[] = {
    {"GPT-2", 4, 12, 12, 1024, 1024, 64, 64, true},        {"heads apart", 2, 16, 16, 512, 512, 128, 128, false},
    {"grouped heads", 2, 32, 8, 512, 512, 128, 128, true}, {"odd lengths", 3, 4, 4, 77, 100, 64, 64, true},
    {"narrow", 8, 4, 4, 128, 128, 32, 32, true},
};

AttentionDesc describe(const AttentionRow& r, DType dtype, bool causal) {
  AttentionDesc d;
  d.dtype = dtype, d.causal = causal;
  d.batch = r.batch, d.heads = r.heads, d.shared_heads = r.shared_heads, d.queries = r.queries, d.keys = r.keys;
  d.key_size = r.key_size, d.value_size = r.value_size;
  const auto strides = [&](int64_t heads, int64_t rows, int64_t size) -> std::array<int64_t, 3> {
    if (r.heads_in_rows) return {heads * rows * size, size, heads * size};
    return {heads * rows * size, rows * size, size};
  };
  d.strides[attention_q] = d.strides[attention_of_q] = strides(r.heads, r.queries, r.key_size);
  d.strides[attention_k] = d.strides[attention_of_k] = strides(r.shared_heads, r.keys, r.key_size);
  d.strides[attention_v] = d.strides[attention_of_v] = strides(r.shared_heads, r.keys, r.value_size);
  d.strides[attention_out] = d.strides[attention_grad] = strides(r.heads, r.queries, r.value_size);
  return d;
}

AttentionBias bias_of(const AttentionDesc& d, DType dtype, bool each_batch, bool each_head) {
  return {dtype, {each_batch ? d.batch : 1, each_head ? d.heads : 1, d.queries, d.keys}, (d.keys + 7) / 8 * 8};
}

/// Returns the folder of a cuDNN 9, of the toolkit, of the system or of a package of PyPI; empty if there is none.
std::string folder_of_cudnn() {
  namespace fs = std::filesystem;
  const auto variable = [](const char* name) {
    const char* text = std::getenv(name);
    return std::string(text ? text : "");
  };
  std::error_code ignored;
  std::vector<fs::path> folders{variable("VESTA_CUDA_LIB_DIR"), variable("CUDA_HOME") + "/lib64",
                                "/usr/local/cuda/lib64", "/usr/lib/x86_64-linux-gnu"};
  for (const fs::path& environment : {fs::path(variable("VIRTUAL_ENV")), fs::path(VESTA_SOURCES) / ".venv"}) {
    if (environment.empty()) continue;
    for (const auto& python : fs::directory_iterator(environment / "lib", ignored)) {
      for (const std::string& folder : package_folders((python.path() / "site-packages").string(), 13))
        folders.push_back(folder);
    }
  }
  for (const fs::path& folder : folders)
    if (fs::exists(folder / "libcudnn.so.9", ignored)) return folder.string();
  return {};
}

/// Ends the program if cuDNN is missing, and finds it otherwise.
[[gnu::constructor]] void find_cudnn() {
  const std::string folder = folder_of_cudnn();
  if (folder.empty()) {
    std::fputs("cuDNN 9 is not installed: its plans are not tested.\n", stderr);
    _exit(77);
  }
  setenv("VESTA_CUDA_LIB_DIR", folder.c_str(), 1);
  // Load this before cuDNN asks for a driver; if there is a real one, ours already has its name in the linker.
  if (!dlopen(VESTA_FAKE_DRIVER, RTLD_NOW | RTLD_GLOBAL)) {
    std::fprintf(stderr, "%s\n", dlerror());
    _exit(1);
  }
}

}  // namespace

TEST_CASE("every convolution has a plan in every direction and dtype", "[cudnn]") {
  for (const Row& row : kRows) {
    for (const DType dtype : {DType::float32, DType::bfloat16, DType::float16, DType::float64}) {
      for (const Direction direction : {Direction::forward, Direction::input_gradient, Direction::weight_gradient}) {
        CAPTURE(row.name, name(dtype), int(direction));
        cudnn::Choice choice;
        int64_t workspace = -1;
        REQUIRE_NOTHROW(workspace = plan_convolution(direction, describe(row, dtype), h200(), choice).workspace());
        CHECK(workspace >= 0);
        CHECK(workspace <= choice.workspace_limit);
      }
    }
  }
}

TEST_CASE("a bias, a residual and relu are in a convolution's graph", "[cudnn]") {
  for (const Row& row : kRows) {
    if (row.groups > 1 && row.channels == row.groups) continue;  // cuda/ops/conv.cpp leaves them apart
    for (const DType dtype : {DType::float32, DType::bfloat16, DType::float16}) {
      for (const int what : {0b001, 0b101, 0b111}) {
        ConvDesc desc = describe(row, dtype);
        desc.bias = what & 1, desc.residual = what & 2, desc.relu = what & 4;
        CAPTURE(row.name, name(dtype), what);
        REQUIRE_NOTHROW(plan_convolution(Direction::forward, desc, h200(), {}));
      }
    }
  }
  ConvDesc wide = describe(kRows[1], DType::float64), gradient = describe(kRows[1], DType::float32);
  wide.bias = gradient.bias = true;
  CHECK_THROWS_AS(plan_convolution(Direction::forward, wide, h200(), {}), cudnn::Refused);
  CHECK_THROWS_AS(plan_convolution(Direction::input_gradient, gradient, h200(), {}), cudnn::Refused);
}

TEST_CASE("engines that are not deterministic are chosen only where they may be", "[cudnn]") {
  cudnn::Choice any;
  any.deterministic = false;
  int free = 0;
  for (const Row& row : kRows) {
    for (const DType dtype : {DType::float32, DType::bfloat16}) {
      for (const Direction direction : {Direction::forward, Direction::input_gradient, Direction::weight_gradient}) {
        CAPTURE(row.name, name(dtype), int(direction));
        const ConvDesc desc = describe(row, dtype);
        CHECK(plan_convolution(direction, desc, h200(), {}).is_deterministic());
        free += !plan_convolution(direction, desc, h200(), any).is_deterministic();
      }
    }
  }
  CHECK(free > 0);
  for (const AttentionRow& row : kAttentions) {
    for (const bool backward : {false, true})
      CHECK(plan_attention(describe(row, DType::bfloat16, true), backward, h200(), {}).is_deterministic());
  }
}

TEST_CASE("float32 without rounded factors has a plan too", "[cudnn]") {
  cudnn::Choice exact;
  exact.tensor_cores = false;
  for (const Row& row : kRows) {
    for (const Direction direction : {Direction::forward, Direction::input_gradient, Direction::weight_gradient}) {
      CAPTURE(row.name, int(direction));
      CHECK_NOTHROW(plan_convolution(direction, describe(row, DType::float32), h200(), exact));
    }
  }
}

TEST_CASE("with channels last no layout is converted in a workspace", "[cudnn]") {
  // The same plan for plain NCHW asks for 129 MB.
  const Row row{"wide 3x3", 64, 256, 256, 1, 56, 3, 1, 1, 1};
  CHECK(plan_convolution(Direction::forward, describe(row, DType::bfloat16), h200(), {}).workspace() < 1 << 20);
}

TEST_CASE("a limit on the workspace is kept, and an integer convolution refused", "[cudnn]") {
  cudnn::Choice none;
  none.workspace_limit = 0;
  CHECK(plan_convolution(Direction::forward, describe(kRows[1], DType::float32), h200(), none).workspace() == 0);
  CHECK_THROWS_AS(plan_convolution(Direction::forward, describe(kRows[1], DType::int32), h200(), {}), cudnn::Refused);
}

TEST_CASE("attention has a plan forward and backward", "[cudnn]") {
  for (const AttentionRow& row : kAttentions) {
    for (const DType dtype : {DType::bfloat16, DType::float16}) {
      for (const bool causal : {false, true}) {
        CAPTURE(row.name, name(dtype), causal);
        const AttentionDesc desc = describe(row, dtype, causal);
        int64_t workspace = -1;
        REQUIRE_NOTHROW(workspace = plan_attention(desc, false, h200(), {}).workspace());
        CHECK(workspace <= 1 << 20);  // no scores
        REQUIRE_NOTHROW(workspace = plan_attention(desc, true, h200(), {}).workspace());
        CHECK(workspace <= cudnn::Choice().workspace_limit);
      }
    }
  }
}

TEST_CASE("attention with the numbers of a mask has deterministic plans that write no scores", "[cudnn]") {
  struct Mask {
    DType dtype, of_bias;
    bool causal, each_batch, each_head;
  };
  for (const AttentionRow& row : kAttentions) {
    for (const Mask& m : {Mask{DType::bfloat16, DType::bfloat16, false, true, false},
                          Mask{DType::float16, DType::float16, true, false, false},
                          Mask{DType::bfloat16, DType::float32, false, true, true}}) {
      CAPTURE(row.name, name(m.dtype), name(m.of_bias));
      AttentionDesc desc = describe(row, m.dtype, m.causal);
      desc.bias = bias_of(desc, m.of_bias, m.each_batch, m.each_head);
      cudnn::Plan plan;
      REQUIRE_NOTHROW(plan = plan_attention(desc, false, h200(), {}));
      CHECK(plan.is_deterministic());
      CHECK(plan.workspace() <= 1 << 20);
      REQUIRE_NOTHROW(plan = plan_attention(desc, true, h200(), {}));
      CHECK(plan.is_deterministic());
    }
  }
}

TEST_CASE("a gradient of attention whose workspace is over the limit is refused", "[cudnn]") {
  const AttentionRow large{"large", 64, 16, 16, 1024, 1024, 64, 64, true};
  CHECK_NOTHROW(plan_attention(describe(large, DType::bfloat16, true), false, h200(), {}));
  CHECK_THROWS_AS(plan_attention(describe(large, DType::bfloat16, true), true, h200(), {}), cudnn::Refused);
}

TEST_CASE("a gradient over the limit is cut into parts that have plans", "[cudnn]") {
  const int64_t limit = cudnn::Choice().workspace_limit;
  const AttentionRow rows[] = {
      {"of many sequences", 64, 16, 16, 1024, 1024, 64, 64, true},
      {"of long sequences", 2, 32, 8, 4096, 4096, 128, 128, true},
      {"of odd sizes", 5, 7, 7, 1501, 2500, 64, 64, false},
  };
  for (const AttentionRow& row : rows) {
    CAPTURE(row.name);
    const AttentionDesc whole = describe(row, DType::bfloat16, false);
    const std::vector<AttentionSlice> slices = attention_slices(whole, limit);
    CHECK(slices.size() > 1);
    std::vector<int> seen(size_t(row.batch * row.heads));
    for (const AttentionSlice& s : slices) {
      CHECK((s.heads == row.heads || s.batches == 1));
      CHECK(s.head % (row.heads / row.shared_heads) == 0);
      CHECK((s.batch * row.heads + s.head) * row.queries % 4 == 0);  // aligned
      for (int64_t b = s.batch; b < s.batch + s.batches; ++b)
        for (int64_t h = s.head; h < s.head + s.heads; ++h) ++seen[size_t(b * row.heads + h)];
    }
    CHECK(std::ranges::count(seen, 1) == std::ssize(seen));
    for (const AttentionSlice& s : {slices.front(), slices.back()}) {
      AttentionDesc d = whole;
      d.batch = s.batches, d.heads = s.heads, d.shared_heads = s.heads * row.shared_heads / row.heads;
      int64_t workspace = 0;
      REQUIRE_NOTHROW(workspace = plan_attention(d, true, h200(), {}).workspace());
      CHECK(workspace <= limit);
      if (s.batch == 0 && s.head == 0) CHECK(workspace > limit / 4);  // not many parts
    }
  }
  const AttentionDesc small = describe(kAttentions[0], DType::bfloat16, true);
  CHECK(attention_slices(small, limit).size() == 1);
  CHECK(attention_slices(small, 1 << 20).size() == 1);  // less than a head's: refused
}

TEST_CASE("what cuDNN computes of attention is decided with a reason", "[cudnn]") {
  AttentionWork w;
  w.desc = describe(kAttentions[0], DType::bfloat16, true);
  alignas(16) char memory[32];
  for (void*& p : w.data) p = memory;
  CHECK(why_not_cudnn(w) == nullptr);
  const auto refused = [&](auto change) {
    AttentionWork other = w;
    change(other);
    return why_not_cudnn(other) != nullptr;
  };
  CHECK(refused([](AttentionWork& o) { o.desc.dtype = DType::float32; }));
  CHECK(refused([](AttentionWork& o) { o.in_ranges = true; }));
  CHECK(!refused([](AttentionWork& o) { o.desc.bias = bias_of(o.desc, DType::bfloat16, true, false); }));
  CHECK(refused(
      [](AttentionWork& o) { o.desc.batch = 1000, o.desc.bias = bias_of(o.desc, DType::bfloat16, true, false); }));
  CHECK(refused([](AttentionWork& o) { o.dropout = true; }));
  CHECK(refused([](AttentionWork& o) { o.desc.key_size = 60; }));
  CHECK(refused([](AttentionWork& o) { o.desc.strides[attention_k][1] = 0; }));
  CHECK(refused([&](AttentionWork& o) { o.data[attention_q] = memory + 2; }));
}
