// SPDX-License-Identifier: Apache-2.0
// Gang: reads the options of a gang, counts the pods that domains can hold, fills domains, and finds the
// group constraint that binds.
#include "allocation/gang.hpp"
#include "model/node_match.hpp"
#include "model/pod_room.hpp"

#include <gpusched/allocation/concepts.hpp>
#include <gpusched/allocation/gpu_pickers.hpp>
#include <gpusched/allocation/switch_counts.hpp>
#include <gpusched/core/checks.hpp>
#include <gpusched/core/detail/small_vector.hpp>
#include <gpusched/core/text.hpp>
#include <gpusched/fragmentation/detail/node_groups.hpp>
#include <gpusched/fragmentation/entropy.hpp>

#include <boost/container/flat_map.hpp>
#include <boost/container/flat_set.hpp>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace gpusched::allocation::detail {

Gang::Gang(Cluster& c, std::span<const TaskId> all, const AllocateOptions& o, Budget* b)
    : cluster(c), inv(c.inventory()), pods(all), options(o), budget(b) {
    Problems problems;
    check_fields(problems, options);
    if (pods.empty()) problems.add("pods: none; expected at least one");
    boost::container::flat_set<TaskId> distinct;
    distinct.reserve(pods.size());
    for (const auto pod : pods) {
        if (!cluster.contains(pod)) {
            problems.add(bad_value("pods", "#" + number_text(index(pod)),
                                   "tasks of the cluster's " + number_text(cluster.task_slots())));
            continue;
        }
        const auto named = gpusched::quoted(cluster.name(pod));
        if (!distinct.insert(pod).second) problems.add("pods: " + named + " is listed twice");
        if (cluster.is_placed(pod))
            problems.add(bad_value("pods", named,
                                   "pending tasks; this one runs on node " +
                                       gpusched::quoted(cluster.name(cluster.node_of(pod)))));
    }
    if (!options.groups.empty() && options.groups.size() != pods.size())
        problems.add(
            bad_value("groups", number_text(options.groups.size()) + " entries", number_text(pods.size())));
    for (const auto g : pods.empty() ? std::span<const std::uint32_t>() : std::span(options.groups))
        if (!check_range(problems, "groups", g, 0, static_cast<std::uint32_t>(pods.size()) - 1)) break;
    problems.throw_if_any();
    make_classes();
    const auto& traffic = options.traffic;
    if (!traffic.empty() && traffic.size() != group_count)
        problems.add(bad_value("traffic", number_text(traffic.size()) + " rows",
                               "one per group: " + number_text(group_count)));
    for (std::size_t g = 0; g < traffic.size() && problems.empty(); ++g) {
        if (traffic[g].size() != group_count) {
            problems.add(bad_value("traffic", number_text(traffic[g].size()) + " columns",
                                   "one per group: " + number_text(group_count)));
            break;
        }
        for (std::size_t h = 0; h < group_count; ++h)
            if (!(traffic[g][h] >= 0) || std::isinf(traffic[g][h]))
                problems.add(
                    bad_value("traffic", number_text(traffic[g][h]), "finite numbers of at least 0"));
            else if (h < g && traffic[g][h] != traffic[h][g])
                problems.add(bad_value("traffic", number_text(traffic[g][h]),
                                       number_text(traffic[h][g]) + ", as in the other direction"));
    }
    problems.throw_if_any();
    read_levels();
}

void Gang::make_classes() {
    // Without traffic, groups make no difference.
    const bool grouped = !options.groups.empty() && !options.traffic.empty();
    std::map<std::pair<std::uint32_t, decltype(shape_of(inv, TaskId{}))>, std::size_t> known;
    for (std::size_t p = 0; p < pods.size(); ++p) {
        const std::pair key(grouped ? options.groups[p] : 0, shape_of(inv, pods[p]));
        const auto [at, fresh] = known.try_emplace(key, classes.size());
        if (fresh)
            classes.push_back({pods[p],
                               grouped ? options.groups[p] : static_cast<std::uint32_t>(classes.size()),
                               {},
                               gpusched::detail::needs_trial(cluster, pods[p])});
        classes[at->second].pods.push_back(static_cast<std::uint32_t>(p));
    }
    for (const auto& c : classes) group_count = std::max<std::size_t>(group_count, c.group + 1);
}

