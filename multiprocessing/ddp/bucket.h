// Bucket: gradients that are sent together. One block of memory holds them side by side; each parameter's grad lies in
// it.
//
// Note [Gradients that lie in a bucket]
// A gradient is a tensor of its own over its part of the block: its storage begins and ends where it does and counts
// its own writes, so `grad` looks like any other gradient (strides, `detach_`, saving, versions). Only reuse of the
// block could be observed: a user who keeps `p.grad` and sets it to none must still find the old values in the kept
// tensor after the next backward. So before a part is written anew while its parameter has no grad, `claim` checks
// whether the old gradient or a view of it has another owner. If so, the whole bucket moves to a new block, and the old
// block stays with the holders of its parts.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include <vesta/core/tensor.h>

namespace vesta::ddp {

/// Makes a tensor like `model` over the elements of `memory` from `offset` on. It has its own storage, which keeps
/// that of `memory` alive: writes through it are not counted as writes to `memory`.
VESTA_API Tensor tensor_over(const Tensor& memory, int64_t offset, const Tensor& model);

/// A grouping of parameters into buckets: their indices, and the limit in bytes that closed each bucket.
struct BucketPlan {
  std::vector<std::vector<size_t>> buckets;
  std::vector<int64_t> limits;
};

/// Fills buckets with `tensors` in their order, one run of buckets per dtype and device. A bucket closes when it has
/// reached its limit in bytes; the last of `limits` applies to all that follow. Buckets are ordered by their first
/// parameter. Indices are those of `tensors`, or taken from `indices` if given.
VESTA_API BucketPlan assign_buckets(const std::vector<Tensor>& tensors, const std::vector<int64_t>& limits,
                                    const std::vector<size_t>& indices = {});

/// One bucket: its parameters and the memory of their gradients.
class VESTA_API Bucket {
 public:
  /// Allocates the memory, zeroed. `indices` are the parameters' places among all parameters.
  Bucket(std::vector<Tensor> parameters, std::vector<size_t> indices);

  size_t size() const { return parameters_.size(); }
  const std::vector<size_t>& indices() const { return indices_; }
  const std::vector<Tensor>& parameters() const { return parameters_; }
  /// Returns all gradients as one vector.
  const Tensor& flat() const { return flat_; }
  /// Returns the part of parameter `i` of this bucket, with the parameter's shape and strides.
  const Tensor& part(size_t i) const { return parts_[i]; }
  const std::vector<Tensor>& parts() const { return parts_; }
  int64_t nbytes() const { return flat_.numel() * flat_.element_size(); }

  /// Makes sure that part `i` may be written: see the Note above. Keeps the values of gradients that lie here.
  void claim(size_t i);
  /// Allocates new memory because the old is still being written; gradients that lie in the old one stay there.
  void abandon() { allocate(); }
  /// Moves gradients that lie in `from`'s memory (of the same parameter) into this bucket.
  void adopt(size_t i, const Tensor& from);

 private:
  void allocate();

  std::vector<Tensor> parameters_;
  std::vector<size_t> indices_;
  Tensor flat_;
  std::vector<Tensor> parts_;
};

}  // namespace vesta::ddp
