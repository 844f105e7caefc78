// Communication hooks: functions that replace the averaging of a bucket of gradients over the group.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include <vesta/multiprocessing/process_group.h>

namespace vesta::ddp {

/// The argument of a communication hook: the gradients of one bucket.
class VESTA_API GradBucket {
 public:
  GradBucket(size_t index, bool last, Tensor buffer, std::vector<Tensor> gradients, std::vector<Tensor> parameters)
      : index_(index),
        last_(last),
        buffer_(std::move(buffer)),
        gradients_(std::move(gradients)),
        parameters_(std::move(parameters)) {}
  /// Returns the bucket's index in the order in which buckets are sent.
  size_t index() const { return index_; }
  /// Returns whether it is the last bucket of this backward.
  bool is_last() const { return last_; }
  /// Returns all gradients of the bucket as one vector; a hook may write into it.
  const Tensor& buffer() const { return buffer_; }
  /// Replaces what `buffer` returns from now on; the bucket itself takes the hook's result.
  void set_buffer(Tensor buffer) { buffer_ = std::move(buffer); }
  /// Returns the gradients, each with its parameter's shape; they are parts of the bucket.
  const std::vector<Tensor>& gradients() const { return gradients_; }
  const std::vector<Tensor>& parameters() const { return parameters_; }

 private:
  size_t index_;
  bool last_;
  Tensor buffer_;
  std::vector<Tensor> gradients_, parameters_;
};

/// A bucket whose communication is under way.
class VESTA_API PendingBucket {
 public:
  virtual ~PendingBucket() = default;
  /// Waits and returns the reduced gradients: a vector as long as the bucket, possibly of another dtype or in the
  /// bucket's own memory.
  virtual Tensor wait() = 0;
};

/// A hook that is called with each ready bucket, in the same order on all ranks. It starts the bucket's communication
/// and returns.
class VESTA_API CommHook {
 public:
  virtual ~CommHook() = default;
  virtual std::shared_ptr<PendingBucket> run(GradBucket& bucket) = 0;
};

/// The hooks that exist in C++.
enum class BuiltinCommHook : uint8_t { all_reduce, fp16_compress, bf16_compress };
/// Makes a built-in hook: it averages over the group, in the gradients' dtype or in 16 bits.
VESTA_API std::shared_ptr<CommHook> make_builtin_hook(BuiltinCommHook which, ProcessGroupPtr group);

}  // namespace vesta::ddp
