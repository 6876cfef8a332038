// SPDX-License-Identifier: Apache-2.0
// Places gangs of several shapes by local search, with the exact search as a fallback.
#include "allocation/gang.hpp"
#include "model/node_match.hpp"
#include "model/placement_order.hpp"
#include "model/pod_room.hpp"

#include <gpusched/allocation/switch_counts.hpp>
#include <gpusched/config.hpp>
#include <gpusched/core/order.hpp>
#include <gpusched/core/text.hpp>
#include <gpusched/fragmentation/entropy.hpp>

#include <algorithm>
#include <cmath>
#include <compare>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

namespace gpusched::allocation::detail {

/// Searches for a placement of a gang of several shapes. Builds a placement domain by domain, then moves and
/// exchanges parts of classes between domains as long as that helps. If that finds no placement in one
/// domain, or none at all, the exact search is used. All steps run in the cluster itself and are rolled back
/// if they do not help.
class GroupSearch {
  public:
    explicit GroupSearch(const Gang& gang)
        : gang_(gang), cluster_(gang.cluster), by_size_(order_by(gang.classes.size(), [&](std::size_t c) {
              const auto i = index(gang.classes[c].sample);
              return std::tuple(-gang.weight(gang.classes[c]), -gang.inv.tasks.cpu_milli[i]);
          })) {
        nodes_.resize(gang.domains());
        for (const auto node : cluster_.nodes())
            if (gang.inv.nodes.receives(node) && (gang.closed.empty() || !gang.closed[gang.domain(node)]))
                nodes_[gang.domain(node)].push_back(node);
        for (const auto& c : gang.classes) {
            if (gang.out_of_grace())
                rooms_.push_back({std::vector<std::int32_t>(cluster_.node_slots(), 0),
                                  std::vector<std::int64_t>(nodes_.size(), 0)});
            else
                rooms_.push_back(gang.rooms(c));
            most_.push_back(rooms_.back().domain);
            if (!c.follows_first) continue;
            for (std::uint32_t d = 0; d < nodes_.size(); ++d)
                if (most_.back()[d] > 0) most_.back()[d] = gang.room_without_groups(c, nodes_[d]);
        }
        gpus_ = gang.gpus_per_domain();
        whole_.resize(nodes_.size());
        shapes_ = gang.shapes();
        grouped_ = std::any_of(gang.classes.begin(), gang.classes.end(),
                               [&](const PodClass& c) { return gang.is_tied(c); });
        needs_others_ = std::any_of(gang.classes.begin(), gang.classes.end(), [&](const PodClass& c) {
            return gpusched::detail::needs_others(gang.inv, c.sample);
        });
    }

    void run(Allocation& result) {
        const auto start = cluster_.checkpoint();
        std::optional<std::pair<Cost, std::vector<Placement>>> best;
        const auto found = regions();
        const auto keep = [&](const Domains& domains) {
            improve(domains);
            const auto now = cost();
            if (!best || now < best->first) best.emplace(now, gang_.placements());
        };
        const auto is_ideal = [&] { return best && best->first.is_ideal(); };
        for (std::size_t r = 0; r < found.size() && !is_ideal(); ++r)
            for (const bool by_gpus : {true, false}) {
                if (is_ideal() || gang_.out_of_time()) break;
                cluster_.rollback(start);
                if (build(found[r], by_gpus)) keep(found[r]);
            }
        bool certain = true;
        for (std::size_t r = 0; r < found.size() && !best; ++r) {
            cluster_.rollback(start);
            auto packed = Packed::yes;
            if (!fill_all(found[r])) {
                cluster_.rollback(start);
                packed = gang_.out_of_time()    ? Packed::unknown
                         : found[r].size() == 1 ? pack_whole(found[r].front())
                                                : pack_into(found[r], steps_anywhere_);
            }
            certain = certain && packed != Packed::unknown;
            if (packed == Packed::yes) keep(found[r]);
        }
        cluster_.rollback(start);
        if (!best) return fail(result, certain && !gang_.was_cut());
        for (const auto& p : best->second) cluster_.assign(p.task, p.node, p.gpus);
        gang_.describe(result);
        result.proven = !gang_.options.traffic.empty() ? result.cross_traffic <= 1e-12
                        : gang_.was_cut() ? result.entropy <= 1e-12  // counts of pods may be incomplete
                                          : result.entropy <= gang_.bound(most_, gpus_) + 1e-9;
    }

