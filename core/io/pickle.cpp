// A tour: Reader keeps the stack and the memo of Python's pickle machine and runs one operation after the other; call()
// knows the few functions that rebuild tensors. Writer walks a value.
#include <vesta/core/io/pickle.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <unordered_map>

#include <vesta/core/ops/copy.h>
#include <vesta/core/ops/copy_values.h>
#include <vesta/core/ops/factory.h>
#include <vesta/core/ops/view.h>
#include <vesta/core/shape.h>

namespace vesta::io {
namespace {

using Kind = PickledValue::Kind;
constexpr int kDeepest = 200;  // levels of lists in lists
constexpr uint64_t kMostShared = 1 << 24;  // values, counted wherever they are, that no byte of the pickle stands for

Pickled made(Kind kind) {
  auto v = std::make_shared<PickledValue>();
  v->kind = kind;
  return v;
}
Pickled made_integer(int64_t i, Kind kind = Kind::integer) {
  Pickled v = made(kind);
  v->integer = i;
  return v;
}
Pickled made_text(std::string_view s, Kind kind = Kind::text) {
  Pickled v = made(kind);
  v->text = s;
  return v;
}

/// The machine that runs a pickle.
class Reader {
 public:
  Reader(std::string_view bytes, const StorageReader& storage, const std::string& path)
      : bytes_(bytes), storage_(storage), path_(path) {}

  Pickled read() {
    while (!step(uint8_t(take(1)[0]))) {}
    Pickled result = pop();
    require(stack_.empty(), "more than one value");
    unfolded(*result, 0);
    return result;
  }

 private:
  [[noreturn]] void refuse(const std::string& why) const {
    fail(Cause::value, "load: ", path_, ": expected a pickle of tensors, got ", why, " at byte ", int64_t(at_), ".");
  }
  void require(bool holds, const char* what) const {
    if (!holds) refuse(what);
  }
  std::string_view take(uint64_t n) {
    require(n <= bytes_.size() - at_, "its end too early");
    const std::string_view part = bytes_.substr(at_, n);
    at_ += n;
    return part;
  }
  template <class T>
  T number() {
    T v;
    std::memcpy(&v, take(sizeof v).data(), sizeof v);
    return v;
  }
  std::string_view line() {
    const size_t end = bytes_.find('\n', at_);
    require(end != std::string_view::npos, "a line without an end");
    const std::string_view text = take(end - at_);
    take(1);
    return text;
  }
  /// Returns how many values there are below one, and itself, if shared ones are counted in each place: a few bytes can
  /// stand for 2^100.
  uint64_t unfolded(const PickledValue& v, int depth) {
    require(depth < kDeepest, "values that are too deep");
    const auto [place, is_new] = unfolded_.try_emplace(&v, 0);
    if (!is_new) {
      require(place->second > 0, "a value that holds itself");
      return place->second;
    }
    uint64_t count = 1;
    for (const Pickled& item : v.items) {
      count += unfolded(*item, depth + 1);
      require(count <= kMostShared + bytes_.size(), "more values than its bytes can stand for");
    }
    return unfolded_[&v] = count;
  }
  void push(Pickled v) { stack_.push_back(std::move(v)); }
  Pickled pop() {
    require(!stack_.empty() && stack_.back()->kind != Kind::mark, "an operation without its operands");
    Pickled v = std::move(stack_.back());
    stack_.pop_back();
    return v;
  }
  PickledValue& top(Kind kind) {
    require(!stack_.empty() && stack_.back()->kind == kind, "an operation on another type");
    return *stack_.back();
  }
  std::vector<Pickled> pop_to_mark() {
    const auto mark =
        std::find_if(stack_.rbegin(), stack_.rend(), [](const Pickled& v) { return v->kind == Kind::mark; });
    require(mark != stack_.rend(), "an operation without its mark");
    std::vector<Pickled> values(mark.base(), stack_.end());
    stack_.erase(mark.base() - 1, stack_.end());
    return values;
  }
  void push_tuple(std::vector<Pickled> items) {
    Pickled v = made(Kind::tuple);
    v->items = std::move(items);
    push(std::move(v));
  }
  void push_last(size_t n) {
    std::vector<Pickled> items(n);
    for (size_t i = n; i-- > 0;) items[i] = pop();
    push_tuple(std::move(items));
  }
  void push_memo(uint64_t key) {
    const auto found = memo_.find(key);
    require(found != memo_.end(), "a reference to nothing");
    push(found->second);
  }
  void memoize(uint64_t key) {
    require(!stack_.empty(), "nothing to remember");
    memo_[key] = stack_.back();
  }
  void append(std::vector<Pickled> values) {
    std::vector<Pickled>& items = top(Kind::list).items;
    items.insert(items.end(), values.begin(), values.end());
  }
  void set_items(std::vector<Pickled> values) {
    require(values.size() % 2 == 0, "a key without a value");
    std::vector<Pickled>& items = top(Kind::dict).items;
    items.insert(items.end(), values.begin(), values.end());
  }
  Pickled long_integer(std::string_view text) const {
    if (text.size() > 8) refuse("an integer of more than 64 bits");
    uint64_t v = 0;
    std::memcpy(&v, text.data(), text.size());
    const size_t free = 64 - 8 * text.size();
    return made_integer(text.empty() ? 0 : int64_t(v << free) >> free);
  }

