// The table of what the levels above the ops register: a row for each topic of kernels, which has a register_TOPIC() in
// each level with a `yes`. The lists of ops are another table, ops/topics.h. A new topic: ops/lists/README.md.
#pragma once

// clang-format off
// X(topic, cpu, meta, cuda, rules): whether there are kernels for the CPU (core/cpu), shapes for the meta device
// (core/meta), kernels for CUDA (cuda/ops, except for pointwise and nccl) and gradient rules (autograd/rules).
#define VESTA_KERNEL_TOPICS(X)                  \
  X(pointwise,   yes, yes, yes, yes)            \
  X(factory,     yes, yes, yes, no)             \
  X(reduce,      yes, yes, yes, yes)            \
  X(scan,        yes, yes, yes, no)             \
  X(softmax,     yes, yes, yes, yes)            \
  X(sort,        yes, yes, yes, yes)            \
  X(optim,       yes, yes, yes, yes)            \
  X(amp,         yes, yes, yes, no)             \
  X(matmul,      yes, yes, yes, yes)            \
  X(host,        no,  no,  yes, no)             \
  X(linalg,      yes, yes, yes, yes)            \
  X(fft,         yes, yes, yes, yes)            \
  X(distance,    yes, no,  yes, yes)            \
  X(conv,        yes, yes, yes, yes)            \
  X(norm,        yes, yes, yes, yes)            \
  X(pool,        yes, yes, yes, yes)            \
  X(resample,    yes, yes, yes, yes)            \
  X(grid_sample, yes, no,  yes, no)             \
  X(flip,        yes, no,  yes, no)             \
  X(triangle,    yes, no,  yes, no)             \
  X(pad,         yes, no,  no,  no)             \
  X(index,       yes, yes, yes, yes)            \
  X(mask,        yes, no,  no,  no)             \
  X(random,      yes, yes, yes, yes)            \
  X(sequence,    yes, yes, no,  yes)            \
  X(recurrence,  yes, yes, yes, yes)            \
  X(attention,   yes, yes, yes, yes)            \
  X(loss,        no,  no,  yes, yes)            \
  X(ctc,         yes, yes, yes, yes)            \
  X(row_norm,    no,  no,  yes, no)             \
  X(group_norm,  no,  no,  yes, no)             \
  X(cat,         no,  no,  yes, no)             \
  X(nccl,        no,  no,  yes, no)             \
  X(view,        no,  no,  no,  yes)            \
  X(copy,        no,  no,  no,  yes)            \
  X(sparse,      yes, no,  yes, yes)
// clang-format on

#define VESTA_IF_yes(...) __VA_ARGS__
#define VESTA_IF_no(...)
