// SPDX-License-Identifier: Apache-2.0
#include "support/catch.hpp"

#include <gpusched/serving/serving.hpp>

#include <cstdio>
#include <fstream>

using namespace gpusched;
using namespace gpusched::serving;

TEST_CASE("profile tables are read", "[serving]") {
    const std::vector<ProfilePoint> expected{{2, 1.4e-3}, {4, 1.5e-3}};
    CHECK(parse_profile_csv("0,0\n2,1.4\n4,1.5\n") == expected);
    CHECK(parse_profile_csv("\xEF\xBB\xBF size , ms\r\n# measured twice\r\n\r\n 2 , 1.4\r\n4,15e-1") ==
          expected);
    CHECK(parse_profile_csv("2,1.4\n4,1.5", 1e-3) == expected);
    CHECK(parse_profile_csv("3,2", 1.0) == std::vector<ProfilePoint>{{3, 2}});

    const auto wrong = [](const std::string& text, const char* part) {
        CAPTURE(text);
        REQUIRE_THROWS_MESSAGE(parse_profile_csv(text), InvalidInput, part);
    };
    wrong("", "<profile> no points");
    wrong("size,ms\n", "no points");
    wrong("size,ms\nsize,ms\n1,2\n", "<profile>:2 size >= 0 'size'");
    wrong("1,2\nsize,ms\n", "<profile>:2 time >= 0 'ms'");
    wrong("1;2\n", "<profile>:1 few cells");
    wrong("1,2,3\n", "<profile>:1 many cells");
    wrong("1,\n", "<profile>:1 time >= 0 ''");
    wrong("1,2\n1,2\n", "<profile>:2 size more than 1 before '1'");
    wrong("2,1\n-1,2\n", "<profile>:2 size >= 0 '-1'");
    wrong("1,nan\n", "<profile>:1 time >= 0 'nan'");
    wrong("1,inf\n", ">= 0 'inf'");
    wrong("1,2\n\x01,1\n2\n", "<profile>:2 size >= 0 '\\x01'");
    wrong("1,2\n\x01,1\n2\n", "<profile>:3 few cells");
    wrong("\x01\xff,1\n2\n", "<profile>:1 not UTF-8");
    REQUIRE_THROWS_MESSAGE(parse_profile_csv("1,1e308", 1e6), InvalidInput, "time: finite seconds");
    REQUIRE_THROWS_MESSAGE(parse_profile_csv("1,2", 0), InvalidInput, "unit_s 0");
    std::string lines = "1,1\n";
    for (int i = 0; i < 100; ++i) lines += "x\n";
    const auto problems = testing_support::problems_in<InvalidInput>([&] { (void)parse_profile_csv(lines); });
    REQUIRE(problems.size() == 11);
    CHECK(problems.back() == "... and 90 more");
}

TEST_CASE("profiles of two files replace the estimate", "[serving]") {
    const auto folder = std::filesystem::temp_directory_path();
    const auto prefill = (folder / "gpusched_prefill.csv").string(),
               decode = (folder / "gpusched_decode.csv").string();
    std::ofstream(prefill) << "0,0\n100,1\n1000,10\n";
    std::ofstream(decode) << "1,0.5\n256,0.5\n";
    const auto profile = read_layer_profile(prefill, decode, "Llama-3-8B", "H100");
    CHECK(profile.degree == 1);
    CHECK(profile.prefill == std::vector<ProfilePoint>{{100, 1e-3}, {1000, 1e-2}});
    const auto h100 = gpu_type("H100");
    const Deployment one{"H100 1x1", {{0, 1, 32}}};
    const auto estimate =
        estimate_throughput(llama3_8b(), std::vector{h100}, one, {1000, 1}, {.profiles = {profile}});
    // 32 layers of 10 ms and the output embedding, which takes at least the time of reading it once.
    const double embedding = 2.0 * 128256 * 4096 / 3350e9;
    CHECK(1 / estimate.requests_per_s > 0.32 + embedding);
    CHECK(1 / estimate.requests_per_s < 0.32 + 2 * embedding);

    std::ofstream(decode) << "1,-1\n";
    REQUIRE_THROWS_MESSAGE(read_layer_profile(prefill, decode, "m", "g"), InvalidInput,
                           "gpusched_decode.csv:1 time >= 0 '-1'");
    std::ofstream(decode) << "1,1\n";
    REQUIRE_THROWS_MESSAGE(read_layer_profile(prefill, decode, "m", "g", 0), InvalidInput, "degree 0");
    std::filesystem::remove(decode);
    CHECK_THROWS_AS(read_layer_profile(prefill, decode, "m", "g"), BackendError);
    CHECK_THROWS_AS(read_layer_profile(folder.string(), prefill, "m", "g"), BackendError);
    std::filesystem::remove(prefill);
}
