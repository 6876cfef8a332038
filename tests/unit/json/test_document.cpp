// SPDX-License-Identifier: Apache-2.0
// Texts that are hard on a JSON parser.
#include "support/catch.hpp"

#include <gpusched/io/cluster_json.hpp>
#include <gpusched/json/json.hpp>

using namespace gpusched;

namespace {

const std::string header = R"({"format": "gpusched.cluster", "version": 1, )";

std::string message(const std::string& text) {
    try {
        (void)io::cluster_from_json(text, "f");
    } catch (const InvalidInput& error) {
        return error.what();
    }
    return "no error";
}

}  // namespace

TEST_CASE("Syntax errors give line and column", "[json]") {
    CHECK_THAT(message(""), Mentions("f:1:1 not JSON document"));
    CHECK_THAT(message("{\n  \"a\": 1,\n  b\n}"), Mentions("f:3:3 not JSON document"));
    CHECK_THAT(message("{\"a\": NaN}"), Mentions("f:1:7 not JSON document"));
    CHECK_THAT(message("{\"a\": Infinity}"), Mentions("not JSON document"));
    CHECK_THAT(message("{\"a\": 1e400}"), Mentions("overflow '1e400'"));
    CHECK_THAT(message("{\"a\": 01}"), Mentions("not JSON document"));
    CHECK_THAT(message("{\"a\": 1,}"), Mentions("not JSON document"));
    CHECK_THAT(message("{} {}"), Mentions("not JSON document"));
    CHECK_THAT(message("{} // note"), Mentions("not JSON document"));
}

TEST_CASE("Truncated documents are rejected wherever they end", "[json]") {
    const auto text =
        header + R"("nodes": [{"name": "n\u00e9", "gpu_count": 1, "cpu_milli": 2, "memory_mib": 3.0}]})";
    REQUIRE_NOTHROW(io::cluster_from_json(text));
    for (std::size_t size = 0; size < text.size(); ++size) {
        INFO(size);
        CHECK_THROWS_AS(io::cluster_from_json(text.substr(0, size)), InvalidInput);
    }
}

TEST_CASE("Deep nesting is an error, not a crash", "[json]") {
    for (const auto* bracket : {"[", "{\"a\":"}) {
        std::string text = header + "\"x-deep\": ";
        for (int i = 0; i < 1'000'000; ++i) text += bracket;
        CHECK_THAT(message(text), Mentions("nested deeper 64 levels"));
    }
    const auto nested = [](int levels) {
        return header + "\"nodes\": [], \"x-deep\": " + std::string(static_cast<std::size_t>(levels), '[') +
               std::string(static_cast<std::size_t>(levels), ']') + "}";
    };
    CHECK(message(nested(63)) == "no error");
    CHECK_THAT(message(nested(64)), Mentions("nested deeper 64 levels"));
}

TEST_CASE("Keys that occur twice are reported wherever they stand", "[json]") {
    CHECK_THAT(message(header + R"("nodes": [], "nodes": []})"), Mentions("f key 'nodes' more once"));
    CHECK_THAT(message(header + R"("nodes": [{"name": "n", "gpu_count": 0, "cpu_milli": 0, "memory_mib": 0,
                               "labels": {"a": "1", "b": "2", "a": "1"}}]})"),
               Mentions("f /nodes/0/labels key 'a' more once"));
    // The same key before, inside and after a nested object.
    CHECK_THAT(message(header + R"("nodes": [], "x-a": {"k": {"k": 1}, "l": {"k": 2}, "k": 3}})"),
               Mentions("f /x-a key 'k' more once"));
    CHECK(message(header + R"("nodes": [], "x-a": {"k": {"k": 1}, "l": {"k": 2, "l": 1}}})") == "no error");
}

