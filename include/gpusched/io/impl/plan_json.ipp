#pragma once

#include <gpusched/core/file.hpp>
#include <gpusched/io/detail/json_reader.hpp>
#include <gpusched/io/detail/json_writer.hpp>
#include <gpusched/io/plan_json.hpp>

#include <algorithm>
#include <optional>
#include <vector>

namespace GPUSCHED_NAMESPACE::io {

namespace detail {

/// A wave's number, or how many there are.
struct WaveCodec : ByType {
    static void read(JsonReader& reader, std::uint32_t at, std::int64_t& out) {
        reader.read_integer(at, out, std::int64_t{0}, std::int64_t{UINT32_MAX});
    }
};

/// A chain's number.
struct ChainCodec : ByType {
    static void read(JsonReader& reader, std::uint32_t at, std::optional<std::int64_t>& out) {
        if (reader.kind(at) == JsonKind::null) return;
        std::int64_t number = -1;
        reader.read_integer(at, number, std::int64_t{0}, std::int64_t{UINT32_MAX} - 1);
        if (number >= 0) out = number;
    }
};

template <>
inline constexpr auto fields<PlanSpec::Move> = std::tuple{
    field("task", &PlanSpec::Move::task, Need::required),
    field("from", &PlanSpec::Move::from, Need::required),
    field("to", &PlanSpec::Move::to, Need::required),
    field("gpus", &PlanSpec::Move::gpus),
    field<WaveCodec>("wave", &PlanSpec::Move::wave, Need::required),
    field<IfAny>("how", &PlanSpec::Move::how, Need::optional, 2),
    field<ChainCodec>("chain", &PlanSpec::Move::chain, Need::optional, 2),
    field<IfAny>("for", &PlanSpec::Move::serves, Need::optional, 2),
};

template <>
inline constexpr auto fields<PlanSpec::Placement> = std::tuple{
    field("task", &PlanSpec::Placement::task, Need::required),
    field("node", &PlanSpec::Placement::node, Need::required),
    field("gpus", &PlanSpec::Placement::gpus),
};

template <>
inline constexpr auto fields<Bound> = std::tuple{
    field("occupied_nodes_at_least", &Bound::occupied_nodes_at_least),
    field("vacated_nodes_at_most", &Bound::vacated_nodes_at_most),
    field("vacated_gpus_at_most", &Bound::vacated_gpus_at_most),
    field("method", &Bound::method),
};

template <>
inline constexpr auto fields<SlotShape> = std::tuple{
    field<IfAny>("gpu_count", &SlotShape::gpu_count),
    field<IfAny>("cpu_milli", &SlotShape::cpu_milli),
    field<IfAny>("memory_mib", &SlotShape::memory_mib),
};

template <>
inline constexpr auto fields<Goal> = std::tuple{
    field("empty_nodes", &Goal::empty_nodes),
    field("slots", &Goal::slots),
    field("count", &Goal::count),
    field<IfAny>("gpu_model", &Goal::gpu_model),
};

template <>
inline constexpr auto fields<PlanSpec> = std::tuple{
    field<WaveCodec>("waves", &PlanSpec::waves, Need::required),
    field("moves", &PlanSpec::moves, Need::required),
    field("vacated_nodes", &PlanSpec::vacated_nodes, Need::required),
    field("evictions", &PlanSpec::evictions),
    field("placements", &PlanSpec::placements),
    field("stats", &PlanSpec::stats),
    field("bound", &PlanSpec::bound),
    field<IfAny>("opened_nodes", &PlanSpec::opened_nodes, Need::optional, 2),
    field("goal", &PlanSpec::goal, Need::optional, 2),
    field("goal_reached", &PlanSpec::goal_reached, Need::optional, 2),
};

inline constexpr std::string_view plan_format = "gpusched.plan";
inline constexpr int newest_plan_version = 2;

/// The first version of the format that can say it.
inline int version_for(const PlanSpec& plan) {
    constexpr int gpus_in_version_1 = 16;
    const auto many = [](const std::vector<int>& gpus) {
        return std::any_of(gpus.begin(), gpus.end(), [](int gpu) { return gpu >= gpus_in_version_1; });
    };
    return !plan.opened_nodes.empty() || plan.goal || plan.goal_reached ||
                   std::any_of(plan.moves.begin(), plan.moves.end(),
                               [&](const PlanSpec::Move& move) {
                                   return move.how != MoveMode::copy || move.chain || !move.serves.empty() ||
                                          many(move.gpus);
                               }) ||
                   std::any_of(plan.placements.begin(), plan.placements.end(),
                               [&](const PlanSpec::Placement& placement) { return many(placement.gpus); })
               ? 2
               : 1;
}

}  // namespace detail

GPUSCHED_INLINE PlanSpec plan_from_json(std::string_view text, std::string_view source) {
    return detail::read_document<PlanSpec>(text, source, detail::plan_format, detail::newest_plan_version);
}

GPUSCHED_INLINE PlanSpec read_plan(const std::string& path) { return plan_from_json(read_file(path), path); }

GPUSCHED_INLINE std::string plan_to_json(const PlanSpec& plan, int indent) {
    return detail::write_document(detail::plan_format, plan, indent, detail::version_for(plan));
}

GPUSCHED_INLINE void write_plan(const PlanSpec& plan, const std::string& path) {
    write_file(path, plan_to_json(plan));
}

}  // namespace GPUSCHED_NAMESPACE::io
