// SPDX-License-Identifier: Apache-2.0
#include <support/catch.hpp>

#include <gpusched/io/detail/text.hpp>

#include <string>

using namespace gpusched::io::detail;

TEST_CASE("The first invalid byte of UTF-8 is found", "[io]") {
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

TEST_CASE("Messages show any bytes as text", "[io]") {
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
