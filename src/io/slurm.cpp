// SPDX-License-Identifier: Apache-2.0
// Reads clusters from the output of Slurm's scontrol.
#include "io/documents.hpp"
#include "io/slurm/cards.hpp"
#include "io/slurm/demand.hpp"
#include "io/slurm/eligibility.hpp"
#include "io/slurm/json.hpp"
#include "io/slurm/text.hpp"
#include "io/slurm/values.hpp"
#include "model/node_match.hpp"

#include <gpusched/config.hpp>
#include <gpusched/core/errors.hpp>
#include <gpusched/core/file.hpp>
#include <gpusched/core/text.hpp>
#include <gpusched/io/network_files.hpp>
#include <gpusched/io/slurm.hpp>

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

namespace gpusched::io::detail::slurm {

/// Turns records into a snapshot, part by part.
class Reader {
  public:
    /// @param text_size  of all texts together
    Reader(const Records& records, const SlurmReadOptions& options, std::size_t text_size,
           ReportBuilder& report)
        : records_(records), options_(options), report_(report), left_(text_size) {}

    /// @throws InvalidInput if there is no node
    ClusterSpec read(const std::string& source) {
        if (!records_.any_jobs)
            report_.absent("Job", "allocations and pending jobs: only the sums that nodes report");
        if (!records_.any_partitions)
            report_.absent("Partition", "tiers of priority, preemptible jobs, and partitions without a job");
        read_partitions(source);
        read_nodes(source);
        Cards cards(names(), gres_, report_);
        for (std::size_t n = 0; n < nodes_.size(); ++n) {
            cards.drain(n, cluster_.nodes[n].name, drained_[n]);
            cards.fill(n, gres_[n], cluster_.nodes[n]);
        }
        Eligibility eligibility(cluster_.nodes, left_, report_);
        HeldResources held(cluster_.nodes, report_);
        for (const auto& job : records_.jobs) {
            left_.place = source + ": job " + job.id + ": ";
            try {
                read_job(job, cards, eligibility);
            } catch (const Unreadable& bad) {
                report_.left_out("Job", "objects", "cannot be read", bad.why, Errs::too_lax);
            }
        }
        hold_gpus(cards);
        for (std::size_t i = 0; i < cluster_.tasks.size(); ++i)
            if (home_[i]) held.hold(*home_[i], cluster_.tasks[i]);
        hold_the_rest(cards, held);
        held.fit();
        isolate_exclusive_jobs();
        count_members();
        cluster_.now = records_.now.value_or(latest_);
        return std::move(cluster_);
    }

  private:
    void read_partitions(const std::string& source) {
        std::set<std::int64_t> tiers;
        bool some_on = false, some_off = false;
        for (const auto& node : records_.nodes) partitions_of_[node.name];
        for (const auto& partition : records_.partitions) {
            if (!is_name(partition.name)) {
                report_.left_out("Partition", "objects", "has no name", "", Errs::too_lax);
                continue;
            }
            if (!partitions_.emplace(partition.name, &partition).second) {
                report_.left_out("Partition", "objects", "the same partition occurs again", partition.name);
                continue;
            }
            tiers.insert(partition.tier);
            const bool off = is_off(partition);
            some_off = some_off || off;
            some_on = some_on || (partition.preempt_mode && !off);
            if (!partition.state.empty() && !contains(partition.state, "UP"))
                report_.ignored("Partition", "state", Errs::too_lax,
                                "is not up: its pending jobs count as startable", partition.name);
            left_.place = source + ": partition " + partition.name + ": ";
            if (auto names = host_list(partition.nodes, left_))
                for (const auto& name : *names) {
                    const auto found = partitions_of_.find(name);
                    if (found == partitions_of_.end()) continue;
                    left_.take(100 + bytes_of(partition.name));
                    found->second.push_back(partition.name);
                }
            else if (!value_of(partition.nodes).empty())
                report_.ignored(
                    "Partition", "nodes", Errs::either,
                    "not a list of nodes such as gpu[01-04]: the partitions in node records count",
                    partition.name);
            if (!partition.limits.empty())
                report_.ignored("Partition", "limits", Errs::too_lax, "jobs beyond them count as startable",
                                partition.name + ": " + joined(partition.limits, ", "));
            if (!partition.job_defaults.empty())
                report_.ignored("Partition", "JobDefaults", Errs::too_lax,
                                "jobs without requests per GPU request less than they get",
                                partition.name + ": " + partition.job_defaults);
            report_.exact("Partition", "nodes and tier");
        }
        protects_ = some_on && some_off;
        std::int64_t rank = 0;
        for (const auto tier : tiers) rank_[tier] = std::min<std::int64_t>(rank++, 200);
        if (tiers.size() > 1)
            report_.approximated(
                "Partition", "PriorityTier", Errs::too_lax,
                "2^32 for each tier above the lowest is added to the priority of jobs; Slurm does not "
                "preempt within a tier",
                "");
    }
    static bool is_off(const PartitionRecord& partition) {
        return partition.preempt_mode &&
               (partition.preempt_mode->empty() || contains(*partition.preempt_mode, "OFF") ||
                contains(*partition.preempt_mode, "DISABLED"));
    }

