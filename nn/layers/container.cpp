#include <vesta/nn/layers/container.h>

#include <algorithm>
#include <map>
#include <sstream>
#include <typeinfo>

#include <vesta/nn/layers/conv.h>
#include <vesta/nn/layers/linear.h>

namespace vesta::nn {
namespace {

/// The copies made so far of a container's modules and of those in the containers that it holds: a module that occurs
/// twice does so in the copy too. A container that a module of another class holds begins anew.
class CloneScope {
 public:
  explicit CloneScope(const Module& container) : outer_(current) {
    if (!outer_ || outer_->next_ != &container) current = this;
  }
  ~CloneScope() { current = outer_; }
  CloneScope(const CloneScope&) = delete;
  CloneScope& operator=(const CloneScope&) = delete;

  std::shared_ptr<Module> copy_of(const Module& m) const {
    CloneScope& scope = *current;
    if (const auto found = scope.copies_.find(&m); found != scope.copies_.end()) return found->second;
    scope.next_ = &m;
    std::shared_ptr<Module> made = m.clone();
    scope.copies_.emplace(&m, made);
    return made;
  }

 private:
  static thread_local CloneScope* current;
  CloneScope* outer_;
  const Module* next_ = nullptr;  // what copy_of clones now
  std::map<const Module*, std::shared_ptr<Module>> copies_;
};
thread_local CloneScope* CloneScope::current = nullptr;

/// Raises for a class that derives from a container: clone() would lose what it adds.
template <class C>
void check_class(const C& container) {
  VESTA_CHECK(typeid(container) == typeid(C), not_implemented, container.kind(), ": derives from ",
              class_name(typeid(C)), " and has no clone() of its own. Override clone().");
}

}  // namespace

void NumberedModules::push_back(std::shared_ptr<Module> module) {
  add_module(std::to_string(size()), std::move(module));
}

Module& NumberedModules::operator[](size_t i) const {
  VESTA_CHECK(i < size(), index, kind(), ": index ", i, " is out of range, there are ", size(), " modules.");
  return *named_children()[i].second;
}

void NumberedModules::copy_modules(const NumberedModules& from) {
  const CloneScope scope(from);
  for (const auto& [name, m] : from.named_children()) push_back(scope.copy_of(*m));
  copy_entries(from);
}

Sequential::Sequential(std::initializer_list<std::shared_ptr<Module>> modules) {
  for (const auto& m : modules) push_back(m);
}

Tensor Sequential::forward(const Tensor& input) {
  const Value given(input);
  return call({&given, 1}).tensor();
}

Value Sequential::call(std::span<const Value> inputs) {
  VESTA_CHECK(size() > 0 || inputs.size() == 1, type, "Sequential: without modules it takes 1 input, got ",
              inputs.size(), ".");
  if (size() == 0) return inputs[0];
  Value x;
  for (size_t i = 0; i < size(); ++i) {
    const std::span<const Value> given = i == 0 ? inputs : std::span<const Value>(&x, 1);
    Module& layer = *named_children()[i].second;
    if (i + 1 < size() && given.size() == 1 && given[0].is_tensor()) {
      const Module& next = *named_children()[i + 1].second;
      std::optional<Tensor> joined;
      if (auto* linear = dynamic_cast<Linear*>(&layer)) joined = linear->forward_with(next, given[0].tensor());
      else if (auto* conv = dynamic_cast<Conv2d*>(&layer)) joined = conv->forward_with(next, given[0].tensor());
      if (joined) {
        x = *std::move(joined);
        ++i;
        continue;
      }
    }
    x = layer.run(given);
  }
  return x;
}

std::shared_ptr<Module> Sequential::clone() const {
  check_class(*this);
  auto copy = std::make_shared<Sequential>();
  copy->copy_modules(*this);
  return copy;
}

ModuleList::ModuleList(std::initializer_list<std::shared_ptr<Module>> modules) {
  for (const auto& m : modules) push_back(m);
}

std::string ModuleList::repr() const {
  if (size() == 0) return "ModuleList()";
  std::ostringstream out;
  out << "ModuleList(\n";
  for (size_t first = 0; first < size();) {
    const std::string text = (*this)[first].repr();
    size_t last = first;
    while (last + 1 < size() && (*this)[last + 1].repr() == text) ++last;
    out << "  (" << first;
    if (last > first) out << "-" << last << "): " << last - first + 1 << " x ";
    else out << "): ";
    std::istringstream lines(text);
    std::string line;
    for (bool begun = false; std::getline(lines, line); begun = true) out << (begun ? "  " : "") << line << "\n";
    first = last + 1;
  }
  out << ")";
  return out.str();
}

std::shared_ptr<Module> ModuleList::clone() const {
  check_class(*this);
  auto copy = std::make_shared<ModuleList>();
  copy->copy_modules(*this);
  return copy;
}

ModuleDict::ModuleDict(std::initializer_list<std::pair<std::string, std::shared_ptr<Module>>> modules) {
  for (const auto& [name, m] : modules) insert(name, m);
}

bool ModuleDict::contains(std::string_view name) const {
  return std::ranges::any_of(named_children(), [&](const auto& e) { return e.first == name; });
}

Module& ModuleDict::operator[](std::string_view name) const {
  const auto found = std::ranges::find_if(named_children(), [&](const auto& e) { return e.first == name; });
  VESTA_CHECK(found != named_children().end(), index, "ModuleDict: expected the name of a module, got '", name, "'.");
  return *found->second;
}

std::shared_ptr<Module> ModuleDict::clone() const {
  check_class(*this);
  auto copy = std::make_shared<ModuleDict>();
  const CloneScope scope(*this);
  for (const auto& [name, m] : named_children()) copy->insert(name, scope.copy_of(*m));
  copy->copy_entries(*this);
  return copy;
}

namespace detail {

void Parameters::insert_parameter(std::string name, Tensor parameter) {
  VESTA_CHECK(parameter.defined(), value, kind(), ": expected a tensor, got an undefined one ('", name, "').");
  register_parameter(name, parameter);
  entries_.emplace_back(std::move(name), std::move(parameter));
}

void Parameters::copy_parameters(const Parameters& from) {
  copy_entries(from);
  entries_ = named_parameters();
}

std::string Parameters::repr() const {
  if (entries_.empty()) return kind() + "()";
  std::string all = kind() + "(\n";
  for (const auto& [name, t] : entries_) {
    std::string size;
    for (int64_t n : t.sizes()) size += (size.empty() ? "" : "x") + std::to_string(n);
    const std::string device = t.device().type() == DeviceType::cpu ? "" : text(" (", t.device(), ")");
    all += text("    (", name, "): Parameter containing: [vesta.", t.dtype(), " of size ", size, device, "]\n");
  }
  return all + ")";
}

}  // namespace detail

ParameterList::ParameterList(std::initializer_list<Tensor> parameters) {
  for (const Tensor& p : parameters) append(p);
}

void ParameterList::append(Tensor parameter) { insert_parameter(std::to_string(size()), std::move(parameter)); }

const Tensor& ParameterList::operator[](size_t i) const {
  VESTA_CHECK(i < size(), index, "ParameterList: index ", i, " is out of range, there are ", size(), " parameters.");
  return entries_[i].second;
}

std::shared_ptr<Module> ParameterList::clone() const {
  check_class(*this);
  auto copy = std::make_shared<ParameterList>();
  copy->copy_parameters(*this);
  return copy;
}

ParameterDict::ParameterDict(std::initializer_list<std::pair<std::string, Tensor>> parameters) {
  for (const auto& [name, p] : parameters) insert(name, p);
}

void ParameterDict::insert(std::string name, Tensor parameter) {
  insert_parameter(std::move(name), std::move(parameter));
}

bool ParameterDict::contains(std::string_view name) const {
  return std::ranges::any_of(entries_, [&](const auto& e) { return e.first == name; });
}

const Tensor& ParameterDict::operator[](std::string_view name) const {
  const auto found = std::ranges::find_if(entries_, [&](const auto& e) { return e.first == name; });
  VESTA_CHECK(found != entries_.end(), index, "ParameterDict: expected the name of a parameter, got '", name, "'.");
  return found->second;
}

std::shared_ptr<Module> ParameterDict::clone() const {
  check_class(*this);
  auto copy = std::make_shared<ParameterDict>();
  copy->copy_parameters(*this);
  return copy;
}

}  // namespace vesta::nn
