// Communication hooks: what is done with a bucket of gradients instead of averaging it over the group.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include <vesta/multiprocessing/process_group.h>

namespace vesta::ddp {

/// Is what a communication hook is given: the gradients of one bucket.
class VESTA_API GradBucket {
 public:
  GradBucket(size_t index, bool last, Tensor buffer, std::vector<Tensor> gradients, std::vector<Tensor> parameters)
      : index_(index),
        last_(last),
        buffer_(std::move(buffer)),
        gradients_(std::move(gradients)),
        parameters_(std::move(parameters)) {}
  /// Returns which bucket it is, in the order in which buckets are sent.
  size_t index() const { return index_; }
  /// Returns whether it is the last of this backward.
  bool is_last() const { return last_; }
  /// Returns all gradients of the bucket as one vector; a hook may write into it.
  const Tensor& buffer() const { return buffer_; }
  /// Replaces what `buffer` returns from now on; the bucket itself takes what the hook results in.
  void set_buffer(Tensor buffer) { buffer_ = std::move(buffer); }
  /// Returns the gradients, each shaped as its parameter; they are parts of the bucket.
  const std::vector<Tensor>& gradients() const { return gradients_; }
  const std::vector<Tensor>& parameters() const { return parameters_; }

 private:
  size_t index_;
  bool last_;
  Tensor buffer_;
  std::vector<Tensor> gradients_, parameters_;
};

/// Is a bucket under way.
class VESTA_API PendingBucket {
 public:
  virtual ~PendingBucket() = default;
  /// Waits and returns the reduced gradients: a vector as long as the bucket; it may be of another dtype, and may be
  /// the bucket's own memory.
  virtual Tensor wait() = 0;
};

/// Is called with each bucket that is ready, in the same order on all ranks; starts its communication and returns.
class VESTA_API CommHook {
 public:
  virtual ~CommHook() = default;
  virtual std::shared_ptr<PendingBucket> run(GradBucket& bucket) = 0;
};

/// Names the hooks that exist in C++.
enum class BuiltinCommHook : uint8_t { all_reduce, fp16_compress, bf16_compress };
/// Makes one: averages over the group, in the gradients' dtype or in 16 bits.
VESTA_API std::shared_ptr<CommHook> make_builtin_hook(BuiltinCommHook which, ProcessGroupPtr group);

}  // namespace vesta::ddp
