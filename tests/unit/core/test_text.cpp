// SPDX-License-Identifier: Apache-2.0
#include "support/catch.hpp"

#include <gpusched/core/core.hpp>

using namespace gpusched;

TEST_CASE("The first invalid byte of UTF-8 is found", "[core]") {
    const auto none = std::string::npos;
    CHECK(find_invalid_utf8("") == none);
    CHECK(find_invalid_utf8("plain") == none);
    CHECK(find_invalid_utf8("\u00e9\u07ff\u0800\uffff\U00010000\U0010ffff") == none);
    CHECK(find_invalid_utf8("ab\x80") == 2);             // continuation alone
    CHECK(find_invalid_utf8("a\xc1\xbf") == 1);          // overlong
    CHECK(find_invalid_utf8("a\xe0\x9f\xbf") == 1);      // overlong
    CHECK(find_invalid_utf8("a\xf0\x8f\xbf\xbf") == 1);  // overlong
    CHECK(find_invalid_utf8("a\xed\xa0\x80") == 1);      // surrogate
    CHECK(find_invalid_utf8("a\xf4\x90\x80\x80") == 1);  // beyond U+10FFFF
    CHECK(find_invalid_utf8("\u00e9\xe2\x82") == 2);     // cut short
    CHECK(find_invalid_utf8("\xf0\x9f\x98\x80\xf0\x9f\x98") == 4);
}

TEST_CASE("Messages show any bytes as text", "[core]") {
    CHECK(printable("n\u00e9") == "n\u00e9");
    CHECK(printable(std::string("a\0b\n\x7f", 5)) == "a\\x00b\\x0a\\x7f");
    CHECK(printable("\xff\xc3(\u00e9\x80") == "\\xff\\xc3(\u00e9\\x80");
    CHECK(printable("0123456789", 10) == "0123456789");
    CHECK(printable("0123456789a", 10) == "0123456789...");
    // A character across the limit is kept whole.
    CHECK(printable("012345678\U0001F600rest", 10) == "012345678\U0001F600...");
    CHECK(printable("0123456789\U0001F600rest", 10) == "0123456789...");
    CHECK(find_invalid_utf8(printable(std::string(1000, '\xe2'))) == std::string::npos);
}

TEST_CASE("Numbers are read whole, or from the front", "[core]") {
    int whole = 7;
    CHECK(read_number("-12", whole));
    CHECK(whole == -12);
    for (const char* bad : {"", " 1", "1 ", "+1", "1x", "0x1", "99999999999", "1.0"}) {
        CAPTURE(bad);
        CHECK_FALSE(read_number(bad, whole));
    }
    CHECK(read_number("ff", whole, 16));
    CHECK(whole == 255);
    unsigned natural = 0;
    CHECK_FALSE(read_number("-1", natural));
    double real = 0;
    CHECK(read_number("15e-1", real));
    CHECK(real == 1.5);
    std::string_view text = "64Gi";
    CHECK(take_number(text, real));
    CHECK(real == 64);
    CHECK(text == "Gi");
    CHECK_FALSE(take_number(text, real));
    CHECK(text == "Gi");
    CHECK(trailing_digits("GPU17") == "17");
    CHECK(trailing_digits("GPU").empty());
    CHECK(trailing_digits("42") == "42");
}

TEST_CASE("Amounts have the units that people use", "[core]") {
    CHECK(milli_text(64'000) == "64");
    CHECK(milli_text(12'500) == "12.5");
    CHECK(milli_text(5) == "0.005");
    CHECK(mib_text(0) == "0 MiB");
    CHECK(mib_text(300) == "300 MiB");
    CHECK(mib_text(1024) == "1 GiB");
    CHECK(mib_text(1025) == "1025 MiB");
    CHECK(mib_text(524'288) == "512 GiB");
    CHECK(mib_text(100'000) == "97.7 GiB");
    CHECK(mib_text(20 * 1024 - 1) == "20 GiB");
}

TEST_CASE("Text is taken apart from the front", "[core]") {
    CHECK(trimmed(" \ta b\r ") == "a b");
    CHECK(trimmed(" \t").empty());
    std::string_view text = "one  two\r\n\nlast";
    auto line = take_line(text);
    CHECK(take_word(line) == "one");
    CHECK(take_word(line) == "two");
    CHECK(take_word(line).empty());
    CHECK(take_line(text).empty());
    CHECK(take_line(text) == "last");
    CHECK(text.empty());
    text = "a::b";
    CHECK(take_until(text, ':') == "a");
    CHECK(take_until(text, ':').empty());
    CHECK(take_until(text, ':') == "b");
    CHECK(take_until(text, ':').empty());
}

TEST_CASE("Sets of CPUs are read from lists and masks", "[core]") {
    using Ranges = std::vector<std::pair<int, int>>;
    CHECK(parse_cpu_list("0-31,64-95")->ranges == Ranges{{0, 31}, {64, 95}});
    CHECK(parse_cpu_list("8,0-2,3,1")->ranges == Ranges{{0, 3}, {8, 8}});
    CHECK(parse_cpu_list("")->empty());
    CHECK(parse_cpu_list(" 0-3 \n")->ranges == Ranges{{0, 3}});
    CHECK(parse_cpu_list("65535")->count() == 1);
    for (const char* bad :
         {",", "1,", ",1", "-", "1-", "-1", "3-1", "1-2-3", "a", "1 2", "1\n2", "65536", "0x1"}) {
        CAPTURE(bad);
        CHECK_FALSE(parse_cpu_list(bad));
    }
    CHECK(parse_cpu_mask("ffffffff")->ranges == Ranges{{0, 31}});
    CHECK(parse_cpu_mask("0x00000001,80000000")->ranges == Ranges{{31, 32}});
    CHECK(parse_cpu_mask("3,,5")->ranges == Ranges{{0, 0}, {2, 2}, {64, 65}});
    for (const char* bad : {"g", "-1", "1ffffffff", "0x"}) {
        CAPTURE(bad);
        CHECK(parse_cpu_mask(bad).has_value() == (std::string(bad) == "0x"));
    }
    const auto near = *parse_cpu_list("4-7");
    CHECK(near.meets(*parse_cpu_list("0-4")));
    CHECK_FALSE(near.meets(*parse_cpu_list("0-3,8")));
}
