// SPDX-License-Identifier: Apache-2.0
// Cluster: a snapshot of the placement of every task, with O(1) apply and undo.
#pragma once

#include <gpusched/core/gpu_mask.hpp>
#include <gpusched/core/ids.hpp>
#include <gpusched/model/events.hpp>
#include <gpusched/model/inventory.hpp>

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace gpusched::detail {

/// Counts the members of each group in each domain. There is one small open-addressing table (domain ->
/// count) per set, all in one array. A table is large enough for the domains of three copies of every member.
/// O(1) expected per call.
class DomainCounts {
  public:
    /// Adds a table for a set with `members` and returns its number.
    std::uint32_t add_table(std::uint32_t members);
    /// Enlarges the table for a set with `members`; amortised O(1) if sets grow by single members.
    void grow_table(std::uint32_t table, std::uint32_t members);
    /// Removes an empty table. `add_table` may reuse its number.
    void remove_table(std::uint32_t table);

    [[nodiscard]] std::uint32_t count(std::uint32_t table, DomainId domain) const noexcept {
        const auto& t = tables_[table];
        for (auto i = slot(t, domain);; i = (i + 1) & t.mask) {
            const auto& cell = cells_[t.first + i];
            if (cell.count == 0) return 0;
            if (cell.domain == domain) return cell.count;
        }
    }

    /// The number of domains with a member.
    [[nodiscard]] std::uint32_t domains(std::uint32_t table) const noexcept { return tables_[table].used; }

    void increment(std::uint32_t table, DomainId domain) noexcept;

    void decrement(std::uint32_t table, DomainId domain) noexcept;

  private:
    struct Table {
        std::uint32_t first, mask, used;
    };
    struct Cell {
        DomainId domain = none<DomainId>;
        std::uint32_t count = 0;
    };
    [[nodiscard]] static std::uint32_t slot(const Table& t, DomainId domain) noexcept {
        return (static_cast<std::uint32_t>(domain) * 0x9E3779B1u >> 7) & t.mask;
    }
    [[nodiscard]] static std::uint32_t capacity_for(std::uint32_t members) noexcept;
    [[nodiscard]] std::uint32_t take_cells(std::uint32_t capacity);
    void give_cells(const Table& table);
    [[nodiscard]] Cell& cell_of(const Table& table, DomainId domain) noexcept;
    std::vector<Table> tables_;
    std::vector<Cell> cells_;
    std::vector<std::uint32_t> free_tables_;
    std::vector<std::vector<std::uint32_t>>
        free_cells_;  // by the logarithm of the size of a table: its first cell
};

}  // namespace gpusched::detail

namespace gpusched {

class EventLog;
namespace detail {
struct Demand;

/// Owns an object that copies of the owner do not get.
template <class T>
class NotCopied {
  public:
    NotCopied() = default;
    NotCopied(const NotCopied&) noexcept {}
    NotCopied(NotCopied&&) noexcept = default;
    NotCopied& operator=(const NotCopied& other) noexcept {
        if (this != &other) held_.reset();
        return *this;
    }
    NotCopied& operator=(NotCopied&&) noexcept = default;
    [[nodiscard]] explicit operator bool() const noexcept { return held_ != nullptr; }
    [[nodiscard]] T& operator*() const noexcept { return *held_; }
    [[nodiscard]] T* operator->() const noexcept { return held_.get(); }
    [[nodiscard]] const T* get() const noexcept { return held_.get(); }
    template <class... Arguments>
    T& emplace(Arguments&&... arguments) {
        held_ = std::make_unique<T>(std::forward<Arguments>(arguments)...);
        return *held_;
    }

  private:
    std::unique_ptr<T> held_;
};
}  // namespace detail

/// Whether resources that Standby tasks lend count as free.
enum class Lent : bool { no, yes };

/// The numbering of nodes, tasks, jobs and budgets in a new snapshot.
enum class IdOrder : bool {
    by_name,    ///< the natural order of their names: core/order.hpp
    as_listed,  ///< the order of the data: ids are positions in its lists
};

/// A snapshot of a cluster: an inventory, which copies share until one of them changes it, and the placement
/// of tasks.
///
/// Standby tasks lend their resources, so there are two kinds of free capacity. *Lendable* capacity is not
/// consumed by any task; LP tasks can use it. *Firm* capacity is neither consumed nor claimed; all other
/// tasks need it. Memory is never lent.
///
/// `assign` does not check feasibility: call `find_obstacle` and `gpus_fit` (feasibility.hpp) first. All
/// changes are logged and can be undone in reverse order. Each costs O(1): at most 64 GPUs and the groups of
/// the task. A copy takes a few megabytes per 40,000 nodes. Different threads may use different copies.
class Cluster {
  public:
    Cluster();
    Cluster(const Cluster& other);
    Cluster(Cluster&& other) noexcept;
    Cluster& operator=(const Cluster& other);
    Cluster& operator=(Cluster&& other) noexcept;
    ~Cluster();

