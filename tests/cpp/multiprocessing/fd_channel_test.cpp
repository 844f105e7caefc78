// Messages with descriptors: framing, deadlines, death of the other side.
#include <vesta/multiprocessing/fd_channel.h>

#include <fcntl.h>
#include <sys/resource.h>

#include <string>
#include <thread>

#include <catch2/catch.hpp>

#include "forked.h"

using namespace vesta;
using namespace vesta::shared;
using vesta::test::Forked, vesta::test::open_descriptors;

namespace {
Clock::time_point milliseconds(int n) { return deadline_in(Milliseconds(n)); }
}  // namespace

TEST_CASE("messages of every size arrive whole and in order", "[fd_channel]") {
  const int before = open_descriptors();
  {
    auto [a, b] = FdChannel::make_pair();
    std::thread writer([&a = a] {
      for (size_t n : {0, 1, 15, 16, 17, 4096, 1000000}) {
        const std::string data(n, char('a' + n % 7));
        const int fds[] = {0, 1, 2};
        a.send(data, {fds, n % 4}, milliseconds(20000));
      }
      a.close();
    });
    Message message;
    for (size_t n : {0, 1, 15, 16, 17, 4096, 1000000}) {
      REQUIRE(b.receive(message, milliseconds(20000)) == Arrival::message);
      CHECK(message.bytes == std::string(n, char('a' + n % 7)));
      CHECK(message.descriptors.size() == n % 4);
    }
    CHECK(b.receive(message, milliseconds(20000)) == Arrival::closed);
    writer.join();
  }
  CHECK(open_descriptors() == before);
}

TEST_CASE("waits end at their deadline, with the check's exception, and with the other side", "[fd_channel]") {
  auto [a, b] = FdChannel::make_pair();
  Message message;
  CHECK(b.receive(message, milliseconds(30)) == Arrival::timeout);
  CHECK_FALSE(b.poll(milliseconds(0)));
  const InterruptCheck before = set_interrupt_check([] { throw 1; });
  CHECK_THROWS_AS(b.receive(message, deadline_in(kForever)), int);
  set_interrupt_check(before);
  const std::string data(1 << 16, 'x');
  int sent = 0;
  while (sent < 1000 && a.send(std::span(data).first(100), {}, milliseconds(sent < 100 ? 20000 : 20))) ++sent;
  CHECK(sent > 100);  // a full socket: nothing of the refused message was sent
  for (int i = 0; i < sent; ++i) {
    REQUIRE(b.receive(message, milliseconds(0)) == Arrival::message);
    REQUIRE(message.bytes.size() == 100);
  }
  CHECK(b.receive(message, milliseconds(0)) == Arrival::timeout);
  Forked child([&a = a, &b = b] {
    a.close(), b.close();
    return 0;
  });
  child.join();
  b.close();
  CHECK_THROWS_AS(a.send(data, {}, milliseconds(20000)), ChannelClosed);
  CHECK_THROWS_WITH(b.receive(message, milliseconds(0)), Catch::Contains("closed one"));
}

TEST_CASE("many readers and writers, some killed at any time: whole messages, and nobody waits for the dead",
          "[fd_channel]") {
  auto [a, b] = FdChannel::make_pair();
  auto body = [](char c) { return std::string(c % 4 == 0 ? 100000 : c * 10, c); };
  auto write_for_ever = [&a = a, &b = b, body] {
    b.close();
    for (char c = 'a';; c = c == 'z' ? 'a' : char(c + 1)) a.send(body(c), {}, milliseconds(20000));
    return 0;
  };
  auto read_for_ever = [&a = a, &b = b] {
    a.close();
    Message message;
    while (b.receive(message, milliseconds(20000)) == Arrival::message) continue;
    return 0;
  };
  Forked writer(write_for_ever);
  for (int turn = 0; turn < 30; ++turn) {
    Forked killed_writer(write_for_ever), killed_reader(read_for_ever);
    Message message;
    for (int i = 0; i < 20; ++i) {
      REQUIRE(b.receive(message, milliseconds(20000)) == Arrival::message);
      REQUIRE_FALSE(message.bytes.empty());
      REQUIRE(message.bytes == body(message.bytes[0]));
    }
  }
}

TEST_CASE("a receiver out of descriptors is told so, and reads on", "[fd_channel]") {
  auto [a, b] = FdChannel::make_pair();
  const int fds[] = {0, 0, 0, 0};
  REQUIRE(a.send(std::string("first"), fds, milliseconds(1000)));
  REQUIRE(a.send(std::string("second"), {}, milliseconds(1000)));
  Forked child([&b = b] {
    const rlimit limit{rlim_t(b.fd()) + 2, rlim_t(b.fd()) + 2};
    for (int fd = 0; fd < b.fd() + 1; ++fd) {
      if (fcntl(fd, F_GETFD) < 0) static_cast<void>(dup2(b.fd(), fd));  // no holes below
    }
    setrlimit(RLIMIT_NOFILE, &limit);
    Message message;
    try {
      b.receive(message, milliseconds(1000));
      return 1;
    } catch (const Error& e) {
      if (std::string(e.what()).find("ulimit -n") == std::string::npos) return 2;
    }
    return b.receive(message, milliseconds(1000)) == Arrival::message && message.bytes == "second" ? 0 : 3;
  });
  CHECK(child.join() == 0);
}