void Gang::read_levels() {
    const auto wish_of = [&](const PodClass& c) {
        return inv.task_affinities[inv.tasks.affinities[index(c.sample)]].network_affinity;
    };
    std::optional<NetworkAffinity> own;
    for (const auto& c : classes)
        if (const auto wish = wish_of(c); wish && !own) own = wish;
    level = !options.level && own ? own->level : fragmentation::detail::checked_level(inv, options.level);
    const auto require = [&](Level l, bool affinity) {
        if (!affinity && (!required_network_level || depth_of(*required_network_level) < depth_of(l)))
            required_network_level = l;
        if (required_level && depth_of(*required_level) >= depth_of(l)) return;
        required_level = l;
        required_by_affinity = affinity;
    };
    for (const auto& c : classes) {
        if (const auto wish = wish_of(c); wish && wish->mode == NetworkMode::required)
            require(wish->level, false);
        // If all pods share a group, they share its domain.
        for (const auto& m : inv.affinity_memberships(c.sample)) {
            const auto& set = inv.group_sets[m.set];
            const bool shared = std::all_of(classes.begin(), classes.end(), [&](const PodClass& other) {
                const auto groups = inv.affinity_memberships(other.sample);
                return std::any_of(groups.begin(), groups.end(),
                                   [&](const Membership& o) { return o.set == m.set; });
            });
            if (shared && set.kind != GroupKind::network && set.level < first_label_level)
                require(set.level, true);
            // A requirement of any member of the job binds all its members.
            if (set.kind == GroupKind::network) require(set.level, false);
        }
    }
    if (options.mode == NetworkMode::required) require(level, false);
    for (const auto& wish : options.further) {
        fragmentation::detail::checked_level(inv, wish.level);
        if (wish.mode == NetworkMode::required) {
            require(wish.level, false);
        } else {
            if (depth_of(wish.level) >= depth_of(level))
                throw InvalidInput(bad_value("further", "preferred level " + number_text(wish.level),
                                             "levels above " + number_text(level)));
            preferred.push_back(wish.level);
        }
    }
    count_level = required_level && depth_of(*required_level) > depth_of(level) ? *required_level : level;
    for (auto& c : classes)
        for (const auto& m : inv.affinity_memberships(c.sample))
            c.follows_first =
                c.follows_first || depth_of(inv.group_sets[m.set].level) > depth_of(count_level);
}

std::int64_t Gang::weight(const PodClass& c) const { return cluster.gpu_milli(c.sample); }

std::vector<std::uint32_t> Gang::groups_at(Level above) const {
    std::vector<std::uint32_t> groups(domains(), 0);
    for (const auto node : cluster.nodes())
        groups[domain(node)] = static_cast<std::uint32_t>(index(inv.domain(above, node)));
    return groups;
}

std::vector<std::int64_t> Gang::gpus_per_domain() const {
    std::vector<std::int64_t> milli(domains(), 0);
    const bool borrow = std::any_of(classes.begin(), classes.end(),
                                    [&](const PodClass& c) { return cluster.may_borrow(c.sample); });
    for (const auto node : cluster.nodes())
        if (inv.nodes.receives(node))
            milli[domain(node)] += cluster.gpu_free_total_milli(node, borrow ? Lent::yes : Lent::no);
    return milli;
}