    void read_nodes(const std::string& source) {
        for (const auto& node : records_.nodes) {
            if (!is_name(node.name)) {
                report_.left_out("Node", "objects", "has no name", "", Errs::too_strict);
            } else if (contains(node.state, "FUTURE")) {
                report_.left_out("Node", "FUTURE", "does not exist yet", node.name);
            } else if (!index_.emplace(node.name, nodes_.size()).second) {
                report_.left_out("Node", "objects", "another node has its name; the first is kept", node.name,
                                 Errs::either);
            } else {
                nodes_.push_back(node);
                left_.place = source + ": node " + node.name + ": ";
                read_node(nodes_.back());
            }
        }
        if (!nodes_.empty()) return;
        const auto why = report_.why_left_out("Node");
        std::string found = "none";
        if (!why.empty() || !records_.nodes.empty())
            found += " that can be read" + (why.empty() ? "" : ": " + why);
        if (records_.nodes.empty() && !records_.jobs.empty())
            found += concat(", but ", records_.jobs.size(), records_.jobs.size() == 1 ? " job" : " jobs");
        throw InvalidInput(source + ": expected at least one node (scontrol show nodes), found " + found);
    }

    void read_node(NodeRecord& node) {
        for (const auto& name : partitions_of_[node.name]) add_once(node.partitions, name);
        NodeSpec out{.name = node.name};
        const auto cpus =
            std::min(node.effective_cpus.value_or(node.cpus.value_or(0)), most_of_a_node / 1000);
        out.cpu_milli = 1000 * cpus;
        out.memory_mib = std::clamp<std::int64_t>(
            node.memory_mib.value_or(0) - node.specialized_mib.value_or(0), 0, most_of_a_node);
        if (!node.cpus && !node.effective_cpus)
            report_.approximated("Node", "CPUs", Errs::too_strict, "unknown: none", node.name);
        gres_.push_back(gres_or_report(node.gres, "Gres", node));
        drained_.push_back(gres_or_report(node.gres_drained, "GresDrain", node));
        used_.push_back(gres_or_report(node.gres_used, "GresUsed", node));
        label_node(node, out);
        read_state(node, out);
        left_.take(bytes_of(out.labels) + bytes_of(node.partitions));
        cluster_.nodes.push_back(std::move(out));
        report_.exact("Node", "CPUs and memory");
    }
    std::vector<Gres> gres_or_report(const std::string& text, const char* what, const NodeRecord& node) {
        if (auto found = gres_of(text)) return *std::move(found);
        report_.ignored("Node", what, Errs::too_strict, "not a list of generic resources such as gpu:h100:8",
                        node.name + ": " + text);
        return {};
    }

