// SPDX-License-Identifier: Apache-2.0
// Model: a mixed-integer linear program as data, with a name for every row and column.
#pragma once

#include <gpusched/config.hpp>
#include <gpusched/core/checks.hpp>
#include <gpusched/core/fields.hpp>
#include <gpusched/core/lp.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace gpusched::milp {

enum class Sense : std::uint8_t { minimise, maximise };
constexpr auto enum_names(Sense) {
    return name_table<Sense>({
        {Sense::minimise, "minimise"},
        {Sense::maximise, "maximise"},
    });
}

inline constexpr double infinity = std::numeric_limits<double>::infinity();

/// Which column stands for which combination of indices, such as x(configuration, workload): a dense array,
/// row by row.
struct IndexMap {
    static constexpr int absent = -1;
    std::string name{};
    std::vector<int> extents{};  ///< how many values each index has
    std::vector<int> columns{};  ///< as many as the product of the extents; `absent` where there is no column

    IndexMap() = default;
    IndexMap(std::string name_, std::vector<int> extents_);

    /// The column, or `absent`. The indices must be in range.
    template <class... I>
    [[nodiscard]] int operator()(I... i) const noexcept {
        return columns[at({static_cast<int>(i)...})];
    }
    template <class... I>
    [[nodiscard]] int& operator()(I... i) noexcept {
        return columns[at({static_cast<int>(i)...})];
    }
    bool operator==(const IndexMap&) const = default;

  private:
    [[nodiscard]] std::size_t at(std::initializer_list<int> indices) const noexcept {
        GPUSCHED_ASSERT(indices.size() == extents.size());
        std::size_t position = 0, k = 0;
        for (const int i : indices) {
            GPUSCHED_ASSERT(i >= 0 && i < extents[k]);
            position = position * static_cast<std::size_t>(extents[k++]) + static_cast<std::size_t>(i);
        }
        return position;
    }
};
template <class F>
constexpr void visit_fields(std::type_identity<IndexMap>, F&& field) {
    field("name", &IndexMap::name);
    field("extents", &IndexMap::extents);
    field("columns", &IndexMap::columns);
}

/// minimise (or maximise) objective . x + offset subject to row_lower <= A x <= row_upper, column_lower <= x
/// <= column_upper, and whole numbers where `integer` says so.
///
/// A is stored by columns: the entries of column j are column_start[j] .. column_start[j + 1] - 1, by
/// ascending row. `A(model)` of matrix.hpp is that as an Eigen matrix. Unbounded sides are plus or minus
/// infinity. Rows belong to groups ("coverage", "budget", ...), one label each.
struct Model {
    std::string name = "gpusched";
    Sense sense = Sense::minimise;
    double offset = 0;
    std::vector<int> column_start{0};
    std::vector<int> row_index{};
    std::vector<double> value{};
    std::vector<double> objective{}, column_lower{}, column_upper{};
    std::vector<double> row_lower{}, row_upper{};
    std::vector<std::uint8_t> integer{};  ///< one entry per column, 1 = whole numbers only
    std::vector<std::string> column_names{}, row_names{};
    std::vector<int> row_group{};  ///< one entry per row, index into `group_names`
    std::vector<std::string> group_names{};
    std::vector<IndexMap> indices{};  ///< what the columns stand for

    [[nodiscard]] int rows() const noexcept { return static_cast<int>(row_lower.size()); }
    [[nodiscard]] int columns() const noexcept { return static_cast<int>(objective.size()); }
    [[nodiscard]] int integer_columns() const noexcept;
    [[nodiscard]] std::size_t nonzeros() const noexcept { return value.size(); }

    /// The index map of that name. @throws InvalidInput when there is none
    [[nodiscard]] const IndexMap& index(std::string_view map) const;
    /// How many rows a group has; 0 for a group that does not exist.
    [[nodiscard]] int rows_in(std::string_view group) const noexcept;

    bool operator==(const Model&) const = default;
};
template <class F>
constexpr void visit_fields(std::type_identity<Model>, F&& field) {
    field("name", &Model::name);
    field("sense", &Model::sense);
    field("offset", &Model::offset);
    field("column_start", &Model::column_start);
    field("row_index", &Model::row_index);
    field("value", &Model::value);
    field("objective", &Model::objective);
    field("column_lower", &Model::column_lower);
    field("column_upper", &Model::column_upper);
    field("row_lower", &Model::row_lower);
    field("row_upper", &Model::row_upper);
    field("integer", &Model::integer);
    field("column_names", &Model::column_names);
    field("row_names", &Model::row_names);
    field("row_group", &Model::row_group);
    field("group_names", &Model::group_names);
    field("indices", &Model::indices);
}

/// @throws InvalidInput for arrays whose sizes do not agree, entries outside the matrix or out of order,
///     numbers that are not finite, lower sides above upper ones, lower sides of plus infinity and upper ones
///     of minus infinity
void validate(const Model& model);

/// One entry of a row.
struct Entry {
    int column = 0;
    double value = 0;
};

/// Collects columns and rows, then makes a model of them.
class ModelBuilder {
  public:
    explicit ModelBuilder(std::string name) { model_.name = std::move(name); }

