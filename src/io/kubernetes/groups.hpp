// SPDX-License-Identifier: Apache-2.0
// Label selectors, and the groups of pods that affinity, spread constraints and host ports refer to.
#pragma once

#include "io/kubernetes/eligibility.hpp"
#include "io/kubernetes/objects.hpp"
#include "io/kubernetes/pods.hpp"

#include <gpusched/model/spec.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace gpusched::io::detail::kubernetes {

/// Conditions on labels that must all hold. Without any it selects everything; an absent selector selects
/// nothing.
struct Selector {
    std::vector<NodeMatch> matches{};  ///< In, NotIn, Exists and DoesNotExist; sorted
    bool nothing = false;

    [[nodiscard]] bool selects(const Labels& labels) const {
        return !nothing && std::ranges::all_of(matches, [&](const NodeMatch& match) {
            return gpusched::detail::holds(match, labels);
        });
    }
    void require(NodeMatch match) {
        add_once(matches, std::move(match));
        sort();
    }
    void sort() {
        const auto key = [](const NodeMatch& m) { return std::tie(m.key, m.op, m.values); };
        std::ranges::sort(matches, [&](const NodeMatch& a, const NodeMatch& b) { return key(a) < key(b); });
    }
    /// In the form of `kubectl --selector`. Equal selectors have equal texts.
    [[nodiscard]] std::string text() const {
        if (nothing) return "(nothing)";
        if (matches.empty()) return "(everything)";
        std::string out;
        for (const auto& match : matches) {
            out += out.empty() ? "" : ",";
            if (match.op == MatchOperator::exists || match.op == MatchOperator::does_not_exist) {
                out += (match.op == MatchOperator::exists ? "" : "!") + match.key;
                continue;
            }
            const bool in = match.op == MatchOperator::in;
            if (match.values.size() == 1) {
                out += match.key + (in ? "=" : "!=") + match.values.front();
                continue;
            }
            out += match.key + (in ? " in (" : " notin (");
            for (std::size_t i = 0; i < match.values.size(); ++i)
                out += (i == 0 ? "" : ",") + match.values[i];
            out += ")";
        }
        return out;
    }
};

/// @throws Unreadable for an unknown operator, or values that do not fit it
inline Selector read_selector(const Place& place) {
    Selector out;
    if (!place) {
        out.nothing = true;
        return out;
    }
    if (!place.is(json::Kind::object)) throw Unreadable{place.expected("an object")};
    for (auto& [key, value] : texts_at(place, "matchLabels"))
        out.matches.push_back({key, MatchOperator::in, {value}});
    for (const auto& expression : place["matchExpressions"].items()) {
        auto match = read_match(expression);
        if (!match || match->op == MatchOperator::gt || match->op == MatchOperator::lt)
            throw Unreadable{expression.where() +
                             "expected a key, In or NotIn with texts, or Exists or DoesNotExist without"};
        std::ranges::sort(match->values);
        out.matches.push_back(*std::move(match));
    }
    out.sort();
    return out;
}

/// The namespaces of a selector; `all` = every one, with empty `names`.
struct Scope {
    std::vector<std::string> names{};  ///< sorted, each once
    bool all = false;
    [[nodiscard]] std::string text() const { return all ? "*" : joined(names, "+"); }
};

/// Pods by namespace and by label, so that a selector checks few of them.
class PodIndex {
  public:
    explicit PodIndex(const std::vector<Pod>& pods) : pods_(pods) {
        for (std::size_t i = 0; i < pods.size(); ++i) {
            by_space_[pods[i].id.space].push_back(i);
            for (const auto& [key, value] : pods[i].labels)
                by_label_[pods[i].id.space + '\n' + key + '\n' + value].push_back(i);
        }
    }
    /// The pods that it selects, in input order.
    [[nodiscard]] std::vector<std::size_t> selected(const Scope& scope, const Selector& selector) const {
        std::vector<std::size_t> out;
        if (selector.nothing) return out;
        const auto select_in = [&](const std::string& space) {
            for (const auto i : candidates(space, selector))
                if (selector.selects(pods_[i].labels)) out.push_back(i);
        };
        if (scope.all)
            for (const auto& [space, all] : by_space_) select_in(space);
        else
            for (const auto& space : scope.names) select_in(space);
        std::ranges::sort(out);
        return out;
    }
    [[nodiscard]] const std::map<std::string, std::vector<std::size_t>>& by_space() const {
        return by_space_;
    }

