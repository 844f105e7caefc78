#include <vesta/nn/summary.h>

#include <algorithm>
#include <array>
#include <map>
#include <ostream>
#include <set>
#include <thread>

#include <fmt/format.h>

#include <vesta/core/ops/copy.h>
#include <vesta/core/random.h>
#include <vesta/nn/layers/container.h>

namespace vesta::nn {
namespace {

int64_t nbytes(const Tensor& t) { return t.numel() * int64_t(t.element_size()); }

/// Calls `f` on each tensor in a value.
template <class F>
void each_tensor(const Value& value, const F& f) {
  if (value.is_tensor()) f(value.tensor());
  if (value.is_list()) {
    for (const Value& part : value.list()) each_tensor(part, f);
  }
}

Value copied(const Value& value) {
  if (value.is_tensor()) return clone(value.tensor().detach());
  if (!value.is_list()) return value;
  Values parts;
  for (const Value& part : value.list()) parts.push_back(copied(part));
  return parts;
}

/// Writes the sizes of the tensors in a value.
std::string written(const Value& value) {
  if (value.is_tensor()) return fmt::format("[{}]", fmt::join(value.tensor().sizes(), ", "));
  if (!value.is_list()) return "-";
  std::vector<std::string> parts;
  for (const Value& part : value.list()) parts.push_back(written(part));
  return fmt::format("({})", fmt::join(parts, ", "));
}

/// Returns where a tensor begins: its address, on the meta device its storage and offset.
std::pair<const void*, int64_t> place(const Tensor& t) {
  if (const void* data = t.impl()->data()) return {data, 0};
  return {t.impl()->storage().get(), t.storage_offset()};
}

std::string with_commas(int64_t n) {
  const std::string digits = std::to_string(n);
  std::string text;
  for (size_t i = 0; i < digits.size(); ++i) {
    if (i && (digits.size() - i) % 3 == 0) text += ',';
    text += digits[i];
  }
  return text;
}

std::string size_text(int64_t bytes) {
  if (bytes < 1024) return fmt::format("{} B", bytes);
  double n = double(bytes) / 1024;
  for (const char* unit : {"KiB", "MiB", "GiB"}) {
    if (n < 1024) return fmt::format("{:.1f} {}", n, unit);
    n /= 1024;
  }
  return fmt::format("{:.1f} TiB", n);
}

std::string some(const std::vector<std::string>& names) {
  const size_t shown = std::min<size_t>(names.size(), 8);
  std::string text = fmt::format("{}", fmt::join(names.begin(), names.begin() + int64_t(shown), ", "));
  return names.size() > shown ? fmt::format("{} and {} more", text, names.size() - shown) : text;
}

/// A model in evaluation mode; afterwards modes, buffers and random states are those of before.
class LeftAsItWas {
 public:
  LeftAsItWas(Module& model, const Values& inputs) {
    keep(Device());
    for (const Tensor& t : model.parameters()) keep(t.device());
    for (const Value& value : inputs) each_tensor(value, [&](const Tensor& t) { keep(t.device()); });
    for (auto& [name, module] : model.named_modules()) modes_.emplace_back(module, module->is_training());
    for (const Tensor& b : model.buffers()) buffers_.push_back({b, b.version(), clone(b.detach())});
    model.eval();
  }
  LeftAsItWas(const LeftAsItWas&) = delete;
  ~LeftAsItWas() {
    for (auto& [module, mode] : modes_) module->train(mode);  // outer ones first, which set those in them
    for (Buffer& b : buffers_) {
      if (b.now.version() != b.version) copy_(b.now, b.before);
    }
    for (auto& [device, state] : random_) default_generator(device).set_state(state);
  }

 private:
  struct Buffer {
    Tensor now;
    uint32_t version;
    Tensor before;
  };
  /// Keeps the random state of a device.
  void keep(Device d) {
    const bool known = std::ranges::any_of(random_, [&](const auto& entry) { return entry.first == d; });
    const bool has_generator = d.type() == DeviceType::cpu || d.type() == DeviceType::cuda;
    if (has_generator && !known) random_.emplace_back(d, default_generator(d).get_state());
  }

