// SPDX-License-Identifier: Apache-2.0
// Quantities of Kubernetes: 500m, 1Gi, 2e3, 0.5.
#pragma once

#include <gpusched/core/text.hpp>

#include <algorithm>
#include <compare>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace gpusched::io::detail::kubernetes {

/// A quantity that is not negative, exact to a billionth as in Kubernetes; finer ones are rounded up, larger ones than 2^63 - 1
/// are that.
struct Quantity {
    std::int64_t whole = 0;
    std::int32_t nano = 0;  ///< 0 .. 999'999'999

    static constexpr std::int64_t largest = std::numeric_limits<std::int64_t>::max();
    static constexpr std::int32_t billion = 1'000'000'000;

    [[nodiscard]] bool zero() const { return whole == 0 && nano == 0; }
    /// Rounded up, as kube-scheduler counts everything but CPU.
    [[nodiscard]] std::int64_t value() const { return whole == largest ? whole : whole + (nano > 0 ? 1 : 0); }
    /// In thousandths, rounded up, as kube-scheduler counts CPU.
    [[nodiscard]] std::int64_t milli() const {
        if (whole >= largest / 1000) return largest;
        return whole * 1000 + (nano + 999'999) / 1'000'000;
    }
    Quantity& operator+=(const Quantity& other) {
        std::int64_t nanos = std::int64_t{nano} + other.nano;
        const std::int64_t carry = nanos >= billion ? 1 : 0;
        nanos -= carry * billion;
        whole = whole > largest - other.whole - carry ? largest : whole + other.whole + carry;
        nano = whole == largest ? 0 : static_cast<std::int32_t>(nanos);
        return *this;
    }
    auto operator<=>(const Quantity&) const = default;
};

/// Reads one; none where the text is no quantity, or it is negative.
inline std::optional<Quantity> read_quantity(std::string_view text) {
    if (text.starts_with('+')) text.remove_prefix(1);
    // The digits that matter, as a number below 10^18 times a power of ten.
    std::int64_t digits = 0;
    int exponent = 0;
    bool any = false, point = false, rest = false;
    while (!text.empty()) {
        const char c = text.front();
        if (c == '.' && !point) {
            point = true;
        } else if (c >= '0' && c <= '9') {
            any = true;
            if (digits < 100'000'000'000'000'000) {
                digits = digits * 10 + (c - '0');
                exponent -= point ? 1 : 0;
            } else {
                rest = rest || c != '0';
                exponent += point ? 0 : 1;
            }
        } else {
            break;
        }
        text.remove_prefix(1);
    }
    if (!any) return std::nullopt;
    int thousands = 0;  // binary: factors of 1024
    static constexpr std::pair<std::string_view, int> decimal[] = {{"", 0},   {"n", -9}, {"u", -6}, {"m", -3},
                                                                   {"k", 3},  {"M", 6},  {"G", 9},  {"T", 12},
                                                                   {"P", 15}, {"E", 18}};
    static constexpr std::pair<std::string_view, int> binary[] = {{"Ki", 1}, {"Mi", 2}, {"Gi", 3},
                                                                  {"Ti", 4}, {"Pi", 5}, {"Ei", 6}};
    const auto named = [&](const auto& table) {
        return std::find_if(std::begin(table), std::end(table),
                            [&](const auto& unit) { return unit.first == text; });
    };
    if (const auto unit = named(decimal); unit != std::end(decimal)) {
        exponent += unit->second;
    } else if (const auto power = named(binary); power != std::end(binary)) {
        thousands = power->second;
    } else if (text.front() == 'e' || text.front() == 'E') {
        text.remove_prefix(1);
        if (text.starts_with('+')) text.remove_prefix(1);
        int given = 0;
        if (!read_number(text, given) || given < -1000 || given > 1000) return std::nullopt;
        exponent += given;
    } else {
        return std::nullopt;
    }
    Quantity out;
    if (digits == 0) return out;
    const Quantity most{Quantity::largest, 0};
    if (exponent >= 0) {
        for (; exponent > 0; --exponent) {
            if (digits > Quantity::largest / 10) return most;
            digits *= 10;
        }
        out.whole = digits;
    } else {
        const auto power = [](int n) {
            std::int64_t value = 1;
            for (int i = 0; i < n; ++i) value *= 10;
            return value;
        };
        const int places = -exponent;
        if (places <= 9) {
            out.whole = digits / power(places);
            out.nano = static_cast<std::int32_t>(digits % power(places) * power(9 - places));
        } else if (places <= 27) {
            const auto left = places <= 18 ? digits % power(places) : digits;  // digits < 10^18
            out.whole = places <= 18 ? digits / power(places) : 0;
            out.nano = static_cast<std::int32_t>(left / power(places - 9));
            rest = rest || left % power(places - 9) != 0;
        } else {
            rest = true;
        }
    }
    if (rest) out += Quantity{0, 1};
    for (int i = 0; i < thousands; ++i) {
        if (out.whole > Quantity::largest / 1024) return most;
        const std::int64_t nanos = std::int64_t{out.nano} * 1024;
        out.whole = out.whole * 1024;
        out.nano = 0;
        out += Quantity{nanos / Quantity::billion, static_cast<std::int32_t>(nanos % Quantity::billion)};
    }
    return out;
}

/// Amounts by the name of the resource.
using Quantities = std::map<std::string, Quantity, std::less<>>;

inline void add(Quantities& to, const Quantities& more) {
    for (const auto& [name, amount] : more) to[name] += amount;
}
/// The larger of both for every name.
inline void raise(Quantities& to, const Quantities& at_least) {
    for (const auto& [name, amount] : at_least) to[name] = std::max(to[name], amount);
}
[[nodiscard]] inline Quantity amount_of(const Quantities& amounts, std::string_view name) {
    const auto found = amounts.find(name);
    return found == amounts.end() ? Quantity{} : found->second;
}

}  // namespace gpusched::io::detail::kubernetes
