// SPDX-License-Identifier: Apache-2.0
// Which nodes a pod may run on, by itself: taints and tolerations, nodeSelector, required node affinity, cordons.
#pragma once

#include "io/kubernetes/pod.hpp"
#include "io/report_builder.hpp"
#include "model/node_match.hpp"

#include <gpusched/model/spec.hpp>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace gpusched::io::detail::kubernetes {

/// Taints and the cordon of a node.
inline void read_taints(const Node& node, NodeSpec& out, ReportBuilder& report) {
    const auto spec = node.object["spec"];
    for (const auto& taint : spec["taints"].items()) {
        Taint read{.key = text_at(taint, "key"),
                   .value = text_at(taint, "value"),
                   .effect = text_at(taint, "effect")};
        const bool keeps_away = read.effect == "NoSchedule" || read.effect == "NoExecute";
        if (read.key.empty() || (!keeps_away && read.effect != "PreferNoSchedule")) {
            report.ignored("Node", "taints", Errs::neither, "without a key, or of no known effect", out.name);
            continue;
        }
        if (keeps_away)
            report.exact("Node", "taints");
        else
            report.ignored("Node", "taints PreferNoSchedule", Errs::neither,
                           "preferences are kept, and forbid nothing", out.name);
        out.taints.push_back(std::move(read));
    }
    if (!truth_at(spec, "unschedulable")) return;
    out.schedulable = false;
    const Taint cordon{.key = std::string(gpusched::detail::cordon_taint), .effect = "NoSchedule"};
    const bool tainted = std::any_of(out.taints.begin(), out.taints.end(), [&](const Taint& taint) {
        return taint.key == cordon.key && taint.effect == cordon.effect;
    });
    if (!tainted) out.taints.push_back(cordon);  // as the node controller does
    report.exact_of("Node", "cordons", out.name);
}

/// Whether a label may have that value: at most 63 letters, digits, dots, dashes and underscores, the first and the last of
/// them a letter or digit. kube-scheduler calls a condition malformed that names another.
inline bool is_label_value(std::string_view value) {
    const auto plain = [](char c) {
        return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    };
    if (value.empty()) return true;
    return value.size() <= 63 && plain(value.front()) && plain(value.back()) &&
           std::all_of(value.begin(), value.end(),
                       [&](char c) { return plain(c) || c == '-' || c == '_' || c == '.'; });
}

/// One condition; none where it is of no known form.
enum class MatchOn : std::uint8_t { labels, fields };
inline std::optional<NodeMatch> read_match(const Place& match, MatchOn on) {
    NodeMatch out{.key = text_at(match, "key")};
    const auto op = text_at(match, "operator");
    bool known = false;
    for (const auto& [value, name] : enum_names(MatchOperator{}))
        if (op == name) out.op = value, known = true;
    for (const auto& value : match["values"].items()) {
        auto text = value.text();
        if (!text || text->find('\0') != text->npos) return std::nullopt;
        out.values.push_back(*std::move(text));
    }
    if (!known || out.key.empty()) return std::nullopt;
    if (on == MatchOn::labels && !std::all_of(out.values.begin(), out.values.end(),
                                              [](const std::string& v) { return is_label_value(v); }))
        return std::nullopt;
    const auto count = out.values.size();
    switch (out.op) {
    case MatchOperator::in:
    case MatchOperator::not_in:
        return count > 0 ? std::optional(out) : std::nullopt;
    case MatchOperator::exists:
    case MatchOperator::does_not_exist:
        return count == 0 ? std::optional(out) : std::nullopt;
    case MatchOperator::gt:
    case MatchOperator::lt:
        break;
    }
    return count == 1 && gpusched::detail::label_integer(out.values.front()) ? std::optional(out)
                                                                             : std::nullopt;
}

/// Terms of which one must hold. One that is malformed holds nowhere, as in kube-scheduler.
/// @param selector an object with `nodeSelectorTerms`
/// @param malformed is set where there is such a term
inline std::vector<NodeTerm> read_node_terms(const Place& selector, bool& malformed) {
    std::vector<NodeTerm> out;
    for (const auto& term : selector["nodeSelectorTerms"].items()) {
        NodeTerm read;
        bool good = true;
        for (const auto& expression : term["matchExpressions"].items()) {
            auto match = read_match(expression, MatchOn::labels);
            good = good && match;
            if (match) read.match_expressions.push_back(*std::move(match));
        }
        for (const auto& field : term["matchFields"].items()) {
            auto match = read_match(field, MatchOn::fields);
            good = good && match && match->key == "metadata.name" &&
                   (match->op == MatchOperator::in || match->op == MatchOperator::not_in);
            if (match) read.match_fields.push_back(*std::move(match));
        }
        malformed = malformed || !good;
        out.push_back(good ? std::move(read) : NodeTerm{});
    }
    if (out.empty()) out.emplace_back();  // no term holds
    return out;
}