TEST_CASE("Text is UTF-8", "[json]") {
    const auto named = [](const std::string& name) {
        return header + R"("nodes": [], "jobs": [{"name": ")" + name + "\"}]}";
    };
    CHECK(message(named("\u00e9\u4e2d\U0001F600")) == "no error");
    for (const std::string bad :
         {"\xff", "\xc3", "\xc0\x80", "\xed\xa0\x80", "\xf5\x80\x80\x80", "\xe2\x82"}) {
        const auto text = message(named(bad));
        CHECK_THAT(text, Mentions("not JSON document"));
        CHECK_THAT(text, Mentions("UTF-8"));
        for (const char c : text)
            CHECK(static_cast<unsigned char>(c) < 0x80);  // messages are text themselves
    }
    CHECK_THAT(message(named("\\ud800")), Mentions("surrogate"));
    CHECK(io::cluster_from_json(named("\\ud83d\\ude00")).jobs.at(0).name == "\U0001F600");
    CHECK(message("\xEF\xBB\xBF" + named("bom")) == "no error");
    CHECK_THAT(message(std::string("\xff\xfe{\0}\0", 6)), Mentions("not JSON document"));
    CHECK_THAT(message(named("a\nb")), Mentions("not JSON document"));
}

TEST_CASE("Messages stay short for every document", "[json]") {
    const std::string huge(1'000'000, 'a');
    CHECK(message(header + "\"nodes\": \"" + huge + "\"}").size() < 400);
    CHECK(message(header + "\"" + huge + "\": 1}").size() < 600);
    CHECK(message(header + "\"" + huge).size() < 600);
}

TEST_CASE("Large arrays are read quickly", "[json]") {
    std::string text = header + "\"nodes\": [], \"x-large\": [0";
    for (int i = 0; i < 2'000'000; ++i) text += ",0";
    CHECK(message(text + "]}") == "no error");
    text = header + "\"nodes\": [], \"x-large\": {\"k\": 0";
    for (int i = 0; i < 200'000; ++i) text += ",\"k" + std::to_string(i) + "\":0";
    CHECK(message(text + "}}") == "no error");
}

TEST_CASE("A pointer leads to every value", "[json]") {
    Problems problems;
    const auto document =
        json::Document::parse(R"({"a": [10, {"b/c": [[], {}, "x"]}], "~": null})", "f", problems);
    std::vector<std::string> pointers;
    for (std::uint32_t at = 0; at < document[0].end; ++at) pointers.push_back(document.pointer(at));
    CHECK(pointers == std::vector<std::string>{"", "/a", "/a/0", "/a/1", "/a/1/b~1c", "/a/1/b~1c/0",
                                               "/a/1/b~1c/1", "/a/1/b~1c/2", "/~0"});
    CHECK(document.where(0) == "f: ");
    CHECK(document.where(2) == "f: /a/0: ");
    CHECK(problems.empty());
}

TEST_CASE("The positions of all elements of a long list are found quickly and in any order", "[json]") {
    constexpr std::uint32_t elements = 200'000;
    std::string text = "[";
    for (std::uint32_t i = 0; i < elements; ++i) text += i == 0 ? "[0]" : ",[0]";
    Problems problems;
    const auto list = json::Document::parse(text + "]", "f", problems);
    const auto other = json::Document::parse("[[0], {}, [0]]", "f", problems);
    for (std::uint32_t i = 0; i < elements; ++i) {
        REQUIRE(list.pointer(2 + 2 * i) == "/" + std::to_string(i) + "/0");
        if (i % 1'000 == 0) REQUIRE(other.pointer(5) == "/2/0");
    }
    CHECK(list.pointer(2) == "/0/0");
    CHECK(other.pointer(2) == "/0/0");
}

TEST_CASE("A part of a document is a document that knows its place", "[json]") {
    Problems problems;
    const auto whole =
        json::Document::parse(R"({"a": 1, "b/c": [{"d": "text", "e": [true, null]}, 2]})", "f", problems);
    const auto list = *whole.find(0, "b/c");
    const auto part = whole.part(list + 1);
    CHECK(part[0].kind == json::Kind::object);
    CHECK(part.string(part[*part.find(0, "d")]) == "text");
    const auto e = *part.find(0, "e");
    CHECK(part.where(e) == "f: /b~1c/0: /e: ");
    CHECK(part[part[e].end - 1].kind == json::Kind::null);
    CHECK(part[0].end == part[e].end);
    CHECK(whole.part(0).where(0) == "f: ");
}
