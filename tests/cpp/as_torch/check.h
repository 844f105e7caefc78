// CHECK and CHECK_TEXT for programs that are compiled as libtorch's are: without Catch2, against <torch/torch.h> alone.
#pragma once
#include <cstdlib>
#include <iostream>
#include <sstream>
#include <string>

#define CHECK(...)                                                                        \
  do {                                                                                    \
    if (!(__VA_ARGS__)) {                                                                 \
      std::cerr << __FILE__ << ':' << __LINE__ << ": " << #__VA_ARGS__ << " is false\n";   \
      std::exit(1);                                                                       \
    }                                                                                     \
  } while (false)

/// Compares what a stream shows of a value.
#define CHECK_TEXT(value, expected)                                                                       \
  do {                                                                                                    \
    std::ostringstream stream;                                                                            \
    stream << (value);                                                                                    \
    if (stream.str() != (expected)) {                                                                     \
      std::cerr << __FILE__ << ':' << __LINE__ << ": expected\n" << (expected) << "\ngot\n" << stream.str() << '\n'; \
      std::exit(1);                                                                                       \
    }                                                                                                     \
  } while (false)

#define CHECK_RAISES(expression, part)                                                                   \
  do {                                                                                                   \
    std::string message = "nothing";                                                                     \
    try {                                                                                                \
      (void)(expression);                                                                                \
    } catch (const c10::Error& e) {                                                                      \
      message = e.what();                                                                                \
    }                                                                                                    \
    if (message.find(part) == std::string::npos) {                                                       \
      std::cerr << __FILE__ << ':' << __LINE__ << ": no error with \"" << (part) << "\": " << message << '\n'; \
      std::exit(1);                                                                                      \
    }                                                                                                    \
  } while (false)