PodCapacity Gang::rooms(const PodClass& c, std::size_t next) const {
    PodCapacity room;
    const auto most = static_cast<std::int64_t>(c.pods.size() - next);
    room.node.resize(cluster.node_slots());
    room.domain.assign(domains(), 0);
    if (!c.by_trial) {
        for (const auto node : cluster.nodes()) {
            if (!closed.empty() && closed[domain(node)]) continue;
            const auto here = gpusched::detail::pod_room(cluster, c.sample, node, most);
            room.node[index(node)] = static_cast<std::int32_t>(here);
            if (here > 0) room.domain[domain(node)] += here;
        }
        return room;
    }
    // Fills domain by domain, in the order that `fill` uses.
    std::vector<std::vector<NodeId>> nodes(domains());
    for (const auto node : cluster.nodes())
        if ((closed.empty() || !closed[domain(node)]) &&
            gpusched::detail::pod_room(cluster, c.sample, node, 1) > 0)
            nodes[domain(node)].push_back(node);
    const auto start = cluster.checkpoint();
    for (std::size_t d = 0; d < nodes.size(); ++d) {
        for (const auto node : nodes[d]) {
            auto& here = room.node[index(node)];
            while (room.domain[d] < most && !out_of_grace()) {
                if (!try_put(pods[c.pods[next + static_cast<std::size_t>(room.domain[d])]], node)) break;
                ++here;
                ++room.domain[d];
            }
        }
        cluster.rollback(start);
    }
    return room;
}

std::int64_t Gang::room_without_groups(const PodClass& c, std::span<const NodeId> nodes) const {
    const auto all = static_cast<std::int64_t>(c.pods.size());
    std::int64_t room = 0;
    for (const auto node : nodes) room += gpusched::detail::pod_room(cluster, c.sample, node, all);
    return room;
}

bool Gang::is_tied(const PodClass& c) const {
    const auto groups = inv.affinity_memberships(c.sample);
    return !inv.anti_affinity_memberships(c.sample).empty() || !inv.selection_memberships(c.sample).empty() ||
           std::any_of(groups.begin(), groups.end(), [&](const Membership& m) {
               return inv.group_sets[m.set].kind != GroupKind::network &&
                      (!required_level || depth_of(*required_level) < depth_of(inv.group_sets[m.set].level));
           });
}

double Gang::bound(std::span<const std::vector<std::int64_t>> most,
                   std::span<const std::int64_t> gpus) const {
    std::vector<std::int64_t> capacity(gpus.size(), 0);
    std::int64_t all = 0;
    for (std::size_t c = 0; c < classes.size(); ++c) {
        const auto each = weight(classes[c]);
        all += each * static_cast<std::int64_t>(classes[c].pods.size());
        for (std::size_t d = 0; d < capacity.size(); ++d) capacity[d] += each * most[c][d];
    }
    for (std::size_t d = 0; d < capacity.size(); ++d) capacity[d] = std::min(capacity[d], gpus[d]);
    const auto counts = all > 0 ? least_entropy(capacity, all) : std::nullopt;
    return counts ? fragmentation::entropy(*counts) : 0;
}

bool Gang::try_put(TaskId pod, NodeId node) const {
    if (find_obstacle(cluster, pod, node) != Obstacle::none) return false;
    cluster.assign(pod, node, pick_gpus(ByWish{}, cluster, pod, node));
    return true;
}

