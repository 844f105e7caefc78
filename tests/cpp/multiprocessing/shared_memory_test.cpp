// Shared memory between processes: who holds a block, who died, and what the owner may reuse.
#include <vesta/multiprocessing/shared_memory.h>

#include <sys/resource.h>

#include <cstring>
#include <vector>

#include <catch2/catch.hpp>
#include <vesta/core/base/error.h>
#include <vesta/multiprocessing/fd_channel.h>

#include "forked.h"

using namespace vesta;
using namespace vesta::shared;
using vesta::test::Forked, vesta::test::open_descriptors;

namespace {

Clock::time_point seconds(int n) { return deadline_in(std::chrono::seconds(n)); }

void send_block(FdChannel& channel, const Storage& block) {
  Lease lease;
  Handle handle;
  lease.add(block, handle);
  REQUIRE(channel.send({reinterpret_cast<const char*>(&handle), sizeof handle}, lease.descriptors(), seconds(20)));
}

StoragePtr receive_block(FdChannel& channel) {
  Message message;
  if (channel.receive(message, seconds(20)) != Arrival::message) return {};
  Handle handle;
  std::memcpy(&handle, message.bytes.data(), sizeof handle);
  return attach(message.descriptors.at(0).get(), handle);
}

void say(FdChannel& channel) { channel.send(std::span("x", 1), {}, seconds(20)); }
void hear(FdChannel& channel) {
  Message message;
  REQUIRE(channel.receive(message, seconds(20)) == Arrival::message);
}

/// Returns the statistics of the arena that this process owns.
ArenaStats mine() {
  for (const ArenaStats& s : stats()) {
    if (s.owner) return s;
  }
  return {};
}
char* text_of(const StoragePtr& s) { return static_cast<char*>(s->data()); }

}  // namespace

TEST_CASE("blocks are reused, grow in few windows, and leave nothing behind", "[shared_memory]") {
  const int before = open_descriptors();
  {
    Arena arena;
    std::vector<StoragePtr> blocks;
    for (int i = 0; i < 5000; ++i) {
      blocks.push_back(arena.allocate(10000));
      std::memset(blocks.back()->data(), i, 10000);
    }
    for (int i = 0; i < 5000; ++i) REQUIRE(text_of(blocks[size_t(i)])[9999] == char(i));
    CHECK(open_descriptors() == before + 1);
    const uint64_t reserved = mine().reserved;
    CHECK(reserved < 128 << 20);
    for (size_t i = 0; i < 5000; i += 2) blocks[i].reset();
    for (size_t i = 1; i < 5000; i += 2) blocks[i].reset();
    CHECK(mine().live == 0);
    StoragePtr large = arena.allocate(20 << 20);  // neighbours were merged
    CHECK(mine().reserved == reserved);
  }
  CHECK(stats().empty());
  CHECK(open_descriptors() == before);
}

TEST_CASE("a block that another process holds is not used again before it drops it, or dies", "[shared_memory]") {
  const bool dies = GENERATE(false, true);
  auto [here, there] = FdChannel::make_pair();
  Arena arena;
  StoragePtr block = arena.allocate(100);
  std::strcpy(text_of(block), "hello");
  Forked child([&, &there = there, &here = here] {
    here.close();
    block.reset();  // inherited: held by the child as well
    StoragePtr got = receive_block(there);
    if (!got || got->nbytes() != 100 || std::strcmp(text_of(got), "hello") != 0) return 1;
    std::strcpy(text_of(got), "world");
    say(there);
    hear(there);
    if (dies) ::kill(getpid(), SIGKILL);
    got.reset();
    say(there);
    hear(there);
    return 0;
  });
  there.close();
  send_block(here, *block);
  hear(here);
  CHECK(std::string(text_of(block)) == "world");
  const void* address = block->data();
  block.reset();
  CHECK(mine().lent >= 100);
  StoragePtr other = arena.allocate(100);
  CHECK(other->data() != address);
  say(here);
  if (dies) child.join();
  else hear(here);
  collect();
  CHECK(mine().lent == 0);
  StoragePtr again = arena.allocate(100);
  CHECK(again->data() == address);
}

TEST_CASE("a message on its way keeps its block; a lost one gives it back", "[shared_memory]") {
  auto [here, there] = FdChannel::make_pair();
  Arena arena;
  StoragePtr block = arena.allocate(100);
  std::strcpy(text_of(block), "late");
  send_block(here, *block);
  block.reset();
  collect();
  CHECK(mine().lent > 0);
  SECTION("received late") {
    StoragePtr got = receive_block(there);  // comes back to its owner
    CHECK(std::string(text_of(got)) == "late");
    CHECK(mine().lent == 0);
  }
  SECTION("never received") {
    there.close();
    collect();
    CHECK(mine().lent == 0);
  }
}

