// SPDX-License-Identifier: Apache-2.0
// Clusters read from another system, and a report of how each part was read.
#pragma once

#include <gpusched/core/enum_names.hpp>
#include <gpusched/core/fields.hpp>
#include <gpusched/model/spec.hpp>

#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace gpusched::io {

/// A text and its name in messages.
struct NamedText {
    std::string_view text{};
    std::string source = "<text>";
};

/// How something was read.
enum class Fidelity : std::uint8_t {
    exact,         ///< the snapshot says the same
    approximated,  ///< the snapshot says nearly the same: `ReadingRow::how` and `errs`
    ignored,       ///< the snapshot does not say it
    left_out,      ///< the whole object is not in the snapshot
};

/// The direction of an approximation's error.
enum class Errs : std::uint8_t {
    neither,     ///< no answer depends on it
    too_strict,  ///< the snapshot refuses placements that the cluster's scheduler allows
    too_lax,     ///< the snapshot allows placements that the cluster's scheduler refuses
    either,
};

/// How one aspect of one kind of object was read.
struct ReadingRow {
    std::string kind{};                   ///< of objects: `Pod`
    std::string what{};                   ///< their aspect: `requests`
    Fidelity fidelity = Fidelity::exact;  ///< how they were read
    Errs errs = Errs::neither;            ///< the direction of the error
    std::int64_t count = 0;               ///< objects with it
    std::string how{};                    ///< the content of the snapshot instead, or why it says nothing
    std::vector<std::string> examples{};  ///< names of some of the objects
    bool operator==(const ReadingRow&) const = default;
};
template <class F>
constexpr void visit_fields(std::type_identity<ReadingRow>, F&& field) {
    field("kind", &ReadingRow::kind);
    field("what", &ReadingRow::what);
    field("fidelity", &ReadingRow::fidelity);
    field("errs", &ReadingRow::errs);
    field("count", &ReadingRow::count);
    field("how", &ReadingRow::how);
    field("examples", &ReadingRow::examples);
}

/// A kind of object that the input does not hold.
struct AbsentKind {
    std::string kind{};       ///< of objects
    std::string undecided{};  ///< the question that stays open without it
    bool operator==(const AbsentKind&) const = default;
};
template <class F>
constexpr void visit_fields(std::type_identity<AbsentKind>, F&& field) {
    field("kind", &AbsentKind::kind);
    field("undecided", &AbsentKind::undecided);
}

/// How every part of an input was read. Rows are in the order of their first occurrence.
struct ReadingReport {
    std::vector<ReadingRow> rows{};    ///< one for each aspect of each kind of object
    std::vector<AbsentKind> absent{};  ///< kinds of objects that the input does not hold
    bool operator==(const ReadingReport&) const = default;
};
template <class F>
constexpr void visit_fields(std::type_identity<ReadingReport>, F&& field) {
    field("rows", &ReadingReport::rows);
    field("absent", &ReadingReport::absent);
}

/// The report as text: first all that was left out, then approximated, ignored and exact parts, then absent
/// kinds.
[[nodiscard]] std::string reading_report_to_text(const ReadingReport& report);

/// The report as a JSON object with `rows` and `absent`, for programs.
[[nodiscard]] std::string reading_report_to_json(const ReadingReport& report);

/// A cluster as it was read. `Cluster::build` accepts it for any input.
struct ClusterReading {
    ClusterSpec cluster{};
    ReadingReport report{};
};

}  // namespace gpusched::io