  private:
    [[nodiscard]] const std::vector<std::size_t>& candidates(const std::string& space,
                                                             const Selector& selector) const {
        static const std::vector<std::size_t> none;
        const auto found = by_space_.find(space);
        if (found == by_space_.end()) return none;
        const auto* best = &found->second;
        for (const auto& match : selector.matches) {
            if (match.op != MatchOperator::in || match.values.size() != 1) continue;
            const auto labelled = by_label_.find(space + '\n' + match.key + '\n' + match.values.front());
            if (labelled == by_label_.end()) return none;
            if (labelled->second.size() < best->size()) best = &labelled->second;
        }
        return *best;
    }

    const std::vector<Pod>& pods_;
    std::map<std::string, std::vector<std::size_t>> by_space_;
    std::unordered_map<std::string, std::vector<std::size_t>> by_label_;
};

/// Labels of namespaces. Each has at least the label kubernetes.io/metadata.name, even if no Namespace was
/// read.
class Namespaces {
  public:
    Namespaces(const Objects& objects, const PodIndex& pods, ReportBuilder& report)
        : read_(objects.any(Kind::name_space)) {
        for (const auto& [space, members] : pods.by_space()) labels_[space];
        each_readable(
            objects.of(Kind::name_space), "Namespace", Errs::either, report, [&](const Place& object) {
                labels_[text_at(object["metadata"], "name")] = texts_at(object["metadata"], "labels");
                report.exact("Namespace", "labels");
            });
        for (auto& [space, labels] : labels_) labels["kubernetes.io/metadata.name"] = space;
    }
    [[nodiscard]] bool read() const { return read_; }
    [[nodiscard]] std::vector<std::string> selected(const Selector& selector) const {
        std::vector<std::string> out;
        for (const auto& [space, labels] : labels_)
            if (selector.selects(labels)) out.push_back(space);
        return out;
    }

  private:
    bool read_;
    std::map<std::string, Labels> labels_;
};

/// Turns required pod affinity and anti-affinity, topology spread with DoNotSchedule, and host ports into
/// groups of tasks.
class Groups {
  public:
    Groups(const std::vector<Pod>& pods, const PodIndex& index, const Namespaces& namespaces,
           ClusterSpec& cluster, Expansion& left, ReportBuilder& report)
        : pods_(pods), index_(index), namespaces_(namespaces), cluster_(cluster), left_(left),
          report_(report) {
        std::set<std::string_view> names;
        hosts_differ_ = true;
        for (const auto& node : cluster.nodes) {
            const auto found = node.labels.find(hostname);
            hosts_differ_ = hosts_differ_ && found != node.labels.end() && names.insert(found->second).second;
        }
    }

    /// Adds the pod's constraints on groups. @throws Unreadable
    void fill(const Pod& pod, TaskSpec& out) {
        const auto affinity = pod.spec()["affinity"];
        constexpr std::string_view required = "requiredDuringSchedulingIgnoredDuringExecution",
                                   preferred = "preferredDuringSchedulingIgnoredDuringExecution";
        for (const auto& term : affinity["podAffinity"][required].items()) {
            add_once(out.near, Near{group(pod, term, out.name), level_of(term)});
        }
        for (const auto& term : affinity["podAntiAffinity"][required].items()) {
            add_once(out.avoid, Avoid{group(pod, term, out.name), level_of(term)});
        }
        if (!out.near.empty()) report_.exact("Pod", "required pod affinity");
        if (!out.avoid.empty()) report_.exact("Pod", "required pod anti-affinity");
        if (affinity["podAffinity"][preferred] || affinity["podAntiAffinity"][preferred])
            report_.ignored("Pod", "preferred pod affinity and anti-affinity", Errs::neither,
                            "preferences forbid nothing", out.name);
        for (const auto& constraint : pod.spec()["topologySpreadConstraints"].items())
            spread(pod, constraint, out);
        if (!out.spread.empty()) report_.exact("Pod", "topology spread with DoNotSchedule");
        host_ports(pod, out);
    }

