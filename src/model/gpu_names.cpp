// SPDX-License-Identifier: Apache-2.0
// GPU models by the names that people write.
#include <gpusched/config.hpp>
#include <gpusched/core/checks.hpp>
#include <gpusched/model/gpu_names.hpp>

#include <algorithm>
#include <set>

namespace gpusched {

namespace detail {

// The words of a name in small letters.
static std::vector<std::string> gpu_words(std::string_view name) {
    std::vector<std::string> words(1);
    for (const char c : name) {
        if (c == ' ' || c == '-' || c == '_')
            words.emplace_back();
        else
            words.back() += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    }
    std::erase(words, "");
    return words;
}

static std::string together(const std::vector<std::string>& words) {
    std::string out;
    for (const auto& word : words) out += word;
    return out;
}

// True if the text is made of consecutive words.
static bool is_run(const std::string& text, const std::vector<std::string>& words) {
    for (std::size_t first = 0; first < words.size(); ++first) {
        std::string run;
        for (auto at = first; at < words.size() && run.size() < text.size(); ++at) run += words[at];
        if (run == text) return true;
    }
    return false;
}

GPUSCHED_EXPORT std::string ambiguous_gpu_model(const std::string& field, std::string_view name,
                                                const std::vector<std::string>& models,
                                                const std::string& owner) {
    return bad_value(field, gpusched::quoted(name), "the name of one GPU model: " + either_of(models), owner);
}

GPUSCHED_EXPORT std::string listed_gpu_models(std::string text, const std::vector<std::string>& models) {
    constexpr std::size_t most_shown = 12;
    if (models.empty() || models.size() > most_shown) return {};
    for (const auto& model : models)
        text += (&model == &models.front() ? "" : ", ") + gpusched::quoted(model);
    return text;
}

GPUSCHED_EXPORT std::string unknown_gpu_model(const std::string& field, std::string_view name,
                                              const std::vector<std::string>& models,
                                              const std::string& owner) {
    const auto known = listed_gpu_models(": ", models);
    return bad_value(field, gpusched::quoted(name), "a GPU model of the cluster" + known, owner) +
           (known.empty() ? did_you_mean(name, models) : "");
}

}  // namespace detail

GPUSCHED_EXPORT std::vector<std::string> matching_gpu_models(std::string_view name,
                                                             const std::vector<std::string>& known) {
    std::vector<std::string> same, part;
    const auto words = detail::gpu_words(name);
    const auto all = detail::together(words);
    if (std::ranges::find(known, name) != known.end()) return {std::string(name)};
    if (all.empty()) return {};
    for (const auto& model : known) {
        const auto of_model = detail::gpu_words(model);
        if (detail::together(of_model) == all)
            same.push_back(model);
        else if (detail::is_run(all, of_model) ||
                 std::ranges::all_of(words, [&](const auto& word) { return detail::is_run(word, of_model); }))
            part.push_back(model);
    }
    return same.empty() ? part : same;
}

GPUSCHED_EXPORT std::vector<std::string> gpu_models_of_nodes(const Inventory& inv) {
    std::set<GpuModelId> found;
    for (const auto node : inv.living_nodes())
        if (const auto model = inv.nodes.gpu_model[index(node)];
            model != none<GpuModelId> && inv.nodes.gpu_count[index(node)] > 0)
            found.insert(model);
    std::vector<std::string> names;
    for (const auto model : found) names.push_back(inv.gpu_models[index(model)]);
    std::ranges::sort(names);
    return names;
}

GPUSCHED_EXPORT void resolve_gpu_models(TaskSpec& task, const Cluster& cluster) {
    if (task.gpu_models.empty()) return;
    const auto known = gpu_models_of_nodes(cluster);
    Problems problems;
    for (auto& model : task.gpu_models) {
        auto found = matching_gpu_models(model, known);
        if (found.size() == 1)
            model = std::move(found.front());
        else if (!found.empty())
            problems.add(detail::ambiguous_gpu_model("gpu_models", model, found,
                                                     "task " + gpusched::quoted(task.name)));
    }
    problems.throw_if_any();
}

}  // namespace gpusched