    void read_state(const NodeRecord& node, NodeSpec& out) {
        const auto& state = node.state;
        std::string why;
        for (const char* const bad :
             {"DOWN", "DRAIN", "FAIL", "FAILING", "ERROR", "UNKNOWN", "NOT_RESPONDING", "INVALID",
              "INVALID_REG", "REBOOT_REQUESTED", "REBOOT_ISSUED", "POWERING_DOWN", "POWER_DOWN",
              "POWER_DRAIN", "BLOCKED"})
            if (contains(state, bad)) why += (why.empty() ? "" : "+") + std::string(bad);
        if (state.empty()) {
            report_.approximated("Node", "state", Errs::too_lax, "unknown: receives tasks", node.name);
        } else if (!why.empty()) {
            out.schedulable = false;
            if (why != "DRAIN") out.taints.push_back(not_ready());
            report_.exact("Node", "state " + why);
        } else if (has_any(state, "RESERVED", "MAINTENANCE") && out.taints.empty()) {
            out.schedulable = false;
            out.taints.push_back(not_ready());
            report_.approximated("Node", "reserved", Errs::too_strict,
                                 "the jobs of the reservation are unknown: it receives no task", node.name);
        } else {
            report_.exact("Node", out.taints.empty() ? "receives tasks" : "reserved");
        }
        if (why.empty() && has_any(state, "POWERED_DOWN", "POWERING_UP"))
            report_.approximated("Node", "powered down", Errs::neither,
                                 "counts as running: Slurm starts it for a job", node.name);
        if (contains(state, "PLANNED"))
            report_.ignored("Node", "planned", Errs::too_lax,
                            "the resources that Slurm reserves there for a pending job count as free",
                            node.name);
        if (node.reason.empty()) return;
        if (out.schedulable)
            return report_.ignored("Node", "reason", Errs::neither, "the node receives tasks all the same",
                                   node.name + ": " + node.reason);
        auto text = node.reason;
        // scontrol appends the user and the time, but not in JSON.
        const auto at = text.find('@'), author = text.rfind(" [", at);
        if (author != text.npos && text.find(']', author) > at) text.resize(author);
        out.labels.emplace(gpusched::detail::slurm_reason, printable(text, 200));
        report_.exact_of("Node", "reason", node.name + ": " + node.reason);
    }

    [[nodiscard]] std::vector<std::string> names() const {
        std::vector<std::string> out;
        for (const auto& node : nodes_) out.push_back(node.name);
        return out;
    }

    void read_job(const JobRecord& job, const Cards& cards, Eligibility& eligibility) {
        if (!seen_.insert(job.id + " " + job.array_tasks).second)
            return report_.left_out("Job", "objects", "the same job occurs again", job.id);
        const auto& state = job.state;
        const bool ending = contains(state, "COMPLETING"), suspended = contains(state, "SUSPENDED");
        const bool runs = has_any(state, "RUNNING", "CONFIGURING", "STAGE_OUT", "RESIZING", "SIGNALING",
                                  "STOPPED", "EXPEDITING") ||
                          ending || suspended;
        if (!runs && !has_any(state, "PENDING", "REQUEUED", "REQUEUE_FED", "REQUEUE_HOLD", "SPECIAL_EXIT")) {
            if (state.empty()) throw Unreadable{job.id + ": its state is unknown"};
            return report_.left_out("Job", "ended", "holds nothing any more", job.id + ": " + state.front());
        }
        for (const auto time : {job.submitted, runs ? job.started : std::nullopt})
            latest_ = std::max(latest_, time.value_or(0));
        for (const auto& request : job.unread)
            report_.ignored(
                "Job", "request " + request.substr(0, request.find('=')), Errs::too_lax,
                "not in the snapshot: its tasks may be placed on nodes that Slurm would not choose",
                job.id + ": " + request);
        if (!job.licenses.empty())
            report_.ignored("Job", "licenses", Errs::too_lax, "the snapshot does not count them",
                            job.id + ": " + job.licenses);
        if (runs)
            read_running(job, ending, suspended, cards, eligibility);
        else
            read_pending(job, cards, eligibility);
    }