    /// Adds every task to its groups. Call it after `fill` of all pods.
    void list_members() {
        for (const auto& [name, members] : members_)
            for (const auto i : members) cluster_.tasks[i].groups.push_back(name);
        for (const auto& [port, users] : ports_)
            for (const auto& [i, address] : users) {
                auto& task = cluster_.tasks[i];
                add_once(task.groups, port_group(port, address));
                // The wildcard conflicts with every address, and each address with itself and the wildcard.
                if (address != any_address && users.contains({i, any_address})) continue;
                const auto avoid = [&](const std::string& other) -> Avoid {
                    auto name = port_group(port, other);
                    left_.take_names(1, 2 * name.size() + bytes_of_constraint);
                    return {std::move(name), node_level};
                };
                task.avoid.push_back(avoid(address));
                if (address != any_address) {
                    if (addresses_[port].contains(any_address)) add_once(task.avoid, avoid(any_address));
                    continue;
                }
                for (const auto& other : addresses_[port])
                    if (other != any_address) task.avoid.push_back(avoid(other));
            }
    }

    /// Allows only one user of each claim with the access mode ReadWriteOncePod in the whole cluster.
    void keep_apart(const std::map<std::string, std::vector<std::size_t>>& users) {
        for (const auto& [claim, tasks] : users) {
            if (tasks.size() < 2) continue;
            for (auto& node : cluster_.nodes) node.labels[everywhere] = "yes";
            const auto level = label_level(everywhere);
            const auto name = "claim " + claim;
            for (const auto i : tasks) {
                cluster_.tasks[i].groups.push_back(name);
                cluster_.tasks[i].avoid.push_back({name, level});
            }
            report_.exact("PersistentVolumeClaim", "access mode ReadWriteOncePod");
        }
    }

  private:
    /// Memory of a task's part in a constraint, in addition to the name of the group: in the snapshot and in
    /// the cluster that is built from it.
    static constexpr std::size_t bytes_of_constraint = 200;
    /// A label added to all nodes, so that the cluster is one domain.
    static constexpr const char* everywhere = "gpusched/cluster";
    static constexpr const char* hostname = "kubernetes.io/hostname";
    static inline const std::string any_address = "0.0.0.0";

    Level level_of(const Place& term) {
        const auto key = text_at(term, "topologyKey");
        if (key.empty() || key == "node") throw Unreadable{term.where() + "expected a topologyKey"};
        if (key == hostname && hosts_differ_) return node_level;
        return label_level(key);
    }
    /// The level of a label, which becomes one on first use.
    Level label_level(const std::string& key) {
        auto& keys = cluster_.label_levels;
        add_once(keys, key);
        return first_label_level + static_cast<Level>(std::ranges::find(keys, key) - keys.begin());
    }

    /// Adds conditions on the labels that matchLabelKeys and mismatchLabelKeys list.
    static void match_label_keys(const Pod& pod, const Place& term, Selector& selector) {
        for (const auto& [list, op] : {std::pair{"matchLabelKeys", MatchOperator::in},
                                       std::pair{"mismatchLabelKeys", MatchOperator::not_in}})
            for (const auto& key : term[list].items()) {
                const auto name = key.text().value_or("");
                const auto found = pod.labels.find(name);
                if (found != pod.labels.end()) selector.require({name, op, {found->second}});
            }
    }

    std::string group(const Pod& pod, const Place& term, const std::string& task) {
        auto selector = read_selector(term["labelSelector"]);
        if (!selector.nothing) match_label_keys(pod, term, selector);
        Scope scope;
        for (const auto& name : term["namespaces"].items())
            if (auto text = name_of(name.text()); !text.empty()) scope.names.push_back(std::move(text));
        if (const auto of_spaces = term["namespaceSelector"]) {
            const auto spaces = read_selector(of_spaces);
            scope.all = spaces.matches.empty();
            const auto by_name = [](const NodeMatch& match) {
                return match.key == "kubernetes.io/metadata.name";
            };
            if (!namespaces_.read() && !std::ranges::all_of(spaces.matches, by_name))
                report_.approximated(
                    "Pod", "namespaceSelector", Errs::either,
                    "no Namespace was read: only the label kubernetes.io/metadata.name is known", task);
            for (auto& name : namespaces_.selected(spaces)) scope.names.push_back(std::move(name));
        } else if (scope.names.empty()) {
            scope.names.push_back(pod.id.space);
        }
        std::ranges::sort(scope.names);
        scope.names.erase(std::unique(scope.names.begin(), scope.names.end()), scope.names.end());
        if (scope.all) scope.names.clear();
        return named(scope, selector, false);
    }

