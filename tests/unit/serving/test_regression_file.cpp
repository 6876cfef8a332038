// SPDX-License-Identifier: Apache-2.0
// A model in MPS that HiGHS 1.2.0 with presolve once called infeasible: every solver solves it, and the problem behind it,
// built again by our own builder, has the same size and optimum.
#include "support/real_data.hpp"

#include <gpusched/milp/matrix.hpp>
#include <gpusched/serving/serving.hpp>

#include <fstream>

using namespace gpusched;
using namespace gpusched::milp;
using namespace gpusched::serving;

namespace {

/// The part of free MPS that the file uses.
Model read_mps(const std::filesystem::path& path) {
    Model m;
    m.group_names = {"rows"};
    m.column_start = {0};
    std::map<std::string, int> rows, columns;
    std::string section, line, objective;
    bool whole = false;
    std::ifstream file(path);
    while (std::getline(file, line)) {
        std::istringstream text(line);
        std::string first, name, row;
        double value = 0;
        text >> first;
        if (line.empty() || line.front() != ' ') {
            section = first;
        } else if (section == "ROWS") {
            text >> name;
            if (first == "N") {
                objective = name;
                continue;
            }
            REQUIRE((first == "E" || first == "L"));
            rows[name] = m.rows();
            m.row_names.push_back(name);
            m.row_group.push_back(0);
            m.row_lower.push_back(first == "E" ? 0 : -infinity);
            m.row_upper.push_back(0);
        } else if (section == "COLUMNS" && line.find("'MARKER'") != std::string::npos) {
            whole = line.find("'INTORG'") != std::string::npos;
        } else if (section == "COLUMNS") {
            text >> row >> value;
            if (columns.try_emplace(first, m.columns()).second) {
                m.column_names.push_back(first);
                m.objective.push_back(0);
                m.column_lower.push_back(0);
                m.column_upper.push_back(infinity);
                m.integer.push_back(whole ? 1 : 0);
                m.column_start.push_back(m.column_start.back());
            }
            if (row == objective) {
                m.objective.back() = value;
                continue;
            }
            m.row_index.push_back(rows.at(row));
            m.value.push_back(value);
            ++m.column_start.back();
        } else if (section == "RHS") {
            text >> row >> value;
            const auto i = static_cast<std::size_t>(rows.at(row));
            if (m.row_lower[i] == 0) m.row_lower[i] = value;
            m.row_upper[i] = value;
        } else if (section == "BOUNDS") {
            text >> name >> row >> value;
            REQUIRE(first == "UP");
            m.column_upper[static_cast<std::size_t>(columns.at(row))] = value;
        }
    }
    validate(m);
    return m;
}

/// The serving problem that an E3 model was built from: all of it can be read off the rows, but for what replicas cost of
/// which there can be none.
ServingProblem problem_behind(const Model& m) {
    std::vector<std::vector<std::pair<int, double>>> rows(static_cast<std::size_t>(m.rows()));
    const auto matrix = A(m);
    for (int j = 0; j < m.columns(); ++j)
        for (decltype(matrix)::InnerIterator entry(matrix, j); entry; ++entry)
            rows[static_cast<std::size_t>(entry.row())].emplace_back(j, entry.value());
    ServingProblem p;
    std::map<int, std::size_t> workload_of;  // of columns x
    std::vector<std::size_t> time, limits;   // rows
    for (std::size_t i = 0; i < rows.size(); ++i) {
        if (m.row_lower[i] == 1 && m.row_upper[i] == 1) {
            for (const auto& [column, one] : rows[i]) workload_of[column] = p.workloads.size();
            p.workloads.push_back({"w" + std::to_string(p.workloads.size()), 1});
        } else if (m.row_upper[i] > 0) {
            limits.push_back(i);
        } else if (std::count_if(rows[i].begin(), rows[i].end(), [&](const auto& entry) {
                       return workload_of.contains(entry.first) && entry.second != 1;
                   }) > 0) {
            time.push_back(i);
        }
    }
    p.budget = m.row_upper[limits.back()];  // the last row
    limits.pop_back();
    // What a replica needs of every limit, by its binary; the binary by its product with T.
    for (const auto limit : limits)
        p.gpus.push_back(
            {"g" + std::to_string(p.gpus.size()), 0, static_cast<int>(std::lround(m.row_upper[limit]))});
    for (const auto row : time) {
        ServingConfiguration c{
            "c" + std::to_string(p.configurations.size()), std::vector<int>(p.gpus.size(), 0), {0, 0}};
        int product = -1, binary = -1;
        for (const auto& [column, seconds] : rows[row]) {
            if (const auto w = workload_of.find(column); w != workload_of.end())
                c.throughput[w->second] = 1 / seconds;
            else
                product = column;
        }
        for (const auto& entries : rows)
            if (entries.size() == 2 && entries[1].first == product &&
                m.integer[static_cast<std::size_t>(entries[0].first)] != 0)
                binary = entries[0].first;
        if (binary < 0) c.gpus[0] = p.gpus[0].available + 1;  // there can be none
        for (std::size_t n = 0; n < limits.size(); ++n)
            for (const auto& [column, count] : rows[limits[n]])
                if (column == binary) c.gpus[n] = static_cast<int>(count);
        // One type of GPU each, so that the budget's row gives its price.
        for (const auto& [column, dollars] : rows[static_cast<std::size_t>(m.rows() - 1)])
            for (std::size_t n = 0; n < limits.size(); ++n)
                if (column == binary && c.gpus[n] > 0) p.gpus[n].price = dollars / c.gpus[n];
        p.configurations.push_back(std::move(c));
    }
    return p;
}

}  // namespace

