// SPDX-License-Identifier: Apache-2.0
// A hash of a plan, by which plans of different builds are compared.
#pragma once

#include <gpusched/core/enum_names.hpp>
#include <gpusched/model/plan.hpp>

#include <cstdint>
#include <string>

namespace gpusched::bench {

/// FNV-1a with 64 bits, as 16 hexadecimal digits. It covers the moves with their waves, the evictions, the
/// placements, and the nodes that the plan vacates and opens; not the bound and the statistics.
inline std::string plan_hash(const PlanSpec& plan) {
    std::uint64_t hash = 14'695'981'039'346'656'037u;
    const auto add_text = [&](const std::string& text) {
        for (const char character : text + '\n')
            hash = (hash ^ static_cast<unsigned char>(character)) * 1'099'511'628'211u;
    };
    const auto add_number = [&](std::int64_t number) { add_text(std::to_string(number)); };
    const auto add_gpus = [&](const std::vector<int>& gpus) {
        add_text("gpus");
        for (const int gpu : gpus) add_number(gpu);
    };

    add_number(plan.waves);
    for (const auto& move : plan.moves) {
        add_text("move");
        add_text(move.task);
        add_text(move.from);
        add_text(move.to);
        add_gpus(move.gpus);
        add_number(move.wave);
        add_text(enum_name(move.how));
        add_number(move.chain.value_or(-1));
        add_text(move.serves);
    }
    for (const auto& placement : plan.placements) {
        add_text("placement");
        add_text(placement.task);
        add_text(placement.node);
        add_gpus(placement.gpus);
    }
    for (const auto& task : plan.evictions) add_text("eviction " + task);
    for (const auto& node : plan.vacated_nodes) add_text("vacated " + node);
    for (const auto& node : plan.opened_nodes) add_text("opened " + node);

    std::string digits(16, '0');
    for (int at = 15; hash != 0; --at, hash /= 16)
        digits[static_cast<std::size_t>(at)] = "0123456789abcdef"[hash % 16];
    return digits;
}

}  // namespace gpusched::bench