    /// Validates `spec` and builds a snapshot. Ids follow names, so that results do not depend on the order
    /// of nodes and tasks in a file. Between equal candidates, the first by name is chosen.
    /// @throws InvalidInput with all problems, each with the name of the node, task or job
    static Cluster build(const ClusterSpec& spec, IdOrder order = IdOrder::by_name);

    /// The snapshot as data, in the order of the data from which it was built. Omitted values are filled in:
    /// `preemptible` is set, and jobs that only tasks named are listed. Accepted GPU models come in the order
    /// of their first node.
    [[nodiscard]] ClusterSpec to_spec() const;

    /// Legal but suspicious data: tasks that hold a failed GPU, and network levels that tasks name but no
    /// node has.
    [[nodiscard]] std::vector<std::string> warnings() const;

    /// One node, task, job or budget as data, as in `to_spec`.
    [[nodiscard]] NodeSpec node_spec(NodeId node) const;
    [[nodiscard]] TaskSpec task_spec(TaskId task) const;
    [[nodiscard]] JobSpec job_spec(JobId job) const;
    /// @param budget index into `Inventory::budgets`
    [[nodiscard]] BudgetSpec budget_spec(std::uint32_t budget) const;

    // Inventory: only changes of membership change it -------------------------------------------------------
    [[nodiscard]] const Inventory& inventory() const noexcept { return *inventory_; }
    /// Number of nodes (tasks).
    [[nodiscard]] std::size_t node_count() const noexcept { return inventory_->nodes.count(); }
    [[nodiscard]] std::size_t task_count() const noexcept { return inventory_->tasks.count(); }
    /// Length of arrays indexed by NodeId (TaskId), including free slots.
    [[nodiscard]] std::size_t node_slots() const noexcept { return inventory_->nodes.names.size(); }
    [[nodiscard]] std::size_t task_slots() const noexcept { return inventory_->tasks.names.size(); }
    /// True if the slot is occupied.
    [[nodiscard]] bool contains(NodeId node) const noexcept {
        return inventory_->nodes.contains(index(node));
    }
    [[nodiscard]] bool contains(TaskId task) const noexcept {
        return inventory_->tasks.contains(index(task));
    }
    [[nodiscard]] LiveIds<NodeId> nodes() const noexcept { return inventory_->living_nodes(); }
    [[nodiscard]] LiveIds<TaskId> tasks() const noexcept { return inventory_->living_tasks(); }
    [[nodiscard]] const std::string& name(NodeId node) const noexcept {
        return inventory_->nodes.names[index(node)];
    }
    [[nodiscard]] const std::string& name(TaskId task) const noexcept {
        return inventory_->tasks.names[index(task)];
    }
    /// @throws InvalidInput if there is no node (task) of that name
    [[nodiscard]] NodeId find_node(std::string_view name) const;
    [[nodiscard]] TaskId find_task(std::string_view name) const;
    [[nodiscard]] int gpu_count(NodeId node) const noexcept {
        return inventory_->nodes.gpu_count[index(node)];
    }
    [[nodiscard]] GpuMask healthy_gpus(NodeId node) const noexcept {
        return static_cast<GpuMask>(first_gpus(gpu_count(node)) &
                                    ~inventory_->nodes.failed_gpus[index(node)]);
    }
    /// The devices of the node besides its whole GPUs. In masks their bits follow those of the GPUs.
    [[nodiscard]] GpuMask devices(NodeId node) const noexcept {
        return inventory_->node_devices[inventory_->nodes.devices[index(node)]].all;
    }
    /// True for a task that requests a fraction of one GPU.
    [[nodiscard]] bool is_fraction(TaskId task) const noexcept {
        return inventory_->tasks.is(TaskTrait::fraction, task);
    }
    /// GPU demand in thousandths of a GPU.
    [[nodiscard]] std::int64_t gpu_milli(TaskId task) const noexcept {
        return std::int64_t{inventory_->tasks.gpu_count[index(task)]} *
               inventory_->tasks.gpu_share_milli[index(task)];
    }
    /// LP tasks may overlap a Standby task's claim.
    [[nodiscard]] bool may_borrow(TaskId task) const noexcept {
        return inventory_->tasks.is(TaskTrait::borrows, task);
    }
    /// The capacity that is free for the task: LP tasks may use resources that Standby tasks lend.
    [[nodiscard]] Lent lent_to(TaskId task) const noexcept { return may_borrow(task) ? Lent::yes : Lent::no; }
    /// True for a placed task that consolidation may move: not locked, daemon, standby, bound to local cores
    /// or of Mobility::none.
    [[nodiscard]] bool is_movable(TaskId task) const noexcept;

