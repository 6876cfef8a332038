// SPDX-License-Identifier: Apache-2.0
// Validity, placement, transitions and counts of MIG layouts.
#include <gpusched/config.hpp>
#include <gpusched/control/mig_layout.hpp>
#include <gpusched/core/checks.hpp>

#include <algorithm>
#include <bit>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>

namespace gpusched::control {

namespace mig_detail {

static int longest_run(std::uint8_t free) noexcept {
    int length = 0;
    for (unsigned bits = free; bits != 0; bits &= bits << 1) ++length;
    return length;
}

static int count_placements(const MigDevice& device, const MigLayout& layout) noexcept {
    int count = 0;
    for (std::size_t p = 0; p < device.profiles.size(); ++p)
        for_each_free_placement(device, layout, p, [&](MigInstance) { ++count; });
    return count;
}

static std::vector<MigInstance> placements_of(const MigDevice& device,
                                              std::span<const std::string_view> keys) {
    std::vector<MigInstance> out;
    Problems problems;
    std::set<int> used;
    std::vector<std::string_view> known;
    for (const auto& profile : device.profiles) known.push_back(profile.key);
    for (const auto& key : keys) {
        const auto found = device.find(key);
        if (found < 0)
            problems.add(
                bad_value("profiles", gpusched::quoted(key), "a profile of " + std::string(device.name)) +
                did_you_mean(key, known));
        used.insert(found);
    }
    problems.throw_if_any();
    for (std::size_t p = 0; p < device.profiles.size(); ++p) {
        if (!keys.empty() && !used.contains(static_cast<int>(p))) continue;
        for (int s = 0; s < device.memory_slices; ++s)
            if (device.profiles[p].starts >> s & 1)
                out.push_back({static_cast<std::uint8_t>(p), static_cast<std::uint8_t>(s)});
    }
    return out;
}

/// Visits every valid layout once, with instances in the order of `placements`.
template <class Visit>
void for_each_layout(const MigDevice& device, std::span<const MigInstance> placements, std::size_t first,
                     const MigLayout& layout, const Visit& visit) {
    visit(layout);
    for (std::size_t i = first; i < placements.size(); ++i) {
        if (!can_create(device, layout, placements[i])) continue;
        auto next = layout;
        next.add(placements[i]);
        for_each_layout(device, placements, i + 1, next, visit);
    }
}

}  // namespace mig_detail

GPUSCHED_EXPORT MigLayout::MigLayout(std::span<const MigInstance> instances) {
    if (instances.size() > capacity)
        throw InvalidInput(bad_value("instances", number_text(instances.size()), "at most 8"));
    for (const auto& instance : instances) add(instance);
}

GPUSCHED_EXPORT bool operator==(const MigLayout& a, const MigLayout& b) noexcept {
    const auto x = a.instances(), y = b.instances();
    return std::is_permutation(x.begin(), x.end(), y.begin(), y.end());
}

GPUSCHED_EXPORT std::uint8_t occupied_slices(const MigDevice& device, const MigLayout& layout) noexcept {
    std::uint8_t used = 0;
    for (const auto& i : layout.instances()) used |= device.profiles[i.profile].slices(i.start);
    return used;
}

GPUSCHED_EXPORT bool can_create(const MigDevice& device, const MigLayout& layout,
                                MigInstance instance) noexcept {
    if (instance.profile >= device.profiles.size() || instance.start >= device.memory_slices) return false;
    if (layout.size() == MigLayout::capacity) return false;
    const auto& profile = device.profiles[instance.profile];
    if (!(profile.starts >> instance.start & 1)) return false;
    int same = 0;
    for (const auto& other : layout.instances()) {
        const auto& theirs = device.profiles[other.profile];
        if (theirs.slices(other.start) & profile.slices(instance.start)) return false;
        if (theirs.media && profile.media) return false;
        same += other.profile == instance.profile;
    }
    return same < profile.max_count;
}

GPUSCHED_EXPORT bool is_valid(const MigDevice& device, const MigLayout& layout) noexcept {
    MigLayout built;
    for (const auto& instance : layout.instances()) {
        if (!can_create(device, built, instance)) return false;
        built.add(instance);
    }
    return true;
}

GPUSCHED_EXPORT int largest_free_block(const MigDevice& device, const MigLayout& layout) noexcept {
    return mig_detail::longest_run(
        static_cast<std::uint8_t>(device.all_slices() & ~occupied_slices(device, layout)));
}

GPUSCHED_EXPORT std::optional<MigInstance> least_fragmenting(const MigDevice& device, const MigLayout& layout,
                                                             int profile) noexcept {
    std::optional<MigInstance> best;
    std::tuple<int, int> best_left{-1, -1};
    if (profile < 0 || static_cast<std::size_t>(profile) >= device.profiles.size()) return best;
    for_each_free_placement(device, layout, static_cast<std::size_t>(profile), [&](MigInstance candidate) {
        auto after = layout;
        after.add(candidate);
        const std::tuple left{largest_free_block(device, after), mig_detail::count_placements(device, after)};
        if (left > best_left) {
            best_left = left;
            best = candidate;
        }
    });
    return best;
}

GPUSCHED_EXPORT std::size_t enlargements(const MigDevice& device, const MigLayout& layout, MigInstance own,
                                         std::span<MigInstance, 16> out, bool largest_first) noexcept {
    auto rest = layout;
    if (!rest.remove(own)) return 0;
    struct Choice {
        int sm = 0, memory = 0, overlaps = 0, lost = 0;
        MigInstance instance{};
        auto operator<=>(const Choice&) const = default;
    };
    std::array<Choice, 64> found{};
    std::size_t count = 0;
    const auto& now = device.profiles[own.profile];
    for (std::size_t p = 0; p < device.profiles.size(); ++p) {
        const auto& profile = device.profiles[p];
        const bool more_memory =
            profile.sm_count == now.sm_count && profile.memory_slices > now.memory_slices;
        if (profile.media || (profile.sm_count <= now.sm_count && !more_memory)) continue;
        for_each_free_placement(device, rest, p, [&](MigInstance candidate) {
            auto after = rest;
            after.add(candidate);
            const int sign = largest_first ? -1 : 1;
            found[count++] = {sign * profile.sm_count, sign * profile.memory_slices,
                              !can_create(device, layout, candidate), -largest_free_block(device, after),
                              candidate};
        });
    }
    std::sort(found.begin(), found.begin() + static_cast<std::ptrdiff_t>(count));
    count = std::min(count, out.size());
    for (std::size_t i = 0; i < count; ++i) out[i] = found[i].instance;
    return count;
}

GPUSCHED_EXPORT MigTransition transition(const MigDevice& device, const MigLayout& from,
                                         const MigLayout& to) {
    Problems problems;
    if (!is_valid(device, from)) problems.add("from: expected a valid layout of " + std::string(device.name));
    if (!is_valid(device, to)) problems.add("to: expected a valid layout of " + std::string(device.name));
    problems.throw_if_any();
    MigTransition out;
    MigLayout now = from, create = to, destroy;
    for (const auto& instance : from.instances())
        if (!create.remove(instance)) destroy.add(instance);
    bool destroyed = false;
    out.make_before_break = true;
    const auto step = [&](MigStep::Kind kind, MigInstance instance) {
        out.steps[out.count++] = {kind, instance};
    };
    // If nothing is left to destroy, the rest of `to` fits: the current layout is a part of `to`.
    while (create.size() + destroy.size() > 0) {
        std::optional<MigInstance> fits;
        for (const auto& instance : create.instances())
            if (can_create(device, now, instance) && (!fits || instance < *fits)) fits = instance;
        if (fits) {
            step(MigStep::Kind::create, *fits);
            now.add(*fits);
            create.remove(*fits);
            out.make_before_break &= !destroyed;
        } else {
            const auto victims = destroy.instances();
            GPUSCHED_ASSERT(!victims.empty());
            const auto victim = *std::min_element(victims.begin(), victims.end());
            step(MigStep::Kind::destroy, victim);
            now.remove(victim);
            destroy.remove(victim);
            destroyed = true;
        }
    }
    return out;
}

GPUSCHED_EXPORT std::vector<MigLayout> all_layouts(const MigDevice& device,
                                                   std::span<const std::string_view> profiles) {
    std::vector<MigLayout> out;
    const auto placements = mig_detail::placements_of(device, profiles);
    mig_detail::for_each_layout(device, placements, 0, {}, [&](const MigLayout& l) { out.push_back(l); });
    return out;
}

GPUSCHED_EXPORT std::size_t count_layouts(const MigDevice& device, const LayoutCountOptions& options) {
    const auto placements = mig_detail::placements_of(device, options.profiles);
    std::size_t count = 0;
    std::set<std::string> multisets;  // number of instances of each profile
    mig_detail::for_each_layout(device, placements, 0, {}, [&](const MigLayout& layout) {
        if (options.maximal && std::any_of(placements.begin(), placements.end(), [&](MigInstance more) {
                return can_create(device, layout, more);
            }))
            return;
        ++count;
        if (!options.multisets) return;
        std::string counts(device.profiles.size(), '\0');
        for (const auto& instance : layout.instances()) ++counts[instance.profile];
        multisets.insert(std::move(counts));
    });
    return options.multisets ? multisets.size() : count;
}

}  // namespace gpusched::control
