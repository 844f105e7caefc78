// The lists of layers: VESTA_..._LAYERS(X) is X(Name) for each that has options; element-wise layers and those of
// single vectors; windows of images; norms, dropout and losses; sequences. The bindings by which tests hold the layers
// of both languages together follow from them. Containers are not in them.
#pragma once
#include <vesta/nn/layers/activation.h>
#include <vesta/nn/layers/adaptive.h>
#include <vesta/nn/layers/attention.h>
#include <vesta/nn/layers/container.h>
#include <vesta/nn/layers/conv.h>
#include <vesta/nn/layers/dropout.h>
#include <vesta/nn/layers/linear.h>
#include <vesta/nn/layers/loss.h>
#include <vesta/nn/layers/norm.h>
#include <vesta/nn/layers/padding.h>
#include <vesta/nn/layers/pooling.h>
#include <vesta/nn/layers/recurrent.h>
#include <vesta/nn/layers/vision.h>

// clang-format off
#define VESTA_LAYERS_1_TO_3(X, Name) X(Name##1d) X(Name##2d) X(Name##3d)
#define VESTA_ELEMENTWISE_LAYERS(X)                                                                                    \
  X(CELU) X(ELU) X(GELU) X(GLU) X(Hardshrink) X(Hardsigmoid) X(Hardswish) X(Hardtanh) X(LeakyReLU) X(LogSigmoid)       \
  X(LogSoftmax) X(Mish) X(PReLU) X(RReLU) X(ReLU) X(ReLU6) X(SELU) X(SiLU) X(Sigmoid) X(Softmax) X(Softmax2d)          \
  X(Softmin) X(Softplus) X(Softshrink) X(Softsign) X(Tanh) X(Tanhshrink) X(Threshold) X(Bilinear)                      \
  X(CosineSimilarity) X(Embedding) X(EmbeddingBag) X(Flatten) X(Identity) X(Linear) X(PairwiseDistance) X(Unflatten)
#define VESTA_WINDOW_LAYERS(X)                                                                                         \
  VESTA_LAYERS_1_TO_3(X, Conv) VESTA_LAYERS_1_TO_3(X, ConvTranspose) VESTA_LAYERS_1_TO_3(X, AdaptiveAvgPool)           \
  VESTA_LAYERS_1_TO_3(X, AdaptiveMaxPool) VESTA_LAYERS_1_TO_3(X, AvgPool) VESTA_LAYERS_1_TO_3(X, LPPool)               \
  VESTA_LAYERS_1_TO_3(X, MaxPool) VESTA_LAYERS_1_TO_3(X, MaxUnpool) VESTA_LAYERS_1_TO_3(X, CircularPad)                \
  VESTA_LAYERS_1_TO_3(X, ConstantPad) VESTA_LAYERS_1_TO_3(X, ReflectionPad) VESTA_LAYERS_1_TO_3(X, ReplicationPad)     \
  VESTA_LAYERS_1_TO_3(X, ZeroPad) X(FractionalMaxPool2d) X(FractionalMaxPool3d) X(ChannelShuffle) X(Fold) X(Unfold)    \
  X(PixelShuffle) X(PixelUnshuffle) X(Upsample) X(UpsamplingBilinear2d) X(UpsamplingNearest2d)
#define VESTA_LOSS_LAYERS(X)                                                                                           \
  VESTA_LAYERS_1_TO_3(X, BatchNorm) VESTA_LAYERS_1_TO_3(X, InstanceNorm) X(GroupNorm) X(LayerNorm)                     \
  X(LocalResponseNorm) X(CrossMapLRN2d) X(RMSNorm) X(AlphaDropout) X(Dropout) X(FeatureAlphaDropout)                   \
  VESTA_LAYERS_1_TO_3(X, Dropout) X(BCELoss) X(BCEWithLogitsLoss) X(CTCLoss) X(CosineEmbeddingLoss)                    \
  X(CrossEntropyLoss) X(GaussianNLLLoss) X(HingeEmbeddingLoss) X(HuberLoss) X(KLDivLoss) X(L1Loss) X(MSELoss)          \
  X(MarginRankingLoss) X(MultiLabelMarginLoss) X(MultiLabelSoftMarginLoss) X(MultiMarginLoss) X(NLLLoss)               \
  X(PoissonNLLLoss) X(SmoothL1Loss) X(SoftMarginLoss) X(TripletMarginLoss) X(TripletMarginWithDistanceLoss)
#define VESTA_SEQUENCE_LAYERS(X)                                                                                       \
  X(AdaptiveLogSoftmaxWithLoss) X(GRU) X(GRUCell) X(LSTM) X(LSTMCell) X(RNN) X(RNNCell) X(MultiheadAttention)          \
  X(Transformer) X(TransformerDecoder) X(TransformerDecoderLayer) X(TransformerEncoder) X(TransformerEncoderLayer)
// clang-format on
