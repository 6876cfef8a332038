// Cluster: a snapshot of who runs where, with O(1) apply and undo.
#pragma once

#include <gpusched/core/gpu_mask.hpp>
#include <gpusched/core/ids.hpp>
#include <gpusched/model/detail/domain_counts.hpp>
#include <gpusched/model/inventory.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace gpusched {

/// Whether what Standby tasks lend counts as free.
enum class Lent : bool { no, yes };

/// A snapshot: an unchanging inventory, shared between copies, and the placement of every task.
///
/// Everything that runs is accounted for twice where Standby tasks lend their resources: *lendable* capacity is
/// what nobody consumes, and is open to LP tasks; *firm* capacity is what nobody consumes or has a claim on, and
/// is what all other tasks need. Memory is never lent.
///
/// `assign` trusts its caller: ask `find_obstacle` and `gpus_fit` (feasibility.hpp) first. All changes are logged
/// and can be undone in reverse order; each costs O(1) (at most 16 GPUs and the task's few groups). Copying costs
/// a few megabytes per 40,000 nodes. Distinct copies may be used from distinct threads.
class Cluster {
  public:
    Cluster();
    Cluster(const Cluster& other);
    Cluster(Cluster&& other) noexcept;
    Cluster& operator=(const Cluster& other);
    Cluster& operator=(Cluster&& other) noexcept;
    ~Cluster();

    /// Validates `spec` and builds a snapshot of it.
    /// @throws InvalidInput with all problems, each naming the node, task or job
    static Cluster build(const ClusterSpec& spec);

    /// The snapshot as data again, in input order, with what was left out filled in: accepted GPU models come in the
    /// order in which the snapshot first names them, `preemptible` is said, jobs that only tasks named are listed.
    [[nodiscard]] ClusterSpec to_spec() const;

    /// Legal, but worth knowing: tasks that hold a failed GPU, and network levels that tasks name but no node has.
    [[nodiscard]] std::vector<std::string> warnings() const;

    // What never changes -----------------------------------------------------------------------------------
    [[nodiscard]] const Inventory& inventory() const noexcept { return *inventory_; }
    [[nodiscard]] std::size_t node_count() const noexcept { return inventory_->nodes.names.size(); }
    [[nodiscard]] std::size_t task_count() const noexcept { return inventory_->tasks.names.size(); }
    [[nodiscard]] IdRange<NodeId> nodes() const noexcept { return IdRange<NodeId>(node_count()); }
    [[nodiscard]] IdRange<TaskId> tasks() const noexcept { return IdRange<TaskId>(task_count()); }
    [[nodiscard]] const std::string& name(NodeId node) const noexcept {
        return inventory_->nodes.names[index(node)];
    }
    [[nodiscard]] const std::string& name(TaskId task) const noexcept {
        return inventory_->tasks.names[index(task)];
    }
    /// @throws InvalidInput when there is no node (task) of that name
    [[nodiscard]] NodeId find_node(std::string_view name) const;
    [[nodiscard]] TaskId find_task(std::string_view name) const;
    [[nodiscard]] int gpu_count(NodeId node) const noexcept {
        return inventory_->nodes.gpu_count[index(node)];
    }
    [[nodiscard]] GpuMask healthy_gpus(NodeId node) const noexcept {
        return static_cast<GpuMask>(first_gpus(gpu_count(node)) &
                                    ~inventory_->nodes.failed_gpus[index(node)]);
    }
    /// True for a task that asks for a part of one GPU.
    [[nodiscard]] bool is_fraction(TaskId task) const noexcept {
        return inventory_->tasks.gpu_share_milli[index(task)] < whole_gpu_milli;
    }
    /// GPU demand in thousandths of a GPU.
    [[nodiscard]] std::int64_t gpu_milli(TaskId task) const noexcept {
        return std::int64_t{inventory_->tasks.gpu_count[index(task)]} *
               inventory_->tasks.gpu_share_milli[index(task)];
    }
    /// LP tasks may overlap a Standby task's claim.
    [[nodiscard]] bool may_borrow(TaskId task) const noexcept {
        return inventory_->tasks.priority_class[index(task)] == PriorityClass::lp;
    }
    /// What counts as free to the task: LP tasks may use what Standby tasks lend.
    [[nodiscard]] Lent lent_to(TaskId task) const noexcept { return may_borrow(task) ? Lent::yes : Lent::no; }
    /// True for a placed task that consolidation may move: not locked, daemon, standby or bound to local cores.
    [[nodiscard]] bool is_movable(TaskId task) const noexcept;