  std::vector<std::pair<Device, Tensor>> random_;
  std::vector<std::pair<Module*, bool>> modes_;
  std::vector<Buffer> buffers_;
};

/// The hooks on all modules of a model, and the calls that they have seen.
class Watch {
 public:
  Watch(Module& model, const CountMultiplyAdds& counts) : counts_(counts), modules_(model.named_modules()) {
    for (auto& [name, module] : modules_) {
      if (!names_.try_emplace(module, name).second) continue;
      const int before = module->add_forward_pre_hook([this](Module& m, Values&) { open(m); });
      const int after =
          module->add_forward_hook([this](Module& m, const Values& in, Value& out) { close(m, in, out); });
      hooks_.push_back({module, before, after});
    }
  }
  Watch(const Watch&) = delete;
  ~Watch() {
    for (auto& [module, before, after] : hooks_) {
      module->remove_hook(before);
      module->remove_hook(after);
    }
  }

  std::vector<SummaryRow> rows;
  std::set<std::string> uncounted;

  std::vector<std::string> not_called() const {
    std::set<std::string> called;
    for (const SummaryRow& row : rows) called.insert(row.name);
    std::vector<std::string> r;
    for (const auto& [name, module] : modules_) {
      const bool holds_others = dynamic_cast<ModuleList*>(module) || dynamic_cast<ModuleDict*>(module) ||
                                dynamic_cast<detail::Parameters*>(module);
      if (!called.contains(name) && !inside_.contains(module) && !holds_others) r.push_back(name);
    }
    return r;
  }

 private:
  struct Hooks {
    Module* module;
    int before, after;
  };

  void open(Module& module) {
    if (std::this_thread::get_id() != thread_) return;
    SummaryRow row;
    row.name = names_.at(&module);
    row.kind = module.kind();
    row.depth = int64_t(stack_.size());
    row.call = ++calls_[&module];
    for (const Tensor& p : module.parameters()) {
      row.parameters += p.numel();
      if (p.requires_grad()) row.trainable_parameters += p.numel();
    }
    if (detail::has_formula(module)) {
      for (auto& [name, part] : module.named_modules()) {
        if (part != &module) inside_.insert(part);
      }
    }
    stack_.emplace_back(&module, rows.size());
    rows.push_back(std::move(row));
  }

  void close(Module& module, const Values& inputs, const Value& output) {
    if (std::this_thread::get_id() != thread_) return;
    while (stack_.back().first != &module) stack_.pop_back();  // calls that raised, and were caught
    SummaryRow& row = rows[stack_.back().second];
    stack_.pop_back();
    row.inputs = written(inputs);
    row.outputs = written(output);
    detail::Cost cost = detail::multiply_adds(module, inputs, output);
    if (counts_) {
      if (const std::optional<int64_t> n = counts_(module, inputs, output)) cost = {n, true};
    }
    std::vector<Tensor> own;
    for (auto& [name, p] : module.named_parameters()) {
      if (name.find('.') == std::string::npos) own.push_back(p);
    }
    if (cost.count) row.multiply_adds = *cost.count;
    else if (!own.empty() && !cost.known) uncounted.insert(row.kind);
    if (cost.count || !row.has_parts) row.activation_bytes = made(inputs, output, own);
    if (stack_.empty()) return;
    SummaryRow& outer = rows[stack_.back().second];
    outer.has_parts = true;
    if (detail::has_formula(*stack_.back().first)) return;
    outer.multiply_adds += row.multiply_adds;
    outer.activation_bytes += row.activation_bytes;
  }

  /// Returns the bytes of the tensors in an output that share no memory with an input or a parameter of the layer.
  static int64_t made(const Values& inputs, const Value& output, const std::vector<Tensor>& own) {
    std::set<std::pair<const void*, int64_t>> taken;
    std::map<std::pair<const void*, int64_t>, int64_t> found;
    const auto take = [&](const Tensor& t) {
      if (!t.is_sparse()) taken.insert(place(t));
    };
    for (const Value& value : inputs) each_tensor(value, take);
    for (const Tensor& p : own) take(p);
    each_tensor(output, [&](const Tensor& t) {
      if (!t.is_sparse()) found[place(t)] = nbytes(t);
    });
    int64_t bytes = 0;
    for (const auto& [where, size] : found) bytes += taken.contains(where) ? 0 : size;
    return bytes;
  }

