// SPDX-License-Identifier: Apache-2.0
// Generates loaded clusters: adds nodes, fills them with tasks, and churns the tasks.
#include "sim/generator_constraints.hpp"
#include "sim/generator_presets.hpp"

#include <gpusched/config.hpp>
#include <gpusched/core/budget.hpp>
#include <gpusched/core/checks.hpp>
#include <gpusched/core/errors.hpp>
#include <gpusched/core/gpu_mask.hpp>
#include <gpusched/core/rng.hpp>
#include <gpusched/sim/generator.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace gpusched::sim {
namespace detail {

constexpr std::uint32_t no_node = std::numeric_limits<std::uint32_t>::max();

/// Free capacity of a set of nodes, with uniform sampling among the nodes that fit a shape.
///
/// The data for this test is stored in scan order, so that a scan of all nodes reads one array from end to
/// end. Scans are rare: they follow many failed draws.
class NodePool {
  public:
    void add(const NodeSpec& spec) {
        const auto gpus = static_cast<std::size_t>(spec.gpu_count);
        Gpus node;
        node.idle = first_gpus(static_cast<int>(gpus));
        std::fill_n(node.free_milli.begin(), gpus, std::int16_t{1000});
        rooms_.push_back(
            {spec.cpu_milli, spec.memory_mib, size(), largest_free(node), static_cast<std::int16_t>(gpus)});
        gpus_.push_back(node);
    }

    /// Builds the index. Call once after the last `add`.
    void index() {
        std::ranges::sort(rooms_, {}, [](const Room& room) { return std::pair(-room.idle_gpus, room.node); });
        rank_.resize(rooms_.size());
        for (std::uint32_t rank = 0; rank < rooms_.size(); ++rank) rank_[rooms_[rank].node] = rank;
        at_least_.fill(0);
        for (const auto& room : rooms_)
            for (int g = 0; g <= room.idle_gpus; ++g) ++at_least_[static_cast<std::size_t>(g)];
    }

    [[nodiscard]] std::uint32_t size() const { return static_cast<std::uint32_t>(gpus_.size()); }
    [[nodiscard]] GpuMask idle_mask(std::uint32_t node) const { return gpus_[node].idle; }

    /// Returns a node for the shape, chosen by the layout's rule among feasible nodes not in `excluded`;
    /// `no_node` if none.
    std::uint32_t choose(const TaskShape& shape, Layout layout, std::span<const std::uint32_t> excluded,
                         Rng& rng) {
        const auto usable = [&](const Room& room) {
            return fits(shape, room) && std::ranges::find(excluded, room.node) == excluded.end();
        };
        // The nodes with enough idle GPUs come first. A fraction may also go to a used GPU.
        const auto pool = std::span(rooms_).first(
            at_least_[shape.gpu_share_milli < 1000 ? 0 : static_cast<std::size_t>(shape.gpu_count)]);
        if (pool.empty()) return no_node;
        const int samples = layout == Layout::random ? 1 : 30;
        const Room* best = nullptr;
        int found = 0;
        const auto consider = [&](const Room& room) {
            ++found;
            if (best == nullptr || (layout == Layout::spread && room.idle_gpus > best->idle_gpus) ||
                (layout == Layout::packed && room.idle_gpus < best->idle_gpus))
                best = &room;
        };
        for (int draws = 0; draws < 10 * samples && found < samples; ++draws)
            if (const auto& room = rng.pick(pool); usable(room)) consider(room);
        if (best != nullptr) return best->node;
        // Feasible nodes are rare: find them all.
        feasible_.clear();
        for (std::uint32_t rank = 0; rank < pool.size(); ++rank)
            if (usable(pool[rank])) feasible_.push_back(rank);
        if (feasible_.empty()) return no_node;
        while (found < samples) consider(pool[rng.pick(std::span(feasible_))]);
        return best->node;
    }