    // Placement --------------------------------------------------------------------------------------------
    /// The node on which the task runs; `none<NodeId>` = pending.
    [[nodiscard]] NodeId node_of(TaskId task) const noexcept {
        GPUSCHED_ASSERT(index(task) < place_.size());
        return place_[index(task)].node;
    }
    /// The GPUs and other devices that the task holds.
    [[nodiscard]] GpuMask gpus_of(TaskId task) const noexcept {
        GPUSCHED_ASSERT(index(task) < place_.size());
        return place_[index(task)].gpus;
    }
    [[nodiscard]] bool is_placed(TaskId task) const noexcept { return node_of(task) != none<NodeId>; }

    class TaskIterator {
      public:
        using value_type = TaskId;
        using difference_type = std::ptrdiff_t;
        TaskIterator() = default;
        TaskIterator(const Cluster* cluster, TaskId at) : cluster_(cluster), at_(at) {}
        TaskId operator*() const noexcept { return at_; }
        TaskIterator& operator++() noexcept {
            at_ = cluster_->place_[index(at_)].next;
            return *this;
        }
        TaskIterator operator++(int) noexcept {
            auto old = *this;
            ++*this;
            return old;
        }
        bool operator==(const TaskIterator& other) const noexcept { return at_ == other.at_; }

      private:
        const Cluster* cluster_ = nullptr;
        TaskId at_ = none<TaskId>;
    };
    struct TaskList {
        TaskIterator first;
        [[nodiscard]] TaskIterator begin() const noexcept { return first; }
        [[nodiscard]] TaskIterator end() const noexcept { return {nullptr, none<TaskId>}; }
        [[nodiscard]] bool empty() const noexcept { return begin() == end(); }
    };
    /// The tasks on a node, daemons included. Do not change the cluster while iterating.
    [[nodiscard]] TaskList tasks_on(NodeId node) const noexcept { return {{this, usage(node).first_task}}; }
    /// Number of tasks on the node without daemons; reservations do not count.
    [[nodiscard]] int occupants(NodeId node) const noexcept {
        return static_cast<int>(usage(node).occupants);
    }

    // Free capacity (reservations count as used) -----------------------------------------------------------
    /// Free CPU in thousandths of a core; with `Lent::yes` including lent CPU.
    [[nodiscard]] std::int64_t cpu_free_milli(NodeId node, Lent lent = Lent::no) const noexcept {
        const auto& u = usage(node);
        return lent == Lent::yes || u.cpu_lendable < u.cpu_firm ? u.cpu_lendable : u.cpu_firm;
    }
    [[nodiscard]] std::int64_t memory_free_mib(NodeId node) const noexcept { return usage(node).memory; }
    /// Free capacity of one GPU in thousandths; 0 for a failed GPU.
    [[nodiscard]] int gpu_free_milli(NodeId node, int gpu, Lent lent = Lent::no) const noexcept {
        const auto& g = gpu_[slot(node, gpu)];
        const auto free = lent == Lent::yes || g.lendable < g.firm ? g.lendable : g.firm;
        return free > 0 ? free : 0;
    }
    /// Free memory of one GPU in MiB; only valid if the node models GPU memory.
    [[nodiscard]] std::int64_t gpu_memory_free_mib(NodeId node, int gpu) const noexcept {
        return gpu_memory_[slot(node, gpu)];
    }
    /// Healthy GPUs that are entirely free.
    [[nodiscard]] GpuMask idle_gpus(NodeId node, Lent lent = Lent::no) const noexcept {
        const auto& u = usage(node);
        return lent == Lent::yes ? u.idle_lendable : static_cast<GpuMask>(u.idle_lendable & u.idle_firm);
    }
    /// Free GPU capacity of the node in thousandths: the sum over its healthy GPUs.
    [[nodiscard]] std::int64_t gpu_free_total_milli(NodeId node, Lent lent = Lent::no) const noexcept {
        std::int64_t sum = 0;
        for (int g = 0; g < gpu_count(node); ++g) sum += gpu_free_milli(node, g, lent);
        return sum;
    }