    // Placement --------------------------------------------------------------------------------------------
    /// Where the task runs; `none<NodeId>` = pending.
    [[nodiscard]] NodeId node_of(TaskId task) const noexcept {
        GPUSCHED_ASSERT(index(task) < place_.size());
        return place_[index(task)].node;
    }
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
    /// How many tasks other than daemons run on the node; reservations do not count.
    [[nodiscard]] int occupants(NodeId node) const noexcept {
        return static_cast<int>(usage(node).occupants);
    }

    // Free capacity (reservations count as used) -----------------------------------------------------------
    /// Thousandths of a core that are free; with `Lent::yes` also those that Standby tasks lend.
    [[nodiscard]] std::int64_t cpu_free_milli(NodeId node, Lent lent = Lent::no) const noexcept {
        const auto& u = usage(node);
        return lent == Lent::yes || u.cpu_lendable < u.cpu_firm ? u.cpu_lendable : u.cpu_firm;
    }
    [[nodiscard]] std::int64_t memory_free_mib(NodeId node) const noexcept { return usage(node).memory; }
    /// Thousandths of one GPU that are free; 0 for a failed GPU.
    [[nodiscard]] int gpu_free_milli(NodeId node, int gpu, Lent lent = Lent::no) const noexcept {
        const auto& g = gpu_[slot(node, gpu)];
        const auto free = lent == Lent::yes || g.lendable < g.firm ? g.lendable : g.firm;
        return free > 0 ? free : 0;
    }
    /// Memory of one GPU that is free; meaningful where the node models it.
    [[nodiscard]] std::int64_t gpu_memory_free_mib(NodeId node, int gpu) const noexcept {
        return gpu_memory_[slot(node, gpu)];
    }
    /// Healthy GPUs that are entirely free.
    [[nodiscard]] GpuMask idle_gpus(NodeId node, Lent lent = Lent::no) const noexcept {
        const auto& u = usage(node);
        return lent == Lent::yes ? u.idle_lendable : static_cast<GpuMask>(u.idle_lendable & u.idle_firm);
    }
    /// Free GPU quantity of the node in thousandths, summed over healthy GPUs.
    [[nodiscard]] std::int64_t gpu_free_total_milli(NodeId node, Lent lent = Lent::no) const noexcept {
        std::int64_t sum = 0;
        for (int g = 0; g < gpu_count(node); ++g) sum += gpu_free_milli(node, g, lent);
        return sum;
    }

    // Groups -----------------------------------------------------------------------------------------------
    /// Members of a set of a group (an index into Inventory::group_sets) in a domain, reservations included.
    [[nodiscard]] std::uint32_t group_count(std::uint32_t set, DomainId domain) const noexcept {
        GPUSCHED_ASSERT(set < group_tables_.size());
        return groups_.count(group_tables_[set], domain);
    }
    /// Members in the domain whose own limit is the set's `limit_index`-th smallest; only for sets not `uniform`.
    [[nodiscard]] std::uint32_t group_count(std::uint32_t set, std::size_t limit_index,
                                            DomainId domain) const noexcept {
        GPUSCHED_ASSERT(set < group_tables_.size() && !inventory_->group_sets[set].uniform);
        GPUSCHED_ASSERT(limit_index < inventory_->group_sets[set].limits.size());
        return groups_.count(group_tables_[set] + 1 + static_cast<std::uint32_t>(limit_index), domain);
    }
    /// How many domains hold members of the set.
    [[nodiscard]] std::uint32_t group_domains(std::uint32_t set) const noexcept {
        GPUSCHED_ASSERT(set < group_tables_.size());
        return groups_.domains(group_tables_[set]);
    }