    /// Returns the GPUs that the shape takes by default: the lowest idle ones, or the tightest GPU for a
    /// fraction.
    [[nodiscard]] GpuMask default_gpus(const TaskShape& shape, std::uint32_t node) const {
        const auto& n = gpus_[node];
        if (shape.gpu_share_milli == 1000) return lowest_gpus(n.idle, shape.gpu_count);
        int best = -1;
        for (int g = 0; g < static_cast<int>(n.free_milli.size()); ++g) {
            const auto free = n.free_milli[static_cast<std::size_t>(g)];
            if (free >= shape.gpu_share_milli &&
                (best < 0 || free < n.free_milli[static_cast<std::size_t>(best)]))
                best = g;
        }
        return gpu_bit(best);
    }

    void take(const TaskShape& shape, std::uint32_t node, GpuMask gpus) { change(shape, node, gpus, -1); }
    void give_back(const TaskShape& shape, std::uint32_t node, GpuMask gpus) {
        change(shape, node, gpus, +1);
    }

  private:
    static constexpr std::size_t most_gpus = 32;  // of any preset's nodes, including large ones
    struct Gpus {
        std::array<std::int16_t, most_gpus> free_milli{};
        GpuMask idle = 0;
    };
    struct Room {
        std::int64_t cpu_milli, memory_mib;
        std::uint32_t node;
        std::int16_t gpu_milli;  // largest free part of one GPU
        std::int16_t idle_gpus;
    };

    static std::int16_t largest_free(const Gpus& gpus) {
        return *std::max_element(gpus.free_milli.begin(), gpus.free_milli.end());
    }
    static bool fits(const TaskShape& shape, const Room& room) {
        return shape.cpu_milli <= room.cpu_milli && shape.memory_mib <= room.memory_mib &&
               (shape.gpu_share_milli == 1000 ? shape.gpu_count <= room.idle_gpus
                                              : shape.gpu_share_milli <= room.gpu_milli);
    }

    void change(const TaskShape& shape, std::uint32_t node, GpuMask gpus, int sign) {
        auto& n = gpus_[node];
        for_each_gpu(gpus, [&](int g) {
            auto& free = n.free_milli[static_cast<std::size_t>(g)];
            free = static_cast<std::int16_t>(free + sign * shape.gpu_share_milli);
            n.idle = static_cast<GpuMask>(free == 1000 ? n.idle | gpu_bit(g) : n.idle & ~gpu_bit(g));
        });
        auto& room = rooms_[rank_[node]];
        room.cpu_milli += sign * shape.cpu_milli;
        room.memory_mib += sign * shape.memory_mib;
        room.gpu_milli = largest_free(n);
        const int before = std::exchange(room.idle_gpus, static_cast<std::int16_t>(gpu_count(n.idle)));
        // Keep the order: cross one boundary between idle counts at a time.
        const int after = gpu_count(n.idle);
        for (int idle = before; idle > after; --idle)
            swap_places(rank_[node], --at_least_[static_cast<std::size_t>(idle)]);
        for (int idle = before + 1; idle <= after; ++idle)
            swap_places(rank_[node], at_least_[static_cast<std::size_t>(idle)]++);
    }

    void swap_places(std::uint32_t a, std::uint32_t b) {
        std::swap(rooms_[a], rooms_[b]);
        rank_[rooms_[a].node] = a;
        rank_[rooms_[b].node] = b;
    }

    std::vector<Gpus> gpus_;                               // by node
    std::vector<Room> rooms_;                              // by falling number of idle GPUs
    std::vector<std::uint32_t> rank_;                      // by node: its index in rooms_
    std::array<std::uint32_t, most_gpus + 1> at_least_{};  // nodes with at least that many idle GPUs
    std::vector<std::uint32_t> feasible_;                  // scratch: ranks
};

constexpr std::int64_t generated_now = 14 * 24 * 3600;  // older than any generated task

/// Generates one cluster: first the nodes, then the tasks of each pool.
class Generator {
  public:
    Generator(const GeneratorOptions& options, double locked_fraction, const Context& context)
        : options_(options), shares_(effective_shares(options)), locked_fraction_(locked_fraction),
          budget_(context), attributes_rng_(Rng(options.seed).split(0)) {
        out_.now = generated_now;
        visit_fields(std::type_identity<ConstraintShares>{},
                     [&](const char*, auto share, auto...) { constrained_ |= *(shares_.*share) > 0; });
    }

