#include <vesta/nn/value.h>

namespace vesta::nn {

void Value::refuse(const char* wanted) const {
  static constexpr std::array names = {"nothing",  "a tensor", "a bool",           "an integer",
                                       "a number", "a text",   "a list of values", "a value of another type"};
  fail(Cause::type, "expected ", wanted, ", got ", names[held_.index()], ".");
}

}  // namespace vesta::nn