/// Most terms that a conjunction of affinities is multiplied out to.
inline constexpr std::size_t most_terms = 256;

/// Both must hold.
/// @return false, with `to` as it was, where that would take more than `most_terms` terms
inline bool require_also(std::vector<NodeTerm>& to, const std::vector<NodeTerm>& more) {
    if (to.empty()) {
        to = more;
        return true;
    }
    if (to.size() * more.size() > most_terms) return false;
    std::vector<NodeTerm> both;
    const auto impossible = [](const NodeTerm& term) {
        return term.match_expressions.empty() && term.match_fields.empty();
    };
    for (const auto& a : to)
        for (const auto& b : more) {
            if (impossible(a) || impossible(b)) continue;
            auto term = a;
            term.match_expressions.insert(term.match_expressions.end(), b.match_expressions.begin(),
                                          b.match_expressions.end());
            term.match_fields.insert(term.match_fields.end(), b.match_fields.begin(), b.match_fields.end());
            both.push_back(std::move(term));
        }
    if (both.empty()) both.emplace_back();
    to = std::move(both);
    return true;
}

inline void read_tolerations(const Pod& pod, TaskSpec& out, ReportBuilder& report) {
    bool timed = false;
    for (const auto& toleration : pod.spec()["tolerations"].items()) {
        Toleration read{.key = text_at(toleration, "key"),
                        .op = text_at(toleration, "operator"),
                        .value = text_at(toleration, "value"),
                        .effect = text_at(toleration, "effect")};
        if (read.op.empty()) read.op = "Equal";
        if (read.op == "Gt" || read.op == "Lt") {
            report.approximated("Pod", "tolerations that compare numbers", Errs::too_strict,
                                "tolerate nothing, as with the default of the feature gate "
                                "TaintTolerationComparisonOperators",
                                out.name);
            continue;
        }
        if (read.op == "Exists") read.value.clear();
        if ((read.op != "Exists" && read.op != "Equal") || (read.op == "Equal" && read.key.empty())) {
            report.ignored("Pod", "tolerations", Errs::neither, "of no known form", out.name);
            continue;
        }
        timed = timed || toleration["tolerationSeconds"];
        if (std::find(out.tolerations.begin(), out.tolerations.end(), read) == out.tolerations.end())
            out.tolerations.push_back(std::move(read));
    }
    if (!out.tolerations.empty()) report.exact("Pod", "tolerations");
    if (timed)
        report.ignored("Pod", "tolerationSeconds", Errs::neither,
                       "says when a taint evicts, not where the pod may run", out.name);
}

/// Tolerations, nodeSelector and required node affinity.
inline void read_eligibility(const Pod& pod, TaskSpec& out, ReportBuilder& report) {
    read_tolerations(pod, out, report);
    out.node_selector = texts_at(pod.spec(), "nodeSelector");
    if (!out.node_selector.empty()) report.exact("Pod", "nodeSelector");
    const auto affinity = pod.spec()["affinity"]["nodeAffinity"];
    if (const auto required = affinity["requiredDuringSchedulingIgnoredDuringExecution"]) {
        bool malformed = false;
        out.node_affinity = read_node_terms(required, malformed);
        if (malformed)
            report.approximated("Pod", "node affinity", Errs::neither,
                                "a malformed term holds nowhere, as in kube-scheduler", out.name);
        else
            report.exact("Pod", "node affinity");
    }
    if (!affinity["preferredDuringSchedulingIgnoredDuringExecution"].items().empty())
        report.ignored("Pod", "preferred node affinity", Errs::neither, "preferences forbid nothing",
                       out.name);
}

/// Whether the pod may run on the node as far as this file knows.
inline bool is_eligible(const TaskSpec& task, const NodeSpec& node) {
    using gpusched::detail::holds;
    const auto tolerated = [&](const Taint& taint) {
        if (taint.effect == "PreferNoSchedule") return true;
        return std::any_of(task.tolerations.begin(), task.tolerations.end(), [&](const Toleration& t) {
            return (t.effect.empty() || t.effect == taint.effect) && (t.key.empty() || t.key == taint.key) &&
                   (t.op == "Exists" || t.value == taint.value);
        });
    };
    return holds(task.node_selector, node.labels) && holds(task.node_affinity, node.labels, node.name) &&
           std::all_of(node.taints.begin(), node.taints.end(), tolerated);
}

}  // namespace gpusched::io::detail::kubernetes
