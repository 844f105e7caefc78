// Checks of the arguments of collectives, with the same messages for every backend. Internal to process groups.
#pragma once
#include <vesta/multiprocessing/process_group.h>

namespace vesta {

/// A function that raises for a tensor on a device that a backend does not reach.
using DeviceCheck = void (*)(Collective what, const Tensor& t);

/// The checks of one call's arguments: what does not fit is refused before anything is sent.
class VESTA_API CollectiveChecks {
 public:
  CollectiveChecks(Collective what, int rank, int size, DeviceCheck device)
      : what_(what), rank_(rank), size_(size), device_(device) {}

  /// Checks one tensor, and counts the write to it.
  void tensor(const Tensor& t, bool written) const;
  /// Checks that two tensors have one dtype.
  void same_type(const Tensor& a, const Tensor& b) const;
  /// Checks tensors that are reduced or sent together: one or more, of one dtype.
  void together(const std::vector<Tensor>& tensors, bool written) const;
  /// Checks a list that has a tensor for each rank, all like `model`.
  void list(const std::vector<Tensor>& list, const Tensor& model, bool written) const;
  /// Checks a list that only rank `root` gives; `role` names that rank's part in messages.
  void list_of_root(const std::vector<Tensor>& list, const Tensor& model, bool written, int root, const char* role,
                    const char* argument) const;
  /// Checks that an output has room for the values of an input from each rank.
  void gathered(const Tensor& output, const Tensor& input) const;
  /// Checks that an input has the values of an output for each rank.
  void scattered(const Tensor& output, const Tensor& input) const;
  /// Checks all_to_all's lists: a tensor for each rank, of any sizes, of one dtype.
  void lists(const std::vector<Tensor>& outputs, const std::vector<Tensor>& inputs) const;
  /// Checks that a number is a rank.
  void rank(int r, const char* argument) const;
  /// Returns the bytes of each rank's rows of a tensor; no splits mean equal parts.
  std::vector<size_t> row_bytes(const Tensor& t, std::vector<int64_t> splits, const char* argument) const;
  /// Checks that a rank's send and receive sizes for itself agree.
  void to_itself(size_t sent, size_t expected) const;

 private:
  Collective what_;
  int rank_, size_;
  DeviceCheck device_;
};

}  // namespace vesta
