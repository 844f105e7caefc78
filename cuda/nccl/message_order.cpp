#include <vesta/cuda/nccl/message_order.h>

#include <algorithm>

namespace vesta::cuda::nccl {

wire::Writer& put(wire::Writer& w, MessageKind kind) { return w.put(uint8_t(kind)); }

MessageOrder::MessageOrder(Mesh& mesh)
    : mesh_(mesh),
      promised_(size_t(mesh.size())),
      answered_(promised_),
      asked_(promised_),
      questions_(promised_),
      left_(promised_.size()),
      turns_(promised_.size()) {}

uint64_t MessageOrder::call(uint64_t count) {
  called_ += count;
  return called_ - count + 1;
}

uint64_t MessageOrder::floor(int rank) const { return std::max(promised_[size_t(rank)], answered_[size_t(rank)]); }

bool MessageOrder::settled(int rank, uint64_t n) {
  const size_t r = size_t(rank);
  if (answered_[r] >= n || left_[r] || rank == mesh_.rank()) return true;
  if (asked_[r] < n) {
    asked_[r] = n;
    tell(rank, MessageKind::ask, n, {});
  }
  return false;
}

void MessageOrder::take_in(int from, MessageKind kind, uint64_t number, wire::Reader& r) {
  const size_t f = size_t(from);
  if (kind == MessageKind::ask) {
    questions_[f] = std::max(questions_[f], number);
  } else if (kind == MessageKind::called) {
    answered_[f] = std::max(answered_[f], number);
  } else {
    Turn t;
    t.number = number;
    t.source = r.get<int32_t>(), t.target = r.get<int32_t>(), t.position = r.get<uint64_t>();
    (kind == MessageKind::ready ? ready_ : turns_[f]).push_back(t);
  }
}

void MessageOrder::announce(const Turn& t) {
  wire::Writer position, whole;
  tell(t.source, MessageKind::matched, t.number, position.put(t.position).take());
  whole.put(int32_t(t.source)).put(int32_t(t.target)).put(t.position);
  tell(sequencer(), MessageKind::ready, t.number, whole.take());
}

void MessageOrder::go_on() {
  if (sequencer() == mesh_.rank()) {
    for (const Turn& t : ready_) {
      for (int rank : {t.source, t.target}) {
        wire::Writer w;
        w.put(int32_t(t.source)).put(int32_t(t.target)).put(t.position);
        tell(rank, MessageKind::turn, t.number, w.take());
      }
    }
    ready_.clear();
  }
  for (size_t r = 0; r < questions_.size(); ++r) {
    if (!questions_[r] || called_ < questions_[r]) continue;
    promised_[r] = std::max(promised_[r], questions_[r]);
    tell(int(r), MessageKind::called, questions_[r], {});
    questions_[r] = 0;
  }
}

bool MessageOrder::next(Turn& t) {
  for (size_t r = 0; r < turns_.size(); ++r) {
    if (!turns_[r].empty()) {
      t = turns_[r].front();
      turns_[r].pop_front();
      return true;
    }
    if (!left_[r]) return false;  // what a later rank says comes after what this one may still say
  }
  return false;
}

bool MessageOrder::sequencer_changed() {
  const int now = sequencer();
  return std::exchange(announced_to_, now) != now;
}

int MessageOrder::sequencer() const {
  return int(std::find(left_.begin(), left_.end(), false) - left_.begin());  // this rank, at the latest
}

void MessageOrder::tell(int to, MessageKind kind, uint64_t number, const std::string& rest) {
  if (to == mesh_.rank()) {
    wire::Reader r(rest);
    return take_in(to, kind, number, r);
  }
  wire::Writer w;
  put(w, kind);
  mesh_.send(to, Topic::message, number, w.take(), rest);
}

}  // namespace vesta::cuda::nccl