    /// Adds the nodes of all kinds, switch by switch.
    void add_nodes(std::span<const NodeKind> kinds, std::span<const std::int64_t> counts,
                   const char* hardware) {
        Rng rng = Rng(options_.seed).split(1);
        NodeConstraints constraints(shares_, Rng(options_.seed).split(3));
        std::int64_t total = 0;
        for (const auto count : counts) total += count;
        const auto digits = std::to_string(total - 1).size();
        std::size_t asw = 0;
        for (std::size_t k = 0; k < kinds.size(); ++k) {
            std::int64_t room = 0;
            for (std::int64_t i = 0; i < counts[k]; ++i, --room) {
                if (room == 0) {
                    room = rng.between(32, 64);
                    ++asw;
                    constraints.next_switch();
                }
                const auto number = std::to_string(out_.nodes.size());
                NodeSpec node;
                node.name = "node-" + std::string(digits - number.size(), '0') + number;
                node.gpu_model = kinds[k].model;
                node.gpu_count = kinds[k].gpus;
                node.cpu_milli = kinds[k].cpu_milli;
                node.memory_mib = kinds[k].memory_mib;
                node.network = {"cluster-0", "agg-" + std::to_string((asw - 1) / 16),
                                "asw-" + std::to_string(asw - 1)};
                if (hardware != nullptr) node.hardware = Hardware{hardware, {}};
                if (constrained_) constraints.apply(node);
                out_.nodes.push_back(std::move(node));
            }
        }
    }

    void report(std::size_t pool, std::size_t pools) noexcept {
        budget_.report("fill", static_cast<std::int64_t>(pool), static_cast<std::int64_t>(pools));
    }

    /// Fills the nodes of some kinds (`members`, indices into the recipe's kinds) with tasks and churns them.
    void fill(const Recipe& recipe, std::span<const std::int64_t> counts,
              std::span<const std::size_t> members, Rng rng) {
        const auto kinds = recipe.kinds;
        NodePool pool;
        std::vector<std::uint32_t> global;  // pool node -> node of the cluster
        std::int64_t target_milli = 0;
        std::vector<std::size_t> kind_by_gpu;  // a kind is drawn with probability proportional to its GPUs
        for (const auto k : members) {
            std::int64_t first = 0, gpus = 0;
            for (std::size_t before = 0; before < k; ++before) first += counts[before];
            for (std::int64_t i = 0; i < counts[k]; ++i) {
                const auto& node = out_.nodes[static_cast<std::size_t>(first + i)];
                pool.add(node);
                global.push_back(static_cast<std::uint32_t>(first + i));
                kind_by_gpu.insert(kind_by_gpu.end(), static_cast<std::size_t>(node.gpu_count), k);
                gpus += node.gpu_count;
            }
            const double share = std::min(0.97, kinds[k].allocated * options_.load);
            target_milli += std::llround(static_cast<double>(gpus * 1000) * share);
        }
        if (pool.size() == 0) return;
        pool.index();

        Stream stream{};
        std::vector<Task> tasks;
        std::int64_t allocated_milli = 0;
        std::array<std::int64_t, task_classes> running{};  // per class
        const auto crowded = [&](TaskClass c) {            // more than 3 % plus 10 tasks above its share
            const auto share = recipe.mix[static_cast<std::size_t>(c)];
            const auto total = static_cast<std::int64_t>(tasks.size());
            return share > 0 && 100'000 * (running[static_cast<std::size_t>(c)] - 10) > 103 * share * total;
        };
        const auto refill = [&] {
            for (int failures = 0;
                 allocated_milli < target_milli && failures < 100 && !budget_.exhausted();) {
                if (stream.replicas_left == 0) {
                    const auto& kind =
                        kinds[kind_by_gpu[static_cast<std::size_t>(rng.below(kind_by_gpu.size()))]];
                    do stream.shape = recipe.draw(rng, kind, options_.cpu_tight);
                    while (crowded(class_of(stream.shape)));
                    stream.replicas_left = rng.below(4) == 0 ? static_cast<int>(rng.between(2, 16)) : 1;
                    stream.anti_affine = stream.replicas_left > 1 && rng.below(2) == 0;
                    stream.job = jobs_++;
                    stream.next_replica = 0;
                    stream.occupied.clear();
                }
                const auto node = pool.choose(stream.shape, options_.layout, stream.occupied, rng);
                if (node == no_node) {  // no room for another replica: try the next job
                    stream.replicas_left = 0;
                    ++failures;
                    continue;
                }
                failures = 0;
                const auto gpus = pool.default_gpus(stream.shape, node);
                pool.take(stream.shape, node, gpus);
                if (stream.anti_affine) stream.occupied.push_back(node);
                tasks.push_back(
                    {stream.shape, node, gpus, stream.job, stream.next_replica++, stream.anti_affine});
                --stream.replicas_left;
                allocated_milli += gpu_milli(stream.shape);
                ++running[static_cast<std::size_t>(class_of(stream.shape))];
            }
        };
        refill();
        const auto enough = 3 * tasks.size();
        for (std::size_t removed = 0; removed < enough && !tasks.empty() && !budget_.exhausted();) {
            for (auto n = rng.between(1, 4); n > 0 && !tasks.empty(); --n, ++removed) {
                std::swap(rng.pick(std::span(tasks)), tasks.back());
                const auto& task = tasks.back();
                pool.give_back(task.shape, task.node, task.gpus);
                allocated_milli -= gpu_milli(task.shape);
                --running[static_cast<std::size_t>(class_of(task.shape))];
                if (task.job == stream.job) std::erase(stream.occupied, task.node);
                tasks.pop_back();
            }
            refill();
        }
        std::ranges::sort(tasks, {}, [](const Task& task) { return std::pair(task.job, task.replica); });
        // All tasks of a job share one class.
        std::int64_t last_job = -1;
        Attributes attributes{};
        for (const auto& task : tasks) {
            if (task.job != last_job) attributes = draw_attributes();
            last_job = task.job;
            emit(task, global[task.node], attributes, recipe.by_model);
        }
    }

