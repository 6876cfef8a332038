// SPDX-License-Identifier: Apache-2.0
#include "io/kubernetes/reader.hpp"
#include "io/other_snapshots.hpp"

#include <gpusched/config.hpp>
#include <gpusched/core/checks.hpp>
#include <gpusched/core/errors.hpp>
#include <gpusched/core/file.hpp>
#include <gpusched/io/kubernetes.hpp>

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

namespace gpusched::io {

GPUSCHED_EXPORT ClusterReading kubernetes_from_texts(std::span<const NamedText> texts,
                                                     const KubernetesReadOptions& options) {
    Problems problems;
    check_fields(problems, options);
    if (options.network_labels.size() > 16)
        problems.add(bad_value("network_labels", std::to_string(options.network_labels.size()) + " labels",
                               "at most 16"));
    if (texts.empty()) problems.add("expected at least one text with objects of Kubernetes");
    problems.throw_if_any();
    detail::ReportBuilder report(static_cast<std::size_t>(options.examples));
    detail::kubernetes::Objects objects;
    std::vector<std::vector<json::Document>> documents;
    std::string sources;
    for (const auto& text : texts) {
        if (const auto found = detail::found_snapshot(text.text);
            found.is_not_of(detail::System::kubernetes)) {
            problems.add(text.source + ": expected objects of Kubernetes, found " + found.told);
            continue;
        }
        documents.push_back(detail::read_objects(text.text, text.source, problems));
        if (documents.back().empty())
            problems.add(text.source + ": expected objects of Kubernetes, found nothing");
        sources += (sources.empty() ? "" : ", ") + text.source;
    }
    for (const auto& of_text : documents)
        for (const auto& document : of_text) objects.take(document, report, problems);
    problems.throw_if_any();
    ClusterReading out;
    out.cluster = detail::kubernetes::Reader(objects, options, report).read(sources);
    out.report = report.take();
    return out;
}

GPUSCHED_EXPORT ClusterReading kubernetes_from_text(std::string_view text,
                                                    const KubernetesReadOptions& options,
                                                    std::string_view source) {
    const NamedText one{text, std::string(source)};
    return kubernetes_from_texts({&one, 1}, options);
}

GPUSCHED_EXPORT std::vector<std::string> kubernetes_files(std::span<const std::string> paths) {
    namespace fs = std::filesystem;
    std::vector<std::string> out;
    for (const auto& path : paths) {
        std::error_code error;
        if (!fs::is_directory(path, error)) {
            out.push_back(path);
            continue;
        }
        std::vector<std::string> found;
        for (fs::directory_iterator at(path, error), end; !error && at != end; at.increment(error)) {
            const auto extension = at->path().extension();
            if (extension == ".json" || extension == ".yaml" || extension == ".yml")
                found.push_back(at->path().string());
        }
        if (error) throw BackendError(path + ": cannot be read: " + error.message());
        if (found.empty())
            throw InvalidInput(path + ": expected a folder with files *.json, *.yaml or *.yml, found none");
        std::sort(found.begin(), found.end());
        out.insert(out.end(), found.begin(), found.end());
    }
    return out;
}

GPUSCHED_EXPORT ClusterReading read_kubernetes(std::span<const std::string> paths,
                                               const KubernetesReadOptions& options) {
    const auto files = kubernetes_files(paths);
    std::vector<std::string> contents;
    std::vector<NamedText> texts;
    contents.reserve(files.size());
    for (const auto& file : files) {
        contents.push_back(read_file(file));
        texts.push_back({contents.back(), file});
    }
    return kubernetes_from_texts(texts, options);
}

}  // namespace gpusched::io