    void read_running(const JobRecord& job, bool ending, bool suspended, const Cards& cards,
                      Eligibility& eligibility) {
        auto hosts = host_list(job.nodes, left_);
        constexpr std::size_t bytes_of_indices = 120;  // by name, here and in running_shares
        if (hosts) left_.take(hosts->size() * (sizeof(Share) + bytes_of_indices));
        std::unordered_set<std::string> known;
        if (hosts) std::erase_if(*hosts, [&](const std::string& name) { return !known.insert(name).second; });
        if (!hosts)
            throw Unreadable{job.id + ": expected its nodes such as gpu[01-04], found " +
                             (job.nodes.empty() ? "none" : in_quotes(job.nodes))};
        const auto shares = running_shares(job, *hosts, left_, report_);
        const auto rules = eligibility.of_job(job, hosts->size());
        const bool any_model = requests_any_gpu(job);
        for (std::size_t i = 0; i < hosts->size(); ++i) {
            const auto found = index_.find((*hosts)[i]);
            if (found == index_.end()) {
                report_.left_out("Job", "tasks on an unknown node", "its node was not read",
                                 job.id + " on " + (*hosts)[i], Errs::either);
                continue;
            }
            auto task = task_of(job, i, hosts->size(), rules, shares[i]);
            task.node = (*hosts)[i];
            task.locked = task.terminating = ending;
            task.start_time = std::min(job.started.value_or(0), largest_quantity);
            if (suspended) task.cpu_milli = 0;
            cards.ask(shares[i].gres, found->second, task);
            if (any_model) task.gpu_models.clear();
            put(std::move(task), found->second, shares[i].gres, job);
        }
        if (ending)
            report_.approximated("Job", "completing", Errs::too_strict, "holds its nodes, locked", job.id);
        else if (suspended)
            report_.approximated("Job", "suspended", Errs::too_lax,
                                 "holds memory and GPUs; its cores count as free", job.id);
        else
            report_.exact("Job", "running");
    }

    /// Whether the job requested GPUs without a type, even if it got some of one type.
    static bool requests_any_gpu(const JobRecord& job) {
        bool any = false;
        for (const auto* const text : {&job.per_node, &job.per_task, &job.per_job, &job.per_socket})
            for (const auto& item : gres_of(*text).value_or(std::vector<Gres>{})) {
                if (item.name == "gpu" && !item.type.empty()) return false;
                any = any || item.name == "gpu";
            }
        return any;
    }

    void read_pending(const JobRecord& job, const Cards& cards, Eligibility& eligibility) {
        const auto requested = std::max<std::int64_t>(job.node_count.value_or(1), 1);
        const auto tasks =
            static_cast<std::size_t>(std::min(requested, static_cast<std::int64_t>(nodes_.size()) + 1));
        if (static_cast<std::int64_t>(tasks) < requested)
            report_.approximated("Job", "more nodes than there are", Errs::neither,
                                 "one task more than nodes, which also fits nowhere", job.id);
        if (job.most_nodes.value_or(requested) > requested)
            report_.approximated("Job", "number of nodes", Errs::too_strict,
                                 "the smallest number that it accepts", job.id);
        const auto share = pending_share(job, tasks, report_);
        const auto rules = eligibility.of_job(job, tasks);
        const auto waiting = waiting_of(job);
        if (!waiting)
            report_.exact("Job", "pending");
        else if (waiting->waits_for == WaitingFor::held)
            report_.exact_of("Job", "held", job.id);
        else if (waiting->waits_for == WaitingFor::dependency || waiting->waits_for == WaitingFor::begin_time)
            report_.exact_of("Job", "waits for a time or other jobs", job.id);
        else
            report_.exact_of("Job", "waits for something else than room", job.id + ": " + job.reason);
        if (!job.qos.empty())
            report_.ignored("Job", "limits of its account and QOS", Errs::too_lax,
                            "scontrol does not print them", job.id + ": " + job.qos);
        const auto add = [&](const JobRecord& one) {
            for (std::size_t i = 0; i < tasks; ++i) {
                auto task = task_of(one, i, tasks, rules, share);
                task.start_time =
                    std::min(one.submitted.value_or(0), largest_quantity);  // its age in the queue
                task.waiting = waiting;
                if (!one.planned_start.empty()) task.note = "Slurm plans to start it at " + one.planned_start;
                cards.ask(share.gres, std::nullopt, task);
                put(std::move(task), std::nullopt, share.gres, one);
            }
        };
        if (job.array_tasks.empty()) return add(job);
        auto one = job;
        std::int64_t left = options_.array_tasks;
        const bool all = each_array_task(job.array_tasks, [&](const std::string& number) {
            if (left-- <= 0) return false;
            one.id = job.id.substr(0, job.id.find('_')) + "_" + number;
            one.job = one.id;
            if (seen_.insert(one.id + " ").second) add(one);
            return true;
        });
        if (job.throttled)
            report_.approximated("Job", "throttled arrays", Errs::too_lax,
                                 "all tasks count as startable at once",
                                 job.id + "_[" + job.array_tasks + "]");
        if (all)
            report_.exact("Job", "arrays");
        else
            report_.approximated("Job", "arrays", Errs::too_lax,
                                 "the first tasks of the array (option array_tasks), not the others",
                                 job.id + "_[" + job.array_tasks + "]");
    }

