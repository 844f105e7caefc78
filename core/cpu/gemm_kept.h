// The panels of weights that products keep: Note [Kept weights] in kept_weights.h. Internal to gemm.cpp.
#pragma once

#include <vesta/core/cpu/gemm_tasks.h>
#include <vesta/core/cpu/kept_weights.h>

#include <cstdint>
#include <memory>
#include <utility>

namespace vesta::cpu {

/// The panels of B of a product (SharedPanels, of all columns), if they are kept.
template <class T>
class KeptPanels {
 public:
  /// Looks for those of a weight B[k, n]; null: for none. The strides are those of the weight's own elements.
  KeptPanels(const GemmKernels<T>& kernels, std::int64_t n, std::int64_t k, const Weight& weight, std::int64_t b_row,
             std::int64_t b_col)
      : kernels_(kernels),
        count_(round_up(n, kernels.tile_cols) * k),
        key_{weight, PackedAs::panels, &kernels, {n, k, b_row, b_col}} {
    if (!weight) return;
    KeptForm form = find_packed(key_, bytes());
    panels_ = std::static_pointer_cast<const HostArray<T>>(std::move(form.packed));
    wanted_ = form.wanted;
  }
  /// Packs and keeps them if they are wanted. B of `p` is the weight, as the kernels take it.
  void settle(const Matrices<T>& p) {
    if (!wanted_) return;
    auto panels = std::make_shared<HostArray<T>>(static_cast<std::size_t>(count_));
    SharedPanels<T>{kernels_, nullptr, panels->data(), round_up(p.n, kernels_.tile_cols)}.pack(p, true);
    panels_ = panels;
    keep_packed(key_, std::move(panels), bytes());
  }
  /// Returns the panels; null if they are not kept.
  const T* data() const { return panels_ ? panels_->data() : nullptr; }

 private:
  std::int64_t bytes() const { return count_ * static_cast<std::int64_t>(sizeof(T)); }

  const GemmKernels<T>& kernels_;
  std::int64_t count_;
  PackedKey key_;
  std::shared_ptr<const HostArray<T>> panels_;
  bool wanted_ = false;
};

}  // namespace vesta::cpu
