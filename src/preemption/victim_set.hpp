// SPDX-License-Identifier: Apache-2.0
// Sets of a node's potential victims: 64 bits where that is enough, as it nearly always is, else as many as it takes.
#pragma once

#include <gpusched/core/detail/small_vector.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <vector>

namespace gpusched::preemption::detail {

/// A set of a node's potential victims: bit i is victim i.
using VictimSet = std::uint64_t;
inline constexpr int most_victims = 64;

/// The same without an upper bound. Words that are not there are 0. Searches copy sets at every step: up to 256 victims
/// nothing is allocated.
class ManyVictims {
  public:
    [[nodiscard]] bool contains(int i) const noexcept {
        const auto word = static_cast<std::size_t>(i) / 64;
        return word < words_.size() && (words_[word] >> (i % 64) & 1) != 0;
    }
    void insert(int i) {
        const auto word = static_cast<std::size_t>(i) / 64;
        if (word >= words_.size()) words_.resize(word + 1);
        words_[word] |= std::uint64_t{1} << (i % 64);
    }
    void clear() noexcept { words_.clear(); }
    [[nodiscard]] bool empty() const noexcept {
        return std::all_of(words_.begin(), words_.end(), [](std::uint64_t w) { return w == 0; });
    }
    [[nodiscard]] int count() const noexcept {
        int sum = 0;
        for (const auto w : words_) sum += std::popcount(w);
        return sum;
    }
    /// Without those of the other.
    [[nodiscard]] ManyVictims minus(const ManyVictims& other) const {
        auto left = *this;
        for (std::size_t i = 0; i < std::min(words_.size(), other.words_.size()); ++i)
            left.words_[i] &= ~other.words_[i];
        return left;
    }
    [[nodiscard]] bool within(const ManyVictims& other) const noexcept {
        for (std::size_t i = 0; i < words_.size(); ++i)
            if ((words_[i] & ~(i < other.words_.size() ? other.words_[i] : 0)) != 0) return false;
        return true;
    }
    friend ManyVictims operator|(const ManyVictims& a, const ManyVictims& b) {
        auto all = a.words_.size() < b.words_.size() ? b : a;
        const auto& less = a.words_.size() < b.words_.size() ? a : b;
        for (std::size_t i = 0; i < less.words_.size(); ++i) all.words_[i] |= less.words_[i];
        return all;
    }
    friend ManyVictims operator&(const ManyVictims& a, const ManyVictims& b) { return a.minus(a.minus(b)); }
    template <class Visit>
    void for_each(Visit&& visit) const {
        for (std::size_t i = 0; i < words_.size(); ++i)
            for (auto w = words_[i]; w != 0; w &= w - 1)
                visit(static_cast<int>(64 * i) + std::countr_zero(w));
    }

  private:
    boost::container::small_vector<std::uint64_t, 4> words_;
};

[[nodiscard]] constexpr bool is_empty(VictimSet set) noexcept { return set == 0; }
[[nodiscard]] inline bool is_empty(const ManyVictims& set) noexcept { return set.empty(); }

[[nodiscard]] constexpr int count_of(VictimSet set) noexcept { return std::popcount(set); }
[[nodiscard]] inline int count_of(const ManyVictims& set) noexcept { return set.count(); }

[[nodiscard]] constexpr bool contains(VictimSet set, int i) noexcept { return (set >> i & 1) != 0; }
[[nodiscard]] inline bool contains(const ManyVictims& set, int i) noexcept { return set.contains(i); }

constexpr void insert(VictimSet& set, int i) noexcept { set |= VictimSet{1} << i; }
inline void insert(ManyVictims& set, int i) { set.insert(i); }

constexpr void clear(VictimSet& set) noexcept { set = 0; }
inline void clear(ManyVictims& set) noexcept { set.clear(); }

[[nodiscard]] constexpr VictimSet minus(VictimSet a, VictimSet b) noexcept { return a & ~b; }
[[nodiscard]] inline ManyVictims minus(const ManyVictims& a, const ManyVictims& b) { return a.minus(b); }

/// Are all of `a` in `b`?
[[nodiscard]] constexpr bool within(VictimSet a, VictimSet b) noexcept { return (a & ~b) == 0; }
[[nodiscard]] inline bool within(const ManyVictims& a, const ManyVictims& b) noexcept { return a.within(b); }

template <class Visit>
void for_each_victim(VictimSet set, Visit&& visit) {
    for (; set != 0; set &= set - 1) visit(std::countr_zero(set));
}
template <class Visit>
void for_each_victim(const ManyVictims& set, Visit&& visit) {
    set.for_each(visit);
}

template <class Set>
[[nodiscard]] Set with(Set set, int i) {
    insert(set, i);
    return set;
}
template <class Set>
[[nodiscard]] Set only(int i) {
    return with(Set{}, i);
}

/// All that come before victim `count`.
template <class Set>
[[nodiscard]] Set first_victims(int count) {
    if constexpr (std::is_same_v<Set, VictimSet>) {
        return count == most_victims ? ~VictimSet{0} : (VictimSet{1} << count) - 1;
    } else {
        Set set;
        for (int i = 0; i < count; ++i) insert(set, i);
        return set;
    }
}

/// As sets are passed to functions.
template <class Set>
using SetArgument = std::conditional_t<std::is_same_v<Set, VictimSet>, VictimSet, const Set&>;

/// A list with a place for every victim, and one more.
template <class Set, class T>
using PerVictim =
    std::conditional_t<std::is_same_v<Set, VictimSet>, std::array<T, most_victims + 1>, std::vector<T>>;
template <class T, std::size_t N>
constexpr void make_places(std::array<T, N>&, int) noexcept {}
template <class T>
void make_places(std::vector<T>& list, int count) {
    if (list.size() < static_cast<std::size_t>(count)) list.resize(static_cast<std::size_t>(count));
}

}  // namespace gpusched::preemption::detail
