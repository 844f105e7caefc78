// Differentiates the sum of squares: the gradient of 1, 2, 3 is 2, 4, 6.
#include <vesta/vesta.h>

#include <iostream>

int main() {
  vesta::Tensor x = vesta::arange(1, 4).to(vesta::kFloat32).requires_grad_();
  (x * x).sum().backward();
  std::cout << "gradient: " << x.grad() << "\n";
}
