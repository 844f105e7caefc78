// MNIST: the handwritten digits of a folder with the four files of the IDX format.
#pragma once
#include <torch/data/datasets/base.h>
#include <torch/factories.h>

#include <array>
#include <fstream>
#include <string>

namespace torch::data::datasets {

class MNIST : public Dataset<MNIST> {
 public:
  enum class Mode { kTrain, kTest };

  /// Loads images [N, 1, 28, 28] of float32 in [0, 1] and targets [N] of int64 from the files in `root`, which are
  /// named train-images-idx3-ubyte and so on, as unpacked.
  explicit MNIST(const std::string& root, Mode mode = Mode::kTrain) : mode_(mode) {
    const std::string start = root + (root.empty() || root.back() == '/' ? "" : "/") + (is_train() ? "train" : "t10k");
    images_ = read(start + "-images-idx3-ubyte", "images", 3).unsqueeze(1).to(kFloat).div_(255);
    targets_ = read(start + "-labels-idx1-ubyte", "targets", 1).to(kLong);
    TORCH_CHECK(images_.size(0) == targets_.size(0), "MNIST: ", images_.size(0), " images, but ", targets_.size(0),
                " targets in ", root);
  }
  Example<> get(size_t index) override { return {images_[int64_t(index)], targets_[int64_t(index)]}; }
  optional<size_t> size() const override { return size_t(images_.size(0)); }
  bool is_train() const noexcept { return mode_ == Mode::kTrain; }
  const Tensor& images() const { return images_; }
  const Tensor& targets() const { return targets_; }

 private:
  /// Reads bytes in the IDX format: 0, 0, 8, the number of dimensions, their sizes (big-endian), the elements.
  static Tensor read(const std::string& path, const char* what, int dims) {
    std::ifstream file(path, std::ios::binary);
    TORCH_CHECK(file, "Error opening ", what, " file at ", path);
    const auto integer = [&] {
      std::array<unsigned char, 4> b{};
      file.read(reinterpret_cast<char*>(b.data()), 4);
      return int64_t(b[0]) << 24 | int64_t(b[1]) << 16 | int64_t(b[2]) << 8 | int64_t(b[3]);
    };
    TORCH_CHECK(integer() == 0x800 + dims, "MNIST: ", path, " is no file of ", what, " in the IDX format");
    std::vector<int64_t> sizes;
    for (int d = 0; d < dims; ++d) sizes.push_back(integer());
    Tensor bytes = torch::empty(sizes, kByte);
    file.read(reinterpret_cast<char*>(bytes.mutable_data_ptr<uint8_t>()), std::streamsize(bytes.numel()));
    TORCH_CHECK(file, "MNIST: ", path, " ends before its ", bytes.numel(), " elements");
    return bytes;
  }
  Mode mode_;
  Tensor images_, targets_;
};

}  // namespace torch::data::datasets
