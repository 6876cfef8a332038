// Expected fill against FGD over the whole load curve: allocated GPUs and refused tasks at every tenth of the demand.
//
//   bench_placement_curve [--data FOLDER] [--seeds N] [--first N] [--list NAME]... [--placement NAME] [--against NAME]
//                         [--json FILE] [--smoke]
//
// FOLDER is as for bench_placement_openb. Every list is resampled to 130 % of the GPU capacity with seeds first .. first + N - 1 (default 0
// .. 9), and both policies see the same tasks. A row is the state when the demand passes 50, 60, ... 130 % of the GPUs: allocated GPUs in per cent
// of all, and tasks of eight GPUs that were refused so far in per cent of those that arrived; means, and differences paired by seed
// with the half widths of their 95 % intervals. --json writes one line per run and load. Exits with 3 when there is no data.
#include "../interval.hpp"

#include <gpusched/io/openb.hpp>
#include <gpusched/sim/replay.hpp>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace {

using namespace gpusched;
using bench::interval;

constexpr int first_load = 50, last_load = 130, step = 10;
constexpr int large = 8;  // GPUs of the tasks whose refusals are counted

struct Arguments {
    std::filesystem::path data;
    int seeds = 10, first = 0;
    std::vector<std::string> lists;
    std::string placement = "expected_fill", against = "fgd", json;
    bool smoke = false;
};

std::filesystem::path default_data() {
    if (const char* root = std::getenv("GPUSCHED_DATA"))
        return std::filesystem::path(root) / "alibaba-gpu-v2023";
    const auto repository = std::filesystem::path(__FILE__).parent_path().parent_path().parent_path();
    return repository.parent_path() / "shared" / "data" / "alibaba-gpu-v2023";
}

Arguments parse(int argc, char** argv) {
    Arguments out{.data = default_data()};
    for (int i = 1; i < argc; ++i) {
        const std::string name = argv[i];
        if (name == "--smoke") {
            out.seeds = 2;
            out.lists = {"default"};
            out.smoke = true;
            continue;
        }
        if (i + 1 >= argc) {
            std::fprintf(stderr, "%s needs a value\n", name.c_str());
            std::exit(2);
        }
        const std::string value = argv[++i];
        if (name == "--data")
            out.data = value;
        else if (name == "--seeds")
            out.seeds = std::max(1, std::atoi(value.c_str()));
        else if (name == "--first")
            out.first = std::max(0, std::atoi(value.c_str()));
        else if (name == "--list")
            out.lists.push_back(value);
        else if (name == "--placement")
            out.placement = value;
        else if (name == "--against")
            out.against = value;
        else if (name == "--json")
            out.json = value;
        else {
            std::fprintf(stderr, "unknown argument %s\n", name.c_str());
            std::exit(2);
        }
    }
    if (out.lists.empty()) out.lists = {"default", "cpu250", "gpushare100", "multigpu50"};
    return out;
}

struct Point {
    double allocated = 0;      // per cent of all GPUs
    double large_arrived = 0;  // tasks
    double large_refused = 0;  // tasks
    double refused_percent() const { return large_arrived > 0 ? 100 * large_refused / large_arrived : 0; }
};

// One point for each load.
std::vector<Point> run(const Trace& trace, const std::string& placement, std::uint64_t seed,
                       double capacity_milli) {
    const auto result = sim::replay(trace, {.placement = placement, .resample_to = 1.3, .seed = seed});
    const auto& t = result.timeline;
    const auto& tasks = result.cluster.inventory().tasks;
    std::vector<Point> points;
    Point now;
    std::int64_t unplaced = 0;
    // Nothing departs, so that the tasks of the final cluster are the arrivals, in order.
    for (std::size_t i = 0; i < t.size(); ++i) {
        const auto load = first_load + step * static_cast<int>(points.size());
        const auto limit = load / 100.0 * capacity_milli;
        if (load <= last_load && static_cast<double>(t.requested_gpu_milli[i]) > limit) points.push_back(now);
        now.allocated = 100 * static_cast<double>(t.allocated_gpu_milli[i]) / capacity_milli;
        if (tasks.gpu_count[i] == large) {
            ++now.large_arrived;
            now.large_refused += t.unplaced[i] > unplaced ? 1 : 0;
        }
        unplaced = t.unplaced[i];
    }
    // The list ends just below the last load.
    while (static_cast<int>(points.size()) <= (last_load - first_load) / step) points.push_back(now);
    return points;
}

}  // namespace