    /// The event for which a pending job waits, by Slurm's reason; absent if it waits for resources.
    static std::optional<WaitingReason> waiting_of(const JobRecord& job) {
        const auto& reason = job.reason;
        const auto begins = [&](std::initializer_list<std::string_view> prefixes) {
            return std::ranges::any_of(prefixes, [&](auto prefix) { return reason.starts_with(prefix); });
        };
        if (job.priority == 0 || begins({"JobHeld"})) return WaitingReason{WaitingFor::held, reason};
        if (!job.dependency.empty() || begins({"Dependency"}))
            return WaitingReason{WaitingFor::dependency, job.dependency.empty() ? reason : job.dependency};
        if (begins({"BeginTime"})) return WaitingReason{WaitingFor::begin_time, {}};
        if (begins({"Reservation"}) || reason.find("Reserved") != std::string::npos)
            return WaitingReason{WaitingFor::reservation, reason};
        if (begins({"QOS", "Assoc", "Partition", "AccountingPolicy", "JobArrayTaskLimit", "Licenses", "Max"}))
            return WaitingReason{WaitingFor::limit, reason};
        // Slurm also checks these reasons against nodes, as the snapshot does.
        if (reason.empty() || begins({"None", "Priority", "Resources", "ReqNodeNotAvail", "NodeDown",
                                      "BadConstraints", "Nodes_required"}))
            return std::nullopt;
        return WaitingReason{WaitingFor::other, reason};
    }

    /// Calls `each` with the numbers of `1-3,7-15:4%2`, until it returns false. @return false if not all were
    /// visited
    template <class Each>
    static bool each_array_task(std::string_view text, Each&& each) {
        text = text.substr(0, text.find('%'));
        while (!text.empty()) {
            auto item = take_until(text, ',');
            auto range = take_until(item, ':');
            std::int64_t first = 0, last = 0, step = 1;
            if (!read_number(take_until(range, '-'), first)) return false;
            last = first;
            if ((!range.empty() && !read_number(range, last)) ||
                (!item.empty() && !read_number(item, step)) || first < 0 || last > largest_quantity ||
                step < 1 || step > largest_quantity)
                return false;
            for (; first <= last; first += step)
                if (!each(std::to_string(first))) return false;
        }
        return true;
    }

