// Connectionist temporal classification (Graves et al. 2006): a block for each sequence, a thread for each state (its
// labels with blanks before, between and behind them), or for several. A step waits for the one before, so that time
// is what counts, not bytes: scores of the next steps are loaded before they are needed, states lie in shared memory,
// and a step has one barrier.
//
// alpha(t, s) is the logarithm of the sum over all ways to be in state s at step t, what step t reads included; beta(t,
// s) the same of the ways from there to the end, what it reads excluded. After hundreds of steps such logarithms are in
// the thousands, where float has three digits behind the point: every kRenewal steps an integer near the largest of
// them is taken off. The sum of these integers stands behind the row's states, exact in float.
//
// The gradient's sums over the states of a class have an order: a tree over the blanks, and for each other class a walk
// from its first label in the target to the next one.
#include <vesta/cuda/kernels/ctc.h>
#include <vesta/cuda/kernels/teams.cuh>
#include <vesta/cuda/kernels/types.cuh>

namespace vesta::cuda {
namespace {

constexpr int kRenewal = 8;  // steps

template <class T>
struct CtcArgs {
  const T* log_probs;
  int64_t step, row, stride;
  const int64_t *targets, *lengths;
  const T* grad;
  int64_t grad_stride;
  T *alpha, *loss, *shares, *rows, *out;
  int32_t* chain;
  int64_t steps, batch, classes, longest, states, blank;
  bool in_shared;
  Fault* fault;
  const char* name;  // the host's text: a literal in device code would lie on the device
};

template <class T>
VESTA_DEVICE T impossible() {
  return T(-INFINITY);
}
/// Returns log(e^a + e^b + e^c), of NaN NaN.
template <class T>
VESTA_DEVICE T log_sum(T a, T b, T c) {
  T top = a > b ? a : b;
  top = c > top ? c : top;
  const T base = top > impossible<T>() ? top : T(0);
  return base + math::log(math::exp(a - base) + math::exp(b - base) + math::exp(c - base));
}

/// One sequence of the batch.
template <class T>
struct Sequence {
  const T* probs;  // of its first step
  int64_t step, stride;
  const int64_t* labels;
  int64_t steps, length, classes, blank;