  /// Runs one operation; returns whether it was the last.
  bool step(uint8_t op) {
    switch (op) {
      case 0x80: require(uint8_t(take(1)[0]) <= 5, "a later protocol"); break;  // PROTO
      case 0x95: take(8); break;  // FRAME
      case '.': return true;
      case '(': push(made(Kind::mark)); break;
      case '0': pop(); break;
      case '1': pop_to_mark(); break;
      case '2': push(Pickled(stack_.empty() ? pop() : stack_.back())); break;
      case 'N': push(made(Kind::none)); break;
      case 0x88: push(made_integer(1, Kind::boolean)); break;
      case 0x89: push(made_integer(0, Kind::boolean)); break;
      case 'J': push(made_integer(number<int32_t>())); break;
      case 'K': push(made_integer(number<uint8_t>())); break;
      case 'M': push(made_integer(number<uint16_t>())); break;
      case 0x8a: push(long_integer(take(number<uint8_t>()))); break;  // LONG1
      case 'G': {
        Pickled v = made(Kind::real);
        v->real = std::bit_cast<double>(__builtin_bswap64(number<uint64_t>()));
        push(std::move(v));
        break;
      }
      case 'X':
      case 'T':
      case 'B': push(made_text(take(number<uint32_t>()))); break;
      case 'U':
      case 'C':
      case 0x8c: push(made_text(take(number<uint8_t>()))); break;  // SHORT_BINUNICODE
      case 0x8d:
      case 0x8e: push(made_text(take(number<uint64_t>()))); break;  // BINUNICODE8, BINBYTES8
      case ']': push(made(Kind::list)); break;
      case '}': push(made(Kind::dict)); break;
      case ')': push_tuple({}); break;
      case 't': push_tuple(pop_to_mark()); break;
      case 0x85: push_last(1); break;
      case 0x86: push_last(2); break;
      case 0x87: push_last(3); break;
      case 'a': {
        Pickled v = pop();
        append({std::move(v)});
        break;
      }
      case 'e': append(pop_to_mark()); break;
      case 's': {
        Pickled v = pop(), key = pop();
        set_items({std::move(key), std::move(v)});
        break;
      }
      case 'u': set_items(pop_to_mark()); break;
      case 'q': memoize(number<uint8_t>()); break;
      case 'r': memoize(number<uint32_t>()); break;
      case 0x94: memoize(memo_.size()); break;  // MEMOIZE
      case 'h': push_memo(number<uint8_t>()); break;
      case 'j': push_memo(number<uint32_t>()); break;
      case 'c': {
        const std::string name = std::string(line()) + ".";
        push(made_text(name + std::string(line()), Kind::global));
        break;
      }
      case 0x93: {  // STACK_GLOBAL
        const Pickled name = pop(), module = pop();
        push(made_text(module->text + "." + name->text, Kind::global));
        break;
      }
      case 'Q': push(stored(pop())); break;
      case 'R':
      case 0x81: {  // REDUCE, NEWOBJ
        const Pickled arguments = pop(), function = pop();
        require(arguments->kind == Kind::tuple && function->kind == Kind::global, "a call of another type");
        push(call(function->text, arguments->items, op == 0x81));
        break;
      }
      case 'b': {
        Pickled state = pop();
        require(!stack_.empty(), "a state without an object");
        if (stack_.back()->kind == Kind::object) stack_.back()->items = {std::move(state)};
        break;
      }
      default: refuse("the operation " + std::to_string(op));
    }
    return false;
  }