  private:
    /// Crossing traffic, entropy, then the entropies at the preferred levels. Rounded to steps that absorb
    /// floating-point noise.
    struct Cost {
        double traffic = 0, entropy = 0;
        std::vector<double> further{};
        auto operator<=>(const Cost&) const = default;
        [[nodiscard]] bool is_ideal() const { return traffic == 0 && entropy == 0; }
    };
    using Domains = std::vector<std::uint32_t>;

    [[nodiscard]] Cost cost() const {
        Allocation now;
        gang_.describe(now);
        const auto rounded = [](double x) { return std::round(x * 1e9); };
        Cost found{rounded(now.cross_traffic), rounded(now.entropy), {}};
        for (const auto level : gang_.preferred) found.further.push_back(rounded(gang_.entropy_at(level)));
        return found;
    }

    /// Returns the domains that may be used together: all, or those of each region that might hold the gang,
    /// the tightest region first.
    [[nodiscard]] std::vector<Domains> regions() const {
        Domains all;
        for (std::uint32_t d = 0; d < nodes_.size(); ++d)
            if (needs_others_ || std::any_of(rooms_.begin(), rooms_.end(),
                                             [&](const PodCapacity& r) { return r.domain[d] > 0; }))
                all.push_back(d);
        if (!gang_.required_level) return {all};
        const auto groups = gang_.groups_at(*gang_.required_level);
        std::map<std::uint32_t, Domains> members;
        for (const auto d : all) members[groups[d]].push_back(d);
        std::vector<std::pair<std::int64_t, Domains>> ranked;
        for (auto& [group, domains] : members) {
            std::int64_t free = 0;
            for (const auto d : domains) free += gpus_[d];
            bool enough = true;
            for (std::size_t c = 0; c < rooms_.size() && enough; ++c) {
                if (gang_.classes[c].by_trial || gang_.was_cut()) continue;  // the counts are incomplete
                std::int64_t room = 0;
                for (const auto d : domains) room += rooms_[c].domain[d];
                enough = room >= static_cast<std::int64_t>(gang_.classes[c].pods.size());
            }
            if (enough) ranked.emplace_back(free, std::move(domains));
        }
        std::sort(ranked.begin(), ranked.end());
        std::vector<Domains> out;
        for (auto& [free, domains] : ranked) out.push_back(std::move(domains));
        return out;
    }

    /// Places up to `want` of each class's pods (positions in the gang) in one domain; removes placed pods
    /// from `want`.
    std::int64_t fill(std::uint32_t domain, std::vector<std::vector<std::uint32_t>>& want) {
        std::int64_t placed = 0;
        for (const auto c : by_size_) {
            auto& left = want[c];
            if (left.empty()) continue;
            if (gang_.out_of_grace()) break;
            PodClass part{gang_.classes[c].sample, gang_.classes[c].group, left, gang_.classes[c].by_trial};
            std::vector<std::int32_t>& room = node_room_;
            room.resize(cluster_.node_slots());
            if (!part.by_trial)
                for (const auto node : nodes_[domain])
                    room[index(node)] = static_cast<std::int32_t>(gpusched::detail::pod_room(
                        cluster_, part.sample, node, static_cast<std::int64_t>(left.size())));
            const auto put =
                gang_.fill(part, 0, static_cast<std::int64_t>(left.size()), nodes_[domain], room);
            left.erase(left.begin(), left.begin() + static_cast<std::ptrdiff_t>(put));
            placed += put;
        }
        return placed;
    }

    /// Places all pods, one class after another, over all of the domains.
    bool fill_all(const Domains& domains) {
        for (const auto c : by_size_) {
            std::vector<std::vector<std::uint32_t>> want(gang_.classes.size());
            want[c] = gang_.classes[c].pods;
            for (const auto d : domains) fill(d, want);
            if (!want[c].empty()) return false;
        }
        return true;
    }