  VESTA_DEVICE Sequence(const CtcArgs<T>& a, int64_t n)
      : probs(a.log_probs + n * a.row),
        step(a.step),
        stride(a.stride),
        labels(a.targets + a.lengths[2 * a.batch + n]),
        steps(a.lengths[n]),
        length(a.lengths[a.batch + n]),
        classes(a.classes),
        blank(a.blank) {}
  VESTA_DEVICE int64_t states() const { return 2 * length + 1; }
  /// Returns the class of a state; for a label out of range, which has been reported, the blank.
  VESTA_DEVICE int64_t class_of(int64_t s) const {
    if (s % 2 == 0) return blank;
    const int64_t label = labels[s / 2];
    return label >= 0 && label < classes ? label : blank;
  }
  /// Returns where its score lies in a step.
  VESTA_DEVICE int64_t place(int64_t s) const { return class_of(s) * stride; }
  /// Returns whether a way may lead from state s - 2 to s.
  VESTA_DEVICE bool skips(int64_t s) const { return s % 2 != 0 && s > 1 && class_of(s) != class_of(s - 2); }
};

/// The first K states of a thread, which are its number plus multiples of a block's threads: where their scores lie in
/// a step, or -1 where there is no state.
template <class T, int K>
struct OwnStates {
  int64_t at[K];
  VESTA_DEVICE explicit OwnStates(const Sequence<T>& q) {
    VESTA_UNROLL
    for (int k = 0; k < K; ++k) at[k] = number(k) < q.states() ? q.place(number(k)) : -1;
  }
  VESTA_DEVICE static int64_t number(int k) { return int64_t(k) * blockDim.x + threadIdx.x; }
};

/// Returns the integer that is taken off from the states: near the largest, of which a thread has `top`.
template <class T>
VESTA_DEVICE T taken_off(T top, unsigned turn) {
  top = block_reduce(top, [](T p, T q) { return p > q ? p : q; }, turn, blockDim.x / 32);
  return top - top == T(0) ? math::floor(top) : T(0);
}

template <class T, int K>
VESTA_KERNEL void ctc_alpha_kernel(CtcArgs<T> a) {
  constexpr int kAhead = 8 / K;
  const int64_t n = blockIdx.x, pitch = a.states + 1;
  const Sequence<T> q(a, n);
  for (int64_t l = threadIdx.x; l < q.length; l += blockDim.x) {
    const int64_t label = q.labels[l];
    if (label < 0 || label >= q.classes) report(a.fault, FaultKind::class_number, a.name, label, q.classes);
  }
  VESTA_DYNAMIC_SHARED(T, shared);
  T* const alpha = a.alpha + n * a.steps * pitch;
  const OwnStates<T, K> own(q);
  bool skip[K];
  VESTA_UNROLL
  for (int k = 0; k < K; ++k) skip[k] = own.at[k] >= 0 && q.skips(own.number(k));
  T taken = 0, take = 0;
  unsigned turn = 0;
  VESTA_ROLLED
  for (int64_t first = 0; first < q.steps; first += kAhead) {
    T ahead[kAhead][K];
    VESTA_UNROLL
    for (int j = 0; j < kAhead; ++j) {
      VESTA_UNROLL
      for (int k = 0; k < K; ++k) {
        ahead[j][k] = first + j < q.steps && own.at[k] >= 0 ? q.probs[(first + j) * q.step + own.at[k]] : T(0);
      }
    }
    VESTA_UNROLL
    for (int j = 0; j < kAhead; ++j) {
      const int64_t t = first + j;
      if (t >= q.steps) continue;
      T* const row = alpha + t * pitch;
      T* const now = a.in_shared ? shared + t % 2 * a.states : row;
      const T* const before = a.in_shared ? shared + (t + 1) % 2 * a.states : row - pitch;
      T top = impossible<T>();
      const auto write = [&](int64_t s, bool skips, T emitted) {
        T v = s < 2 ? T(0) : impossible<T>();
        if (t > 0) {
          v = log_sum(before[s], s > 0 ? before[s - 1] : impossible<T>(), skips ? before[s - 2] : impossible<T>());
        }
        v = v - take + emitted;
        row[s] = v;
        if (a.in_shared) now[s] = v;
        top = v > top ? v : top;
      };
      VESTA_UNROLL
      for (int k = 0; k < K; ++k) {
        if (own.at[k] >= 0) write(own.number(k), skip[k], ahead[j][k]);
      }
      VESTA_ROLLED
      for (int64_t s = own.number(K); s < q.states(); s += blockDim.x) {
        write(s, q.skips(s), q.probs[t * q.step + q.place(s)]);
      }
      taken = taken + take;
      if (threadIdx.x == 0) row[a.states] = taken;
      block_barrier();
      take = t % kRenewal == kRenewal - 1 ? taken_off(top, turn++) : T(0);
    }
  }
  if (threadIdx.x != 0) return;
  double sum = q.length == 0 ? 0 : double(impossible<T>());
  if (q.steps > 0) {
    const T* const last = alpha + (q.steps - 1) * pitch;
    const T end = log_sum(last[2 * q.length], q.length > 0 ? last[2 * q.length - 1] : impossible<T>(), impossible<T>());
    sum = double(end) + double(last[a.states]);
  }
  a.loss[n] = T(0 - sum);
}

/// Writes the next label of the same class for each label of a sequence, `length` behind the last; below zero, as -1 -
/// it, for a label that is not the first of its class.
template <class T>
VESTA_DEVICE void write_chain(const CtcArgs<T>& a, const Sequence<T>& q) {
  int32_t* const chain = a.chain + blockIdx.x * a.longest;
  VESTA_ROLLED
  for (int64_t l = threadIdx.x; l < q.length; l += blockDim.x) {
    const int64_t own = q.labels[l];
    int64_t before = 0, next = l + 1;
    while (q.labels[before] != own) ++before;
    while (next < q.length && q.labels[next] != own) ++next;
    chain[l] = int32_t(before == l ? next : -1 - next);
  }
}

/// Computes beta, and from it each state's share of the alignments: exp(alpha + beta - log p).
template <class T, int K>
VESTA_KERNEL void ctc_shares_kernel(CtcArgs<T> a) {
  constexpr int kAhead = 8 / K;
  const int64_t n = blockIdx.x, pitch = a.states + 1;
  const Sequence<T> q(a, n);
  write_chain(a, q);
  if (q.steps == 0) return;
  VESTA_DYNAMIC_SHARED(T, shared);
  T* const rows = a.in_shared ? shared : a.rows + n * 2 * a.states;
  const T* const alpha = a.alpha + n * a.steps * pitch;
  const T* const end = alpha + (q.steps - 1) * pitch;
  const T ends = log_sum(end[2 * q.length], q.length > 0 ? end[2 * q.length - 1] : impossible<T>(), impossible<T>());
  const double sum = double(ends) + double(end[a.states]);
  const bool none = ends == impossible<T>();
  const OwnStates<T, K> own(q);
  bool skip[K];
  VESTA_UNROLL
  for (int k = 0; k < K; ++k) skip[k] = own.number(k) + 2 < q.states() && q.skips(own.number(k) + 2);
  T taken = 0, take = 0;
  unsigned turn = 0;
  VESTA_ROLLED
  for (int64_t last = q.steps - 1; last >= 0; last -= kAhead) {
    T ahead[kAhead][K], alphas[kAhead][K];
    VESTA_UNROLL
    for (int j = 0; j < kAhead; ++j) {
      VESTA_UNROLL
      for (int k = 0; k < K; ++k) {
        const bool exists = last >= j && own.at[k] >= 0;
        ahead[j][k] = exists ? q.probs[(last - j) * q.step + own.at[k]] : T(0);
        alphas[j][k] = exists ? alpha[(last - j) * pitch + own.number(k)] : T(0);
      }
    }
    VESTA_UNROLL
    for (int j = 0; j < kAhead; ++j) {
      const int64_t t = last - j;
      if (t < 0) continue;
      T* const now = rows + t % 2 * a.states;
      const T* const next = rows + (t + 1) % 2 * a.states;
      T* const share = a.shares + (n * a.steps + t) * a.states;
      taken = taken + take;
      const T known = T(double(alpha[t * pitch + a.states]) + double(taken) - sum);
      T top = impossible<T>();
      const auto write = [&](int64_t s, bool skips, T emitted, T forward) {
        T v = s + 2 >= q.states() ? T(0) : impossible<T>();
        if (t < q.steps - 1) {
          v = log_sum(next[s], s + 1 < q.states() ? next[s + 1] : impossible<T>(),
                      skips ? next[s + 2] : impossible<T>());
        }
        v = v - take;
        share[s] = none ? T(0) : math::exp(forward + v + known);
        v = v + emitted;
        now[s] = v;
        top = v > top ? v : top;
      };
      VESTA_UNROLL
      for (int k = 0; k < K; ++k) {
        if (own.at[k] >= 0) write(own.number(k), skip[k], ahead[j][k], alphas[j][k]);
      }
      VESTA_ROLLED
      for (int64_t s = own.number(K); s < q.states(); s += blockDim.x) {
        write(s, s + 2 < q.states() && q.skips(s + 2), q.probs[t * q.step + q.place(s)], alpha[t * pitch + s]);
      }
      block_barrier();
      take = t % kRenewal == 0 ? taken_off(top, turn++) : T(0);
    }
  }
}

/// Returns whether no way leads to an end of a sequence, which has steps.
template <class T>
VESTA_DEVICE bool has_no_alignment(const CtcArgs<T>& a, const Sequence<T>& q, int64_t n) {
  const T* const end = a.alpha + (n * a.steps + q.steps - 1) * (a.states + 1) + 2 * q.length;
  return end[0] == impossible<T>() && (q.length == 0 || end[-1] == impossible<T>());
}

/// Writes the gradient of a step of a sequence: a team for each.
template <class T>
VESTA_KERNEL void ctc_gradient_kernel(CtcArgs<T> a, int64_t rows, unsigned width) {
  const GroupOrBlock team(width);
  const bool exists = int64_t(team.row) < rows;
  const int64_t row = exists ? int64_t(team.row) : 0, t = row / a.batch, n = row - t * a.batch;
  const Sequence<T> q(a, n);
  const bool counted = exists && t < q.steps;
  T g = a.grad[n * a.grad_stride];
  // The gradient of an infinite loss is NaN, unless it does not count (zero_infinity).
  if (counted && g != T(0) && has_no_alignment(a, q, n)) g = T(NAN);
  const T* const probs = q.probs + t * q.step;
  const T* const shares = a.shares + (n * a.steps + t) * a.states;
  const int32_t* const chain = a.chain + n * a.longest;
  T* const out = a.out + row * a.classes;
  VESTA_ROLLED
  for (int64_t c = team.rank; c < (exists ? a.classes : 0); c += team.size) {
    out[c] = counted ? g * math::exp(probs[c * q.stride]) : T(0);
  }
  T blanks = 0;
  VESTA_ROLLED
  for (int64_t s = team.rank; s < (counted ? q.states() : 0); s += team.size) {
    if (q.class_of(s) == q.blank) blanks = blanks + shares[s];
  }
  blanks = team.reduce(blanks, [](T p, T r) { return p + r; });
  if (team.size > 32) block_barrier();  // what follows writes over the classes of labels
  else warp_barrier();
  if (!counted) return;
  if (team.rank == 0) out[q.blank] = g * (math::exp(probs[q.blank * q.stride]) - blanks);
  VESTA_ROLLED
  for (int64_t l = team.rank; l < q.length; l += team.size) {
    const int64_t c = q.class_of(2 * l + 1);
    if (c == q.blank || chain[l] < 0) continue;
    T sum = shares[2 * l + 1];
    VESTA_ROLLED
    for (int64_t next = chain[l]; next < q.length;) {
      sum = sum + shares[2 * next + 1];
      const int64_t link = chain[next];
      next = link < 0 ? -1 - link : link;
    }
    out[c] = g * (math::exp(probs[c * q.stride]) - sum);
  }
}

template <class T>
CtcArgs<T> args_of(const CtcLaunch& l) {
  const auto at = [](char* p) { return reinterpret_cast<T*>(p); };
  return {reinterpret_cast<const T*>(l.log_probs),
          l.strides[0],
          l.strides[1],
          l.strides[2],
          l.targets,
          l.lengths,
          reinterpret_cast<const T*>(l.grad),
          l.grad_stride,
          at(l.alpha),
          at(l.loss),
          at(l.shares),
          at(l.rows),
          at(l.out),
          l.chain,
          l.steps,
          l.batch,
          l.classes,
          l.longest,
          l.states(),
          l.blank,
          l.rows_in_shared(),
          l.fault,
          "ctc_loss"};
}

/// Returns the shape of a block for each sequence, with a thread for each state up to kTeamThreads.
LaunchShape sequence_shape(const CtcLaunch& l) {
  unsigned threads = 32;
  while (threads < kTeamThreads && int64_t(threads) < l.states()) threads *= 2;
  LaunchShape shape = linear_shape(uint64_t(l.batch) * threads, threads, l.stream);
  if (l.rows_in_shared()) shape.shared_bytes = unsigned(2 * l.states() * itemsize(l.dtype));
  return shape;
}

constexpr DTypeSet kTypes = set_of(DType::float32) | set_of(DType::float64);

}  // namespace

void ctc_loss(const CtcLaunch& l) {
  visit_device<kTypes>(l.dtype, [&]<class T>() {
    const bool one = l.states() <= int64_t(kTeamThreads);
    launch_block("ctc_loss", one ? ctc_alpha_kernel<T, 1> : ctc_alpha_kernel<T, 4>, sequence_shape(l), args_of<T>(l));
  });
}

void ctc_loss_backward(const CtcLaunch& l) {
  visit_device<kTypes>(l.dtype, [&]<class T>() {
    const CtcArgs<T> a = args_of<T>(l);
    const bool one = l.states() <= int64_t(kTeamThreads);
    launch_block("_ctc_loss_backward", one ? ctc_shares_kernel<T, 1> : ctc_shares_kernel<T, 4>, sequence_shape(l), a);
    const int64_t rows = l.steps * l.batch;
    const unsigned width = l.classes + l.states() > 1024 ? kTeamThreads : 32;
    launch_block("_ctc_loss_backward", ctc_gradient_kernel<T>, team_shape(uint64_t(rows), width, l.stream), a, rows,
                 width);
  });
}

}  // namespace vesta::cuda