TEST_CASE("memory outlives the process that made it, and goes with its last holder", "[shared_memory]") {
  const int before = open_descriptors();
  {
    auto [here, there] = FdChannel::make_pair();
    {
      Forked child([&there = there] {
        Arena arena;
        StoragePtr block = arena.allocate(3 << 20);
        std::strcpy(text_of(block), "testament");
        send_block(there, *block);
        return 0;
      });
      CHECK(child.join() == 0);
    }
    StoragePtr got = receive_block(here);
    REQUIRE(got);
    CHECK(std::string(text_of(got)) == "testament");
    CHECK(stats().size() == 1);
    got.reset();
    CHECK(stats().empty());
  }
  CHECK(open_descriptors() == before);
}

TEST_CASE("a forked child holds what its parent held, and frees it for neither twice", "[shared_memory]") {
  auto [here, there] = FdChannel::make_pair();
  Arena arena;
  StoragePtr block = arena.allocate(100), second = arena.allocate(100);
  std::strcpy(text_of(block), "inherited");
  Forked child([&, &there = there, &here = here] {
    here.close();
    try {
      arena.allocate(1);
      return 1;
    } catch (const Error& e) {
      if (std::string(e.what()).find("forked child") == std::string::npos) return 2;
    }
    second.reset();
    say(there);
    hear(there);
    if (std::strcmp(text_of(block), "inherited") != 0) return 3;
    StoragePtr own = allocate_shared(100);
    if (own->data() == block->data()) return 4;
    block.reset();
    say(there);
    hear(there);
    return 0;
  });
  there.close();
  hear(here);
  StoragePtr third = arena.allocate(100);
  CHECK(third->data() != second->data());  // the child's drop does not free the parent's
  const void* address = block->data();
  block.reset();
  StoragePtr other = arena.allocate(100);
  CHECK(other->data() != address);
  std::memset(other->data(), 'x', 100);
  say(here);
  hear(here);
  collect();
  StoragePtr again = arena.allocate(100);
  CHECK(again->data() == address);
  say(here);
  CHECK(child.join() == 0);
}

TEST_CASE("a storage moves to shared memory with all that view it", "[shared_memory]") {
  StoragePtr small = Storage::allocate(16, Device()), large = Storage::allocate(100000, Device());
  for (Storage* s : {small.get(), large.get()}) {
    std::memset(s->data(), 7, s->nbytes());
    CHECK_FALSE(is_shared(*s));
    share(*s);
    CHECK(is_shared(*s));
    const void* address = s->data();
    share(*s);
    CHECK(s->data() == address);
    CHECK(static_cast<char*>(s->data())[s->nbytes() - 1] == 7);
    CHECK_THROWS_WITH(s->resize(10), Catch::Contains("borrows"));
  }
}

TEST_CASE("full memory is an exception, and the arena goes on", "[shared_memory]") {
  Forked child([] {
    Arena arena;
    StoragePtr block = arena.allocate(1 << 20);
    rlimit limit{64 << 20, 64 << 20};
    setrlimit(RLIMIT_FSIZE, &limit);  // SIGXFSZ would kill
    std::vector<StoragePtr> blocks;
    try {
      while (true) blocks.push_back(arena.allocate(10 << 20));
    } catch (const Error& e) {
      if (e.cause() != Cause::memory) return 1;
    }
    if (blocks.size() < 4) return 2;
    for (StoragePtr& b : blocks) std::memset(b->data(), 1, b->nbytes());
    blocks.clear();
    blocks.push_back(arena.allocate(10 << 20));
    try {
      arena.allocate(uint64_t(1) << 44);
      return 3;
    } catch (const Error& e) {
      return e.cause() == Cause::memory ? 0 : 4;
    }
  });
  CHECK(child.join() == 0);
}

TEST_CASE("handles that do not fit are refused", "[shared_memory]") {
  auto [here, there] = FdChannel::make_pair();
  Forked child([&there = there] {
    Arena arena;
    StoragePtr block = arena.allocate(100);
    Lease lease;
    Handle h;
    lease.add(*block, h);
    const int fd = lease.descriptors()[0];
    there.send({reinterpret_cast<const char*>(&h), sizeof h}, {&fd, 1}, seconds(20));
    hear(there);
    return 0;
  });
  Message message;
  REQUIRE(here.receive(message, seconds(20)) == Arrival::message);
  Handle good;
  std::memcpy(&good, message.bytes.data(), sizeof good);
  const int fd = message.descriptors.at(0).get();
  auto refused = [&](Handle h) { CHECK_THROWS_AS(attach(fd, h), Error); };
  for (uint64_t wild : {uint64_t(1), uint64_t(0) - (uint64_t(1) << 30), uint64_t(1) << 40}) {
    for (uint64_t Handle::* field : {&Handle::window, &Handle::window_bytes, &Handle::offset, &Handle::bytes}) {
      Handle h = good;
      h.*field += wild;
      refused(h);
    }
  }
  Handle longer = good;
  longer.nbytes = good.bytes + 1;
  refused(longer);
  Handle unheld = good;
  unheld.offset += 6400;
  refused(unheld);
  CHECK_THROWS_AS(attach(here.fd(), good), Error);
  CHECK(stats().empty());
  CHECK(attach(fd, good)->nbytes() == 100);
  message.descriptors.clear();
  say(here);
  CHECK(child.join() == 0);
}