    // Changes ----------------------------------------------------------------------------------------------
    /// Puts the task on `node` with those GPUs, from wherever it was; `none<NodeId>` makes it pending.
    void assign(TaskId task, NodeId node, GpuMask gpus);
    /// Makes the task pending.
    void remove(TaskId task) { assign(task, none<NodeId>, 0); }
    /// Holds room for a second copy of the task, as make-before-break does; it counts in groups as well.
    void reserve(TaskId task, NodeId node, GpuMask gpus);
    /// Gives back a reservation made with the same arguments.
    void unreserve(TaskId task, NodeId node, GpuMask gpus);

    /// A point in the log of changes.
    using Checkpoint = std::size_t;
    [[nodiscard]] Checkpoint checkpoint() const noexcept { return log_.size(); }
    /// Undoes the last change, exactly: iteration orders come back too.
    void undo();
    /// Undoes everything since the checkpoint.
    void rollback(Checkpoint to) {
        GPUSCHED_ASSERT(to <= log_.size());
        while (log_.size() > to) undo();
    }
    /// Forgets the log: what was done can no longer be undone.
    void forget_history() noexcept { log_.clear(); }

    /// Same inventory and same placements (orders and history do not matter).
    [[nodiscard]] bool same_placement(const Cluster& other) const noexcept;

  private:
    explicit Cluster(std::nullptr_t);  // for build
    struct Place {
        NodeId node = none<NodeId>;
        TaskId next = none<TaskId>, previous = none<TaskId>;
        GpuMask gpus = 0;
    };
    struct NodeUsage {
        std::int64_t cpu_lendable = 0, cpu_firm = 0, memory = 0;
        GpuMask idle_lendable = 0, idle_firm = 0;
        std::uint32_t occupants = 0;
        TaskId first_task = none<TaskId>;
    };
    struct GpuFree {
        std::int32_t lendable = 0, firm = 0;  // thousandths; a failed GPU has a capacity of 0
    };
    struct Change {
        enum class Kind : std::uint8_t { assign, reserve, unreserve } kind;
        GpuMask gpus;  // assign: the old ones
        TaskId task;
        NodeId node;      // assign: the old one
        TaskId previous;  // assign: its neighbour in the old node's list
    };
    [[nodiscard]] const NodeUsage& usage(NodeId node) const noexcept {
        GPUSCHED_ASSERT(index(node) < usage_.size());
        return usage_[index(node)];
    }
    // Where a GPU is in arrays over all GPUs.
    [[nodiscard]] std::size_t slot(NodeId node, int gpu) const noexcept {
        GPUSCHED_ASSERT(index(node) < usage_.size());
        GPUSCHED_ASSERT(gpu >= 0 && gpu < gpu_count(node));
        return inventory_->nodes.first_gpu[index(node)] + static_cast<std::size_t>(gpu);
    }
    void use(TaskId task, NodeId node, GpuMask gpus, int sign);
    void link(TaskId task, NodeId node, TaskId previous);
    void unlink(TaskId task);
    void place(TaskId task, NodeId node, GpuMask gpus, TaskId previous);
    void set_capacities();
    void place_initially(const ClusterSpec& spec, Problems& problems);

    std::shared_ptr<const Inventory> inventory_;
    std::vector<Place> place_;
    std::vector<NodeUsage> usage_;
    std::vector<GpuFree> gpu_;              // by NodeTable::first_gpu
    std::vector<std::int64_t> gpu_memory_;  // likewise
    detail::DomainCounts groups_;
    std::vector<std::uint32_t> group_tables_;  // by set: its total, followed by one table per distinct limit
    std::vector<Change> log_;
};

}  // namespace gpusched

#ifdef GPUSCHED_HEADER_ONLY
#include <gpusched/model/impl/cluster.ipp>
#endif
