// SPDX-License-Identifier: Apache-2.0
// why(): tables of refusals, and the pods that find a place as it is.
#include "admission/inquiry.hpp"
#include "model/node_match.hpp"

#include <gpusched/allocation/allocate.hpp>
#include <gpusched/allocation/gpu_pickers.hpp>
#include <gpusched/config.hpp>
#include <gpusched/core/checks.hpp>
#include <gpusched/core/order.hpp>

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

namespace gpusched::admission::detail {

std::string thousands(std::int64_t number) {
    auto text = std::to_string(number);
    for (auto at = static_cast<std::ptrdiff_t>(text.size()) - 3; at > 0; at -= 3)
        text.insert(static_cast<std::size_t>(at), ",");
    return text;
}
std::string counted(std::int64_t number, const std::string& noun) {
    return thousands(number) + " " + noun + (number == 1 ? "" : "s");
}
std::string gpus_text(std::int64_t milli) {
    return milli % whole_gpu_milli == 0 ? thousands(milli / whole_gpu_milli)
                                        : number_text(static_cast<double>(milli) / whole_gpu_milli);
}
static std::string and_more(std::size_t shown, std::size_t all) {
    return all > shown ? " and " + thousands(static_cast<std::int64_t>(all - shown)) + " more" : "";
}
std::string listed(const std::vector<std::string>& names) {
    constexpr std::size_t most = 4;
    std::string text;
    for (std::size_t i = 0; i < std::min(most, names.size()); ++i) text += (i == 0 ? "" : ", ") + names[i];
    return text + and_more(most, names.size());
}

static std::vector<WhyRow> table_of(const Tally& tally, const Cluster& cluster) {
    std::vector<WhyRow> out;
    for (std::size_t row = 0; row < tally.rows.size(); ++row) {
        const auto& count = tally.rows[row];
        if (count.any == 0) continue;
        out.push_back({tally.refusals.name(row), count.first, count.alone, std::nullopt});
        if (count.best != none<NodeId>) out.back().best_node = cluster.name(count.best);
    }
    return out;
}

std::vector<TaskId> place_some(Cluster& work, std::span<const Kind> kinds, std::vector<NodeId> nodes) {
    std::stable_sort(nodes.begin(), nodes.end(), [&](NodeId a, NodeId b) {
        return gpu_count(work.idle_gpus(a)) < gpu_count(work.idle_gpus(b));
    });
    std::vector<TaskId> left;
    for (const auto& kind : kinds) {
        std::size_t next = 0;
        // A pod can open a node for the next one: near and spread.
        const bool opens = !work.inventory().selection_memberships(kind.sample()).empty();
        for (bool again = true; again && next < kind.pods.size();) {
            const auto before = next;
            for (const auto node : nodes)
                while (next < kind.pods.size() &&
                       find_obstacle(work, kind.pods[next], node) == Obstacle::none) {
                    const auto pod = kind.pods[next++];
                    work.assign(pod, node, allocation::pick_gpus(allocation::ByWish{}, work, pod, node));
                    if (opens) break;
                }
            again = opens && next > before;
        }
        left.insert(left.end(), kind.pods.begin() + static_cast<std::ptrdiff_t>(next), kind.pods.end());
    }
    return left;
}

Inquiry::Inquiry(const Cluster& cluster, const WhyOptions& options, const Context& context)
    : cluster_(cluster), inv_(cluster.inventory()), options_(options), context_(context),
      budget_(context, options.time_limit) {
    if (options.on)
        nodes_.push_back(*options.on);
    else
        nodes_.assign(cluster.nodes().begin(), cluster.nodes().end());
    std::stable_sort(nodes_.begin(), nodes_.end(),
                     [&](NodeId a, NodeId b) { return comes_before(cluster.name(a), cluster.name(b)); });
}

Why Inquiry::answer(std::string_view name) {
    find_pods(name);
    if (!why_.pods.empty()) ask_as_it_is();
    if (why_.waiting_for) {
        why_.cause_kind = Cause::waiting;
    } else if (!why_.fits) {
        why_.impossible = is_impossible();
        if (!why_.impossible.value_or(false)) ask_to_uncordon();  // the cause depends on it
        if (!(why_.impossible.value_or(false) ? say_impossible() : say_topology())) say_constraint();
        if (!why_.impossible.value_or(false)) ask_others();
        ask_for_nodes();
        std::stable_sort(why_.remedies.begin(), why_.remedies.end(), [](const Remedy& a, const Remedy& b) {
            return std::tuple(!a.cost, a.cost, a.kind) < std::tuple(!b.cost, b.cost, b.kind);
        });
    }
    if (one_of_ > 0)
        why_.cause = concat("for one of its ", one_of_, " ", task_, "s, ",
                            gpusched::quoted(cluster_.name(why_.pods.front())), ": ", why_.cause);
    if (const auto note = find_note(inv_, why_.pods); !note.empty()) why_.cause += "; " + note;
    why_.stop_reason = budget_.reason();
    return std::move(why_);
}

/// The end of a message about an unknown name: the names with another namespace in front, or similar ones.
static std::string similar_names(const Inventory& inv, std::string_view name) {
    std::vector<std::string> found;
    const auto add = [&](const auto& names) {
        for (std::size_t i = 0; i < names.size(); ++i)
            if (std::string_view known = names[i];
                known.ends_with(name) && known.substr(0, known.size() - name.size()).ends_with('/'))
                found.emplace_back(known);
    };
    add(inv.job_names);
    if (found.empty()) add(inv.tasks.names);
    constexpr std::size_t most = 4;
    if (!name.empty() && !found.empty() && found.size() <= most)
        return "; did you mean " + either_of(found) + "?";
    return did_you_mean(name, inv.job_names);
}

void Inquiry::find_pods(std::string_view name) {
    const auto job = inv_.job_names.find(name);
    const auto task = inv_.tasks.names.find(name);
    if (name.empty() || (!job && !task))
        throw InvalidInput(bad_value("name", gpusched::quoted(name), "a job or a task of the cluster") +
                           similar_names(inv_, name));
    why_.pods = allocation::pending_pods(cluster_, name);
    auto reason = find_waiting(cluster_, why_.pods);
    if (why_.pods.empty()) {
        if (!job) {
            const auto id = make_id<TaskId>(*task);
            return say_bound({&id, 1});
        }
        const auto found = inv_.job_waiting.find(make_id<JobId>(*job));
        if (found == inv_.job_waiting.end()) {
            std::vector<TaskId> bound;
            for (const auto one : cluster_.tasks())
                if (inv_.tasks.job[index(one)] == make_id<JobId>(*job)) bound.push_back(one);
            if (bound.empty())
                throw InvalidInput(bad_value("name", gpusched::quoted(name), "a job with tasks"));
            return say_bound(bound);
        }
        reason = found->second;
    }
    if (!reason) return;
    why_.waiting_for = reason->waits_for;
    const bool of_job = job && inv_.job_waiting.contains(make_id<JobId>(*job));
    const auto waiting = of_job ? 0 : std::count_if(why_.pods.begin(), why_.pods.end(), [&](TaskId pod) {
        return inv_.waiting.contains(pod);
    });
    const auto of = static_cast<std::int64_t>(why_.pods.size());
    why_.cause = waiting == 0 || waiting == of
                     ? "it does not wait for room: "
                     : thousands(waiting) + " of " + counted(of, task_) +
                           (waiting == 1 ? " does not wait for room, and the gang needs it: "
                                         : " do not wait for room, and the gang needs them: ");
    why_.cause += describe_waiting(*reason);
}

void Inquiry::say_bound(std::span<const TaskId> tasks) {
    std::vector<std::string> nodes, not_ready;
    for (const auto task : tasks) {
        const auto node = cluster_.node_of(task);
        auto& names =
            gpusched::detail::is_not_ready(inv_.node_classes[inv_.nodes.node_class[index(node)]].taints)
                ? not_ready
                : nodes;
        if (std::find(names.begin(), names.end(), cluster_.name(node)) == names.end())
            names.push_back(cluster_.name(node));
    }
    const auto leaving = std::count_if(tasks.begin(), tasks.end(),
                                       [&](TaskId task) { return inv_.terminating.contains(task); });
    std::string text;
    if (leaving > 0)
        text = tasks.size() == 1 ? std::string("it is being deleted")
                                 : thousands(leaving) + " of " + thousands(std::ssize(tasks)) + " " +
                                       (leaving == 1 ? "is" : "are") + " being deleted";
    if (!not_ready.empty())
        text += (text.empty() ? "it is bound to " : "; it is bound to ") + listed(not_ready) + ", which " +
                (not_ready.size() == 1 ? "is not ready" : "are not ready");
    if (!nodes.empty()) text += (text.empty() ? "it runs on " : "; it runs on ") + listed(nodes);
    why_.cause = "it does not wait for room: " + text;
    why_.waiting_for = WaitingFor::other;
}

void Inquiry::make_kinds() {
    kinds_.clear();
    std::map<decltype(allocation::detail::shape_of(inv_, TaskId{})), std::size_t> known;
    for (const auto pod : why_.pods) {
        const auto [at, fresh] = known.try_emplace(allocation::detail::shape_of(inv_, pod), kinds_.size());
        if (fresh) kinds_.emplace_back();
        kinds_[at->second].pods.push_back(pod);
    }
    std::stable_sort(kinds_.begin(), kinds_.end(), [&](const Kind& a, const Kind& b) {
        const auto size = [&](const Kind& kind) {
            return std::pair(cluster_.gpu_milli(kind.sample()), inv_.tasks.cpu_milli[index(kind.sample())]);
        };
        return size(a) > size(b);
    });
    kind_of_.clear();
    for (std::size_t kind = 0; kind < kinds_.size(); ++kind)
        for (const auto pod : kinds_[kind].pods) kind_of_[pod] = kind;
}

std::vector<TaskId> Inquiry::gang_of(TaskId pod) const {
    const auto job = inv_.tasks.job[index(pod)];
    if (job == none<JobId>) return {};
    const auto needed = inv_.job_min_members[index(job)];
    std::vector<TaskId> pending;
    if (needed > 0 ? running_members(job) + 1 >= needed : !why_.fits) return pending;
    for (const auto task : cluster_.tasks())
        if (inv_.tasks.job[index(task)] == job && !cluster_.is_placed(task) && !inv_.waiting.contains(task))
            pending.push_back(task);
    return pending;
}

std::string Inquiry::enough_to_start() const {
    const auto job = inv_.tasks.job[index(why_.pods.front())];
    const auto needed = job == none<JobId> ? 0 : inv_.job_min_members[index(job)];
    return needed > 1 && why_.places + running_members(job) >= needed ? ", enough for the gang to start" : "";
}

std::int64_t Inquiry::running_members(JobId job) const {
    const auto tasks = cluster_.tasks();
    return std::count_if(tasks.begin(), tasks.end(), [&](TaskId task) {
        return inv_.tasks.job[index(task)] == job && cluster_.is_placed(task);
    });
}

void Inquiry::ask_as_it_is() {
    make_kinds();
    if (options_.on && why_.pods.size() > 1 && !why_.waiting_for) {  // one node need not hold all of them
        one_of_ = std::ssize(why_.pods);
        why_.pods = {kinds_.front().sample()};
        make_kinds();
    }
    why_.fits = fits(cluster_, why_.pods);
    if (why_.pods.size() == 1 && !why_.waiting_for && !options_.on)
        if (auto gang = gang_of(why_.pods.front()); gang.size() > 1) {
            why_.pods = std::move(gang);
            make_kinds();
            why_.fits = fits(cluster_, why_.pods);
        }
    Cluster work(cluster_);
    work.commit();
    for (const auto& kind : kinds_) {
        const Tally tally(cluster_, kind.sample(), nodes_, options_.order);
        WhyKind out{.pod = cluster_.name(kind.sample()),
                    .pods = static_cast<std::int64_t>(kind.pods.size()),
                    .places = 0,
                    .nodes_fit = tally.fit,
                    .table = table_of(tally, cluster_)};
        out.places = out.pods - static_cast<std::int64_t>(place_some(work, {&kind, 1}, nodes_).size());
        work.rollback(0);
        why_.kinds.push_back(std::move(out));
    }
    const auto all = static_cast<std::int64_t>(why_.pods.size());
    unplaced_ = place_best(work);
    // `allocate` can miss placements of pods in groups.
    why_.fits = why_.fits || (unplaced_.empty() && !why_.waiting_for);
    why_.places = why_.fits ? all : all - static_cast<std::int64_t>(unplaced_.size());
    if (kinds_.size() == 1) why_.kinds.front().places = why_.places;  // in the best domain
    work_ = std::move(work);
    if (why_.waiting_for || !why_.fits) return;
    const auto nodes = why_.kinds.front().nodes_fit;
    why_.cause = all > 1       ? "all " + thousands(all) + " " + task_ + "s find a place as it is"
                 : options_.on ? "it fits on this node as it is"
                               : "it fits as it is, on " + counted(nodes, "node");
    // One node says nothing about the others of a gang.
    if (one_of_ == 0 && !(options_.on && gang_of(why_.pods.front()).size() > 1))
        why_.cause += std::string("; the scheduler should place ") + (all > 1 ? "them" : "it");
}

bool Inquiry::fits(const Cluster& cluster, std::span<const TaskId> pods) {
    if (options_.on) {
        Cluster copy(cluster);
        copy.commit();
        return place_some(copy, kinds_, nodes_).empty();
    }
    return !placement(cluster, pods).empty();
}

std::vector<Placement> Inquiry::placement(const Cluster& cluster, std::span<const TaskId> pods) {
    Cluster copy(cluster);
    copy.commit();
    auto found = Gang(copy, pods, as_it_is_, &budget_).place();
    if (!found.placed && reason_.empty()) reason_ = found.reason;
    return found.pods;
}

std::optional<Level> Inquiry::near_level(const Cluster& cluster) const {
    for (const auto& m : inv_.selection_memberships(kinds_.front().sample())) {
        const auto& set = inv_.group_sets[m.set];
        if (set.kind != GroupKind::near || set.level == node_level || cluster.group_domains(m.set) > 0)
            continue;
        const bool all = std::all_of(kinds_.begin(), kinds_.end(), [&](const Kind& kind) {
            const auto own = inv_.selection_memberships(kind.sample());
            return std::any_of(own.begin(), own.end(), [&](const Membership& of) {
                return of.set == m.set && of.is_member() && of.is_bound();
            });
        });
        if (all) return set.level;
    }
    return std::nullopt;
}

std::vector<TaskId> Inquiry::place_best(Cluster& work) {
    std::map<DomainId, std::vector<NodeId>> domains;
    if (!options_.on && why_.pods.size() > 1) {
        level_ = Gang(work, why_.pods, as_it_is_, nullptr).required_level;
        if (!level_) level_ = near_level(cluster_);
        if (level_)
            for (const auto node : nodes_)
                if (const auto domain = inv_.domain_at(*level_, node); domain != none<DomainId>)
                    domains[domain].push_back(node);
    }
    if (domains.empty()) {
        level_.reset();
        best_nodes_ = nodes_;
        return place_some(work, kinds_, nodes_);
    }
    const auto all = static_cast<std::int64_t>(why_.pods.size());
    std::int64_t most = -1;
    for (const auto& [domain, nodes] : domains) {
        const auto places = all - static_cast<std::int64_t>(place_some(work, kinds_, nodes).size());
        work.rollback(0);
        why_.domains.push_back({*level_ < first_label_level
                                    ? inv_.domain_name(*level_, domain)
                                    : inv_.label_levels[static_cast<std::size_t>(*level_ - first_label_level)]
                                          .values[index(domain)],
                                places});
        if (places <= most) continue;
        most = places;
        best_nodes_ = nodes;
    }
    std::stable_sort(why_.domains.begin(), why_.domains.end(),
                     [](const WhyDomain& a, const WhyDomain& b) { return a.places > b.places; });
    return place_some(work, kinds_, best_nodes_);
}

}  // namespace gpusched::admission::detail

namespace gpusched::admission {

GPUSCHED_EXPORT Why why(const Cluster& cluster, std::string_view name, const WhyOptions& options,
                        const Context& context) {
    Problems problems;
    check_fields(problems, options);
    if (options.on && !cluster.contains(*options.on))
        problems.add(bad_value("on", "#" + number_text(index(*options.on)),
                               "nodes of the cluster's " + number_text(cluster.node_slots())));
    problems.throw_if_any();
    return detail::Inquiry(cluster, options, context).answer(name);
}

}  // namespace gpusched::admission
