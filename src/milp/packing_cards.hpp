// SPDX-License-Identifier: Apache-2.0
// Which cards of a node fractions go onto.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

namespace gpusched::milp::detail {

/// A card as fractions see it, in thousandths.
struct PackingCard {
    std::int64_t share = 0;  ///< what it has at most, which says who has a column there
    std::int64_t free = 0;   ///< what of it may be taken: all, or nothing where somebody holds the card
    bool fresh = false;      ///< nobody uses it yet: it counts as a whole one once a fraction is there
};

/// Puts fractions onto the cards of one node: exact, but for a limit of steps.
class PackingCards {
  public:
    /// @param shares what each fraction needs; for each there is a card that has as much at most
    /// @param most_fresh how many fresh cards may be used
    PackingCards(std::vector<std::int64_t> shares, std::vector<PackingCard> cards, int most_fresh)
        : shares_(std::move(shares)), cards_(std::move(cards)), users_(cards_.size(), 0),
          order_(shares_.size()), card_(shares_.size(), 0), left_(most_fresh) {
        std::iota(order_.begin(), order_.end(), std::size_t{0});
        std::sort(order_.begin(), order_.end(), [&](std::size_t a, std::size_t b) {
            return shares_[a] != shares_[b] ? shares_[a] > shares_[b] : a < b;
        });
    }

    /// The card of each fraction. Where no packing is found, each goes onto the card with the most room that it has a column
    /// for, whether it fits there or not.
    std::vector<std::size_t> pack() {
        if (place(0)) return card_;
        for (const auto i : order_) {
            std::size_t best = cards_.size();
            for (std::size_t g = 0; g < cards_.size(); ++g)
                if (cards_[g].share >= shares_[i] &&
                    (best == cards_.size() || cards_[g].free > cards_[best].free))
                    best = g;
            card_[i] = best;
            cards_[best].free -= shares_[i];
        }
        return card_;
    }

  private:
    static constexpr int most_steps = 100'000;

    [[nodiscard]] bool opens(std::size_t g) const { return cards_[g].fresh && users_[g] == 0; }

    bool place(std::size_t at) {
        if (at == order_.size()) return true;
        if (++steps_ > most_steps) return false;
        const auto i = order_[at];
        std::vector<std::size_t> choices;
        for (std::size_t g = 0; g < cards_.size(); ++g) {
            if (cards_[g].free < shares_[i] || (opens(g) && left_ <= 0)) continue;
            // Cards alike give packings alike.
            if (std::none_of(choices.begin(), choices.end(), [&](std::size_t other) {
                    return cards_[other].free == cards_[g].free && opens(other) == opens(g);
                }))
                choices.push_back(g);
        }
        std::sort(choices.begin(), choices.end(), [&](std::size_t a, std::size_t b) {
            if (opens(a) != opens(b)) return opens(b);
            return cards_[a].free != cards_[b].free ? cards_[a].free < cards_[b].free : a < b;
        });
        for (const auto g : choices) {
            const int opened = opens(g) ? 1 : 0;
            left_ -= opened;
            ++users_[g];
            cards_[g].free -= shares_[i];
            card_[i] = g;
            if (place(at + 1)) return true;
            cards_[g].free += shares_[i];
            --users_[g];
            left_ += opened;
        }
        return false;
    }

    std::vector<std::int64_t> shares_;
    std::vector<PackingCard> cards_;
    std::vector<int> users_;  // fractions placed here, of each card
    std::vector<std::size_t> order_, card_;
    int left_;  // fresh cards
    int steps_ = 0;
};

}  // namespace gpusched::milp::detail
