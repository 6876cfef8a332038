// SPDX-License-Identifier: Apache-2.0
// Constraints on features, as jobs write them: `a100&nvlink`, `[rack1|rack2]`, `big*2&small*1`.
#pragma once

#include "io/slurm/records.hpp"

#include <gpusched/core/text.hpp>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace gpusched::io::detail::slurm {

/// Alternatives, each a list of features that a node must all have.
using Alternatives = std::vector<std::vector<std::string>>;

/// Which features the nodes of a job must have.
struct Constraint {
    Alternatives every{{}};  ///< of all nodes
    struct Some {
        std::int64_t nodes = 0;
        Alternatives features{};
    };
    std::vector<Some> some{};  ///< of so many of them
    bool same_on_all = false;  ///< one alternative must hold for all nodes together
    [[nodiscard]] bool any() const { return !some.empty() || every.size() != 1 || !every[0].empty(); }
};

/// Reads `a&b|c`: `&` and a comma join, `|` separates, parentheses and brackets group, `*n` counts nodes.
class ConstraintReader {
  public:
    static constexpr std::size_t most_alternatives = 64;
    static constexpr int deepest = 8;

    explicit ConstraintReader(std::string_view text) : rest_(text) {}

    /// @return none where the text is no such constraint, or has too many alternatives
    std::optional<Constraint> read() {
        auto found = alternatives(0);
        if (!found || !rest_.empty()) return std::nullopt;
        out_.every = *std::move(found);
        return std::move(out_);
    }

  private:
    bool take(char c) {
        if (rest_.empty() || rest_.front() != c) return false;
        rest_.remove_prefix(1);
        return true;
    }
    std::optional<Alternatives> alternatives(int depth) {
        auto out = joined(depth);
        while (out && take('|')) {
            auto more = joined(depth);
            if (!more) return std::nullopt;
            out->insert(out->end(), std::make_move_iterator(more->begin()),
                        std::make_move_iterator(more->end()));
            if (out->size() > most_alternatives) return std::nullopt;
        }
        return out;
    }
    std::optional<Alternatives> joined(int depth) {
        auto out = counted(depth);
        while (out && (take('&') || take(','))) {
            const auto more = counted(depth);
            if (!more || out->size() * more->size() > most_alternatives) return std::nullopt;
            Alternatives both;
            for (const auto& left : *out)
                for (const auto& right : *more) {
                    both.push_back(left);
                    for (const auto& feature : right)
                        if (std::find(left.begin(), left.end(), feature) == left.end())
                            both.back().push_back(feature);
                }
            out = std::move(both);
        }
        return out;
    }
    /// A feature or a group; one with a number of nodes is put aside, and asks for nothing of all.
    std::optional<Alternatives> counted(int depth) {
        auto out = single(depth);
        if (!out || !take('*')) return out;
        std::int64_t nodes = 0;
        if (!take_number(rest_, nodes) || nodes < 1) return std::nullopt;
        out_.some.push_back({nodes, *std::move(out)});
        return Alternatives{{}};
    }
    std::optional<Alternatives> single(int depth) {
        if (depth == deepest) return std::nullopt;
        for (const auto& [open, close] : {std::pair('(', ')'), std::pair('[', ']')})
            if (take(open)) {
                auto out = alternatives(depth + 1);
                if (!out || !take(close)) return std::nullopt;
                if (open == '[' && out->size() > 1) out_.same_on_all = true;
                return out;
            }
        const auto end = std::min(rest_.find_first_of("&|,*()[]"), rest_.size());
        if (end == 0) return std::nullopt;
        Alternatives out{{std::string(rest_.substr(0, end))}};
        rest_.remove_prefix(end);
        return out;
    }

    std::string_view rest_;
    Constraint out_;
};

}  // namespace gpusched::io::detail::slurm
