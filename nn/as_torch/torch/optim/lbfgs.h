// L-BFGS, the limited-memory method of Broyden, Fletcher, Goldfarb and Shanno, for all parameters as one vector (Liu
// and Nocedal 1989). The line search is that of Nocedal and Wright, "Numerical optimization", 2006, algorithms 3.5
// and 3.6.
#pragma once
#include <algorithm>
#include <cmath>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <torch/optim/fused.h>

namespace torch::optim {

struct LBFGSOptions : detail::OptionsOf<LBFGSOptions> {
  LBFGSOptions(double lr = 1) : lr_(lr) {}
  TORCH_ARG(double, lr);
  TORCH_ARG(int64_t, max_iter) = 20;
  TORCH_ARG(std::optional<int64_t>, max_eval) = std::nullopt;
  TORCH_ARG(double, tolerance_grad) = 1e-7;
  TORCH_ARG(double, tolerance_change) = 1e-9;
  TORCH_ARG(int64_t, history_size) = 100;
  TORCH_ARG(std::optional<std::string>, line_search_fn) = std::nullopt;

 public:
  VESTA_FIELDS(lr_, max_iter_, max_eval_, tolerance_grad_, tolerance_change_, history_size_, line_search_fn_)
};

struct LBFGSParamState : detail::StateOf<LBFGSParamState> {
  TORCH_ARG(int64_t, func_evals) = 0;
  TORCH_ARG(int64_t, n_iter) = 0;
  TORCH_ARG(double, t) = 0;
  TORCH_ARG(double, prev_loss) = 0;
  TORCH_ARG(Tensor, d);
  TORCH_ARG(Tensor, H_diag);
  TORCH_ARG(Tensor, prev_flat_grad);
  TORCH_ARG(std::deque<Tensor>, old_dirs);
  TORCH_ARG(std::deque<Tensor>, old_stps);
  TORCH_ARG(std::deque<Tensor>, ro);
  TORCH_ARG(std::optional<std::vector<Tensor>>, al) = std::nullopt;

 public:
  VESTA_FIELDS(func_evals_, n_iter_, t_, prev_loss_, d_, H_diag_, prev_flat_grad_, old_dirs_, old_stps_, ro_, al_)
};

namespace detail {

inline double largest(const Tensor& x) { return vesta::amax(vesta::abs(x)).item<double>(); }
inline double product(const Tensor& a, const Tensor& b) { return vesta::dot(a, b).item<double>(); }
inline Tensor like(const Tensor& t, double value) {
  return vesta::full(vesta::IntList(), value, t.dtype(), t.device());
}

/// A place on a line: how far, the value, the gradient, the slope along the line.
struct LinePoint {
  double at = 0, value = 0;
  Tensor gradient;
  double slope = 0;
};

/// Returns where the cubic through two values and slopes is least, in [low, high]; the middle if it has no minimum.
/// Nocedal and Wright, 2006, equation 3.59.
inline double cubic_minimum(LinePoint a, LinePoint b, double low, double high) {
  if (a.at > b.at) std::swap(a, b);
  const double middle = (low + high) / 2;
  if (a.at == b.at) return middle;
  const double d1 = a.slope + b.slope - 3 * (a.value - b.value) / (a.at - b.at);
  const double square = d1 * d1 - a.slope * b.slope;
  if (!(square >= 0)) return middle;
  const double d2 = std::sqrt(square), divisor = b.slope - a.slope + 2 * d2;
  if (divisor == 0) return middle;
  return std::min(std::max(b.at - (b.at - a.at) * ((b.slope + d2 - d1) / divisor), low), high);
}

}  // namespace detail

class LBFGS : public Optimizer {
 public:
  explicit LBFGS(const std::vector<OptimizerParamGroup>& param_groups, LBFGSOptions defaults = {})
      : Optimizer(param_groups, std::make_unique<LBFGSOptions>(defaults)) {
    TORCH_CHECK(param_groups_.size() == 1, "LBFGS doesn't support per-parameter options (parameter groups)");
    TORCH_CHECK(!param_groups_[0].params().empty(), "LBFGS: optimizer got an empty parameter list");
    if (!defaults.max_eval()) {
      const int64_t most = defaults.max_iter() * 5 / 4;
      options().max_eval(most);
      static_cast<LBFGSOptions&>(*defaults_).max_eval(most);
    }
  }
  explicit LBFGS(std::vector<Tensor> params, LBFGSOptions defaults = {})
      : LBFGS({OptimizerParamGroup(std::move(params))}, std::move(defaults)) {}

