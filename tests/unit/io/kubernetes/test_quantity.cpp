// SPDX-License-Identifier: Apache-2.0
#include "support/catch.hpp"

#include "io/kubernetes/pods.hpp"

using namespace gpusched::io::detail::kubernetes;

namespace {

std::optional<std::int64_t> milli(const std::string& text) {
    const auto read = read_quantity(text);
    return read ? std::optional(read->milli()) : std::nullopt;
}
std::optional<std::int64_t> value(const std::string& text) {
    const auto read = read_quantity(text);
    return read ? std::optional(read->value()) : std::nullopt;
}

}  // namespace

TEST_CASE("Quantities are read exactly to a billionth", "[io][kubernetes]") {
    CHECK(milli("500m") == 500);
    CHECK(milli("2") == 2000);
    CHECK(milli("0.5") == 500);
    CHECK(milli(".5") == 500);
    CHECK(milli("1.") == 1000);
    CHECK(milli("+3") == 3000);
    CHECK(milli("95590m") == 95590);
    CHECK(milli("100u") == 1);  // rounded up
    CHECK(milli("1n") == 1);
    CHECK(milli("1500u") == 2);
    CHECK(milli("0.0001") == 1);
    CHECK(milli("0") == 0);
    CHECK(milli("0.000") == 0);
    CHECK(value("2e3") == 2000);
    CHECK(value("2E3") == 2000);
    CHECK(value("2e+3") == 2000);
    CHECK(value("25e-1") == 3);
    CHECK(value("1Ki") == 1024);
    CHECK(value("1.5Gi") == 1610612736);
    CHECK(value("0.3Ki") == 308);  // 307.2
    CHECK(value("3400000000Ki") == 3481600000000);
    CHECK(value("128974848") == 128974848);
    CHECK(value("129M") == 129000000);
    CHECK(value("123Mi") == 128974848);
    CHECK(value("1k") == 1000);
    CHECK(value("2T") == 2000000000000);
    CHECK(value("3P") == 3000000000000000);
    CHECK(value("4E") == 4000000000000000000);
    CHECK(value("5Ei") == 5764607523034234880);
    CHECK(value("1.000000000000000000000001") == 2);  // finer than a billionth: rounded up
    CHECK(read_quantity("1e-30") == Quantity(0, 1));
    CHECK(read_quantity("123456789e-12") == Quantity(0, 123457));
    CHECK(read_quantity("123456789012345678e-20") == Quantity(0, 1234568));
    CHECK(value("12345678901234567890") == Quantity::largest);
    CHECK(value("1000000000000000000000") == Quantity::largest);
    CHECK(value("100Ei") == Quantity::largest);
    CHECK(value("9e18") == 9000000000000000000);
    CHECK(value("100000000000000000000000000e-26") == 1);
}

TEST_CASE("Texts that are no quantities are rejected", "[io][kubernetes]") {
    for (const char* const text :
         {"",     "m",     "Gi", "-1",  "-0.5",          "1 Gi", "1gi", "1KI",  "0x10", "1e", "1e1.5",
          "1..2", "1.2.3", "e3", "1mm", "1e99999999999", "NaN",  "inf", "1Ki2", " 1",   "1 "})
        CHECK_FALSE(read_quantity(text));
}

TEST_CASE("Quantities add up and never overflow", "[io][kubernetes]") {
    Quantity sum = *read_quantity("900m");
    sum += *read_quantity("200m");
    CHECK(sum == Quantity(1, 100'000'000));
    for (int i = 0; i < 4; ++i) sum += *read_quantity("4E");
    CHECK(sum == Quantity(Quantity::largest));
    CHECK(sum.milli() == Quantity::largest);
    CHECK(sum.value() == Quantity::largest);
    Quantities a{{"cpu", Quantity(1)}, {"x", Quantity(5)}};
    raise(a, {{"cpu", Quantity(2)}, {"x", Quantity(1)}, {"y", Quantity(1)}});
    CHECK(a == Quantities{{"cpu", Quantity(2)}, {"x", Quantity(5)}, {"y", Quantity(1)}});
    add(a, a);
    CHECK(a.at("cpu") == Quantity(4));
}
