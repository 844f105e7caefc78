#include <vesta/autograd/pieces.h>

#include <algorithm>

#include <vesta/core/ops/arithmetic.h>
#include <vesta/core/ops/copy.h>
#include <vesta/core/ops/factory.h>
#include <vesta/core/ops/index.h>
#include <vesta/core/ops/shape.h>
#include <vesta/core/ops/view.h>

namespace vesta::autograd {

bool Pieces::takes(const Tensor& g, int64_t dim, uint32_t input_nr) const {
  const bool goes = pieces_.empty() || (pieces_[0].grad.dtype() == g.dtype() && pieces_[0].grad.device() == g.device());
  return goes && dim == dim_ && input_nr == input_nr_ && held_ + g.size(dim) <= sizes_[size_t(dim)];
}

void Pieces::add(Tensor g, int64_t start) {
  held_ += g.size(dim_);
  pieces_.push_back({start, std::move(g)});
}

Tensor Pieces::join() {
  std::vector<Piece> order = pieces_;
  std::ranges::stable_sort(order, {}, &Piece::start);
  int64_t end = 0;
  bool apart = true, tiles = true;  // no element is in two pieces; each is in one
  for (const Piece& p : order) {
    apart = apart && p.start >= end, tiles = tiles && p.start == end;
    end = p.start + p.grad.size(dim_);
  }
  if (tiles && end == sizes_[size_t(dim_)]) {
    TensorVector parts;
    for (Piece& p : order) parts.push_back(std::move(p.grad));
    return cat(parts, dim_);
  }
  const Tensor& first = pieces_[0].grad;
  Tensor sum = zeros(IntList(sizes_), first.dtype(), first.device());
  for (size_t i = 0; i < pieces_.size(); ++i) {
    const Tensor& g = pieces_[i].grad;
    const Tensor place = narrow(sum, dim_, pieces_[i].start, g.size(dim_));
    if (apart || i == 0) copy_(place, g);
    else ops::add(place, g, 1, Out{&place, Out::inplace});
  }
  return sum;
}

}  // namespace vesta::autograd
