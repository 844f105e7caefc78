// Evaluates in C++ what train.py trained in Python: the same layers and test digits, so the same logits, bit for bit.
//
//     build/bin/digits_evaluate [out [examples/data/digits]]
#include <vesta/vesta.h>

#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>

using namespace vesta;

/// Reads unsigned bytes in the MNIST IDX format: magic 0 0 8 ndim, big-endian sizes, data.
Tensor read_idx(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(file), {}};
  const size_t header = bytes.size() < 4 ? 4 : 4 + 4 * size_t(uint8_t(bytes[3]));
  VESTA_CHECK(bytes.size() >= header && bytes[2] == 8, value, path, ": expected an IDX file of unsigned bytes.");
  Dims sizes;
  for (size_t at = 4; at < header; at += 4) {
    sizes.push_back(uint8_t(bytes[at]) << 24 | uint8_t(bytes[at + 1]) << 16 | uint8_t(bytes[at + 2]) << 8 |
                    uint8_t(bytes[at + 3]));
  }
  Tensor t = empty(sizes, DType::uint8);
  VESTA_CHECK(bytes.size() - header == size_t(t.numel()), value, path, ": expected ", t.numel(), " bytes of data.");
  std::memcpy(t.data_ptr(), bytes.data() + header, size_t(t.numel()));
  return t;
}

int main(int argc, char** argv) try {
  const std::string out = argc > 1 ? argv[1] : "out", data = argc > 2 ? argv[2] : "examples/data/digits";
  nn::Sequential model{
      nn::make<nn::Conv2d>(nn::Conv2dOptions{.in_channels = 1, .out_channels = 16, .kernel_size = 3, .padding = 1}),
      nn::make<nn::BatchNorm2d>(16),
      nn::make<nn::ReLU>(),
      nn::make<nn::Conv2d>(nn::Conv2dOptions{.in_channels = 16, .out_channels = 32, .kernel_size = 3, .padding = 1}),
      nn::make<nn::ReLU>(),
      nn::make<nn::MaxPool2d>(2),
      nn::make<nn::Flatten>(),
      nn::make<nn::Dropout>(0.3),
      nn::make<nn::Linear>(32 * 4 * 4, 60),
      nn::make<nn::ReLU>(),
      nn::make<nn::Linear>(60, 10)};
  model.load_state_dict(io::load_safetensors(out + "/digits.safetensors"));
  model.eval();

  NoGrad off;
  Tensor images = read_idx(data + "/t10k-images-idx3-ubyte").to(DType::float32).unsqueeze(1) / 255;
  Tensor labels = read_idx(data + "/t10k-labels-idx1-ubyte").to(DType::int64), logits = model(images);
  const double right = (logits.argmax(1) == labels).sum().item<double>();
  std::printf("test accuracy %.2f%%\n", 100 * right / double(labels.numel()));

  Tensor python = io::load_safetensors(out + "/digits_logits.safetensors").at(0).second;
  const size_t bytes = size_t(logits.numel()) * sizeof(float);
  const bool same = python.numel() == logits.numel() && !std::memcmp(python.data_ptr(), logits.data_ptr(), bytes);
  std::printf("%lld logits, %s\n", (long long)logits.numel(),
              same ? "bit-identical to Python's" : "NOT those of Python");
  return same ? 0 : 1;
} catch (const Error& e) {
  std::fprintf(stderr, "%s\n", e.what());
  return 1;
}
