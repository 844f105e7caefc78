// Optimizers, groups of parameters, states and schedules; optimizers.txt is what libtorch prints.
#include <torch/torch.h>
#include <iomanip>
#include <iostream>
using namespace torch::optim;
template <class F> void raises(F f) {
  try {
    f();
    std::cout << "no error\n";
  } catch (const c10::Error& e) {
    std::string w = e.what();
    std::cout << "error: " << w.substr(0, w.find('\n')) << "\n";
  } catch (const std::exception& e) {
    std::cout << "std: " << e.what() << "\n";
  }
}
struct Problem {
  torch::Tensor x = torch::arange(24, torch::kFloat64).reshape({8, 3}) / 24 - 0.4,
                y = torch::sin(torch::arange(8, torch::kFloat64)).reshape({8, 1});
  torch::Tensor w = torch::arange(3, torch::kFloat64).reshape({3, 1}) / 10, b = torch::zeros({1}, torch::kFloat64);
  Problem() {
    w.set_requires_grad(true);
    b.set_requires_grad(true);
  }
  torch::Tensor loss() { return torch::mean(torch::pow(torch::tanh(torch::matmul(x, w) + b) * 2 - y, 2)); }
  void show(const char* name) {
    std::cout << std::setprecision(9) << name << " " << w.sum().item<double>() << " " << b.item<double>() << " "
              << loss().item<double>() << "\n";
  }
};
template <class O, class... A> void run(const char* name, int steps, A... a) {
  Problem p;
  O o({p.w, p.b}, a...);
  for (int i = 0; i < steps; ++i) {
    o.zero_grad();
    p.loss().backward();
    o.step();
  }
  p.show(name);
  Problem q;
  O c({q.w, q.b}, a...);
  double last = 0;
  for (int i = 0; i < 2; ++i)
    last = c.step([&] {
              c.zero_grad();
              auto l = q.loss();
              l.backward();
              return l;
            }).template item<double>();
  q.show("  closure");
  std::cout << last << "\n";
}
int main() {
  run<SGD>("sgd", 5, 0.1);
  run<SGD>("sgd+", 7, SGDOptions(0.1).momentum(0.9).weight_decay(1e-2));
  run<SGD>("sgd nesterov", 5, SGDOptions(0.1).momentum(0.9).nesterov(true));
  run<SGD>("sgd damp", 5, SGDOptions(0.1).momentum(0.9).dampening(0.3));
  run<Adam>("adam", 5);
  run<Adam>("adam lr", 5, 0.05);
  run<Adam>("adam+", 9, AdamOptions(0.1).betas(std::make_tuple(0.5, 0.9)).weight_decay(0.1).eps(1e-4).amsgrad(true));
  run<Adam>("adam betas", 3, AdamOptions(2e-4).betas({0.5, 0.999}));
  run<AdamW>("adamw", 5);
  run<AdamW>("adamw+", 9, AdamWOptions(0.1).amsgrad(true).weight_decay(0.3));
  run<RMSprop>("rmsprop", 5);
  run<RMSprop>("rmsprop+", 6, RMSpropOptions(0.02).alpha(0.9).centered(true).momentum(0.5).weight_decay(0.1));
  run<Adagrad>("adagrad", 5);
  run<Adagrad>("adagrad+", 6, AdagradOptions(0.2).lr_decay(0.1).weight_decay(0.01).initial_accumulator_value(0.5));
  {
    Problem p;
    LBFGS o({p.w, p.b}, LBFGSOptions(0.5));
    for (int i = 0; i < 3; ++i)
      o.step([&] {
        o.zero_grad();
        auto l = p.loss();
        l.backward();
        return l;
      });
    p.show("lbfgs");
  }
  {
    Problem p;
    LBFGS o({p.w, p.b}, LBFGSOptions(1).line_search_fn("strong_wolfe").history_size(4).max_iter(6));
    for (int i = 0; i < 3; ++i)
      std::cout << o.step([&] {
                      o.zero_grad();
                      auto l = p.loss();
                      l.backward();
                      return l;
                    }).item<double>()
                << "\n";
    p.show("lbfgs wolfe");
    auto& s = static_cast<LBFGSParamState&>(*o.state().begin()->second);
    std::cout << s.func_evals() << " " << s.n_iter() << " " << s.old_dirs().size() << "\n";
  }
  {
    Problem p;
    std::vector<OptimizerParamGroup> groups;
    groups.emplace_back(std::vector<torch::Tensor>{p.w});
    groups.emplace_back(std::vector<torch::Tensor>{p.b}, std::make_unique<SGDOptions>(0.5));
    SGD o(groups, SGDOptions(0.1).momentum(0.9));
    std::cout << o.param_groups()[0].options().get_lr() << o.param_groups()[1].options().get_lr() << o.size()
              << static_cast<SGDOptions&>(o.param_groups()[1].options()).momentum() << "\n";
    for (int i = 0; i < 4; ++i) {
      o.zero_grad();
      p.loss().backward();
      o.step();
      for (auto& g : o.param_groups()) g.options().set_lr(g.options().get_lr() * 0.9);
    }
    p.show("groups");
    for (auto& g : o.param_groups()) static_cast<SGDOptions&>(g.options()).lr(0.01).momentum(0.1);
    o.zero_grad();
    p.loss().backward();
    o.step();
    p.show("groups2");
    std::cout << o.state().size() << o.defaults().get_lr() << "\n";
    Problem z;
    o.add_param_group(OptimizerParamGroup({z.w}));
    std::cout << o.param_groups().size() << o.param_groups()[2].options().get_lr() << "\n";
    raises([&] { o.add_param_group({{p.w}}); });
  }
  {
    Problem p;
    OptimizerParamGroup g1({p.w}), g2({p.b});
    torch::optim::SGD opt({g1, g2}, torch::optim::SGDOptions(0.1).momentum(0.9));
    std::cout << opt.param_groups().size() << "\n";
  }
  {
    Problem p;
    Adam o({p.w, p.b}, 0.1);
    StepLR s(o, 2, 0.5);
    for (int i = 0; i < 6; ++i) {
      o.zero_grad();
      p.loss().backward();
      o.step();
      s.step();
      std::cout << o.param_groups()[0].options().get_lr() << " ";
    }
    p.show("steplr");
    auto& st = static_cast<AdamParamState&>(*o.state()[p.w.unsafeGetTensorImpl()]);
    std::cout << st.step() << " " << st.exp_avg().sum().item<double>() << " " << st.exp_avg_sq().sum().item<double>()
              << st.max_exp_avg_sq().defined() << "\n";
    st.step(100);
    o.zero_grad();
    p.loss().backward();
    o.step();
    p.show("step 100");
    std::cout << st.step() << "\n";
  }
  {
    Problem p;
    SGD o({p.w}, 0.1);
    ReduceLROnPlateauScheduler s(o, ReduceLROnPlateauScheduler::min, 0.5, 1, 1e-4, ReduceLROnPlateauScheduler::rel, 1,
                                 {}, 1e-8, true);
    for (float m : {1.f, .9f, .9f, .9f, .9f, .9f, .9f, .8f, .9f, .9f, .9f}) {
      s.step(m);
      std::cout << o.param_groups()[0].options().get_lr() << " ";
    }
    std::cout << "\n";
  }
  raises([&] {
    Problem p;
    SGD({p.w}, -1);
  });
  raises([&] {
    Problem p;
    SGD({p.w}, SGDOptions(0.1).nesterov(true));
  });
  raises([&] {
    Problem p;
    Adam({p.w}, AdamOptions(0.1).betas({1.5, 0.9}));
  });
  raises([&] {
    Problem p;
    Adam({p.w}, AdamOptions(0.1).eps(-1));
  });
  raises([&] {
    Problem p;
    RMSprop({p.w}, RMSpropOptions(0.1).alpha(-1));
  });
  raises([&] {
    Problem p;
    Adagrad({p.w}, AdagradOptions(0.1).lr_decay(-1));
  });
  raises([&] {
    Problem p;
    SGD({p.w * 2}, 0.1);
  });
  raises([&] {
    Problem p;
    SGD o({p.w}, 0.1);
    ReduceLROnPlateauScheduler s(o, ReduceLROnPlateauScheduler::min, 2);
  });
  {
    SGD e(std::vector<torch::Tensor>{}, 0.1);
    e.step();
    e.zero_grad();
    std::cout << e.size() << "\n";
  }
  {
    Problem p;
    SGD o({p.w}, 0.1);
    o.add_parameters({p.b});
    o.zero_grad();
    p.loss().backward();
    o.step();
    p.show("added");
    std::cout << o.parameters().size() << (AdamOptions(0.1) == AdamOptions(0.1))
              << (AdamOptions(0.1).eps(3) == AdamOptions(0.1)) << "\n";
    o.zero_grad(false);
    std::cout << p.w.grad().sum().item<double>() << "\n";
    auto moved = std::move(o);
    moved.step();
    std::unique_ptr<Optimizer> poly = std::make_unique<Adam>(std::vector<torch::Tensor>{p.w}, AdamOptions(1e-2));
    poly->step();
    p.show("poly");
  }
  {
    Problem p;
    SGD o({p.w, p.w, p.b}, SGDOptions(0.1).momentum(0.5));
    for (int i = 0; i < 3; ++i) {
      o.zero_grad();
      p.loss().backward();
      o.step();
    }
    p.show("twice");
  }
}