  /// Returns the storage that an id names, as a tensor of one dimension.
  Pickled stored(const Pickled& id) {
    require(id->kind == Kind::tuple && id->items.size() >= 5 && id->items[2]->kind == Kind::text,
            "an unknown reference");
    Pickled v = made(Kind::tensor);
    v->tensor = storage_(*id);
    return v;
  }
  Dims integers(const Pickled& list) const {
    require(list->kind == Kind::tuple || list->kind == Kind::list, "no list of integers");
    Dims r;
    for (const Pickled& i : list->items) {
      require(i->kind == Kind::integer, "no list of integers");
      r.push_back(i->integer);
    }
    return r;
  }
  /// Returns a view of a storage. Everything is checked: it lies within the storage.
  Pickled rebuilt(const std::vector<Pickled>& a) {
    require(a.size() >= 4 && a[0]->kind == Kind::tensor && a[1]->kind == Kind::integer, "a tensor of another form");
    const Dims sizes = integers(a[2]), strides = integers(a[3]);
    require(sizes.size() == strides.size() && sizes.size() <= size_t(kMaxDims), "a shape that does not fit");
    int64_t last = a[1]->integer;
    bool fits = last >= 0, empty = false;
    for (size_t d = 0; d < sizes.size(); ++d) {
      int64_t step = 0;
      fits = fits && sizes[d] >= 0 && strides[d] >= 0;
      empty = empty || sizes[d] == 0;
      if (fits && sizes[d] > 0) {
        fits = !__builtin_mul_overflow(sizes[d] - 1, strides[d], &step) && !__builtin_add_overflow(last, step, &last);
      }
    }
    require(fits && (empty || last < a[0]->tensor.numel()), "a tensor that does not lie within its storage");
    Pickled v = made(Kind::tensor);
    v->tensor = empty ? vesta::empty(sizes, a[0]->tensor.dtype())
                      : vesta::as_strided(a[0]->tensor, sizes, strides, a[1]->integer);
    if (a.size() > 4 && a[4]->kind == Kind::boolean && a[4]->integer) v->tensor.set_requires_grad();
    return v;
  }
  Pickled call(const std::string& name, const std::vector<Pickled>& arguments, bool makes_object) {
    if (name == "torch._utils._rebuild_tensor_v2" || name == "torch._utils._rebuild_tensor") return rebuilt(arguments);
    if (name == "torch._utils._rebuild_parameter") {
      require(!arguments.empty() && arguments[0]->kind == Kind::tensor, "a parameter of another form");
      return arguments[0];
    }
    if (name == "collections.OrderedDict" && arguments.empty()) return made(Kind::dict);
    constexpr std::string_view kLists = "torch.jit._pickle.";
    if (name.compare(0, kLists.size(), kLists) == 0) {  // build_intlist and its like, restore_type_tag
      require(!arguments.empty(), "a list of another form");
      return arguments[0];
    }
    if (!makes_object) refuse("a call of " + name.substr(0, 100));
    return made_text(name, Kind::object);
  }

