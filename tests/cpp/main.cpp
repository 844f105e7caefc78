// The one main of vesta_tests; it is a file of its own because Catch2's takes seconds to compile.
#define CATCH_CONFIG_MAIN
#include <catch2/catch.hpp>