  /// Minimises until one of the tolerances holds, at most max_iter iterations; returns the loss before.
  Tensor step(LossClosure closure) override {
    TORCH_CHECK(closure != nullptr, "LBFGS requires a closure function");
    const LBFGSOptions& o = options();
    TORCH_CHECK(!o.line_search_fn() || *o.line_search_fn() == "strong_wolfe", "only 'strong_wolfe' is supported, got '",
                o.line_search_fn().value_or(""), "' (line_search_fn)");
    const vesta::NoGrad off;
    return minimize(closure, o);
  }
  void save(serialize::OutputArchive& archive) const override {
    optim::serialize<LBFGSParamState, LBFGSOptions>(archive, *this);
  }
  void load(serialize::InputArchive& archive) override {
    optim::serialize<LBFGSParamState, LBFGSOptions>(archive, *this);
  }

 private:
  using Point = detail::LinePoint;

  LBFGSOptions& options() { return static_cast<LBFGSOptions&>(param_groups_[0].options()); }
  LBFGSParamState& own_state() {
    std::unique_ptr<OptimizerParamState>& state = state_[parameters()[0].impl()];
    if (!state) state = std::make_unique<LBFGSParamState>();
    return static_cast<LBFGSParamState&>(*state);
  }

  // ---- all parameters as one vector ----

  Tensor gradient() {
    std::vector<Tensor> parts;
    for (const Tensor& p : parameters()) {
      const Tensor g = p.grad();
      TORCH_CHECK(!g.defined() || !g.is_sparse(), "LBFGS does not support sparse gradients");
      parts.push_back(vesta::reshape(detail::part(g.defined() ? g : vesta::zeros_like(p.detach())), {-1}));
    }
    return vesta::cat(parts);
  }
  void move(double step, const Tensor& direction) {
    int64_t start = 0;
    for (const Tensor& p : parameters()) {
      const Tensor real = detail::part(p);
      const Tensor along = vesta::view(vesta::narrow(direction, 0, start, real.numel()), real.sizes());
      real.add_(along, step);
      start += real.numel();
    }
  }
  static Tensor evaluate(const LossClosure& closure) {
    const vesta::EnableGrad on;
    return closure();
  }

  // ---- the step ----

  Tensor minimize(const LossClosure& closure, const LBFGSOptions& o) {
    LBFGSParamState& state = own_state();
    const Tensor first = evaluate(closure);
    double loss = first.item<double>();
    int64_t evaluations = 1;
    state.func_evals(state.func_evals() + 1);
    Tensor g = gradient();
    if (detail::largest(g) <= o.tolerance_grad()) return first;
    Tensor direction = state.d();
    double step = state.t();
    for (int64_t iteration = 1; iteration <= o.max_iter(); ++iteration) {
      state.n_iter(state.n_iter() + 1);
      if (state.n_iter() == 1) {
        direction = vesta::neg(g);
        state.old_dirs({}).old_stps({}).ro({}).H_diag(detail::like(g, 1));
        step = std::min(1.0, 1.0 / vesta::sum(vesta::abs(g)).item<double>()) * o.lr();
      } else {
        remember(state, vesta::sub(g, state.prev_flat_grad()), vesta::mul(direction, step), o.history_size());
        direction = next_direction(state, g, o.history_size());
        step = o.lr();
      }
      const double before = loss;
      state.prev_flat_grad(vesta::clone(g)).prev_loss(loss);
      const double slope = detail::product(g, direction);
      if (slope > -o.tolerance_change()) break;
      int64_t count = 0;
      if (o.line_search_fn()) {
        Search search{*this, closure, direction, *o.max_eval() - evaluations, o.tolerance_change()};
        const Point found = search.run({0, loss, g, slope}, step);
        loss = found.value;
        g = found.gradient;
        step = found.at;
        count = search.count;
        move(step, direction);
      } else {
        move(step, direction);
        if (iteration != o.max_iter()) {  // the next step begins with this evaluation
          loss = evaluate(closure).item<double>();
          g = gradient();
          count = 1;
        }
      }
      evaluations += count;
      state.func_evals(state.func_evals() + count);
      if (evaluations >= *o.max_eval() || detail::largest(g) <= o.tolerance_grad() ||
          detail::largest(direction) * std::abs(step) <= o.tolerance_change() ||
          std::abs(loss - before) < o.tolerance_change()) {
        break;
      }
    }
    state.d(direction).t(step);
    return first;
  }
  /// Keeps a difference of gradients and one of parameters, unless the function is not convex between them.
  static void remember(LBFGSParamState& state, const Tensor& y, const Tensor& s, int64_t most) {
    const double product = detail::product(y, s);
    if (product <= 1e-10) return;
    if (int64_t(state.old_dirs().size()) == most) {
      for (auto* list : {&state.old_dirs(), &state.old_stps(), &state.ro()}) list->pop_front();
    }
    state.old_dirs().push_back(y);
    state.old_stps().push_back(s);
    state.ro().push_back(detail::like(y, 1.0 / product));
    state.H_diag(detail::like(y, product / detail::product(y, y)));
  }
  /// Returns minus the inverse Hessian's estimate times the gradient, by two loops over the pairs.
  static Tensor next_direction(LBFGSParamState& state, const Tensor& g, int64_t most) {
    const size_t n = state.old_dirs().size();
    if (!state.al()) state.al(std::vector<Tensor>(size_t(most)));
    std::vector<double> shares(n);
    const Tensor r = vesta::neg(g);
    for (size_t i = n; i-- > 0;) {
      shares[i] = detail::product(state.old_stps()[i], r) * state.ro()[i].item<double>();
      (*state.al())[i] = detail::like(r, shares[i]);
      r.add_(state.old_dirs()[i], -shares[i]);
    }
    r.mul_(state.H_diag().item<double>());
    for (size_t i = 0; i < n; ++i) {
      const double back = detail::product(state.old_dirs()[i], r) * state.ro()[i].item<double>();
      r.add_(state.old_stps()[i], shares[i] - back);
    }
    return r;
  }