    /// The group of the pods that a selector selects; created on first use.
    std::string named(const Scope& scope, const Selector& selector, bool without_terminating) {
        const auto key = scope.text() + "/" + selector.text();
        auto name = key;
        if (without_terminating) {
            const auto selected = index_.selected(scope, selector);
            if (std::ranges::none_of(selected, [&](std::size_t i) { return pods_[i].terminating; }))
                return named(scope, selector, false);
            name += " (not terminating)";
        }
        if (const auto [found, added] = members_.try_emplace(name); added) {
            found->second = index_.selected(scope, selector);
            if (without_terminating)
                std::erase_if(found->second, [&](std::size_t i) { return pods_[i].terminating; });
            left_.take_names(found->second.size(), 2 * name.size() + bytes_of_constraint);
        }
        return name;
    }

    void spread(const Pod& pod, const Place& constraint, TaskSpec& out) {
        const auto when = text_at(constraint, "whenUnsatisfiable");
        if (when == "ScheduleAnyway")
            return report_.ignored("Pod", "topology spread with ScheduleAnyway", Errs::neither,
                                   "preferences forbid nothing", out.name);
        auto selector = read_selector(constraint["labelSelector"]);
        if (!selector.nothing) match_label_keys(pod, constraint, selector);
        // kube-scheduler counts no pod for a selector without conditions.
        selector.nothing = selector.nothing || selector.matches.empty();
        Spread rule{.group = named({.names = {pod.id.space}}, selector, true), .level = level_of(constraint)};
        rule.max_skew = count_at(constraint, "maxSkew", 1, 1);
        rule.min_domains = count_at(constraint, "minDomains", 1, 1);
        rule.honor_node_affinity = text_at(constraint, "nodeAffinityPolicy") != "Ignore";
        rule.honor_taints = text_at(constraint, "nodeTaintsPolicy") == "Honor";
        add_once(out.spread, rule);
    }

    void host_ports(const Pod& pod, const TaskSpec& out) {
        const auto i = static_cast<std::size_t>(&out - cluster_.tasks.data());
        bool any = false;
        const auto take = [&](const Place& container) {
            for (const auto& port : container["ports"].items()) {
                auto number = integer_at(port, "hostPort", 0);
                // The API server fills it in like this.
                if (number == 0 && truth_at(pod.spec(), "hostNetwork"))
                    number = integer_at(port, "containerPort", 0);
                if (number <= 0) continue;
                auto protocol = text_at(port, "protocol"), address = text_at(port, "hostIP");
                if (protocol.empty()) protocol = "TCP";
                if (address.empty()) address = any_address;
                const auto name = concat(protocol, "/", number);
                ports_[name].emplace(i, address);
                addresses_[name].insert(address);
                any = true;
            }
        };
        for (const auto& container : pod.spec()["initContainers"].items())
            if (is_sidecar(container)) take(container);
        for (const auto& container : pod.spec()["containers"].items()) take(container);
        if (any) report_.exact("Pod", "host ports");
    }
    static std::string port_group(const std::string& port, std::string_view address) {
        return "host port " + port + (address == any_address ? "" : " of " + std::string(address));
    }

    const std::vector<Pod>& pods_;
    const PodIndex& index_;
    const Namespaces& namespaces_;
    ClusterSpec& cluster_;
    Expansion& left_;
    ReportBuilder& report_;
    bool hosts_differ_ = false;
    std::map<std::string, std::vector<std::size_t>> members_;                     // by group
    std::map<std::string, std::set<std::pair<std::size_t, std::string>>> ports_;  // tasks and their addresses
    std::map<std::string, std::set<std::string>> addresses_;                      // by port
};

}  // namespace gpusched::io::detail::kubernetes