    /// Adds the tasks of the saturated cluster of the FlexTopo paper's Table 3: workloads A to D in turn.
    void fill_flextopo(std::int64_t nodes) {
        struct Workload {
            std::int64_t count;
            int gpus;
            Attributes attributes;
        };
        // Per 100 nodes: 20 x A, 40 x B, 200 x C; D takes the rest of the 800 GPUs (80).
        const double load = std::min(1.0, options_.load);
        const auto part = [&](std::int64_t per_hundred) {
            return static_cast<std::int64_t>(
                std::floor(static_cast<double>(nodes * per_hundred) * load / 100));
        };
        const auto a = part(20), b = part(40), c = part(200), d = part(800) - 8 * a - 4 * b - 2 * c;
        const std::array<Workload, 4> workloads{{{a, 8, {PriorityClass::hp, 1500}},
                                                 {b, 4, {PriorityClass::hp, 1000}},
                                                 {c, 2, {PriorityClass::lp, 500}},
                                                 {d, 1, {PriorityClass::lp, 200}}}};
        Rng rng = Rng(options_.seed).split(2);
        NodePool pool;
        for (const auto& node : out_.nodes) pool.add(node);
        pool.index();
        for (std::size_t w = 0; w < workloads.size(); ++w) {
            const auto& workload = workloads[w];
            const TaskShape shape{workload.gpus, 1000, flextopo_kind.cpu_milli / 8 * workload.gpus,
                                  flextopo_kind.memory_mib / 8 * workload.gpus};
            for (std::int64_t i = 0; i < workload.count; ++i) {
                const auto node = pool.choose(shape, options_.layout, {}, rng);
                const auto gpus = choose_socket(pool.idle_mask(node), workload.gpus, rng);
                pool.take(shape, node, gpus);
                emit({shape, node, gpus, static_cast<std::int64_t>(w), static_cast<std::int32_t>(i), false},
                     node, workload.attributes, true);
            }
        }
        static constexpr std::string_view letters = "ABCD";
        for (auto& task : out_.tasks) {
            const auto w = static_cast<std::size_t>(task.job.back() - '0');
            task.name = letters[w] + task.name.substr(task.job.size());
            task.job.clear();  // instances of a service, not a gang
        }
    }

