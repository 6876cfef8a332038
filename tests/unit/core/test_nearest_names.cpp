// SPDX-License-Identifier: Apache-2.0
// What a caller may have meant by an unknown name.
#include "support/catch.hpp"

#include <gpusched/core/core.hpp>

using namespace gpusched;

namespace {
using Names = std::vector<std::string>;

/// The length of the longest common subsequence, by the textbook.
std::size_t common(std::string_view a, std::string_view b) {
    std::vector<std::vector<std::size_t>> most(a.size() + 1, std::vector<std::size_t>(b.size() + 1));
    for (std::size_t i = 0; i < a.size(); ++i)
        for (std::size_t j = 0; j < b.size(); ++j)
            most[i + 1][j + 1] = a[i] == b[j] ? most[i][j] + 1 : std::max(most[i][j + 1], most[i + 1][j]);
    return most[a.size()][b.size()];
}
}  // namespace

TEST_CASE("likeness is the part that the longest common subsequence makes up") {
    const Names names{"", "a", "abc", "cba", "aabbcc", "node_0001", "node_1", std::string(64, 'x'), "xaxbxc"};
    for (const auto& a : names)
        for (const auto& b : names) {
            const auto total = a.size() + b.size();
            const double expected =
                total == 0 ? 1.0 : 2.0 * static_cast<double>(common(a, b)) / static_cast<double>(total);
            CHECK(NameLikeness(a)(b) == expected);
        }
    CHECK(NameLikeness("Best-Fit")("best_fit") == 1.0);
    CHECK(NameLikeness(std::string(100, 'y') + "abc")("zz" + std::string(90, 'y') + "abc") == 1.0);
}

TEST_CASE("the nearest three names are suggested, nearest first") {
    CHECK_THAT(did_you_mean("bets", Names{"ipc", "fast", "best"}), Mentions("mean 'best'"));
    CHECK_THAT(did_you_mean("node-12", Names{"node-11", "node-12x", "node-1"}),
               Catch::Matchers::ContainsSubstring("'node-12x', 'node-1' or 'node-11'"));
    CHECK(did_you_mean("n9", Names{"n0", "n1"}).empty());
    CHECK(did_you_mean("", Names{"a"}).empty());
    CHECK(did_you_mean("a", Names{}).empty());
    CHECK_THAT(bad_name("preset", "opnb", Names{"asi", "openb"}),
               Mentions("preset 'opnb' one of asi openb mean 'openb'"));
}