    /// Free amount of a named resource; `resource` is an index into `Inventory::resource_names`.
    [[nodiscard]] std::int64_t resource_free(NodeId node, std::uint32_t resource) const noexcept {
        const auto columns = inventory_->resource_names.size();
        GPUSCHED_ASSERT(index(node) < usage_.size() && resource < columns);
        return resources_[index(node) * columns + resource];
    }
    /// Free healthy devices besides the whole GPUs.
    [[nodiscard]] GpuMask free_devices(NodeId node) const noexcept {
        return devices_.empty() ? GpuMask{0} : devices_[index(node)];
    }

    // Groups -----------------------------------------------------------------------------------------------
    /// Members of a set of a group (an index into Inventory::group_sets) in a domain, reservations included.
    [[nodiscard]] std::uint32_t group_count(std::uint32_t set, DomainId domain) const noexcept {
        GPUSCHED_ASSERT(set < group_tables_.size());
        return groups_.count(group_tables_[set], domain);
    }
    /// Members in the domain with the set's `limit_index`-th smallest limit; only for sets that are not
    /// `uniform`.
    [[nodiscard]] std::uint32_t group_count(std::uint32_t set, std::size_t limit_index,
                                            DomainId domain) const noexcept {
        GPUSCHED_ASSERT(set < group_tables_.size() && !inventory_->group_sets[set].uniform);
        GPUSCHED_ASSERT(limit_index < inventory_->group_sets[set].limits.size());
        return groups_.count(group_tables_[set] + 1 + static_cast<std::uint32_t>(limit_index), domain);
    }
    /// Tasks in the domain that avoid the group; for sets of kind `avoid`.
    [[nodiscard]] std::uint32_t avoiders(std::uint32_t set, DomainId domain) const noexcept {
        GPUSCHED_ASSERT(inventory_->group_sets[set].kind == GroupKind::avoid);
        return groups_.count(second_tables_[set], domain);
    }
    /// The smallest number of members in an eligible domain, 0 without such domains; for sets of kind
    /// `spread`.
    [[nodiscard]] std::uint32_t fewest_members(std::uint32_t set) const noexcept {
        GPUSCHED_ASSERT(inventory_->group_sets[set].kind == GroupKind::spread);
        return fewest_[set];
    }
    /// How many domains hold members of the set.
    [[nodiscard]] std::uint32_t group_domains(std::uint32_t set) const noexcept {
        GPUSCHED_ASSERT(set < group_tables_.size());
        return groups_.domains(group_tables_[set]);
    }

    // Membership -------------------------------------------------------------------------------------------
    // Adds, updates and removes nodes, tasks, jobs and budgets. A call costs as much as the object that
    // changes. The first change, and the first after a copy, take O(nodes + tasks); `inventory().changes`
    // counts other such changes. Each call checks its data like `build`. It throws InvalidInput with all
    // problems and then changes nothing. No change is possible while changes can be undone: commit or roll
    // back first. Ids are slots: a removed object frees its slot, and the slot that has been free longest is
    // reused first. Outdated handles are rejected.
    [[nodiscard]] NodeHandle handle(NodeId node) const noexcept { return inventory_->nodes.handle(node); }
    [[nodiscard]] TaskHandle handle(TaskId task) const noexcept { return inventory_->tasks.handle(task); }
    [[nodiscard]] JobHandle handle(JobId job) const noexcept {
        const auto& g = inventory_->job_generation;
        return {job, g.empty() ? 0 : g[index(job)]};
    }
    /// False if the object was removed.
    [[nodiscard]] bool has(NodeHandle node) const noexcept;
    [[nodiscard]] bool has(TaskHandle task) const noexcept;
    [[nodiscard]] bool has(JobHandle job) const noexcept;