    /// Adds tasks on devices other than whole GPUs.
    void fill_devices() {
        if (!constrained_) return;
        Rng rng = Rng(options_.seed).split(4);
        Attributes attributes{};
        int replicas_left = 0;
        std::int32_t replica = 0;
        for (const auto& asked : draw_device_tasks(out_, options_.load, rng)) {
            if (replicas_left-- == 0) {
                replicas_left = rng.below(4) == 0 ? static_cast<int>(rng.between(1, 7)) : 0;
                replica = 0;
                ++jobs_;
                attributes = draw_attributes();
            }
            emit({{0, 1000, asked.cpu_milli, asked.memory_mib},
                  asked.node,
                  asked.devices,
                  jobs_ - 1,
                  replica++,
                  false},
                 asked.node, attributes, false);
            auto& task = out_.tasks.back();
            task.device_count = gpu_count(asked.devices);
            task.device_classes = asked.classes;
        }
    }

    /// Adds constraints to the jobs.
    void constrain_jobs() {
        if (constrained_) JobConstraints(shares_, out_, Rng(options_.seed).split(5)).apply();
    }

    [[nodiscard]] ClusterSpec take() { return std::move(out_); }

  private:
    struct Task {
        TaskShape shape;
        std::uint32_t node;
        GpuMask gpus;
        std::int64_t job;
        std::int32_t replica;
        bool anti_affine;
    };
    /// The job that is being placed. A refill continues with its remaining replicas.
    struct Stream {
        TaskShape shape;
        std::int64_t job = -1;
        std::int32_t next_replica = 0;
        int replicas_left = 0;
        bool anti_affine = false;
        std::vector<std::uint32_t> occupied;  // nodes of its replicas, if they must not meet
    };
    struct Attributes {
        PriorityClass priority_class = PriorityClass::hp;
        std::int64_t priority = 0;
    };

    static std::int64_t gpu_milli(const TaskShape& shape) {
        return std::int64_t{shape.gpu_count} * shape.gpu_share_milli;
    }

    /// Makes 25 of 93 parts LP: HP alone allocates 68 %, both together 93 % (ASI paper, Fig. 9).
    Attributes draw_attributes() {
        static constexpr std::array<std::int64_t, 2> hp{1000, 1500};
        static constexpr std::array<std::int64_t, 2> lp{200, 500};
        if (attributes_rng_.below(93) < 25) return {PriorityClass::lp, pick(attributes_rng_, lp)};
        return {PriorityClass::hp, pick(attributes_rng_, hp)};
    }

    /// Picks idle GPUs for a task: within one socket (the fuller one that has enough) if wanted, otherwise
    /// any.
    GpuMask choose_socket(GpuMask idle, int count, Rng& rng) const {
        if (options_.aligned_gpus) {
            const auto lower = static_cast<GpuMask>(idle & 0x0F), upper = static_cast<GpuMask>(idle & 0xF0);
            GpuMask best = 0;
            for (const auto socket : {lower, upper})
                if (gpu_count(socket) >= count && (best == 0 || gpu_count(socket) < gpu_count(best)))
                    best = socket;
            if (best != 0) return lowest_gpus(best, count);
        }
        std::vector<int> gpus;
        for_each_gpu(idle, [&](int g) { gpus.push_back(g); });
        rng.shuffle(std::span(gpus));
        GpuMask chosen = 0;
        for (int i = 0; i < count; ++i) chosen |= gpu_bit(gpus[static_cast<std::size_t>(i)]);
        return chosen;
    }

