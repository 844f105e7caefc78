// Dropout of elements and of channels.
#pragma once
#include <vesta/nn/layer.h>

namespace vesta::nn {

struct DropoutOptions {
  double p = 0.5;
  bool inplace = false;
  VESTA_FIELDS(p, inplace)
};

namespace detail {
VESTA_API DropoutOptions checked_dropout(const std::string& op, DropoutOptions options);
VESTA_API Tensor dropped(const Tensor& input, const DropoutOptions& options, bool training);
/// Drops channels of [N, C, ...]; of [C, ...] where the input has `unbatched` dimensions.
VESTA_API Tensor dropped_channels(const std::string& op, const Tensor& input, int64_t unbatched,
                                  const DropoutOptions& options, bool training);
VESTA_API Tensor alpha_dropped(const std::string& op, const Tensor& input, bool channels, const DropoutOptions& options,
                               bool training);
}  // namespace detail

/// Defines a kind of dropout; what follows its name is its result.
#define VESTA_DROPOUT(Name, ...)                                                      \
  class VESTA_API Name : public LayerOf<Name, DropoutOptions> {                         \
   public:                                                                            \
    Name() = default;                                                                 \
    VESTA_LAYER_CONSTRUCTORS(Name)                                                    \
    Tensor forward(const Tensor& input) override { return __VA_ARGS__; }              \
  };                                                                                  \
  inline Name::Name(Options o) : LayerOf(detail::checked_dropout(#Name, o)) {}
/// The module that zeroes elements with probability p while training and scales the rest by 1 / (1 - p).
VESTA_DROPOUT(Dropout, detail::dropped(input, options, is_training()))
/// The same for whole channels of [N, C, L] or [C, L].
VESTA_DROPOUT(Dropout1d, detail::dropped_channels(name(), input, 2, options, is_training()))
/// The same for whole channels of [N, C, H, W].
VESTA_DROPOUT(Dropout2d, detail::dropped_channels(name(), input, 0, options, is_training()))
/// The same for whole channels of [N, C, D, H, W] or [C, D, H, W].
VESTA_DROPOUT(Dropout3d, detail::dropped_channels(name(), input, 4, options, is_training()))
/// Dropout that keeps mean 0 and variance 1 of inputs that have them, for SELU (Klambauer et al. 2017).
VESTA_DROPOUT(AlphaDropout, detail::alpha_dropped(name(), input, false, options, is_training()))
/// The same for whole channels of [N, C, ...].
VESTA_DROPOUT(FeatureAlphaDropout, detail::alpha_dropped(name(), input, true, options, is_training()))
#undef VESTA_DROPOUT

}  // namespace vesta::nn