std::int64_t Gang::fill(const PodClass& c, std::size_t next, std::int64_t count,
                        std::span<const NodeId> nodes, std::span<const std::int32_t> room) const {
    auto left = count;
    const auto put = [&](NodeId node, std::int64_t n) {
        for (; n > 0 && left > 0; --n, --left)
            if ((left % 16 == 0 && out_of_grace()) ||
                !try_put(pods[c.pods[next + static_cast<std::size_t>(count - left)]], node))
                return false;
        return true;
    };
    if (c.by_trial) {  // as counted: one node after another
        for (const auto node : nodes) put(node, left);
        return count - left;
    }
    // Nodes that hold most come first; among equal ones, the node with the fewest idle GPUs.
    struct Candidate {
        std::int32_t room = 0;
        int idle = 0;
        NodeId node = none<NodeId>;
    };
    boost::container::small_vector<Candidate, 16> by_room;
    for (const auto node : nodes)
        if (room[index(node)] > 0)
            by_room.push_back({room[index(node)], gpusched::gpu_count(cluster.idle_gpus(node)), node});
    std::sort(by_room.begin(), by_room.end(), [](const Candidate& a, const Candidate& b) {
        return std::tuple(-a.room, a.idle, a.node) < std::tuple(-b.room, b.idle, b.node);
    });
    for (std::size_t i = 0; i < by_room.size() && left > 0;) {
        if (by_room[i].room <= left) {
            put(by_room[i].node, by_room[i].room);
            ++i;
            continue;
        }
        auto last = std::upper_bound(by_room.begin() + static_cast<std::ptrdiff_t>(i), by_room.end(), left,
                                     [](std::int64_t n, const Candidate& x) { return n > x.room; });
        const auto tight = std::prev(last)->room;  // the first of the tightest nodes that hold the rest
        const auto at = std::find_if(by_room.begin() + static_cast<std::ptrdiff_t>(i), last,
                                     [&](const Candidate& x) { return x.room == tight; });
        put(at->node, left);
        break;
    }
    return count - left;
}

std::vector<PodShape> Gang::shapes() const {
    std::vector<PodShape> shapes;
    for (const auto& c : classes) {
        auto& shape = shapes.emplace_back();
        for (const auto p : c.pods) shape.pods.push_back(pods[p]);
        shape.level = inv.task_affinities[inv.tasks.affinities[index(c.sample)]].guaranteed_level();
    }
    return shapes;
}

std::vector<Placement> Gang::placements() const {
    std::vector<Placement> all;
    all.reserve(pods.size());
    for (const auto pod : pods) all.push_back({pod, cluster.node_of(pod), cluster.gpus_of(pod)});
    return all;
}

std::vector<DomainShare> Gang::shares_at(Level l) const {
    boost::container::flat_map<DomainId, DomainShare> shares;
    for (const auto pod : pods) {
        const auto d = inv.domain(l, cluster.node_of(pod));
        auto& share = shares[d];
        share.domain = d;
        ++share.pods;
        share.gpu_milli += cluster.gpu_milli(pod);
    }
    std::vector<DomainShare> all;
    for (const auto& [d, share] : shares) all.push_back(share);
    return all;
}

static double entropy_of(std::span<const DomainShare> shares) {
    const bool any_gpu =
        std::any_of(shares.begin(), shares.end(), [](const DomainShare& s) { return s.gpu_milli > 0; });
    std::vector<std::int64_t> parts;
    for (const auto& share : shares) parts.push_back(any_gpu ? share.gpu_milli : share.pods);
    return fragmentation::entropy(parts);
}

double Gang::entropy_at(Level l) const { return entropy_of(shares_at(l)); }

void Gang::describe(Allocation& result) const {
    result.placed = true;
    result.pods = placements();
    result.per_domain = shares_at(level);
    result.entropy = entropy_of(result.per_domain);
    result.cross_traffic = 0;
    if (options.traffic.empty()) return;
    std::vector<boost::container::flat_map<DomainId, double>> part(group_count);  // pods by group
    std::vector<double> size(group_count, 0);
    for (const auto& c : classes) {
        size[c.group] += static_cast<double>(c.pods.size());
        for (const auto p : c.pods) part[c.group][inv.domain(level, cluster.node_of(pods[p]))] += 1;
    }
    for (std::size_t g = 0; g < group_count; ++g)
        for (std::size_t h = 0; h <= g; ++h) {
            if (options.traffic[g][h] == 0 || size[g] == 0 || size[h] == 0) continue;
            double crossing = 0;  // pairs of pods in different domains
            for (const auto& [d, n] : part[g]) {
                const auto same = part[h].find(d);
                crossing += n * (size[h] - (same == part[h].end() ? 0 : same->second));
            }
            // Within a group, a pod is not paired with itself.
            const double pairs = g == h ? size[g] * (size[g] - 1) : size[g] * size[h];
            if (pairs > 0) result.cross_traffic += options.traffic[g][h] * crossing / pairs;
        }
}