    /// Returns the column's index. An infinite `upper` means none.
    int column(std::string name, double lower, double upper, double objective = 0, bool integer = false);
    int binary(std::string name, double objective = 0) {
        return column(std::move(name), 0, 1, objective, true);
    }
    /// Adds lower <= sum of the entries <= upper to the group; entries of one column are added up, zeros left
    /// out.
    int row(std::string_view group, std::string name, double lower, std::span<const Entry> entries,
            double upper);
    int at_most(std::string_view group, std::string name, std::span<const Entry> entries, double upper) {
        return row(group, std::move(name), -infinity, entries, upper);
    }
    int at_least(std::string_view group, std::string name, std::span<const Entry> entries, double lower) {
        return row(group, std::move(name), lower, entries, infinity);
    }
    int equal(std::string_view group, std::string name, std::span<const Entry> entries, double value) {
        return row(group, std::move(name), value, entries, value);
    }
    void fix(int column, double lower, double upper);
    void add_objective(int column, double value);
    [[nodiscard]] double upper(int column) const {
        return model_.column_upper[static_cast<std::size_t>(column)];
    }
    void set_sense(Sense sense, double offset = 0) {
        model_.sense = sense;
        model_.offset = offset;
    }
    void add_index(IndexMap map) { model_.indices.push_back(std::move(map)); }
    [[nodiscard]] int columns() const noexcept { return model_.columns(); }
    [[nodiscard]] int rows() const noexcept { return model_.rows(); }

    /// The model; the builder is empty afterwards.
    [[nodiscard]] Model finish();

  private:
    Model model_;
    std::vector<int> row_start_{0};  // the rows so far, entries in the order in which they came
    std::vector<int> entry_column_;
    std::vector<double> entry_value_;
};

/// @throws InvalidInput unless `x` has one finite entry per column
void require_values(const Model& model, std::span<const double> x);

/// The model with all columns continuous.
[[nodiscard]] Model lp_relaxation(Model model);

/// The same as data for an LP solver: a minimisation, without offset.
[[nodiscard]] LpProblem lp_problem(const Model& model);

/// A model in which every row of some groups may be violated at a price, so that it has a solution unless the
/// rest contradicts itself: with all groups, unless the bounds of an integer column hold no whole number.
struct ElasticModel : Model {
    int original_columns = 0;
    std::vector<int> shortfall{},
        excess{};  ///< per row: the columns of what is missing and what is too much, or -1
};
template <class F>
constexpr void visit_fields(std::type_identity<ElasticModel>, F&& field) {
    visit_fields(std::type_identity<Model>{}, field);
    field("original_columns", &ElasticModel::original_columns);
    field("shortfall", &ElasticModel::shortfall);
    field("excess", &ElasticModel::excess);
}

/// What a solution of an elastic model violates.
struct GroupViolation {
    std::string group{};  ///< its name
    double amount = 0;    ///< summed over its rows, each in units of its largest coefficient
    int rows = 0;         ///< how many are violated
    std::string worst{};  ///< the most violated one
};
template <class F>
constexpr void visit_fields(std::type_identity<GroupViolation>, F&& field) {
    field("group", &GroupViolation::group);
    field("amount", &GroupViolation::amount);
    field("rows", &GroupViolation::rows);
    field("worst", &GroupViolation::worst);
}

/// The elastic form: minimise how much the rows of these groups are violated, each row in units of its
/// largest coefficient; the objective is left out. Its optimum is 0 exactly where the model is feasible.
/// Bounds and integrality stay.
///
/// @param groups names of groups; empty = all
/// @throws InvalidInput for a group that does not exist
[[nodiscard]] ElasticModel elastic(const Model& model, const std::vector<std::string>& groups = {});

/// The groups that a solution of the elastic form violates by more than `tolerance`, worst first: relax
/// these, and there is a solution.
[[nodiscard]] std::vector<GroupViolation> violated_groups(const ElasticModel& model,
                                                          std::span<const double> x, double tolerance = 1e-6);

/// What a vector is worth in a model.
struct Evaluation {
    double objective = 0;      ///< with the model's offset
    double violation = 0;      ///< by how much the worst row or column bound is violated; 0 = none is
    std::string violated{};    ///< its name; empty = none is
    double fractionality = 0;  ///< how far the worst integer column is from a whole number
    std::string fractional{};  ///< its name; empty = none is off
    [[nodiscard]] bool feasible(double tolerance = 1e-6) const noexcept {
        return violation <= tolerance && fractionality <= tolerance;
    }
};
template <class F>
constexpr void visit_fields(std::type_identity<Evaluation>, F&& field) {
    field("objective", &Evaluation::objective);
    field("violation", &Evaluation::violation);
    field("violated", &Evaluation::violated);
    field("fractionality", &Evaluation::fractionality);
    field("fractional", &Evaluation::fractional);
}

/// What `x` is worth, with the model's offset. @throws InvalidInput unless `x` has one entry per column
[[nodiscard]] double objective_value(const Model& model, std::span<const double> x);

/// Objective, worst violation and integrality of `x`. Entries that are not finite count as infinitely wrong.
/// @throws InvalidInput unless `x` has one entry per column
[[nodiscard]] Evaluation evaluate(const Model& model, std::span<const double> x);

/// Adds lower <= sum of the entries <= upper as the last row. For constraints that a builder does not know,
/// written on the columns that `Model::index` names: `add_row(model, "rack", "r1", -infinity, {{x(k, j), 1},
/// ...}, 3)`.
///
/// @param group of the row; a new one where the model has none of that name
/// @param entries columns of the model, each at most once, with numbers that are finite and not 0
/// @return the index of the row
/// @throws InvalidInput for entries that are wrong; the model is then unchanged O(columns + entries of the
///     model)
inline int add_row(Model& model, std::string_view group, std::string name, double lower,
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

}  // namespace gpusched::milp
