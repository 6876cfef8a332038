// SPDX-License-Identifier: Apache-2.0
// Compares the Eigen view of a model's matrix with loops by hand. Prints one JSON line per operation and
// model.
//
// The operations are A x by columns, the matrix by rows, and the functions on top of them: `evaluate`,
// `to_lp` and `ModelBuilder::finish`. Each is a function of its own, so that `benchmarks/instructions.py` can
// count its instructions.
#include "../support/command_line.hpp"
#include "../support/rows.hpp"
#include "../support/timing.hpp"

#include <gpusched/core/rng.hpp>
#include <gpusched/milp/matrix.hpp>
#include <gpusched/milp/model.hpp>

#include <cstdint>
#include <string>
#include <vector>

using namespace gpusched;

namespace {

/// One entry of a row.
struct Part {
    int column;
    double value;
};

/// A model with `per_row` entries in every row, at random columns.
[[gnu::noinline]] milp::Model build(int rows, int columns, int per_row) {
    Rng rng(7);
    milp::ModelBuilder b("random");
    for (int j = 0; j < columns; ++j) b.column("x" + std::to_string(j), 0, 10, 1, true);
    std::vector<milp::Entry> entries;
    for (int i = 0; i < rows; ++i) {
        entries.clear();
        for (int k = 0; k < per_row; ++k)
            entries.push_back({static_cast<int>(rng.below(static_cast<std::uint64_t>(columns))),
                               static_cast<double>(rng.between(1, 100)) / 8});
        b.at_most("rows", "r" + std::to_string(i), entries, 1000);
    }
    return b.finish();
}

[[gnu::noinline]] std::vector<double> activity_by_hand(const milp::Model& m, const std::vector<double>& x) {
    std::vector<double> activity(m.row_lower.size(), 0.0);
    for (std::size_t j = 0; j < x.size(); ++j)
        for (int k = m.column_start[j]; k < m.column_start[j + 1]; ++k)
            activity[static_cast<std::size_t>(m.row_index[static_cast<std::size_t>(k)])] +=
                m.value[static_cast<std::size_t>(k)] * x[j];
    return activity;
}

[[gnu::noinline]] Eigen::VectorXd activity_by_eigen(const milp::Model& m, const std::vector<double>& x) {
    return milp::row_activity(m, x);
}

[[gnu::noinline]] std::vector<std::vector<Part>> rows_by_hand(const milp::Model& m) {
    std::vector<std::vector<Part>> rows(m.row_lower.size());
    for (int j = 0; j < m.columns(); ++j)
        for (int k = m.column_start[static_cast<std::size_t>(j)];
             k < m.column_start[static_cast<std::size_t>(j) + 1]; ++k)
            rows[static_cast<std::size_t>(m.row_index[static_cast<std::size_t>(k)])].push_back(
                {j, m.value[static_cast<std::size_t>(k)]});
    return rows;
}

[[gnu::noinline]] milp::RowMatrix rows_by_eigen(const milp::Model& m) { return milp::by_rows(m); }

[[gnu::noinline]] double evaluated(const milp::Model& m, const std::vector<double>& x) {
    return milp::evaluate(m, x).violation;
}

[[gnu::noinline]] std::size_t written(const milp::Model& m) { return milp::to_lp(m).size(); }

}  // namespace

int main(int argc, char** argv) {
    bench::CommandLine line("Compares the Eigen view of a model's matrix with loops by hand.", argc, argv);
    const bool smoke = line.smoke();
    int repeat = smoke ? 1 : 20;
    line.option("--repeat", repeat, "runs; the median counts")->check(bench::at_least(1));
    line.read();
    const int rows = smoke ? 200 : 20'000, columns = smoke ? 300 : 30'000, per_row = 8;
    const auto model = build(rows, columns, per_row);
    Rng rng(8);
    std::vector<double> x(static_cast<std::size_t>(columns));
    for (auto& value : x) value = static_cast<double>(rng.between(0, 10));
    double sink = 0;
    const auto row = [&](const char* operation, const auto& work) {
        std::vector<double> times;
        for (int i = 0; i < repeat; ++i) times.push_back(bench::seconds([&] { sink += work(); }));
        bench::print({{"benchmark", "milp_matrix"},
                      {"operation", operation},
                      {"rows", rows},
                      {"columns", columns},
                      {"nonzeros", model.nonzeros()},
                      {"median_s", bench::rounded(bench::median(times), 6)}});
    };
    row("activity by hand", [&] { return activity_by_hand(model, x).back(); });
    row("activity by Eigen", [&] { return activity_by_eigen(model, x)[rows - 1]; });
    row("rows by hand", [&] { return static_cast<double>(rows_by_hand(model).back().size()); });
    row("rows by Eigen", [&] { return rows_by_eigen(model).coeff(rows - 1, 0); });
    row("evaluate", [&] { return evaluated(model, x); });
    row("to_lp", [&] { return static_cast<double>(written(model)); });
    row("build", [&] { return static_cast<double>(build(rows, columns, per_row).columns()); });
    return sink < 0 ? 1 : 0;
}