    TaskSpec task_of(const JobRecord& job, std::size_t i, std::size_t of, const Eligibility::Rules& rules,
                     const Share& share) {
        TaskSpec out{
            .name = concat(job.id, "/", i), .job = job.job, .owner_kind = gpusched::detail::slurm_job};
        out.cpu_milli = 1000 * std::min(share.cpus, most_of_a_node / 1000);
        out.memory_mib = std::min(share.memory_mib, most_of_a_node);
        out.eviction_count = job.requeues.value_or(0);
        Eligibility::of_task(rules, i, left_, out);
        if (of > 1) out.anti_affinity.push_back({.group = "slurm/nodes-of." + job.id});
        std::int64_t tier = 0;
        bool is_protected = false;
        for (const auto& name : words_of(job.partition)) {
            const auto found = partitions_.find(name);
            if (found == partitions_.end()) continue;
            tier = std::max(tier, rank_.at(found->second->tier));
            is_protected = is_protected || (protects_ && is_off(*found->second));
        }
        out.priority = (tier << 32) + std::min<std::int64_t>(job.priority.value_or(0), UINT32_MAX);
        const bool can_requeue = job.requeue.value_or(false) && job.batch.value_or(true);
        out.how = can_requeue ? Mobility::restart : Mobility::none;
        out.preemptible =
            (can_requeue || options_.evict_without_requeue) && (!is_protected || options_.ignore_protection);
        if (i == 0) say_mobility(job, can_requeue, is_protected);
        return out;
    }
    void say_mobility(const JobRecord& job, bool can_requeue, bool is_protected) {
        if (!job.requeue)
            report_.approximated("Job", "requeue", Errs::too_strict, "unknown: cannot be requeued", job.id);
        else
            report_.exact("Job", can_requeue ? "can be requeued"
                                             : "cannot be requeued: neither moves nor is evicted");
        if (is_protected)
            report_.exact("Job", options_.ignore_protection
                                     ? "of a partition with PreemptMode=OFF, evicted like others"
                                     : "of a partition with PreemptMode=OFF: not evicted");
    }

    void put(TaskSpec task, std::optional<std::size_t> home, const std::vector<Gres>& gres,
             const JobRecord& job) {
        const bool of_partition = std::ranges::any_of(partitions_, [&](const auto& known) {
            return known.second->exclusive && known.first == job.partition;
        });
        exclusive_.push_back(of_partition || contains(job.sharing, "NO") ||
                             contains(job.sharing, "EXCLUSIVE"));
        if (has_any(job.sharing, "USER", "MCS", "TOPO"))
            report_.ignored("Job", "shares nodes with its like only", Errs::too_lax,
                            "shares them with any job", job.id);
        left_.take(bytes_of(task) + bytes_of(gres) + task.note.size() + 400);
        cluster_.tasks.push_back(std::move(task));
        home_.push_back(home);
        requested_.push_back(gres);
    }

    /// Assigns GPUs to running tasks: first those that Slurm names, then the lowest free ones.
    void hold_gpus(Cards& cards) {
        std::vector<std::size_t> others;
        for (std::size_t i = 0; i < cluster_.tasks.size(); ++i) {
            auto& task = cluster_.tasks[i];
            if (!home_[i] || task.gpu_count + task.device_count == 0) continue;
            if (cards.hold_named(*home_[i], requested_[i], task))
                report_.exact("Job", "which GPUs it holds");
            else
                others.push_back(i);
        }
        for (const auto i : others) {
            auto& task = cluster_.tasks[i];
            const bool all = cards.hold_any(*home_[i], task);
            if (all)
                report_.approximated("Job", "which GPUs it holds", Errs::neither,
                                     "unknown, or others hold them: the lowest free ones of its node",
                                     task.name);
            else
                report_.approximated("Job", "GPUs beyond those of its node", Errs::too_lax,
                                     "clipped to those that are free there", task.name);
        }
    }

