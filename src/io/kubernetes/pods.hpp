// SPDX-License-Identifier: Apache-2.0
// Pods, nodes and the quantities of resources that they request and have.
#pragma once

#include "io/kubernetes/objects.hpp"

#include <gpusched/core/text.hpp>
#include <gpusched/model/spec.hpp>

#include <algorithm>
#include <compare>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace gpusched::io::detail::kubernetes {

/// A non-negative quantity such as 500m, 1Gi, 2e3 or 0.5, exact to a billionth as in Kubernetes. Finer
/// amounts are rounded up; larger amounts than 2^63 - 1 become that.
struct Quantity {
    __extension__ typedef unsigned __int128 Billionths;
    static constexpr std::int64_t largest = std::numeric_limits<std::int64_t>::max();
    static constexpr std::int64_t billion = 1'000'000'000;
    static constexpr Billionths most = Billionths{largest} * billion;

    Billionths amount = 0;

    Quantity() = default;
    explicit Quantity(std::int64_t whole, std::int64_t billionths = 0)
        : amount(static_cast<Billionths>(whole) * billion + static_cast<Billionths>(billionths)) {}

    [[nodiscard]] bool zero() const { return amount == 0; }
    [[nodiscard]] std::int64_t rounded_down() const { return static_cast<std::int64_t>(amount / billion); }
    /// Rounded up, as kube-scheduler counts everything except CPU.
    [[nodiscard]] std::int64_t value() const {
        return static_cast<std::int64_t>((amount + billion - 1) / billion);
    }
    /// In thousandths, rounded up, as kube-scheduler counts CPU.
    [[nodiscard]] std::int64_t milli() const {
        return static_cast<std::int64_t>(std::min<Billionths>((amount + 999'999) / 1'000'000, largest));
    }
    Quantity& operator+=(const Quantity& other) {
        amount = std::min(amount + other.amount, most);
        return *this;
    }
    auto operator<=>(const Quantity&) const = default;
};

/// Reads a quantity; none if the text is not one, or it is negative.
inline std::optional<Quantity> read_quantity(std::string_view text) {
    if (text.starts_with('+')) text.remove_prefix(1);
    // The significant digits, as a number below 10^18, times a power of ten.
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
        return std::ranges::find_if(table, [&](const auto& unit) { return unit.first == text; });
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
    out.amount = static_cast<Quantity::Billionths>(digits);
    // False if the product is larger than any quantity.
    const auto multiply = [&out](unsigned factor) {
        const bool fits = out.amount <= Quantity::most / factor;
        out.amount = fits ? out.amount * factor : Quantity::most;
        return fits;
    };
    exponent += 9;
    for (; exponent > 0 && digits > 0; --exponent)
        if (!multiply(10)) return out;
    for (; exponent < 0 && out.amount > 0; ++exponent) {
        rest = rest || out.amount % 10 != 0;
        out.amount /= 10;
    }
    if (rest) out += Quantity(0, 1);
    for (; thousands > 0; --thousands)
        if (!multiply(1024)) return out;
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

/// The name and quantity of a member. @throws Unreadable if it is not a quantity
inline Quantities::value_type quantity_at(const Place& member) {
    const auto text = member.text();
    const auto amount = text ? read_quantity(*text) : std::nullopt;
    if (!amount || member.key().empty() || member.key().find('\0') != std::string_view::npos)
        throw Unreadable{member.expected("a quantity such as 2, 500m or 64Gi")};
    return {std::string(member.key()), *amount};
}

/// Amounts of resources at `key` of an object. @throws Unreadable if one is not a quantity
inline Quantities quantities_at(const Place& object, std::string_view key) {
    Quantities out;
    const auto place = object[key];
    if (!place) return out;
    if (!place.is(json::Kind::object)) throw Unreadable{place.expected("an object")};
    for (const auto& item : place.items()) out.insert(quantity_at(item));
    return out;
}

/// Requests, and the limit if a request is missing, as the API server fills them in.
inline Quantities requests_at(const Place& resources) {
    auto out = quantities_at(resources, "requests");
    for (const auto& [name, amount] : quantities_at(resources, "limits")) out.try_emplace(name, amount);
    return out;
}

inline bool is_sidecar(const Place& init_container) {
    return init_container["restartPolicy"].text() == "Always";
}

/// The request of a pod, as kube-scheduler counts it: the sum over containers and sidecars, or the request of
/// initialisation if it is larger; replaced by pod-level requests for CPU, memory and huge pages; plus the
/// overhead. During a resize each container counts with the maximum of the requested, allocated and effective
/// amount. Source: k8s.io/component-helpers/resource, PodRequests, of 1.36.
/// @param status absent = no resize in progress
/// @throws Unreadable
inline Quantities pod_requests(const Place& spec, const Place& status) {
    bool infeasible = false;  // a resize that will not happen
    for (const auto& condition : status["conditions"].items())
        if (condition["type"].text() == "PodResizePending") {
            infeasible = condition["reason"].text() == "Infeasible";
            break;
        }
    std::map<std::string, Place, std::less<>> statuses;
    for (const char* const key : {"containerStatuses", "initContainerStatuses"})
        for (const auto& container : status[key].items())
            statuses.insert_or_assign(text_at(container, "name"), container);
    const auto in_effect = [&](Quantities requested, const Quantities& actual, const Quantities& allocated) {
        if (infeasible) requested.clear();
        raise(requested, actual);
        raise(requested, allocated);
        return requested;
    };
    const auto of_container = [&](const Place& container, bool with_status) {
        auto requested = requests_at(container["resources"]);
        if (!with_status) return requested;
        const auto found = statuses.find(text_at(container, "name"));
        if (found == statuses.end() || !found->second["resources"]) return requested;
        return in_effect(std::move(requested), quantities_at(found->second["resources"], "requests"),
                         quantities_at(found->second, "allocatedResources"));
    };
    Quantities total, sidecars, initialising;
    for (const auto& container : spec["containers"].items()) add(total, of_container(container, true));
    for (const auto& container : spec["initContainers"].items()) {
        auto asked = of_container(container, is_sidecar(container));
        if (is_sidecar(container)) {
            add(total, asked);
            add(sidecars, asked);
            asked = sidecars;
        } else {
            add(asked, sidecars);
        }
        raise(initialising, asked);
    }
    raise(total, initialising);
    const auto supported = [](std::string_view name) {
        return name == "cpu" || name == "memory" || name.starts_with("hugepages-");
    };
    const auto of_pod = requests_at(spec["resources"]);
    if (std::ranges::any_of(of_pod, [&](const auto& r) { return supported(r.first); })) {
        auto counted = of_pod;
        if (status["resources"])
            counted = in_effect(of_pod, quantities_at(status["resources"], "requests"),
                                quantities_at(status, "allocatedResources"));
        for (const auto& [name, amount] : of_pod)
            if (supported(name)) total[name] = value_at(counted, name);
    }
    add(total, quantities_at(spec, "overhead"));
    std::erase_if(total, [](const auto& amount) { return amount.second.zero(); });
    return total;
}

struct Node {
    Place object{};
    Labels labels{};
    Quantities allocatable{}, capacity{};
    std::string card{};  ///< model of its cards according to their driver

    [[nodiscard]] std::string label(const std::string& key) const { return value_at(labels, key); }
};

/// A quantity that cannot be read counts as 0, and is reported.
/// @throws Unreadable
inline Node read_node(const Place& object, ReportBuilder& report) {
    Node out{.object = object, .labels = texts_at(object["metadata"], "labels")};
    const auto amounts = [&](const char* key) {
        Quantities read;
        for (const auto& item : object["status"][key].items()) {
            try {
                read.insert(quantity_at(item));
            } catch (const Unreadable& bad) {
                report.approximated("Node", "quantities that cannot be read", Errs::too_strict, "count as 0",
                                    described(object, bad));
            }
        }
        return read;
    };
    out.capacity = amounts("capacity");
    out.allocatable = object["status"]["allocatable"] ? amounts("allocatable") : out.capacity;
    return out;
}

/// Adds to the note of a pending pod that the input lacks an object, so that its restrictions are not known.
inline void note_unread(TaskSpec& out, const std::string& object) {
    out.note += (out.note.empty() ? "not in the input, so not checked: " : ", ") + object;
}

struct Pod {
    Place object{};
    Identity id{};
    Labels labels{};
    Quantities requests{};
    std::string phase{};
    std::string node{};                        ///< empty = unbound
    std::string missing_claim{};               ///< a resource claim that it names and that does not exist
    std::vector<std::string> unread_claims{};  ///< resource claims that the input lacks
    std::vector<int> named_cards{};            ///< cards in its claims, as indices among the node's cards
    bool terminating = false, gated = false, ready = false;
    bool readable = true;  ///< false: only its requests and labels are known

    [[nodiscard]] bool bound() const { return !node.empty(); }
    /// Whether it has ended; kube-scheduler does not count it.
    [[nodiscard]] bool finished() const { return phase == "Succeeded" || phase == "Failed"; }
    [[nodiscard]] Place spec() const { return object["spec"]; }
    [[nodiscard]] std::string annotation(std::string_view key) const {
        return name_of(object["metadata"]["annotations"][key].text());
    }
    [[nodiscard]] std::string label(const std::string& key) const { return value_at(labels, key); }
};

/// @throws Unreadable
inline Pod read_pod(const Place& object) {
    Pod out{
        .object = object, .id = identity_of(object, true), .labels = texts_at(object["metadata"], "labels")};
    const auto spec = object["spec"], status = object["status"];
    if (!spec.is(json::Kind::object)) throw Unreadable{object.where() + "expected spec, an object"};
    out.phase = text_at(status, "phase");
    out.node = text_at(spec, "nodeName");
    out.terminating = static_cast<bool>(object["metadata"]["deletionTimestamp"]);
    out.gated = !spec["schedulingGates"].items().empty();
    for (const auto& condition : status["conditions"].items())
        if (condition["type"].text() == "Ready") out.ready = condition["status"].text() == "True";
    out.requests = pod_requests(spec, status);
    return out;
}

/// A bound pod that is unreadable except for its node and its requests; it keeps its resources.
inline std::optional<Pod> read_requests_only(const Place& object) {
    try {
        Pod out{.object = object, .id = identity_of(object, true), .readable = false};
        const auto spec = object["spec"], status = object["status"];
        out.phase = name_of(status["phase"].text());
        out.node = text_at(spec, "nodeName");
        out.terminating = static_cast<bool>(object["metadata"]["deletionTimestamp"]);
        try {
            out.labels = texts_at(object["metadata"], "labels");
        } catch (const Unreadable&) {
            out.labels.clear();
        }
        out.requests = pod_requests(spec, {});
        if (out.id.name.empty() || !out.bound() || out.finished()) return std::nullopt;
        return out;
    } catch (const Unreadable&) {
        return std::nullopt;
    }
}

}  // namespace gpusched::io::detail::kubernetes