TEST_CASE("the file that a presolve once called infeasible, and the problem behind it", "[milp]") {
    const auto path = testing_support::real_data("milp") / "highs120_false_infeasible.mps";
    if (!testing_support::is_here(path)) return;
    const auto file = read_mps(path);
    REQUIRE(file.columns() == 15);
    REQUIRE(file.rows() == 25);
    const auto problem = problem_behind(file);
    CHECK(problem.configurations.size() == 5);
    const auto ours =
        serving_milp(problem, {.form = ServingForm::mccormick, .makespan_upper = file.column_upper.front()});
    CHECK(ours.columns() == file.columns());
    CHECK(ours.rows() == file.rows());
    const auto sorted = [](std::vector<double> values) {
        std::sort(values.begin(), values.end());
        return values;
    };
    const auto coefficients = sorted(ours.value), expected = sorted(file.value);
    REQUIRE(coefficients.size() == expected.size());
    for (std::size_t k = 0; k < expected.size(); ++k) CHECK(coefficients[k] == Catch::Approx(expected[k]));

    // Worked out without a solver: one replica each of the second and the fourth configuration; what all of one workload
    // takes on either gives the routing.
    const auto& a = problem.configurations[1].throughput;
    const auto& b = problem.configurations[3].throughput;
    const auto slowest = [&](double x, double y) {
        return std::max(x / a[0] + y / a[1], (1 - x) / b[0] + (1 - y) / b[1]);
    };
    double optimum = infinity;
    for (const double other : {0.0, 1.0}) {  // at the optimum at most one workload is split
        for (const bool first : {true, false}) {
            const auto at = [&](double s) { return first ? slowest(s, other) : slowest(other, s); };
            double low = 0, high = 1;
            for (int i = 0; i < 200; ++i) {
                const double l = low + (high - low) / 3, r = high - (high - low) / 3;
                (at(l) < at(r) ? high : low) = at(l) < at(r) ? r : l;
            }
            optimum = std::min(optimum, at(low));
        }
    }
    CHECK(optimum < file.column_upper.front());
    for (const auto& name : available_solvers()) {
        for (const bool presolve : {true, false}) {
            CAPTURE(name, presolve);
            const auto read = solve(file, {.presolve = presolve}, name);
            CHECK(read.status == Status::optimal);
            CHECK(read.objective == Catch::Approx(optimum));
            const auto built = solve(ours, {.presolve = presolve}, name);
            CHECK(built.status == Status::optimal);
            CHECK(built.objective == Catch::Approx(optimum));
        }
        const auto plan = solve_serving_plan(problem, {.form = ServingForm::mccormick}, name);
        CHECK(plan.optimal);
        CHECK(plan.makespan == Catch::Approx(optimum));
        CHECK(plan.allocation.replicas == std::vector<int>{0, 1, 0, 1, 0});
    }
}