    /// Adds locked tasks for the resources that nodes report as allocated and no job in the input holds.
    void hold_the_rest(Cards& cards, HeldResources& held) {
        for (std::size_t n = 0; n < nodes_.size(); ++n) {
            const auto& node = nodes_[n];
            const auto add = [&](const std::string& suffix) -> TaskSpec& {
                TaskSpec task{
                    .name = node.name + "/allocated" + suffix, .locked = true, .preemptible = false};
                task.how = Mobility::none;
                task.node = node.name;
                cluster_.tasks.push_back(std::move(task));
                home_.emplace_back(n);
                exclusive_.push_back(false);
                return cluster_.tasks.back();
            };
            const auto cpus = std::min(node.allocated_cpus.value_or(0), most_of_a_node / 1000) * 1000 -
                              held.held(n).cpu_milli;
            const auto memory =
                std::min(node.allocated_mib.value_or(0), most_of_a_node) - held.held(n).memory_mib;
            const auto gpus = cards.unexplained(n, used_[n]);
            if (cpus <= 0 && memory <= 0 && gpus.empty()) continue;
            auto& first = add("");
            first.cpu_milli = std::max<std::int64_t>(cpus, 0);
            first.memory_mib = std::max<std::int64_t>(memory, 0);
            held.hold(n, first);
            for (const auto& [device_class, numbers] : gpus) {
                auto& task = device_class.empty() ? first : add("/" + device_class);
                if (device_class.empty()) {
                    task.gpu_count = static_cast<std::int64_t>(numbers.size());
                } else {
                    task.device_count = static_cast<std::int64_t>(numbers.size());
                    task.device_classes = {device_class};
                }
                cards.hold(n, numbers, task);
            }
            report_.approximated("Node", "allocated", Errs::either,
                                 "more than the jobs in the input hold: a locked task holds the rest",
                                 node.name);
        }
    }

    /// Makes exclusive jobs avoid all tasks.
    void isolate_exclusive_jobs() {
        if (!contains(exclusive_, true)) return;
        const std::string all = gpusched::detail::slurm_all;
        for (std::size_t i = 0; i < cluster_.tasks.size(); ++i) {
            cluster_.tasks[i].groups.push_back(all);
            if (!exclusive_[i]) continue;
            cluster_.tasks[i].avoid.push_back({.group = all});
            report_.exact("Job", "alone on its nodes");
        }
    }

    void count_members() {
        std::unordered_map<std::string, std::size_t> index;
        for (const auto& task : cluster_.tasks) {
            if (task.job.empty()) continue;
            const auto [found, added] = index.try_emplace(task.job, cluster_.jobs.size());
            if (added) cluster_.jobs.push_back({.name = task.job});
            ++cluster_.jobs[found->second].min_members;
        }
    }

    const Records& records_;
    const SlurmReadOptions& options_;
    ReportBuilder& report_;
    Expansion left_;
    ClusterSpec cluster_;
    std::vector<NodeRecord> nodes_;                         // as cluster_.nodes
    std::vector<std::vector<Gres>> gres_, drained_, used_;  // by node
    std::unordered_map<std::string, std::size_t> index_;    // of nodes, by name
    std::map<std::string, const PartitionRecord*> partitions_;
    std::unordered_map<std::string, std::vector<std::string>> partitions_of_;  // by node
    std::map<std::int64_t, std::int64_t> rank_;                                // of tiers
    bool protects_ = false;
    std::unordered_set<std::string> seen_;
    std::vector<std::optional<std::size_t>> home_;  // node, by task
    std::vector<std::vector<Gres>> requested_;      // by task of a job
    std::vector<bool> exclusive_;                   // by task
    std::int64_t latest_ = 0;
};

/// Whether a text that is not JSON is topology.conf: its first line begins a switch or a block.
static bool is_topology(std::string_view text) {
    while (!text.empty()) {
        const auto line = upper_case(trimmed(take_line(text)));
        if (line.empty() || line.front() == '#') continue;
        return line.starts_with("SWITCHNAME=") || line.starts_with("BLOCKNAME=") ||
               line.starts_with("BLOCKSIZES=");
    }
    return false;
}

/// Recognises the kind of each text and reads it.
class Input {
  public:
    Input(const SlurmReadOptions& options, Records& records, ReportBuilder& report, Problems& problems)
        : options_(options), records_(records), report_(report), problems_(problems) {}

    void take(const NamedText& text) {
        auto begin = text.text;
        if (begin.starts_with("\xef\xbb\xbf")) begin.remove_prefix(3);
        if (begin.size() > largest_document)
            return problems_.add(concat(text.source, ": expected at most ", largest_document, " bytes"));
        if (const auto found = found_snapshot(begin); found.is_not_of(System::slurm))
            return problems_.add(text.source + expected_ + found.description);
        const auto first = begin.find_first_not_of(" \t\r\n");
        if (first == begin.npos) return problems_.add(text.source + expected_ + "nothing");
        if (begin[first] == '{' || begin[first] == '[') return take_json(text);
        if (TextRecords::recognises(begin)) return TextRecords(records_, report_).take(begin, text.source);
        if (is_topology(begin)) return network(slurm_topology_from_conf(begin, text.source), text.source);
        if (is_list(begin)) return network(of_yaml(begin, text.source), text.source);
        auto rest = begin.substr(first);
        problems_.add(text.source + expected_ + "a text that begins with " +
                      in_quotes(trimmed(take_line(rest))));
    }

