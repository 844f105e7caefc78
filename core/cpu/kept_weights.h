// Packed weights that are kept from call to call.
//
// Note [Kept weights]
// A network that serves packs the same weights in every call: a seventh of an encoder's time for one text. So what a
// product or a convolution has packed is kept, where nothing is recorded, and found again by the storage of the weight,
// the count of its writes, the address in it, and what was packed how. It gives the same bits: packing moves numbers.
//  - It cannot be old. Every write by an op counts (Storage::writes), when it begins and when it has ended, and the
//    count is read before the weight is. A storage whose address a program has got (numpy(), DLPack, data_ptr(), shared
//    or mapped memory) is written without being counted: nothing of it is kept (Storage::counts_all_writes).
//  - What is used once costs nothing: a weight is kept when it is met a second time with the same count of writes.
//  - It dies with its weight: the storage drops it (packed_port). A form of other values goes when it is looked for.
//  - All forms together hold 512 MiB at most, and an eighth of the machine's memory; they are counted as live memory of
//    the CPU. Where there is no room, forms go that were not asked for while all others were, four times over: the
//    least recently used first. Those that are in use stay, and what does not fit is packed in every call: to let the
//    least recently used go in any case would empty the cache in each pass over a network that does not fit.
// A product keeps the weights of 2 to 768 rows: one row takes its time to fetch a weight, and for more than 768 packing
// is noise. Convolutions with one tap are no faster, nor is Winograd's, whose transformed weights are four times as
// many. A backward pass keeps nothing (WithoutPackedWeights): the optimizer writes its weights next.
#pragma once

#include <vesta/core/cpu/allocator.h>
#include <vesta/core/cpu/gemm.h>
#include <vesta/core/tensor.h>

#include <array>
#include <cstdint>
#include <memory>
#include <utility>

namespace vesta::cpu {

/// How a form is packed.
enum class PackedAs : unsigned char {
  panels,  ///< B of a product (SharedPanels in gemm_tasks.h)
  conv,  ///< PackedWeights of a convolution
  unfolded,  ///< of a convolution of bfloat16
  in_order,  ///< the values of a weight with channels last, in the order of the others
};

/// What a form was packed from, and how.
struct PackedKey {
  Weight weight;
  PackedAs as;
  const void* kernels;  ///< those that take the form: one table for each kind of element and instruction set
  std::array<std::int64_t, 22> geometry{};  ///< sizes and strides, and all else that the form depends on

  bool operator==(const PackedKey&) const = default;
};

/// Returns the identity of a weight whose packed forms may be kept now, else a null one. Ask before the weight is read.
VESTA_API Weight keepable(const Tensor& weight);

/// What is known of a form.
struct KeptForm {
  std::shared_ptr<const void> packed;  ///< null: it is not kept
  bool wanted = false;  ///< whether it should be kept now: the weight was met before, and there is room
};

/// Looks for a form of `bytes` bytes; remembers that it was asked for.
KeptForm find_packed(const PackedKey& key, std::int64_t bytes);

/// Keeps a form that is wanted.
void keep_packed(const PackedKey& key, std::shared_ptr<const void> packed, std::int64_t bytes);

/// Returns the form of `key`: the one that is kept, or what `make` returns, which is kept if it is wanted.
template <class T, class Make>
std::shared_ptr<const T> kept_or_made(const PackedKey& key, std::int64_t bytes, const Make& make) {
  KeptForm kept = find_packed(key, bytes);
  if (kept.packed) return std::static_pointer_cast<const T>(std::move(kept.packed));
  std::shared_ptr<const T> made = make();
  if (kept.wanted) keep_packed(key, made, bytes);
  return made;
}

/// Lets the forms of a storage go.
void drop_packed_weights_of(const Storage* storage) noexcept;

/// The forms that are kept, and their bytes.
struct KeptWeights {
  std::int64_t count = 0, bytes = 0;
};
VESTA_API KeptWeights kept_weights();

/// Lets all forms go (for tests and where memory is short).
VESTA_API void drop_packed_weights() noexcept;

/// Changes the most bytes that are kept, for tests; returns the most before.
VESTA_API std::int64_t limit_kept_weights(std::int64_t bytes);

}  // namespace vesta::cpu
