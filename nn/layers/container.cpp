#include <vesta/nn/layers/container.h>

#include <algorithm>
#include <map>
#include <sstream>

namespace vesta::nn {

void NumberedModules::push_back(std::shared_ptr<Module> module) {
  add_module(std::to_string(size()), std::move(module));
}

Module& NumberedModules::operator[](size_t i) const {
  VESTA_CHECK(i < size(), index, kind(), ": index ", i, " is out of range, there are ", size(), " modules.");
  return *named_children()[i].second;
}

void NumberedModules::copy_modules(const NumberedModules& from) {
  std::map<const Module*, std::shared_ptr<Module>> copies;  // a part that occurs twice also does so in the copy
  for (const auto& [name, m] : from.named_children()) {
    std::shared_ptr<Module>& part = copies[m.get()];
    if (!part) part = m->clone();
    push_back(part);
  }
  copy_state(from);
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
  Value x = size() > 0 ? named_children()[0].second->run(inputs) : inputs[0];
  for (size_t i = 1; i < size(); ++i) x = named_children()[i].second->run({&x, 1});
  return x;
}

std::shared_ptr<Module> Sequential::clone() const {
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
  auto copy = std::make_shared<ModuleDict>();
  std::map<const Module*, std::shared_ptr<Module>> copies;
  for (const auto& [name, m] : named_children()) {
    std::shared_ptr<Module>& part = copies[m.get()];
    if (!part) part = m->clone();
    copy->insert(name, part);
  }
  copy->copy_state(*this);
  return copy;
}

}  // namespace vesta::nn