    void place(ClusterSpec& cluster) const {
        if (!network_) return report_.absent("topology", "positions of nodes in the network: unknown");
        const auto placed = set_network(cluster, *network_);
        report_.exact("Node", "network", static_cast<std::int64_t>(placed));
        for (const auto& node : cluster.nodes)
            if (node.network.empty())
                report_.ignored("Node", "network", Errs::either,
                                "the topology does not name it: its position is unknown", node.name);
        for (const auto& note : network_->notes)
            report_.approximated("Node", "network", Errs::neither, note, "");
    }

  private:
    void take_json(const NamedText& text) {
        const auto document = json::Document::parse(text.text, text.source, problems_);
        const Place root(document, 0);
        if (root.is(json::Kind::array) && !root.items().empty() && root.items().front()["topology"])
            return network(of_yaml(text.text, text.source), text.source);
        if (const auto found = found_snapshot(root); found.is_not_of(System::slurm))
            return problems_.add(text.source + expected_ + found.description);
        if (!JsonRecords::recognises(root))
            return problems_.add(text.source + expected_ + document.describe(0) +
                                 (root.is(json::Kind::object) ? " without nodes, jobs or partitions" : ""));
        JsonRecords(records_, report_).take(root);
    }
    [[nodiscard]] NetworkReading of_yaml(std::string_view text, const std::string& source) const {
        return slurm_topology_from_yaml(text, {.topology = options_.topology}, source);
    }
    void network(NetworkReading read, const std::string& source) {
        if (network_) return problems_.add(source + ": expected one topology, found another");
        network_ = std::move(read);
    }

    static constexpr const char* expected_ = ": expected output of `scontrol show nodes`, `jobs` or "
                                             "`partitions`, as text or --json, or a topology, found ";
    const SlurmReadOptions& options_;
    Records& records_;
    ReportBuilder& report_;
    Problems& problems_;
    std::optional<NetworkReading> network_{};
};

}  // namespace gpusched::io::detail::slurm

namespace gpusched::io {

GPUSCHED_EXPORT ClusterReading slurm_from_texts(std::span<const NamedText> texts,
                                                const SlurmReadOptions& options) {
    Problems problems;
    check_fields(problems, options);
    if (texts.empty()) problems.add("expected at least one text of scontrol");
    problems.throw_if_any();
    detail::ReportBuilder report(static_cast<std::size_t>(options.examples));
    detail::slurm::Records records;
    detail::slurm::Input input(options, records, report, problems);
    std::string sources;
    std::size_t size = 0;
    for (const auto& text : texts) {
        size += text.text.size();
        input.take(text);
        sources += (sources.empty() ? "" : ", ") + text.source;
    }
    problems.throw_if_any();
    ClusterReading out;
    out.cluster = detail::slurm::Reader(records, options, size, report).read(sources);
    input.place(out.cluster);
    out.report = report.take();
    return out;
}

GPUSCHED_EXPORT ClusterReading slurm_from_text(std::string_view text, const SlurmReadOptions& options,
                                               std::string_view source) {
    const NamedText one{text, std::string(source)};
    return slurm_from_texts({&one, 1}, options);
}

GPUSCHED_EXPORT ClusterReading read_slurm(std::span<const std::string> paths,
                                          const SlurmReadOptions& options) {
    std::vector<std::string> contents;
    std::vector<NamedText> texts;
    contents.reserve(paths.size());
    for (const auto& path : paths) {
        contents.push_back(read_file(path));
        texts.push_back({contents.back(), path});
    }
    return slurm_from_texts(texts, options);
}

}  // namespace gpusched::io