  const CountMultiplyAdds& counts_;
  const std::thread::id thread_ = std::this_thread::get_id();
  Module::NamedModules modules_;
  std::map<const Module*, std::string> names_;
  std::map<const Module*, int64_t> calls_;
  std::set<const Module*> inside_;  // layers of a layer that has a formula: they are counted with it
  std::vector<std::pair<const Module*, size_t>> stack_;
  std::vector<Hooks> hooks_;
};

using Line = std::array<std::string, 6>;

Line line_of(const SummaryRow& row) {
  const size_t dot = row.name.rfind('.');
  std::string label = row.name.empty() ? row.kind : dot == std::string::npos ? row.name : row.name.substr(dot + 1);
  label = fmt::format("{:{}}{}", "", 2 * row.depth, label);
  if (row.call > 1) label += fmt::format(" (call {})", row.call);
  const auto number = [](int64_t n) { return n ? with_commas(n) : ""; };
  return {label,
          row.name.empty() ? "" : row.kind,
          row.outputs.empty() ? "-" : row.outputs,
          number(row.call == 1 ? row.parameters : 0),
          number(row.multiply_adds),
          row.activation_bytes ? size_text(row.activation_bytes) : ""};
}

}  // namespace

std::string Summary::str() const {
  std::vector<Line> lines{{"Layer", "Kind", "Output", "Parameters", "Multiply-adds", "Activations"}};
  std::ranges::transform(rows, std::back_inserter(lines), line_of);
  std::array<size_t, 6> widths{};
  for (const Line& line : lines) {
    for (size_t i = 0; i < widths.size(); ++i) widths[i] = std::max(widths[i], line[i].size());
  }
  std::string text;
  for (const Line& line : lines) {
    std::string one;
    for (size_t i = 0; i < widths.size(); ++i) {
      one += fmt::format(fmt::runtime(i < 3 ? "{:<{}}  " : "{:>{}}  "), line[i], widths[i]);
    }
    one.erase(one.find_last_not_of(' ') + 1);
    text += one + "\n";
  }
  const std::string trained =
      trainable_parameters == parameters ? "all trained" : with_commas(trainable_parameters) + " trained";
  text += fmt::format("Parameters: {} ({}), {}. Multiply-adds: {}. Activations: {}. Input: {}.",
                      with_commas(parameters), size_text(parameter_bytes), trained, with_commas(multiply_adds),
                      size_text(activation_bytes), size_text(input_bytes));
  if (buffer_bytes) text += fmt::format(" Buffers: {}.", size_text(buffer_bytes));
  if (!not_called.empty()) text += fmt::format("\nNot called: {}.", some(not_called));
  if (!uncounted.empty()) text += fmt::format("\nMultiply-adds of their own not counted: {}.", some(uncounted));
  return text;
}

std::ostream& operator<<(std::ostream& out, const Summary& summary) { return out << summary.str(); }

Summary summary(Module& model, const Values& inputs, const CountMultiplyAdds& counts) {
  const NoGrad off;
  const Value given = copied(inputs);
  const LeftAsItWas kept(model, inputs);
  Watch watch(model, counts);
  model.run(given.list());

  Summary s;
  for (const Tensor& p : model.parameters()) {
    s.parameters += p.numel();
    s.parameter_bytes += nbytes(p);
    if (p.requires_grad()) s.trainable_parameters += p.numel();
  }
  for (const Tensor& b : model.buffers()) s.buffer_bytes += nbytes(b);
  for (const Value& value : inputs) each_tensor(value, [&](const Tensor& t) { s.input_bytes += nbytes(t); });
  s.multiply_adds = watch.rows.front().multiply_adds;
  s.activation_bytes = watch.rows.front().activation_bytes;
  s.not_called = watch.not_called();
  s.uncounted.assign(watch.uncounted.begin(), watch.uncounted.end());
  s.rows = std::move(watch.rows);
  return s;
}

Summary summary(Module& model, const Tensor& input, const CountMultiplyAdds& counts) {
  return summary(model, Values{input}, counts);
}

}  // namespace vesta::nn