  std::string_view bytes_;
  const StorageReader& storage_;
  const std::string& path_;
  size_t at_ = 0;
  std::vector<Pickled> stack_;
  std::unordered_map<uint64_t, Pickled> memo_;
  std::unordered_map<const PickledValue*, uint64_t> unfolded_;  // 0: not counted to the end
};

constexpr std::string_view kStorages[kNumDTypes] = {"Bool",  "Byte",   "Char",         "Short",
                                                    "Int",   "Long",   "Half",         "BFloat16",
                                                    "Float", "Double", "ComplexFloat", "ComplexDouble"};

/// Writes values one after the other.
class Writer {
 public:
  explicit Writer(const StorageWriter& storage) : storage_(storage) {}
  std::string write(const PickledValue& value) {
    all_ = "\x80\x02";
    one(value, 0);
    return all_ + ".";
  }

 private:
  template <class T>
  void number(T v) {
    all_.append(reinterpret_cast<const char*>(&v), sizeof v);
  }
  void text(std::string_view s) {
    all_ += 'X';
    number(uint32_t(s.size()));
    all_ += s;
  }
  void integer(int64_t i) {
    if (i == int32_t(i)) {
      all_ += 'J';
      number(int32_t(i));
    } else {
      all_ += "\x8a\x08";
      number(i);
    }
  }
  void integers(IntSpan list) {
    all_ += '(';
    for (const int64_t i : list) integer(i);
    all_ += 't';
  }
  void tensor(const Tensor& t) {
    if (!t.defined()) {
      all_ += 'N';
      return;
    }
    const Tensor plain = contiguous_values(t.detach().to(Device()));
    all_ += "ctorch._utils\n_rebuild_tensor_v2\n((";
    text("storage");
    all_ += "ctorch\n" + std::string(kStorages[size_t(t.dtype())]) + "Storage\n";
    text(storage_(plain));
    text("cpu");
    integer(t.numel());
    all_ += "tQ";
    integer(0);
    integers(plain.sizes());
    integers(plain.strides());
    all_ += t.requires_grad() ? '\x88' : '\x89';
    all_ += "ccollections\nOrderedDict\n)RtR";
  }
  void each(const PickledValue& v, int depth) {
    for (const Pickled& item : v.items) one(*item, depth + 1);
  }
  void one(const PickledValue& v, int depth) {
    VESTA_CHECK(depth < kDeepest, value, "save: expected values at most ", kDeepest, " levels deep.");
    switch (v.kind) {
      case Kind::none: all_ += 'N'; break;
      case Kind::boolean: all_ += v.integer ? '\x88' : '\x89'; break;
      case Kind::integer: integer(v.integer); break;
      case Kind::real:
        all_ += 'G';
        number(__builtin_bswap64(std::bit_cast<uint64_t>(v.real)));
        break;
      case Kind::text: text(v.text); break;
      case Kind::tensor: tensor(v.tensor); break;
      case Kind::list:
        all_ += "](";
        each(v, depth);
        all_ += 'e';
        break;
      case Kind::tuple:
        all_ += '(';
        each(v, depth);
        all_ += 't';
        break;
      case Kind::dict:
        all_ += "}(";
        each(v, depth);
        all_ += 'u';
        break;
      default: fail(Cause::value, "save: expected numbers, texts, tensors, lists, tuples and dictionaries.");
    }
  }
  const StorageWriter& storage_;
  std::string all_;
};

}  // namespace

PickledValue::~PickledValue() {
  std::vector<Pickled> left = std::move(items);
  while (!left.empty()) {
    const Pickled v = std::move(left.back());
    left.pop_back();
    if (v.use_count() > 1) continue;
    left.insert(left.end(), v->items.begin(), v->items.end());
    v->items.clear();
  }
}

Pickled read_pickle(std::string_view bytes, const StorageReader& storage, const std::string& path) {
  return Reader(bytes, storage, path).read();
}
std::string write_pickle(const PickledValue& value, const StorageWriter& storage) {
  return Writer(storage).write(value);
}

}  // namespace vesta::io