    void emit(const Task& task, std::uint32_t node, const Attributes& attributes, bool name_model) {
        auto& rng = attributes_rng_;
        TaskSpec spec;
        spec.job = "job-" + std::to_string(task.job);
        spec.name = spec.job + "-" + std::to_string(task.replica);
        spec.cpu_milli = task.shape.cpu_milli;
        spec.memory_mib = task.shape.memory_mib;
        spec.gpu_count = task.shape.gpu_count;
        spec.gpu_share_milli = task.shape.gpu_share_milli;
        if (name_model) spec.gpu_models = {out_.nodes[node].gpu_model};
        spec.priority_class = attributes.priority_class;
        spec.priority = attributes.priority;
        spec.locked = rng.chance(locked_fraction_);
        if (task.anti_affine) spec.anti_affinity = {{spec.job, node_level, 1}};
        // Age: each of 12 doublings from about 5 minutes to 13 days is equally likely, so that the median is
        // 5 hours.
        const std::int64_t at_least = std::int64_t{281} << rng.below(12);
        spec.start_time = out_.now - at_least - rng.between(0, at_least - 1);
        spec.checkpoint_interval = 60 * rng.between(10, 120);
        spec.last_checkpoint_time = out_.now - (out_.now - spec.start_time) % spec.checkpoint_interval;
        if (spec.priority_class == PriorityClass::lp) {
            static constexpr std::array<std::int64_t, 8> evictions{0, 0, 0, 0, 1, 1, 2, 3};
            spec.eviction_count = pick(rng, evictions);
        }
        spec.node = out_.nodes[node].name;
        for_each_gpu(task.gpus, [&](int g) { spec.gpus.push_back(g); });
        out_.tasks.push_back(std::move(spec));
    }

    const GeneratorOptions& options_;
    ConstraintShares shares_;
    bool constrained_ = false;  // nodes or jobs have constraints
    double locked_fraction_;
    Budget budget_;
    Rng attributes_rng_;
    ClusterSpec out_;
    std::int64_t jobs_ = 0;
};

}  // namespace detail

GPUSCHED_EXPORT void validate(const GeneratorOptions& options) {
    Problems problems;
    constexpr std::array<std::string_view, 4> presets{"asi", "openb", "flextopo-4090", "constrained"};
    if (std::ranges::find(presets, options.preset) == presets.end())
        problems.add(bad_name("preset", options.preset, presets));
    check_fields(problems, options);
    const auto with_preset = " with preset " + gpusched::quoted(options.preset);
    if (options.cpu_tight && options.preset != "asi" && options.preset != "constrained")
        problems.add(bad_value("cpu_tight", "true", "false" + with_preset));
    if (options.preset == "flextopo-4090")
        visit_fields(std::type_identity<ConstraintShares>{}, [&](const char* name, auto member, auto...) {
            if (const auto share = options.constraints.*member)
                problems.add(bad_value(name, number_text(*share), "none" + with_preset));
        });
    problems.throw_if_any();
}

GPUSCHED_EXPORT ClusterSpec generate_cluster(const GeneratorOptions& options, const Context& context) {
    using namespace detail;
    validate(options);
    const Rng rng(options.seed);
    if (options.preset == "flextopo-4090") {
        Generator generator(options, options.locked_fraction.value_or(0.0), context);
        const auto nodes = options.nodes.value_or(flextopo_kind.count);
        generator.add_nodes(std::span(&flextopo_kind, 1), std::span(&nodes, 1), "rtx4090x8");
        generator.fill_flextopo(nodes);
        return generator.take();
    }
    const auto& recipe = options.preset == "openb" ? openb_recipe : asi_recipe;
    const auto counts = scale_counts(recipe.kinds, options.nodes.value_or(original_size(recipe.kinds)));
    Generator generator(options, options.locked_fraction.value_or(0.4), context);
    generator.add_nodes(recipe.kinds, counts, nullptr);
    std::vector<std::vector<std::size_t>> pools;  // kinds with nodes that compete for the same tasks
    for (std::size_t k = 0; k < recipe.kinds.size(); ++k) {
        const bool joins =
            !pools.empty() &&
            (!recipe.by_model || recipe.kinds[k].model == recipe.kinds[pools.back().front()].model);
        if (!joins) pools.emplace_back();
        pools.back().push_back(k);
    }
    for (std::size_t p = 0; p < pools.size(); ++p) {
        generator.report(p, pools.size());
        generator.fill(recipe, counts, pools[p], rng.split(100 + p));
    }
    generator.fill_devices();
    generator.constrain_jobs();
    return generator.take();
}

}  // namespace gpusched::sim