    bool build(const Domains& domains, bool by_gpus) {
        std::vector<std::vector<std::uint32_t>> want;
        std::size_t left = 0;
        for (const auto& c : gang_.classes) {
            want.push_back(c.pods);
            left += c.pods.size();
        }
        std::vector<std::uint8_t> used(nodes_.size(), 0);
        while (true) {
            // Domains that might hold all remaining pods, the tightest first; otherwise the one that might
            // take most of them.
            std::vector<std::pair<std::int64_t, std::uint32_t>> for_all;
            std::optional<std::pair<std::int64_t, std::uint32_t>> most;
            for (const auto d : domains) {
                if (used[d]) continue;
                bool all = true;
                std::int64_t sum = 0;
                for (std::size_t c = 0; c < want.size(); ++c) {
                    const auto n = static_cast<std::int64_t>(want[c].size());
                    const auto here = std::min(n, rooms_[c].domain[d]);
                    all = all && most_[c][d] >= n;
                    sum += here * (by_gpus ? std::max<std::int64_t>(gang_.weight(gang_.classes[c]), 1) : 1);
                }
                if (sum == 0) continue;
                if (by_gpus) sum = std::min(sum, std::max<std::int64_t>(gpus_[d], 1));
                if (all) for_all.emplace_back(gpus_[d], d);
                if (!most || sum > most->first) most.emplace(sum, d);
            }
            if (!most || gang_.out_of_time()) return false;
            std::sort(for_all.begin(), for_all.end());
            for (const auto& [free, d] : for_all) {
                if (gang_.out_of_time()) return false;
                const auto before = cluster_.checkpoint();
                auto rest = want;
                if (static_cast<std::size_t>(fill(d, rest)) == left) return true;
                cluster_.rollback(before);
            }
            if (left == gang_.pods.size())
                for (const auto& [free, d] : for_all)
                    if (pack_whole(d) == Packed::yes) return true;
            used[most->second] = 1;
            left -= static_cast<std::size_t>(fill(most->second, want));
        }
    }

    /// Places all pods into the domains by the exact search. Then chooses GPUs on each node as its pods wish,
    /// if possible.
    Packed pack_into(const Domains& domains, std::int64_t& steps) {
        std::vector<NodeId> nodes;
        for (const auto d : domains) nodes.insert(nodes.end(), nodes_[d].begin(), nodes_[d].end());
        std::vector<Placement> packed;
        const auto found = pack(cluster_, shapes_, nodes, grouped_, steps, packed, gang_.budget);
        std::sort(packed.begin(), packed.end(),
                  [](const Placement& a, const Placement& b) { return a.node < b.node; });
        for (auto p = packed.begin(); p != packed.end();) {
            const auto end =
                std::find_if(p, packed.end(), [&](const Placement& x) { return x.node != p->node; });
            const auto before = cluster_.checkpoint();
            if (!std::all_of(p, end, [&](const Placement& x) { return gang_.try_put(x.task, x.node); })) {
                cluster_.rollback(before);
                std::for_each(p, end, [&](const Placement& x) { cluster_.assign(x.task, x.node, x.gpus); });
            }
            p = end;
        }
        return found;
    }
    /// The same for one domain, at most once per domain.
    Packed pack_whole(std::uint32_t domain) {
        if (whole_[domain].value_or(Packed::yes) != Packed::yes) return *whole_[domain];
        whole_[domain] = pack_into({domain}, steps_whole_);
        return *whole_[domain];
    }

    [[nodiscard]] std::vector<std::uint32_t> here(std::size_t c, std::uint32_t domain) const {
        std::vector<std::uint32_t> found;
        for (const auto p : gang_.classes[c].pods)
            if (gang_.domain(cluster_.node_of(gang_.pods[p])) == domain) found.push_back(p);
        return found;
    }
    void take_off(const std::vector<std::uint32_t>& positions) {
        for (const auto p : positions) cluster_.remove(gang_.pods[p]);
    }
    [[nodiscard]] bool put_all(std::uint32_t domain, std::size_t c,
                               const std::vector<std::uint32_t>& positions) {
        std::vector<std::vector<std::uint32_t>> want(gang_.classes.size());
        want[c] = positions;
        return fill(domain, want) == static_cast<std::int64_t>(positions.size());
    }

    /// Moves one pod or all pods of a class between two domains, alone or in exchange for pods of another
    /// class.
    void improve(const Domains& domains) {
        auto now = cost();
        int trials = 400;
        for (bool better = true; better && !now.is_ideal();) {
            better = false;
            Domains used;
            for (const auto d : domains)
                if (std::any_of(gang_.pods.begin(), gang_.pods.end(),
                                [&](TaskId t) { return gang_.domain(cluster_.node_of(t)) == d; }))
                    used.push_back(d);
            for (const auto a : used)
                for (const auto b : used) {
                    if (a == b) continue;
                    for (std::size_t c = 0; c < gang_.classes.size(); ++c)
                        for (const bool all : {true, false}) {
                            auto mine = here(c, a);
                            if (mine.empty()) break;
                            if (!all) mine.erase(mine.begin() + 1, mine.end());
                            for (std::size_t other = 0; other <= gang_.classes.size(); ++other) {
                                if (other == c) continue;
                                if (--trials < 0 || gang_.out_of_time()) return;
                                if (try_exchange(a, b, c, mine, other, now)) {
                                    better = true;
                                    mine = here(c, a);
                                    if (mine.empty()) break;
                                    if (!all) mine.erase(mine.begin() + 1, mine.end());
                                }
                            }
                        }
                }
        }
    }
    bool try_exchange(std::uint32_t a, std::uint32_t b, std::size_t c, const std::vector<std::uint32_t>& mine,
                      std::size_t other, Cost& now) {
        const auto before = cluster_.checkpoint();
        std::vector<std::uint32_t> theirs;
        if (other < gang_.classes.size()) {
            theirs = here(other, b);
            if (theirs.empty()) return false;
            // As many as weigh the same as the incoming pods.
            const auto in = std::max<std::int64_t>(gang_.weight(gang_.classes[c]), 1) *
                            static_cast<std::int64_t>(mine.size());
            const auto each = std::max<std::int64_t>(gang_.weight(gang_.classes[other]), 1);
            theirs.resize(
                std::min<std::size_t>(theirs.size(), static_cast<std::size_t>((in + each - 1) / each)));
        }
        take_off(mine);
        take_off(theirs);
        if (put_all(b, c, mine) && (theirs.empty() || put_all(a, other, theirs))) {
            if (const auto then = cost(); then < now) {
                now = then;
                return true;
            }
        }
        cluster_.rollback(before);
        return false;
    }

