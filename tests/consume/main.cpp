// SPDX-License-Identifier: Apache-2.0
// What an outside project might write: the whole library in one include, and a call into a compiled body.
#include "other.hpp"

#include <gpusched/gpusched.hpp>

#include <cstdio>

int main() {
    const gpusched::Context context;
    gpusched::Budget budget(context);  // defined in the compiled library, unless header-only
    if (budget.exhausted()) return 2;
    std::printf("%s\n", gpusched::version);
    return other_version() == gpusched::version ? 0 : 1;
}