int main(int argc, char** argv) {
    const auto arguments = parse(argc, argv);
    const auto nodes = arguments.data / "openb_node_list_all_node.csv";
    if (!std::filesystem::exists(nodes)) {
        std::fprintf(stderr, "no data: %s is missing; set GPUSCHED_DATA or --data\n", nodes.string().c_str());
        return arguments.smoke ? 0 : 3;
    }
    std::ofstream json;
    if (!arguments.json.empty()) json.open(arguments.json);
    std::printf("%s and %s, seeds %d to %d; allocated GPUs and refused tasks of %d GPUs, in %%; ± is a 95 %% "
                "interval of the "
                "difference, paired by seed.\n\n",
                arguments.against.c_str(), arguments.placement.c_str(), arguments.first,
                arguments.first + arguments.seeds - 1, large);
    std::printf("| list | load | allocated, %s | allocated, %s | difference | refused, %s | refused, %s | "
                "difference |\n"
                "|---|---|---|---|---|---|---|---|\n",
                arguments.against.c_str(), arguments.placement.c_str(), arguments.against.c_str(),
                arguments.placement.c_str());
    for (const auto& list : arguments.lists) {
        const auto trace =
            io::read_openb(nodes.string(), (arguments.data / ("openb_pod_list_" + list + ".csv")).string());
        double capacity_milli = 0;
        for (const auto& node : trace.nodes) capacity_milli += 1000 * static_cast<double>(node.gpu_count);
        std::vector<std::vector<Point>> theirs, ours;
        for (int s = 0; s < arguments.seeds; ++s) {
            const auto seed = static_cast<std::uint64_t>(arguments.first + s);
            theirs.push_back(run(trace, arguments.against, seed, capacity_milli));
            ours.push_back(run(trace, arguments.placement, seed, capacity_milli));
        }
        for (std::size_t p = 0; p < ours.front().size(); ++p) {
            const int load = first_load + step * static_cast<int>(p);
            const auto column = [&](auto get) {
                std::vector<double> values;
                for (std::size_t s = 0; s < ours.size(); ++s) values.push_back(get(theirs[s][p], ours[s][p]));
                return interval(values);
            };
            using P = const Point&;
            const auto refused = column([](P a, P b) { return b.refused_percent() - a.refused_percent(); });
            const auto allocated = column([](P a, P b) { return b.allocated - a.allocated; });
            std::printf("| %s | %d | %.2f | %.2f | %+.2f ±%.2f | %.1f | %.1f | %+.1f ±%.1f |\n", list.c_str(),
                        load, column([](P a, P) { return a.allocated; }).mean,
                        column([](P, P b) { return b.allocated; }).mean, allocated.mean, allocated.half,
                        column([](P a, P) { return a.refused_percent(); }).mean,
                        column([](P, P b) { return b.refused_percent(); }).mean, refused.mean, refused.half);
            for (std::size_t s = 0; json.is_open() && s < ours.size(); ++s)
                for (const auto* policy : {&theirs, &ours}) {
                    const auto& point = (*policy)[s][p];
                    json << "{\"list\": \"" << list << "\", \"placement\": \""
                         << (policy == &ours ? arguments.placement : arguments.against)
                         << "\", \"seed\": " << arguments.first + static_cast<int>(s)
                         << ", \"load_pct\": " << load << ", \"allocated_pct\": " << point.allocated
                         << ", \"large_arrived\": " << point.large_arrived
                         << ", \"large_refused\": " << point.large_refused << "}\n";
                }
        }
    }
    return 0;
}
