#include <vesta/nn/layers/container.h>

#include <map>

namespace vesta::nn {

Sequential::Sequential(std::initializer_list<std::shared_ptr<Module>> modules) {
  for (const auto& m : modules) push_back(m);
}

void Sequential::push_back(std::shared_ptr<Module> module) { add_module(std::to_string(size()), std::move(module)); }

Module& Sequential::operator[](size_t i) const {
  VESTA_CHECK(i < size(), index, "Sequential: index ", i, " is out of range, there are ", size(), " modules.");
  return *named_children()[i].second;
}

Tensor Sequential::forward(const Tensor& input) {
  Tensor x = input;
  for (const auto& [name, m] : named_children()) x = (*m)(x);
  return x;
}

std::shared_ptr<Module> Sequential::clone() const {
  auto copy = std::make_shared<Sequential>();
  std::map<const Module*, std::shared_ptr<Module>> copies;  // a part that occurs twice also does so in the copy
  for (const auto& [name, m] : named_children()) {
    std::shared_ptr<Module>& part = copies[m.get()];
    if (!part) part = m->clone();
    copy->push_back(part);
  }
  copy->copy_state(*this);
  return copy;
}

}  // namespace vesta::nn
