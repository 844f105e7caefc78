// Convolutions with a kernel of one pixel, which are matrix products, by cuBLASLt.
#pragma once
#include <vesta/core/ops/window.h>
#include <vesta/cuda/ops/operands.h>

namespace vesta::cuda {

/// The geometry of a convolution that may go to products: x [batch, channels, ...] to y [batch, outputs, ...].
struct ConvProducts {
  DType dtype;
  int64_t batch, channels, outputs, groups;
  Window window;

  /// Computes x's convolution with w, and a bias where one is defined. Like the others: row-major and dense; undefined
  /// where products do not pay or cuBLASLt is missing or refuses them, and then nothing was queued.
  Tensor forward(const Tensor& x, const Tensor& w, const Tensor& bias, const OperandDevice& device) const;
  /// Computes the gradient of x from y's.
  Tensor input_gradient(const Tensor& grad, const Tensor& w, const OperandDevice& device) const;
  /// Computes the gradient of w from y's.
  Tensor weight_gradient(const Tensor& grad, const Tensor& x, const OperandDevice& device) const;

 private:
  int64_t pixels() const { return plane_of(window.out); }
  double weight_elements() const { return double(channels) * double(outputs); }
  /// Returns the elements of an image of x and one of y.
  double image_elements() const { return double(channels + outputs) * double(pixels()); }
  bool are_products() const;
  bool are_worth_it() const;
};

}  // namespace vesta::cuda
