// SPDX-License-Identifier: Apache-2.0
// ReportBuilder: counts for each aspect of each kind of object how it was read.
#pragma once

#include <gpusched/core/text.hpp>
#include <gpusched/io/cluster_reading.hpp>

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>

namespace gpusched::io::detail {

class ReportBuilder {
  public:
    explicit ReportBuilder(std::size_t examples) : examples_(examples) {}

    void exact(std::string_view kind, std::string_view what, std::int64_t count = 1) {
        row(kind, what, Fidelity::exact, Errs::neither, {}).count += count;
    }
    /// Exact, with an example, such as the names of budgets that allow no eviction.
    void exact_of(std::string_view kind, std::string_view what, std::string_view example) {
        note(row(kind, what, Fidelity::exact, Errs::neither, {}), example);
    }
    void approximated(std::string_view kind, std::string_view what, Errs errs, std::string_view how,
                      std::string_view example) {
        note(row(kind, what, Fidelity::approximated, errs, how), example);
    }
    void ignored(std::string_view kind, std::string_view what, Errs errs, std::string_view how,
                 std::string_view example) {
        note(row(kind, what, Fidelity::ignored, errs, how), example);
    }
    void left_out(std::string_view kind, std::string_view what, std::string_view how,
                  std::string_view example, Errs errs = Errs::neither) {
        note(row(kind, what, Fidelity::left_out, errs, how), example);
    }
    void absent(std::string_view kind, std::string_view undecided) {
        report_.absent.push_back({std::string(kind), std::string(undecided)});
    }
    [[nodiscard]] const std::vector<ReadingRow>& rows() const { return report_.rows; }
    [[nodiscard]] ReadingReport take() { return std::move(report_); }

  private:
    ReadingRow& row(std::string_view kind, std::string_view what, Fidelity fidelity, Errs errs,
                    std::string_view how) {
        key_.assign(kind).append(1, '\n').append(what).append(1, '\n').append(how);
        key_.append(1, static_cast<char>('0' + static_cast<int>(fidelity)));
        key_.append(1, static_cast<char>('0' + static_cast<int>(errs)));
        const auto [found, added] = index_.try_emplace(key_, report_.rows.size());
        if (added)
            report_.rows.push_back({.kind = std::string(kind),
                                    .what = std::string(what),
                                    .fidelity = fidelity,
                                    .errs = errs,
                                    .how = std::string(how)});
        return report_.rows[found->second];
    }
    void note(ReadingRow& to, std::string_view example) {
        ++to.count;
        if (!example.empty() && to.examples.size() < examples_)
            to.examples.push_back(printable(example, 300));
    }

    std::size_t examples_;
    std::string key_;
    std::map<std::string, std::size_t> index_;
    ReadingReport report_;
};

}  // namespace gpusched::io::detail