    NodeHandle add_node(const NodeSpec& node);
    /// Changes any data of the node except its name; its tasks stay.
    void update_node(NodeHandle node, const NodeSpec& to);
    /// @throws InvalidInput also if the node has tasks or reservations
    void remove_node(NodeHandle node);
    /// Makes a label key a level that later tasks may name, and returns that level. An existing level is
    /// returned as it is; a new one takes O(nodes). Levels are never removed.
    Level add_label_level(const std::string& key);
    /// Adds a task, and places it if it names its node.
    TaskHandle add_task(const TaskSpec& task);
    /// Changes any data of the task except its name, node and GPUs.
    void update_task(TaskHandle task, const TaskSpec& to);
    /// Removes a task, running or pending.
    void remove_task(TaskHandle task);
    JobHandle add_job(const JobSpec& job);
    void update_job(JobHandle job, const JobSpec& to);
    /// @throws InvalidInput also if the job has tasks
    void remove_job(JobHandle job);
    // Budgets are identified by their names.
    void add_budget(const BudgetSpec& budget);
    void update_budget(const BudgetSpec& to);
    void remove_budget(std::string_view name);
    /// Places the task on the node with those GPUs, wherever it was before. Makes the same checks as `build`:
    /// a cluster may run tasks that a scheduler would not have placed there.
    void bind(TaskHandle task, NodeHandle node, GpuMask gpus);
    /// Makes the task pending.
    void unbind(TaskHandle task);
    void set_now(std::int64_t now);

