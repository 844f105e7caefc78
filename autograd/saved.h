// Saved: a tensor kept for backward.
#pragma once
#include <memory>

#include <vesta/autograd/node.h>

namespace vesta::autograd {

struct PackedSave;  // what a saved tensor becomes under saved-tensor hooks

/// A tensor kept for a node's apply(), with the version it had. A result of the node's own op is stored detached and
/// gets its history back when it is read, so that a node does not own itself.
class VESTA_API Saved {
 public:
  Saved() noexcept = default;
  /// Saves an input of the op. An undefined tensor stays undefined. Error: a tensor of inference mode.
  explicit Saved(const Tensor& input) {
    if (input.defined()) save_input(input);
  }
  /// Saves output `output_nr` of the op.
  static Saved result(const Tensor& t, uint32_t output_nr = 0);
  Saved(Saved&& o) noexcept = default;
  Saved& operator=(Saved&& o) noexcept = default;

  /// Returns the tensor; the running node (RunningNode) is the one it was saved for. Errors: overwritten since it was
  /// saved (names both ops), released.
  Tensor operator()() const {
    if (!tensor_.defined()) return unpack_other();
    if (tensor_.version() != version_) [[unlikely]]
      raise_overwritten();
    return is_result_ && GradMode::enabled() ? attached() : tensor_;
  }
  /// Returns the tensor with its history, whether recording is on or not (for users to inspect).
  Tensor with_history() const;
  bool defined() const { return tensor_.defined() || packed_; }
  void reset() noexcept;

 private:
  void save_input(const Tensor& t);
  Tensor unpack_other() const;
  Tensor attached() const;
  [[noreturn]] void raise_overwritten() const;
  struct DeletePacked {
    void operator()(PackedSave* p) const noexcept;
  };

  Tensor tensor_;
  std::unique_ptr<PackedSave, DeletePacked> packed_;
  uint32_t version_ = 0;
  uint16_t output_nr_ = 0;
  bool is_result_ = false;
};
static_assert(sizeof(Saved) == 24);

}  // namespace vesta::autograd
