// SPDX-License-Identifier: Apache-2.0
// The main function of every test executable, compiled once. Version 3 of Catch2 brings its own.
#ifdef GPUSCHED_CATCH2_V2
#define CATCH_CONFIG_MAIN
#include <catch2/catch.hpp>
#else
namespace gpusched::test {
extern const int main_is_in_catch2;
const int main_is_in_catch2 = 3;
}  // namespace gpusched::test
#endif
