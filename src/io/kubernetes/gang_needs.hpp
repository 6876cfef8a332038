// SPDX-License-Identifier: Apache-2.0
// GangNeeds: how many pods of a gang must run, in all and of each subgroup, as the PodGroups of KAI and Volcano say it.
#pragma once

#include "io/kubernetes/objects.hpp"
#include "io/report_builder.hpp"

#include <gpusched/model/spec.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace gpusched::io::detail::kubernetes {

inline std::int64_t limited(std::int64_t count) { return std::clamp<std::int64_t>(count, 0, 1'000'000); }

struct GangNeeds {
    std::int64_t min_members = 0;
    std::vector<SubgroupSpec> subgroups{};

    [[nodiscard]] bool lists(const std::string& subgroup) const {
        return std::any_of(subgroups.begin(), subgroups.end(),
                           [&](const SubgroupSpec& one) { return one.name == subgroup; });
    }
};

/// `subGroups` of KAI: pods are in the leaves of the tree that `parent` makes, all of which must run, or where `minSubGroup` says so
/// only some below the same parent.
class KaiSubgroups {
  public:
    explicit KaiSubgroups(const Place& spec) {
        std::set<std::string> names;
        for (const auto& part : spec["subGroups"].items()) {
            const auto name = text_at(part, "name");
            ++left_out_;
            if (!name.empty() && !names.insert(name).second) continue;  // KAI refuses it
            below_[text_at(part, "parent")].push_back(
                {name, limited(integer_at(part, "minMember", 0)), integer_at(part, "minSubGroup", -1)});
            topology_ = topology_ || part["topologyConstraint"];
        }
        needs_.min_members = below("", integer_at(spec, "minSubGroup", -1), 0);
        if (!all_) needs_.subgroups.clear();
    }

    /// Leaves and their sum; no leaves where only some must run.
    [[nodiscard]] const GangNeeds& needs() const noexcept { return needs_; }
    [[nodiscard]] bool all_must_run() const noexcept { return all_; }
    /// Some are of a name that stood before, below themselves, below one that is not listed, or too deep: KAI refuses such groups.
    [[nodiscard]] bool are_left_out() const noexcept { return left_out_ > 0; }
    [[nodiscard]] bool have_topology() const noexcept { return topology_; }

  private:
    struct Part {
        std::string name;
        std::int64_t least, enough;  ///< pods; parts below it, -1 = all
    };
    /// The least number of pods below a part.
    std::int64_t below(const std::string& parent, std::int64_t enough, int depth) {
        constexpr int deepest = 64;
        const auto parts = below_.find(parent);
        if (parts == below_.end() || depth > deepest) return 0;
        std::vector<std::int64_t> least;
        for (const auto& part : parts->second) {
            --left_out_;
            const bool leaf = part.name.empty() || !below_.contains(part.name);
            least.push_back(leaf ? part.least : below(part.name, part.enough, depth + 1));
            if (leaf && !part.name.empty()) needs_.subgroups.push_back({part.name, part.least});
        }
        if (enough >= 0 && enough < std::ssize(least)) {
            all_ = false;
            std::sort(least.begin(), least.end());
            least.resize(static_cast<std::size_t>(enough));
        }
        std::int64_t sum = 0;
        for (const auto pods : least) sum += pods;
        return sum;
    }

    std::map<std::string, std::vector<Part>> below_;  // by parent
    GangNeeds needs_;
    std::ptrdiff_t left_out_ = 0;
    bool all_ = true, topology_ = false;
};

inline GangNeeds kai_needs(const Place& spec, const std::string& name, ReportBuilder& report) {
    GangNeeds needs{.min_members = limited(integer_at(spec, "minMember", 0))};
    if (spec["subGroups"].items().empty()) return needs;
    const KaiSubgroups subgroups(spec);
    needs.min_members = std::max(needs.min_members, subgroups.needs().min_members);
    needs.subgroups = subgroups.needs().subgroups;
    if (subgroups.are_left_out())
        report.approximated("PodGroup", "subgroups", Errs::too_lax,
                            "some stand twice, or below a parent that cannot be: those are left out", name);
    else if (subgroups.all_must_run())
        report.exact("PodGroup", "subgroups");
    else
        report.approximated("PodGroup", "subgroups", Errs::too_lax,
                            "some of them suffice: one gang of as many pods as the smallest need", name);
    if (subgroups.have_topology())
        report.ignored("PodGroup", "topology constraints of subgroups", Errs::too_lax,
                       "their pods may be in several domains", name);
    return needs;
}

/// `minTaskMember` of Volcano, which looks at roles only where together they need no more than the gang.
inline GangNeeds volcano_needs(const Place& spec, ReportBuilder& report) {
    GangNeeds needs{.min_members = limited(integer_at(spec, "minMember", 0))};
    const auto roles = spec["minTaskMember"];
    if (!roles) return needs;
    if (!roles.is(json::Kind::object)) throw Unreadable{roles.expected("an object")};
    std::int64_t sum = 0;
    for (const auto& role : roles.items()) {
        const auto name = name_of(std::string(role.key()));
        const auto pods = limited(integer_at(roles, role.key(), 0));
        sum += pods;
        if (!name.empty()) needs.subgroups.push_back({name, pods});
    }
    if (sum > needs.min_members) needs.subgroups.clear();
    report.exact("PodGroup", "minTaskMember");
    return needs;
}

}  // namespace gpusched::io::detail::kubernetes
