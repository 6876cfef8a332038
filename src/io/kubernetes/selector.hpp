// SPDX-License-Identifier: Apache-2.0
// Selector: a label selector, and the pods that it selects.
#pragma once

#include "io/kubernetes/objects.hpp"
#include "io/kubernetes/pod.hpp"
#include "model/node_match.hpp"

#include <gpusched/model/spec.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace gpusched::io::detail::kubernetes {

/// Conditions on labels that must all hold. Without any it selects everything; an absent selector selects nothing.
struct Selector {
    std::vector<NodeMatch> matches{};  ///< In, NotIn, Exists and DoesNotExist; sorted
    bool nothing = false;

    [[nodiscard]] bool selects(const Labels& labels) const {
        return !nothing && std::all_of(matches.begin(), matches.end(), [&](const NodeMatch& match) {
            return gpusched::detail::holds(match, labels);
        });
    }
    void require(NodeMatch match) {
        if (std::find(matches.begin(), matches.end(), match) != matches.end()) return;
        matches.push_back(std::move(match));
        sort();
    }
    void sort() {
        const auto key = [](const NodeMatch& m) { return std::tie(m.key, m.op, m.values); };
        std::sort(matches.begin(), matches.end(),
                  [&](const NodeMatch& a, const NodeMatch& b) { return key(a) < key(b); });
    }
    /// As `kubectl --selector` has it: equal selectors have equal texts.
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

/// @throws Unreadable for an operator that is none, or values that do not go with it
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
        NodeMatch match{.key = text_at(expression, "key")};
        const auto op = text_at(expression, "operator");
        for (const auto& value : expression["values"].items()) {
            const auto text = value.text();
            if (!text || text->find('\0') != text->npos) throw Unreadable{value.expected("text")};
            match.values.push_back(*text);
        }
        const bool listed = op == "In" || op == "NotIn";
        if (match.key.empty() || (!listed && op != "Exists" && op != "DoesNotExist") ||
            listed == match.values.empty())
            throw Unreadable{expression.where() +
                             "expected a key, In or NotIn with values, or Exists or DoesNotExist without"};
        match.op = op == "In"       ? MatchOperator::in
                   : op == "NotIn"  ? MatchOperator::not_in
                   : op == "Exists" ? MatchOperator::exists
                                    : MatchOperator::does_not_exist;
        std::sort(match.values.begin(), match.values.end());
        out.matches.push_back(std::move(match));
    }
    out.sort();
    return out;
}

/// Which namespaces a selector looks at; empty `names` with `all` = every one.
struct Scope {
    std::vector<std::string> names{};  ///< sorted, each once
    bool all = false;
    [[nodiscard]] std::string text() const {
        if (all) return "*";
        std::string out;
        for (const auto& name : names) out += (out.empty() ? "" : "+") + name;
        return out;
    }
};

/// Pods by namespace and by label, so that a selector looks at few of them.
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
        const auto look_at = [&](const std::string& space) {
            for (const auto i : candidates(space, selector))
                if (selector.selects(pods_[i].labels)) out.push_back(i);
        };
        if (scope.all)
            for (const auto& [space, all] : by_space_) look_at(space);
        else
            for (const auto& space : scope.names) look_at(space);
        std::sort(out.begin(), out.end());
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

}  // namespace gpusched::io::detail::kubernetes
