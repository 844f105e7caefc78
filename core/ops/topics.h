// The table of topics. Each has lists/TOPIC.h (the lines), TOPIC.h (the declarations) and TOPIC.cpp (the definitions)
// here, and python/bindings/ops/TOPIC.cpp. A new topic: lists/README.md.
#pragma once
#include <vesta/core/ops/lists/activation.h>
#include <vesta/core/ops/lists/arithmetic.h>
#include <vesta/core/ops/lists/attention.h>
#include <vesta/core/ops/lists/compare.h>
#include <vesta/core/ops/lists/conv.h>
#include <vesta/core/ops/lists/copy.h>
#include <vesta/core/ops/lists/distance.h>
#include <vesta/core/ops/lists/explog.h>
#include <vesta/core/ops/lists/factory.h>
#include <vesta/core/ops/lists/fft.h>
#include <vesta/core/ops/lists/index.h>
#include <vesta/core/ops/lists/linalg.h>
#include <vesta/core/ops/lists/loss.h>
#include <vesta/core/ops/lists/matmul.h>
#include <vesta/core/ops/lists/norm.h>
#include <vesta/core/ops/lists/norm_backward.h>
#include <vesta/core/ops/lists/numbers.h>
#include <vesta/core/ops/lists/optim.h>
#include <vesta/core/ops/lists/pool.h>
#include <vesta/core/ops/lists/random.h>
#include <vesta/core/ops/lists/recurrence.h>
#include <vesta/core/ops/lists/reduce.h>
#include <vesta/core/ops/lists/resample.h>
#include <vesta/core/ops/lists/select.h>
#include <vesta/core/ops/lists/sequence.h>
#include <vesta/core/ops/lists/shape.h>
#include <vesta/core/ops/lists/softmax.h>
#include <vesta/core/ops/lists/sort.h>
#include <vesta/core/ops/lists/sparse.h>
#include <vesta/core/ops/lists/special.h>
#include <vesta/core/ops/lists/ties.h>
#include <vesta/core/ops/lists/trigonometric.h>
#include <vesta/core/ops/lists/view.h>

// X(topic, list): topics with pointwise structs (pointwise/TOPIC.h, and a kernel file per device), then all others.
#define VESTA_POINTWISE_TOPICS(X)                                                                                      \
  X(arithmetic, VESTA_OPS_ARITHMETIC)                                                                                  \
  X(explog, VESTA_OPS_EXPLOG)                                                                                          \
  X(trigonometric, VESTA_OPS_TRIGONOMETRIC)                                                                            \
  X(activation, VESTA_OPS_ACTIVATION)                                                                                  \
  X(compare, VESTA_OPS_COMPARE)                                                                                        \
  X(select, VESTA_OPS_SELECT)                                                                                          \
  X(numbers, VESTA_OPS_NUMBERS)                                                                                        \
  X(special, VESTA_OPS_SPECIAL)
#define VESTA_STRUCTURED_TOPICS(X)                                                                                     \
  X(view, VESTA_OPS_VIEW)                                                                                              \
  X(copy, VESTA_OPS_COPY)                                                                                              \
  X(reduce, VESTA_OPS_REDUCE)                                                                                          \
  X(index, VESTA_OPS_INDEX)                                                                                            \
  X(factory, VESTA_OPS_FACTORY)                                                                                        \
  X(random, VESTA_OPS_RANDOM)                                                                                          \
  X(matmul, VESTA_OPS_MATMUL)                                                                                          \
  X(distance, VESTA_OPS_DISTANCE)                                                                                      \
  X(linalg, VESTA_OPS_LINALG)                                                                                          \
  X(fft, VESTA_OPS_FFT)                                                                                                \
  X(conv, VESTA_OPS_CONV)                                                                                              \
  X(pool, VESTA_OPS_POOL)                                                                                              \
  X(resample, VESTA_OPS_RESAMPLE)                                                                                      \
  X(shape, VESTA_OPS_SHAPE)                                                                                            \
  X(softmax, VESTA_OPS_SOFTMAX)                                                                                        \
  X(sort, VESTA_OPS_SORT)                                                                                              \
  X(norm, VESTA_OPS_NORM)                                                                                              \
  X(loss, VESTA_OPS_LOSS)                                                                                              \
  X(sequence, VESTA_OPS_SEQUENCE)                                                                                      \
  X(sparse, VESTA_OPS_SPARSE)                                                                                          \
  X(optim, VESTA_OPS_OPTIM)
#define VESTA_TOPICS(X) VESTA_POINTWISE_TOPICS(X) VESTA_STRUCTURED_TOPICS(X)

// X(name, list): lists whose ops are not called by name (no topics). They are profiled as all others.
#define VESTA_PRIVATE_LISTS(X)                                                                                         \
  X(attention, VESTA_OPS_ATTENTION)                                                                                    \
  X(ties, VESTA_OPS_TIES)                                                                                              \
  X(recurrence, VESTA_OPS_RECURRENCE)                                                                                  \
  X(norm_backward, VESTA_OPS_NORM_BACKWARD)