    /// Explains the failure by a class that does not fit alone, or by the first that does not fit next to the
    /// larger ones.
    /// @param certain there is no placement; otherwise the exact search hit its limit
    void fail(Allocation& result, bool certain) {
        if (!gang_.explains) return;
        const auto start = cluster_.checkpoint();
        if (!gang_.was_cut()) say_why(result, certain);
        if (gang_.was_cut()) {  // possibly during the search for the reason
            cluster_.rollback(start);
            result.proven = certain;
            result.obstacle = Obstacle::none;
            result.reason = concat("no place was found for all ", words_of(gang_.inv).task, "s");
        }
        if (!result.proven) gang_.say_unproven(result);
    }
    void say_why(Allocation& result, bool certain) {
        result.proven = certain;
        if (certain && gang_.explain_groups(result)) return;
        const auto start = cluster_.checkpoint();
        for (const bool alone : {true, false}) {
            for (const auto c : by_size_) {
                const auto& pods = gang_.classes[c];
                std::vector<std::vector<std::uint32_t>> want(gang_.classes.size());
                want[c] = pods.pods;
                for (std::uint32_t d = 0; d < nodes_.size(); ++d) fill(d, want);
                if (gang_.out_of_time()) return;
                if (!want[c].empty()) {
                    if (alone) {
                        cluster_.rollback(start);
                        gang_.explain(pods, 0, result);
                        result.proven = certain || !pods.by_trial;
                    } else {
                        gang_.explain(pods, pods.pods.size() - want[c].size(), result);
                        result.reason += concat("; the ", words_of(gang_.inv).task,
                                                "s of the other shapes were placed first");
                    }
                    cluster_.rollback(start);
                    return;
                }
                if (alone) cluster_.rollback(start);
            }
        }
        cluster_.rollback(start);
        GPUSCHED_ASSERT(gang_.required_level);  // otherwise all pods would have been placed
        result.obstacle = gang_.required_by_affinity ? Obstacle::affinity : Obstacle::network;
        result.reason = std::string(gpusched::detail::obstacle_text(gang_.inv, result.obstacle)) +
                        concat(": the whole cluster holds all ", words_of(gang_.inv).task, "s, but no ") +
                        describe_level(cluster_.inventory(), gang_.required_level.value_or(gang_.level)) +
                        (certain ? " does" : " was found that does");
    }

    const Gang& gang_;
    Cluster& cluster_;
    std::vector<std::size_t> by_size_;             // classes, the largest pods first
    std::vector<std::vector<NodeId>> nodes_;       // [domain]
    std::vector<PodCapacity> rooms_;               // [class], alone
    std::vector<std::vector<std::int64_t>> most_;  // [class][domain]: upper bound
    std::vector<std::int64_t> gpus_;               // [domain]: free, in thousandths
    std::vector<std::int32_t> node_room_;
    std::vector<PodShape> shapes_;                 // [class]
    bool grouped_ = false;                         // groups tie pods to each other
    bool needs_others_ = false;                    // near, spread: other pods can open a domain
    std::vector<std::optional<Packed>> whole_;     // [domain]: result of the exact search for the whole gang
    std::int64_t steps_whole_ = packing_steps;     // shared by all searches for one domain
    std::int64_t steps_anywhere_ = packing_steps;  // for the searches in regions
};

void place_mixed(const Gang& gang, Allocation& result) { GroupSearch(gang).run(result); }

}  // namespace gpusched::allocation::detail