Packed Gang::packs(Obstacle ignored, std::int64_t steps) const {
    bool limits = false, together = false, selection = false;  // ties between the pods
    for (const auto& c : classes) {
        limits = limits || !inv.anti_affinity_memberships(c.sample).empty();
        selection = selection || !inv.selection_memberships(c.sample).empty();
        for (const auto& m : inv.affinity_memberships(c.sample))
            together = together || inv.group_sets[m.set].kind != GroupKind::network;
    }
    std::map<DomainId, std::vector<NodeId>> parts;
    for (const auto node : cluster.nodes())
        if (inv.nodes.receives(node) && (closed.empty() || !closed[domain(node)]))
            parts[ignored == Obstacle::network || !required_network_level
                      ? none<DomainId>
                      : inv.domain(*required_network_level, node)]
                .push_back(node);
    const bool tied = selection || (limits && ignored != Obstacle::anti_affinity) ||
                      (together && ignored != Obstacle::affinity);
    const auto all = shapes();
    std::vector<Placement> packed;
    auto result = Packed::no;
    for (const auto& part : parts) {
        const auto found = pack(cluster, all, part.second, tied, steps, packed, budget, ignored);
        if (found == Packed::yes) return found;
        if (found == Packed::unknown) result = found;
    }
    return result;
}

bool Gang::fits_without(Obstacle kind) const {
    const bool binds = std::any_of(classes.begin(), classes.end(), [&](const PodClass& c) {
        const auto together = inv.affinity_memberships(c.sample);
        const auto selects = [&](GroupKind group_kind) {
            const auto selected = inv.selection_memberships(c.sample);
            return std::any_of(selected.begin(), selected.end(),
                               [&](const auto& m) { return inv.group_sets[m.set].kind == group_kind; });
        };
        return kind == Obstacle::network ? required_network_level.has_value()
               : kind == Obstacle::affinity
                   ? std::any_of(together.begin(), together.end(),
                                 [&](const Membership& m) {
                                     return inv.group_sets[m.set].kind != GroupKind::network;
                                 })
               : kind == Obstacle::avoid  ? selects(GroupKind::avoid)
               : kind == Obstacle::near   ? selects(GroupKind::near)
               : kind == Obstacle::spread ? selects(GroupKind::spread)
                                          : !inv.anti_affinity_memberships(c.sample).empty();
    });
    return binds && packs(kind, packing_steps / 4) == Packed::yes;
}

Obstacle Gang::binding_groups() const {
    // If a shape alone does not fit, groups are not the cause.
    const std::vector<NodeId> nodes(cluster.nodes().begin(), cluster.nodes().end());
    for (const auto& c : classes)
        if (room_without_groups(c, nodes) < static_cast<std::int64_t>(c.pods.size())) return Obstacle::none;
    for (const auto kind : {Obstacle::network, Obstacle::anti_affinity, Obstacle::affinity, Obstacle::avoid,
                            Obstacle::near, Obstacle::spread})
        if (fits_without(kind)) return kind;
    return Obstacle::none;
}

bool Gang::explain_groups(Allocation& result) const {
    const auto kind = binding_groups();
    if (kind == Obstacle::none) return false;
    result.obstacle = kind;
    result.reason = concat(gpusched::detail::obstacle_text(inv, kind), ": ");
    const auto tasks = concat(words_of(inv).task, "s");
    if (kind == Obstacle::network)
        result.reason += "the whole cluster holds all " + tasks + ", but no " +
                         describe_level(inv, required_network_level.value_or(level)) + " does";
    else if (kind == Obstacle::affinity)
        result.reason +=
            "no domain holds all " + tasks + " with a common affinity; they fit without that constraint";
    else if (kind == Obstacle::near)
        result.reason +=
            "the required neighbours are too far away; the " + tasks + " fit without that constraint";
    else
        result.reason +=
            "group constraints keep the " + tasks + " too far apart; they fit without that constraint";
    return true;
}

}  // namespace gpusched::allocation::detail