  /// A search along a line for a step that holds the strong Wolfe conditions, in at most so many evaluations.
  struct Search {
    LBFGS& of;
    const LossClosure& closure;
    const Tensor& direction;
    int64_t evaluations;
    double tolerance;
    int64_t count = 0;
    Point origin = {};
    std::vector<Tensor> start = {};

    /// Evaluates the function at a place of the line, and goes back to its start.
    Point point(double at) {
      of.move(at, direction);
      const double value = evaluate(closure).item<double>();
      const Tensor g = of.gradient();
      for (size_t i = 0; i < start.size(); ++i) vesta::copy_(of.parameters()[i], start[i]);
      ++count;
      return {at, value, g, detail::product(g, direction)};
    }
    bool falls_enough(const Point& p) const { return p.value <= origin.value + 1e-4 * p.at * origin.slope; }
    bool is_flat(const Point& p) const { return std::abs(p.slope) <= -0.9 * origin.slope; }

    /// Returns the step found; if evaluations run out, the best of the bracket.
    Point run(const Point& from, double step) {
      origin = from;
      for (const Tensor& p : of.parameters()) start.push_back(vesta::clone(p.detach()));
      Point previous = from, now = point(step);
      int64_t tries = 0;
      for (; tries < evaluations; ++tries) {
        if (!falls_enough(now) || (tries > 1 && now.value >= previous.value)) break;
        if (is_flat(now)) return now;
        if (now.slope >= 0) break;
        const double low = now.at + 0.01 * (now.at - previous.at), high = now.at * 10;
        const double next = detail::cubic_minimum(previous, now, low, high);
        previous = now;
        now = point(next);
      }
      if (tries == evaluations) previous = origin;
      return zoom(previous, now, tries);
    }
    /// Returns a step between two, the better of which holds the first condition.
    Point zoom(const Point& a, const Point& b, int64_t tries) {
      Point best = a.value <= b.value ? a : b, other = a.value <= b.value ? b : a;
      bool stalled = false;
      const double length = detail::largest(direction);
      for (; tries < evaluations && std::abs(other.at - best.at) * length >= tolerance; ++tries) {
        const double low = std::min(best.at, other.at), high = std::max(best.at, other.at);
        const double margin = 0.1 * (high - low);
        double at = detail::cubic_minimum(best, other, low, high);
        if (std::min(high - at, at - low) >= margin) {
          stalled = false;
        } else if (stalled || at >= high || at <= low) {  // twice near an end: move away from it
          at = std::abs(at - high) < std::abs(at - low) ? high - margin : low + margin;
          stalled = false;
        } else {
          stalled = true;
        }
        const Point now = point(at);
        if (!falls_enough(now) || now.value >= best.value) {
          other = now;
          if (other.value < best.value) std::swap(best, other);
          continue;
        }
        if (is_flat(now)) return now;
        if (now.slope * (other.at - best.at) >= 0) other = best;
        best = now;
      }
      return best;
    }
  };
};

}  // namespace torch::optim
