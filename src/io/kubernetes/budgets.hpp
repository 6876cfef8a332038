// SPDX-License-Identifier: Apache-2.0
// PodDisruptionBudgets, as the disruption controller counts and the Eviction API judges them.
#pragma once

#include "io/kubernetes/owners.hpp"
#include "io/kubernetes/selector.hpp"
#include "io/report_builder.hpp"

#include <gpusched/model/spec.hpp>

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace gpusched::io::detail::kubernetes {

class Budgets {
  public:
    Budgets(const std::vector<Pod>& pods, const PodIndex& index, const Owners& owners, ClusterSpec& cluster,
            ReportBuilder& report)
        : pods_(pods), index_(index), owners_(owners), cluster_(cluster), report_(report),
          of_pod_(pods.size()) {}

    void read(const Objects& objects) {
        for (const auto& object : objects.of(Kind::budget)) {
            try {
                read_one(object);
            } catch (const Unreadable& bad) {
                report_.left_out("PodDisruptionBudget", "objects", "cannot be read", told(object, bad),
                                 Errs::too_lax);
            }
        }
        for (std::size_t i = 0; i < pods_.size(); ++i)
            if (of_pod_[i] > 1)
                report_.approximated("Pod", "several budgets", Errs::too_lax,
                                     "all of them hold; the Eviction API refuses to evict such a pod at all",
                                     cluster_.tasks[i].name);
    }

  private:
    /// What the disruption controller knows of a budget.
    struct State {
        std::int64_t healthy = 0, desired = 0, allowed = 0;
    };

    void read_one(const Place& object) {
        const auto id = identity_of(object, true);
        const auto spec = object["spec"], status = object["status"];
        auto selector = read_selector(spec["selector"]);
        // Of the API group's first version, an empty selector selects nothing.
        if (text_at(object, "apiVersion") == "policy/v1beta1" && selector.matches.empty())
            selector.nothing = true;
        const auto members = index_.selected({.names = {id.space}}, selector);
        State state;
        if (status["disruptionsAllowed"] && status["desiredHealthy"]) {
            state = {.healthy = integer_at(status, "currentHealthy", 0),
                     .desired = integer_at(status, "desiredHealthy", 0),
                     .allowed = integer_at(status, "disruptionsAllowed", 0)};
            if (integer_at(status, "observedGeneration", 0) < integer_at(object["metadata"], "generation", 0))
                report_.approximated(
                    "PodDisruptionBudget", "status", Errs::either,
                    "older than the budget: the disruption controller was about to count again", id.full());
            else
                report_.exact("PodDisruptionBudget", "status");
        } else {
            state = count(spec, members, id);
        }
        BudgetSpec out{.name = id.full()};
        out.broken = state.healthy < state.desired;
        out.allowed_down = std::clamp<std::int64_t>(state.allowed, 0, 1'000'000'000);
        // Pods that are not ready are evicted without a look at what is allowed, unless the budget is broken.
        const bool always = text_at(spec, "unhealthyPodEvictionPolicy") == "AlwaysAllow";
        const bool guards_healthy_only = always || (!out.broken && state.desired > 0);
        for (const auto i : members) {
            const auto& pod = pods_[i];
            if (!pod.bound() || pod.phase == "Pending" || pod.terminating ||
                (!pod.ready && guards_healthy_only))
                continue;
            out.tasks.push_back(cluster_.tasks[i].name);
            ++of_pod_[i];
        }
        if (out.broken || out.allowed_down == 0)
            report_.exact_of("PodDisruptionBudget", out.broken ? "budgets that are broken" : "budgets at 0",
                             out.name);
        else
            report_.exact("PodDisruptionBudget", "budgets that allow evictions");
        cluster_.budgets.push_back(std::move(out));
    }

    /// A number, or a percentage of `all`, rounded up.
    static std::int64_t scaled(const Place& place, std::int64_t all) {
        const auto text = place.text().value_or("");
        std::int64_t value = 0;
        auto digits = std::string_view(text);
        const bool percent = digits.ends_with('%');
        if (percent) digits.remove_suffix(1);
        if (!read_number(digits, value) || value < 0 || value > 1'000'000'000)
            throw Unreadable{place.expected("a number or a percentage")};
        return percent ? (value * all + 99) / 100 : value;
    }

    /// What the disruption controller would say, without its word.
    State count(const Place& spec, const std::vector<std::size_t>& members, const Identity& id) {
        State out;
        std::int64_t pods = 0, wanted = 0;
        bool known = true;
        std::set<std::string> counted;
        for (const auto i : members) {
            const auto& pod = pods_[i];
            ++pods;
            if (pod.ready && !pod.terminating && pod.bound()) ++out.healthy;
            const auto owner = owners_.of(pod);
            if (owner.kind.empty() || !counted.insert(owner.kind + " " + owner.name).second) continue;
            const auto replicas = owners_.replicas(pod.id.space, owner);
            known = known && replicas;
            wanted += replicas.value_or(0);
        }
        wanted = std::clamp<std::int64_t>(wanted, 0, 1'000'000'000);
        const auto all = known ? wanted : pods;
        std::int64_t expected = all;
        bool of_scale = true;
        if (const auto most = spec["maxUnavailable"]) {
            out.desired = std::max<std::int64_t>(all - scaled(most, all), 0);
        } else if (const auto least = spec["minAvailable"]) {
            of_scale = least.text().value_or("").ends_with('%');
            out.desired = scaled(least, all);
            if (!of_scale) expected = pods;
        }
        out.allowed = expected > 0 ? std::max<std::int64_t>(out.healthy - out.desired, 0) : 0;
        if (of_scale && !known)
            report_.approximated("PodDisruptionBudget", "budgets without status", Errs::too_lax,
                                 "counted from the pods: how many their owners want was not read", id.full());
        else
            report_.approximated("PodDisruptionBudget", "budgets without status", Errs::neither,
                                 "counted from the pods", id.full());
        return out;
    }

    const std::vector<Pod>& pods_;
    const PodIndex& index_;
    const Owners& owners_;
    ClusterSpec& cluster_;
    ReportBuilder& report_;
    std::vector<int> of_pod_;  // budgets that it is in
};

}  // namespace gpusched::io::detail::kubernetes
