// SPDX-License-Identifier: Apache-2.0
// Requests to a language model: the reader and the generator.
#include "support/real_data.hpp"

#include <gpusched/serving/serving.hpp>

#include <fstream>

using namespace gpusched;
using serving::read_llm_trace;

TEST_CASE("a trace is read whatever the order of columns and rows") {
    const auto rows = read_llm_trace("\xEF\xBB\xBF"
                                     "GeneratedTokens,TIMESTAMP,ContextTokens\r\n"
                                     "44,2023-11-16 23:59:59.5000000,374\r\n"
                                     "\r\n"
                                     "9,2023-11-17 00:00:01.2500000,10\r\n"
                                     "109,2023-11-16 23:59:59,396");
    REQUIRE(rows.size() == 3);
    CHECK(rows[0].time_s == 0);
    CHECK(rows[0].prompt_tokens == 396);
    CHECK(rows[0].output_tokens == 109);
    CHECK(rows[1].time_s == Catch::Approx(0.5));
    CHECK(rows[2].time_s == Catch::Approx(2.25));
    CHECK(read_llm_trace("").empty());
    CHECK(read_llm_trace("TIMESTAMP,ContextTokens,GeneratedTokens\n").empty());
    // 29 February and the turn of a year
    CHECK(read_llm_trace(
              "TIMESTAMP,ContextTokens,GeneratedTokens\n2024-02-28 00:00:00,1,1\n2024-03-01 00:00:00,1,1")
              .back()
              .time_s == 2 * 86400);
    CHECK(read_llm_trace(
              "TIMESTAMP,ContextTokens,GeneratedTokens\n2023-12-31 23:59:59,1,1\n2024-01-01 00:00:00,1,1")
              .back()
              .time_s == 1);
}

TEST_CASE("times of Azure's traces may have an offset from UTC") {
    const auto rows = read_llm_trace("TIMESTAMP,ContextTokens,GeneratedTokens\n"
                                     "2024-05-10 00:00:00.250000+00:00,1,1\n"
                                     "2024-05-10 00:00:01+00:00,2,1\n"
                                     "2024-05-10T05:30:02+05:30,3,1\n"
                                     "2024-05-09 20:30:03-03:30,4,1\n"
                                     "2024-05-10 00:00:04Z,5,1\n");
    REQUIRE(rows.size() == 5);
    for (int k = 0; k < 5; ++k) CHECK(rows[static_cast<std::size_t>(k)].prompt_tokens == k + 1);
    CHECK(rows[1].time_s == Catch::Approx(0.75));
    CHECK(rows[4].time_s == Catch::Approx(3.75));
}

TEST_CASE("traces of BurstGPT are read, and requests that failed are left out") {
    std::size_t failed = 9;
    const auto rows = read_llm_trace("Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type\n"
                                     "45.5,GPT-4,472,18,490,Conversation log\n"
                                     "5,ChatGPT,1087,230,1317,Conversation log\n"
                                     "46,ChatGPT,417,0,417,API log\n",
                                     "burst.csv", &failed);
    REQUIRE(rows.size() == 2);
    CHECK(failed == 1);
    CHECK(rows[0].time_s == 0);
    CHECK(rows[0].prompt_tokens == 1087);
    CHECK(rows[0].output_tokens == 230);
    CHECK(rows[1].time_s == 40.5);
    const auto later =
        read_llm_trace("\xEF\xBB\xBFTimestamp,Session ID,Elapsed time,Model,Request tokens,Response "
                       "tokens,Total tokens,Log Type\r\n3,7,1.5,GPT-4,4,2,6,API log\r\n");
    REQUIRE(later.size() == 1);
    CHECK(later[0].output_tokens == 2);
    // Azure's traces keep such rows.
    CHECK(read_llm_trace("TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:17:03,1,0\n", "a", &failed)
              .size() == 1);
    CHECK(failed == 0);
    CHECK_THROWS_WITH(read_llm_trace("Timestamp,Request tokens\n"),
                      Mentions("<trace>:1 column 'Response tokens' missing"));
    CHECK_THROWS_WITH(read_llm_trace("Timestamp,Request tokens,Response tokens\n-1,2,3\n"),
                      Mentions("<trace>:2 Timestamp >= 0 '-1'"));
}

