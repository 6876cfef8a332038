// SPDX-License-Identifier: Apache-2.0
// Models: validation, the builder, evaluation of vectors, elastic forms.
#include <gpusched/config.hpp>
#include <gpusched/core/checks.hpp>
#include <gpusched/core/order.hpp>
#include <gpusched/milp/matrix.hpp>
#include <gpusched/milp/model.hpp>

#include <Eigen/SparseCore>

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

namespace gpusched::milp {

GPUSCHED_EXPORT IndexMap::IndexMap(std::string name_, std::vector<int> extents_)
    : name(std::move(name_)), extents(std::move(extents_)) {
    std::size_t size = 1;
    for (const int extent : extents) size *= static_cast<std::size_t>(extent);
    columns.assign(size, absent);
}

GPUSCHED_EXPORT int Model::integer_columns() const noexcept {
    return static_cast<int>(std::count(integer.begin(), integer.end(), std::uint8_t{1}));
}

GPUSCHED_EXPORT const IndexMap& Model::index(std::string_view map) const {
    for (const auto& candidate : indices)
        if (candidate.name == map) return candidate;
    throw InvalidInput("index: there is no index map " + gpusched::quoted(map) + " in model " +
                       gpusched::quoted(name));
}

GPUSCHED_EXPORT int Model::rows_in(std::string_view group) const noexcept {
    for (std::size_t g = 0; g < group_names.size(); ++g)
        if (group_names[g] == group)
            return static_cast<int>(std::count(row_group.begin(), row_group.end(), static_cast<int>(g)));
    return 0;
}

GPUSCHED_EXPORT void validate(const Model& model) {
    Problems problems;
    const auto rows = model.row_lower.size(), columns = model.objective.size();
    const auto size = [&](const char* field, std::size_t is, std::size_t expected) {
        if (is != expected)
            problems.add(
                bad_value("entries of " + std::string(field), std::to_string(is), std::to_string(expected)));
    };
    size("row_upper", model.row_upper.size(), rows);
    size("row_names", model.row_names.size(), rows);
    size("row_group", model.row_group.size(), rows);
    size("column_lower", model.column_lower.size(), columns);
    size("column_upper", model.column_upper.size(), columns);
    size("integer", model.integer.size(), columns);
    size("column_names", model.column_names.size(), columns);
    size("column_start", model.column_start.size(), columns + 1);
    size("value", model.value.size(), model.row_index.size());
    if (!model.column_start.empty())
        size("row_index", model.row_index.size(), static_cast<std::size_t>(model.column_start.back()));
    // Checked before any access through them.
    for (std::size_t j = 0; j < model.column_start.size(); ++j)
        if (model.column_start[j] < 0 || (j == 0 && model.column_start[j] != 0) ||
            (j > 0 && model.column_start[j] < model.column_start[j - 1])) {
            problems.add(bad_value("column_start[" + std::to_string(j) + "]",
                                   std::to_string(model.column_start[j]), "ascending numbers from 0"));
            break;
        }
    for (const auto& map : model.indices) {
        const auto owner = "index map " + gpusched::quoted(map.name);
        double places = map.extents.empty() ? 0 : 1;
        for (const int extent : map.extents) places *= extent < 0 ? std::nan("") : extent;
        if (!(places == static_cast<double>(map.columns.size())))
            problems.add(bad_value("entries", std::to_string(map.columns.size()),
                                   "the product of the extents", owner));
        for (const int column : map.columns)
            if (column < IndexMap::absent || column >= static_cast<int>(columns)) {
                problems.add(bad_value("column", std::to_string(column),
                                       "-1, or an index below " + std::to_string(columns), owner));
                break;
            }
    }
    problems.throw_if_any();
    const auto sides = [&](const char* what, double lower, double upper, const std::string& owner) {
        if (!(lower <= upper))
            problems.add(bad_value(what, number_text(lower) + " to " + number_text(upper),
                                   "a lower side that is not above the upper one", owner));
        else if (lower == infinity || upper == -infinity)
            problems.add(bad_value(what, number_text(lower) + " to " + number_text(upper),
                                   "sides that a number can be between", owner));
    };
    for (std::size_t j = 0; j < columns; ++j) {
        const auto owner = "column " + gpusched::quoted(model.column_names[j]);
        for (int k = model.column_start[j]; k < model.column_start[j + 1]; ++k) {
            const auto i = static_cast<std::size_t>(k);
            const int row = model.row_index[i];
            if (row < 0 || static_cast<std::size_t>(row) >= rows ||
                (k > model.column_start[j] && model.row_index[i - 1] >= row))
                problems.add(bad_value("row_index", std::to_string(row),
                                       "ascending indices below " + std::to_string(rows), owner));
            if (!std::isfinite(model.value[i]))
                problems.add(bad_value("value", number_text(model.value[i]), "a finite number", owner));
        }
        if (!std::isfinite(model.objective[j]))
            problems.add(bad_value("objective", number_text(model.objective[j]), "a finite number", owner));
        sides("bounds", model.column_lower[j], model.column_upper[j], owner);
    }
    for (std::size_t i = 0; i < rows; ++i) {
        const auto owner = "row " + gpusched::quoted(model.row_names[i]);
        sides("sides", model.row_lower[i], model.row_upper[i], owner);
        if (model.row_group[i] < 0 ||
            static_cast<std::size_t>(model.row_group[i]) >= model.group_names.size())
            problems.add(bad_value("row_group", std::to_string(model.row_group[i]),
                                   "an index below " + std::to_string(model.group_names.size()), owner));
    }
    if (!std::isfinite(model.offset))
        problems.add(bad_value("offset", number_text(model.offset), "a finite number"));
    problems.throw_if_any();
}

GPUSCHED_EXPORT int ModelBuilder::column(std::string name, double lower, double upper, double objective,
                                         bool integer) {
    model_.column_names.push_back(std::move(name));
    model_.column_lower.push_back(lower);
    model_.column_upper.push_back(upper);
    model_.objective.push_back(objective);
    model_.integer.push_back(integer ? 1 : 0);
    return model_.columns() - 1;
}

GPUSCHED_EXPORT int ModelBuilder::row(std::string_view group, std::string name, double lower,
                                      std::span<const Entry> entries, double upper) {
    auto& groups = model_.group_names;
    // Rows of a group are mostly consecutive.
    auto at = groups.size();
    if (!model_.row_group.empty() && groups[static_cast<std::size_t>(model_.row_group.back())] == group)
        at = static_cast<std::size_t>(model_.row_group.back());
    else
        at = static_cast<std::size_t>(std::find(groups.begin(), groups.end(), group) - groups.begin());
    if (at == groups.size()) groups.emplace_back(group);
    model_.row_group.push_back(static_cast<int>(at));
    model_.row_names.push_back(std::move(name));
    model_.row_lower.push_back(lower);
    model_.row_upper.push_back(upper);
    const auto before = entry_column_.size();
    entry_column_.resize(before + entries.size());
    entry_value_.resize(before + entries.size());
    for (std::size_t k = 0; k < entries.size(); ++k) {
        entry_column_[before + k] = entries[k].column;
        entry_value_[before + k] = entries[k].value;
    }
    row_start_.push_back(static_cast<int>(entry_column_.size()));
    return model_.rows() - 1;
}

GPUSCHED_EXPORT void ModelBuilder::fix(int column, double lower, double upper) {
    model_.column_lower[static_cast<std::size_t>(column)] = lower;
    model_.column_upper[static_cast<std::size_t>(column)] = upper;
}

GPUSCHED_EXPORT void ModelBuilder::add_objective(int column, double value) {
    model_.objective[static_cast<std::size_t>(column)] += value;
}

GPUSCHED_EXPORT Model ModelBuilder::finish() {
    using ByColumns = Eigen::SparseMatrix<double>;
    using ByRows = Eigen::SparseMatrix<double, Eigen::RowMajor>;
    const ByColumns by_columns = Eigen::Map<const ByRows>(
        model_.rows(), model_.columns(), static_cast<Eigen::Index>(entry_value_.size()), row_start_.data(),
        entry_column_.data(), entry_value_.data());
    model_.column_start.assign(1, 0);
    for (Eigen::Index j = 0; j < by_columns.cols(); ++j) {
        for (ByColumns::InnerIterator entry(by_columns, j); entry;) {
            const auto row = static_cast<int>(entry.row());
            double sum = 0;
            for (; entry && entry.row() == row; ++entry) sum += entry.value();
            if (sum == 0) continue;
            model_.row_index.push_back(row);
            model_.value.push_back(sum);
        }
        model_.column_start.push_back(static_cast<int>(model_.row_index.size()));
    }
    entry_column_.clear();
    entry_value_.clear();
    row_start_.assign(1, 0);
    return std::exchange(model_, Model{});
}

GPUSCHED_EXPORT void require_values(const Model& model, std::span<const double> x) {
    require_size("values", x.size(), model.objective.size());
    for (const double value : x)
        if (!std::isfinite(value))
            throw InvalidInput(bad_value("values", number_text(value), "finite numbers"));
}

GPUSCHED_EXPORT Model lp_relaxation(Model model) {
    std::fill(model.integer.begin(), model.integer.end(), std::uint8_t{0});
    return model;
}

GPUSCHED_EXPORT LpProblem lp_problem(const Model& model) {
    LpProblem lp;
    lp.column_start.assign(model.column_start.begin(), model.column_start.end());
    lp.row_index = model.row_index;
    lp.value = model.value;
    lp.objective = model.objective;
    if (model.sense == Sense::maximise)
        for (auto& c : lp.objective) c = -c;
    lp.column_lower = model.column_lower;
    lp.column_upper = model.column_upper;
    lp.row_lower = model.row_lower;
    lp.row_upper = model.row_upper;
    return lp;
}

GPUSCHED_EXPORT int add_row(Model& model, std::string_view group, std::string name, double lower,
                            std::span<const Entry> entries, double upper) {
    auto changed = model;
    const int row = changed.rows();
    std::vector<Entry> sorted(entries.begin(), entries.end());
    std::sort(sorted.begin(), sorted.end(),
              [](const Entry& a, const Entry& b) { return a.column < b.column; });
    for (const auto& entry : sorted)
        if (entry.column < 0 || entry.column >= changed.columns())
            throw InvalidInput(bad_value("column", std::to_string(entry.column),
                                         "an index below " + std::to_string(changed.columns()),
                                         "row " + gpusched::quoted(name)));
    changed.row_index.clear();
    changed.value.clear();
    auto next = sorted.begin();
    for (std::size_t column = 0; column + 1 < model.column_start.size(); ++column) {
        const auto first = model.column_start[column], last = model.column_start[column + 1];
        changed.row_index.insert(changed.row_index.end(), model.row_index.begin() + first,
                                 model.row_index.begin() + last);
        changed.value.insert(changed.value.end(), model.value.begin() + first, model.value.begin() + last);
        for (; next != sorted.end() && static_cast<std::size_t>(next->column) == column; ++next) {
            changed.row_index.push_back(row);
            changed.value.push_back(next->value);
        }
        changed.column_start[column + 1] = static_cast<int>(changed.row_index.size());
    }
    auto at = std::find(changed.group_names.begin(), changed.group_names.end(), group);
    changed.row_group.push_back(static_cast<int>(at - changed.group_names.begin()));
    if (at == changed.group_names.end()) changed.group_names.emplace_back(group);
    changed.row_names.push_back(std::move(name));
    changed.row_lower.push_back(lower);
    changed.row_upper.push_back(upper);
    validate(changed);
    model = std::move(changed);
    return row;
}

GPUSCHED_EXPORT ElasticModel elastic(const Model& model, const std::vector<std::string>& groups) {
    std::vector<bool> soft(model.group_names.size(), groups.empty());
    for (const auto& group : groups) {
        const auto at = std::find(model.group_names.begin(), model.group_names.end(), group);
        if (at == model.group_names.end())
            throw InvalidInput("groups: there is no group " + gpusched::quoted(group) + " in model " +
                               gpusched::quoted(model.name));
        soft[static_cast<std::size_t>(at - model.group_names.begin())] = true;
    }
    const auto rows = model.row_lower.size();
    ElasticModel result{model, model.columns(), std::vector<int>(rows, -1), std::vector<int>(rows, -1)};
    result.name += " (elastic)";
    result.sense = Sense::minimise;
    result.offset = 0;
    std::fill(result.objective.begin(), result.objective.end(), 0.0);
    std::vector<double> unit(rows, 0.0);
    for (std::size_t k = 0; k < model.value.size(); ++k) {
        auto& u = unit[static_cast<std::size_t>(model.row_index[k])];
        u = std::max(u, std::abs(model.value[k]));
    }
    const auto slack = [&](std::size_t row, const char* what, double sign) {
        const double u = unit[row] > 0 ? unit[row] : 1;
        result.column_names.push_back(model.row_names[row] + what);
        result.column_lower.push_back(0);
        result.column_upper.push_back(infinity);
        result.objective.push_back(1);
        result.integer.push_back(0);
        result.row_index.push_back(static_cast<int>(row));
        result.value.push_back(sign * u);
        result.column_start.push_back(static_cast<int>(result.row_index.size()));
        return result.columns() - 1;
    };
    for (std::size_t i = 0; i < rows; ++i) {
        if (!soft[static_cast<std::size_t>(model.row_group[i])]) continue;
        if (std::isfinite(model.row_lower[i])) result.shortfall[i] = slack(i, " shortfall", 1);
        if (std::isfinite(model.row_upper[i])) result.excess[i] = slack(i, " excess", -1);
    }
    return result;
}

GPUSCHED_EXPORT std::vector<GroupViolation> violated_groups(const ElasticModel& model,
                                                            std::span<const double> x, double tolerance) {
    require_size("x", x.size(), model.objective.size());
    std::vector<GroupViolation> all(model.group_names.size());
    std::vector<double> worst(all.size(), 0.0);
    for (std::size_t i = 0; i < model.row_group.size(); ++i) {
        double amount = 0;
        for (const int column : {model.shortfall[i], model.excess[i]})
            if (column >= 0) amount += x[static_cast<std::size_t>(column)];
        if (amount <= tolerance) continue;
        const auto g = static_cast<std::size_t>(model.row_group[i]);
        all[g].amount += amount;
        ++all[g].rows;
        if (amount > worst[g]) {
            worst[g] = amount;
            all[g].worst = model.row_names[i];
        }
    }
    std::vector<GroupViolation> found;
    for (const auto g : order_by(all.size(), [&](std::size_t i) { return -all[i].amount; })) {
        if (all[g].rows == 0) continue;
        all[g].group = model.group_names[g];
        found.push_back(all[g]);
    }
    return found;
}

GPUSCHED_EXPORT double objective_value(const Model& model, std::span<const double> x) {
    require_size("x", x.size(), model.objective.size());
    double value = model.offset;
    for (std::size_t j = 0; j < x.size(); ++j) value += model.objective[j] * x[j];
    return value;
}

GPUSCHED_EXPORT Evaluation evaluate(const Model& model, std::span<const double> x) {
    const auto columns = static_cast<std::size_t>(model.columns());
    Evaluation result;
    result.objective = objective_value(model, x);
    const auto worse = [&](double by, const std::string& name) {
        if (!(by <= result.violation)) {  // true for NaN
            result.violation = std::isnan(by) ? infinity : by;
            result.violated = name;
        }
    };
    for (std::size_t j = 0; j < columns; ++j) {
        worse(std::isfinite(x[j]) ? std::max(model.column_lower[j] - x[j], x[j] - model.column_upper[j])
                                  : infinity,
              model.column_names[j]);
        if (model.integer[j] == 0) continue;
        const double off = std::isfinite(x[j]) ? std::abs(x[j] - std::round(x[j])) : infinity;
        if (off > result.fractionality) {
            result.fractionality = off;
            result.fractional = model.column_names[j];
        }
    }
    const auto activity = row_activity(model, x);
    for (std::size_t i = 0; i < model.row_lower.size(); ++i) {
        const double row = activity[static_cast<Eigen::Index>(i)];
        worse(std::max(model.row_lower[i] - row, row - model.row_upper[i]), model.row_names[i]);
    }
    return result;
}

}  // namespace gpusched::milp
