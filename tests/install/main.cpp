// Differentiates the sum of squares: the gradient at 1, 2, 3 is 2, 4, 6.
#include <vesta/vesta.h>

#include <iostream>

int main() {
  vesta::Tensor x = vesta::arange(1, 4, 1, vesta::DType::float32);
  x.set_requires_grad();
  (x * x).sum().backward();
  std::cout << "gradient: " << x.grad() << "\n";
}