TEST_CASE("the form of a trace follows from whole names of columns") {
    const auto rows = read_llm_trace("TIMESTAMP,ContextTokens,GeneratedTokens,TimestampEnd,Timestamp\n"
                                     "2023-11-16 18:17:03,7,9,later,4\n");
    REQUIRE(rows.size() == 1);
    CHECK(rows[0].prompt_tokens == 7);
    CHECK(read_llm_trace("\"Request tokens\", \"Timestamp\" ,Response tokens\n3,1,2\n").size() == 1);
    CHECK_THROWS_WITH(read_llm_trace("time,tokens\n", "own.csv"),
                      Mentions("own.csv:1 column 'TIMESTAMP' missing") &&
                          Mentions("own.csv or columns BurstGPT Timestamp Request"));
}

TEST_CASE("rows that are none are refused with their line") {
    CHECK_THROWS_WITH(read_llm_trace("TIMESTAMP,ContextTokens\n"),
                      Mentions("<trace>:1 column 'GeneratedTokens' missing"));
    for (const char* row :
         {"2023-11-16 18:17:03,1", "yesterday,1,2", "2023-11-16 18:17:03,-1,2", "2023-11-16 18:17:03,1,2,3",
          "2023-13-16 18:17:03,1,2", "2023-02-29 18:17:03,1,2", "2023-11-16 18:17:03.,1,2",
          "2023-11-16 18:17:03,1.5,2", "2023-11-16 18:17:03,,2", "2023-11-16 18:17:0x,1,2",
          "2023-11-16 18:17:03+24:00,1,2", "2023-11-16 18:17:03+0000,1,2", "2023-11-16 18:17+00:00,1,2"}) {
        INFO(row);
        CHECK_THROWS_WITH(
            read_llm_trace(std::string("TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:17:03,1,2\n") +
                           row),
            Mentions("<trace>:3"));
    }
}

TEST_CASE("every cell that cannot be read is named") {
    const auto read = [] {
        (void)read_llm_trace("TIMESTAMP,ContextTokens,GeneratedTokens\nnow,1,2\n2023-11-16 18:17:03,x,-1\n",
                             "azure.csv");
    };
    CHECK_THAT(testing_support::problems_in<InvalidInput>(read),
               MentionsEach({"azure.csv:2 TIMESTAMP 2023-11-16 18:17:03.9799600 'now'",
                             "azure.csv:3 ContextTokens 0 2147483647 'x'",
                             "azure.csv:3 GeneratedTokens 0 2147483647 '-1'"}));
}

TEST_CASE("a generated trace has the features of the recorded one") {
    const auto rows = serving::generate_llm_trace(20'000, 7);
    double prompts = 0, outputs = 0;
    for (const auto& r : rows) {
        prompts += r.prompt_tokens;
        outputs += r.output_tokens;
        CHECK(r.output_tokens >= 1);
    }
    CHECK(prompts / 20'000 == Catch::Approx(1250).epsilon(0.15));
    CHECK(outputs / 20'000 == Catch::Approx(211).epsilon(0.1));
    CHECK(rows.back().time_s == Catch::Approx(20'000 / 5.5).epsilon(0.05));
    CHECK(serving::generate_llm_trace(5, 8)[3].time_s != rows[3].time_s);
}

TEST_CASE("the recorded conversations are read whole", "[data]") {
    const auto path = testing_support::real_data("azure-llm-2023") / "AzureLLMInferenceTrace_conv.csv";
    if (!testing_support::is_here(path)) return;
    std::ifstream file(path, std::ios::binary);
    const std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
    const auto rows = read_llm_trace(text);
    REQUIRE(rows.size() == 19'366);
    CHECK(rows.back().time_s == Catch::Approx(3501.7219).margin(1e-3));
    double prompts = 0;
    for (const auto& r : rows) prompts += r.prompt_tokens;
    CHECK(prompts / 19'366 == Catch::Approx(1154.697).margin(0.01));
}