    // Events -----------------------------------------------------------------------------------------------
    /// Keeps the last `window` committed changes from now on, for followers (follower.hpp). Copies keep no
    /// events, and an assignment to the cluster ends it.
    void keep_events(std::size_t window = 16'384);
    /// The kept changes; null = `keep_events` was not called.
    [[nodiscard]] const EventLog* events() const noexcept { return events_.get(); }

    // What-if ----------------------------------------------------------------------------------------------
    // Changes that can be undone until `commit`.
    /// Places the task on `node` with those GPUs, wherever it was before; `none<NodeId>` makes it pending.
    void assign(TaskId task, NodeId node, GpuMask gpus);
    /// Makes the task pending.
    void remove(TaskId task) { assign(task, none<NodeId>, 0); }
    /// Reserves resources for a second copy of the task (make before break). The copy counts in groups as
    /// well.
    void reserve(TaskId task, NodeId node, GpuMask gpus);
    /// Releases a reservation that was made with the same arguments.
    void unreserve(TaskId task, NodeId node, GpuMask gpus);

    /// A point in the log of changes.
    using Checkpoint = std::size_t;
    [[nodiscard]] Checkpoint checkpoint() const noexcept { return log_.size(); }
    /// Undoes the last change exactly, including iteration orders.
    void undo();
    /// Undoes everything since the checkpoint.
    void rollback(Checkpoint to) {
        GPUSCHED_ASSERT(to <= log_.size());
        while (log_.size() > to) undo();
    }
    /// Makes the changes permanent and publishes their net effect (`events`).
    void commit();
    /// Calls `visit(TaskId, NodeId)` for every task and node of the changes that can be undone, each at least
    /// once.
    template <class Visit>
    void for_each_open_change(Visit&& visit) const {
        for (const auto& change : log_) {
            visit(change.task, change.node);
            if (const auto now = node_of(change.task); now != change.node) visit(change.task, now);
        }
    }

    /// Same inventory and same placements; orders and history do not matter.
    [[nodiscard]] bool same_placement(const Cluster& other) const noexcept;

  private:
    explicit Cluster(std::nullptr_t);  // for build
    // A GpuMask with the alignment of an id, to save memory per task.
    class PackedMask {
      public:
        PackedMask(GpuMask mask = 0) noexcept : halves_(std::bit_cast<Halves>(mask)) {}
        operator GpuMask() const noexcept { return std::bit_cast<GpuMask>(halves_); }

      private:
        using Halves = std::array<std::uint32_t, 2>;
        Halves halves_;
    };
    struct Place {
        NodeId node = none<NodeId>;
        TaskId next = none<TaskId>, previous = none<TaskId>;
        PackedMask gpus{};
    };
    struct NodeUsage {
        std::int64_t cpu_lendable = 0, cpu_firm = 0, memory = 0;
        GpuMask idle_lendable = 0, idle_firm = 0;
        std::uint32_t occupants = 0;
        TaskId first_task = none<TaskId>;
    };
    struct GpuFree {
        // Thousandths; a failed GPU has a capacity of 0. For other devices `lendable` is the number of
        // holders.
        std::int32_t lendable = 0, firm = 0;
    };
    struct Change {
        GpuMask gpus;  // assign: the old GPUs
        TaskId task;
        NodeId node;      // assign: the old node
        TaskId previous;  // assign: the previous task in the old node's list
        enum class Kind : std::uint8_t { assign, reserve, unreserve } kind;
    };
    [[nodiscard]] const NodeUsage& usage(NodeId node) const noexcept {
        GPUSCHED_ASSERT(index(node) < usage_.size());
        return usage_[index(node)];
    }
    // The index of a GPU in arrays over all GPUs.
    [[nodiscard]] std::size_t slot(NodeId node, int gpu) const noexcept {
        GPUSCHED_ASSERT(index(node) < usage_.size());
        GPUSCHED_ASSERT(gpu >= 0 && gpu < gpu_count(node));
        return inventory_->nodes.first_gpu[index(node)] + static_cast<std::size_t>(gpu);
    }
    void publish_open_changes();
    void publish(const Event& event);
    void publish(EventKind kind, TaskHandle task, NodeId node);
    void use(TaskId task, NodeId node, GpuMask gpus, int sign);
    [[gnu::always_inline]] void count_groups(TaskId task, NodeId node, int sign);
    void count_selection(TaskId task, NodeId node, int sign);
    void count_spread(std::uint32_t set, NodeId node, int sign);
    void add_second_table(std::uint32_t set);
    [[nodiscard]] std::vector<std::uint32_t> spread_domains() const;
    void find_fewest(std::span<const std::uint32_t> domains_before);
    void use_extras(const Extras& extras, NodeId node, GpuMask devices, int sign);
    void link(TaskId task, NodeId node, TaskId previous);
    void unlink(TaskId task);
    void place(TaskId task, NodeId node, GpuMask gpus, TaskId previous);
    void set_capacities();
    void set_capacity(NodeId node);
    void resize_node_arrays(std::size_t columns_before);
    void add_group_tables();
    [[nodiscard]] std::optional<NodeId> find_home(const TaskSpec& task, Problems& problems) const;

    // Changes of membership.
    void require_no_what_if() const;
    template <class Id>
    void require_current(Handle<Id> handle) const;
    [[nodiscard]] std::uint32_t find_budget(std::string_view name) const;
    Inventory& edit();
    detail::InventoryEditor& editor();
    void remember_sets(TaskId task);
    void drop_tables();
    void join_groups(TaskId task);
    void recount_groups(TaskId except);
    void check_not_reserved(TaskId task, Problems& problems) const;
    void check_capacity(const detail::Demand& task, NodeId node, GpuMask gpus, Problems& problems) const;
    void check_devices(const NodeSpec& to, NodeId node, Problems& problems) const;
    void check_cores(TaskSpec task, NodeId node, Problems& problems) const;
    void place_initially(const ClusterSpec& spec, Problems& problems);
    void assign_unknown(const std::vector<TaskId>& tasks, const ClusterSpec& spec, Problems& problems);

    std::shared_ptr<Inventory> inventory_;
    detail::NotCopied<detail::InventoryEditor> editor_;  // after the first change of membership
    detail::NotCopied<EventLog> events_;                 // after `keep_events`
    std::vector<Place> place_;
    std::vector<NodeUsage> usage_;
    std::vector<GpuFree> gpu_;              // by NodeTable::first_gpu
    std::vector<std::int64_t> gpu_memory_;  // likewise
    std::vector<std::int64_t> resources_;   // free amounts, [node][resource]; empty without named resources
    std::vector<GpuMask> devices_;  // free devices besides whole GPUs, by node; empty if there are none
    detail::DomainCounts groups_;
    std::vector<std::uint32_t>
        group_tables_;  // by set: the table of its total; one table per distinct limit follows
    // By set. Kind avoid: table of the tasks that avoid it; kind spread: table of the domains by number of
    // members. Empty without such sets.
    std::vector<std::uint32_t> second_tables_;
    std::vector<std::uint32_t> fewest_;  // by set of kind spread: the fewest members in a domain; likewise
    std::vector<Change> log_;
    struct Reservation {
        TaskId task;
        NodeId node;
        GpuMask gpus;
        auto operator<=>(const Reservation&) const = default;
    };
    std::vector<Reservation> reservations_;  // committed ones
    struct LeftSet {
        std::uint32_t set, limits;
    };
    std::vector<LeftSet> left_;
    std::vector<std::uint32_t> published_;  // while publishing: indices into `log_`
    static constexpr std::uint32_t no_table = 0xFFFFFFFFu;
};

}  // namespace gpusched
