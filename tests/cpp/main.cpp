// The main of all test programs, compiled once: Catch2's own takes long.
#define CATCH_CONFIG_MAIN
#include <catch2/catch.hpp>
