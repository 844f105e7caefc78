// The one main of vesta_tests, in its own file because Catch2's main takes seconds to compile.
#define CATCH_CONFIG_MAIN
#include <catch2/catch.hpp>
