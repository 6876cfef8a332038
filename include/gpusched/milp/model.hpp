// SPDX-License-Identifier: Apache-2.0
// Model: a mixed-integer linear program as data, with a name for every row and column. Writers of files that
// HiGHS, CBC and GLPK read back as the same model; a solver's own writer changes names and numbers.
#pragma once

#include <gpusched/config.hpp>
#include <gpusched/core/fields.hpp>
#include <gpusched/core/lp.hpp>

#include <concepts>
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

inline constexpr double infinity = std::numeric_limits<double>::infinity();

/// The columns of a family of variables such as x(configuration, workload): a dense array, row by row.
struct IndexMap {
    static constexpr int absent = -1;
    std::string name{};
    std::vector<int> extents{};  ///< number of values of each index
    std::vector<int> columns{};  ///< one entry per combination; `absent` = no column

    IndexMap() = default;
    IndexMap(std::string name_, std::vector<int> extents_);
    template <std::integral... I>
    explicit IndexMap(std::string name_, I... extents_)
        : IndexMap(std::move(name_), std::vector<int>{static_cast<int>(extents_)...}) {}

    /// Returns the column, or `absent`. The indices must be in range.
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

/// A mixed-integer linear program: minimise (or maximise) objective . x + offset subject to row_lower <= A x
/// <= row_upper and column_lower <= x <= column_upper, with whole numbers in the columns of `integer`.
///
/// A is stored by columns: column j has the entries column_start[j] .. column_start[j + 1] - 1, by ascending
/// row. `A(model)` of matrix.hpp is an Eigen view of it. Missing sides are plus or minus infinity. Rows
/// belong to groups such as "coverage" and "budget".
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
    std::vector<IndexMap> indices{};  ///< the families of variables

    [[nodiscard]] int rows() const noexcept { return static_cast<int>(row_lower.size()); }
    [[nodiscard]] int columns() const noexcept { return static_cast<int>(objective.size()); }
    [[nodiscard]] int integer_columns() const noexcept;
    [[nodiscard]] std::size_t nonzeros() const noexcept { return value.size(); }

    /// Returns the index map of that name. @throws InvalidInput for an unknown name
    [[nodiscard]] const IndexMap& index(std::string_view map) const;
    /// Returns the number of rows of a group; 0 for an unknown group.
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

/// @throws InvalidInput for arrays of different sizes, entries outside the matrix or out of order, numbers
///     that are not finite, lower sides above upper ones, lower sides of plus infinity and upper ones of
///     minus infinity
void validate(const Model& model);

/// One entry of a row.
struct Entry {
    int column = 0;
    double value = 0;
};

/// Builds a model from columns and rows.
class ModelBuilder {
  public:
    explicit ModelBuilder(std::string name) { model_.name = std::move(name); }

    /// Adds a column. @return its index
    int column(std::string name, double lower, double upper, double objective = 0, bool integer = false);
    int binary(std::string name, double objective = 0) {
        return column(std::move(name), 0, 1, objective, true);
    }
    /// Adds the row lower <= sum of the entries <= upper to a group. Entries of one column are added up,
    /// zeros dropped.
    /// @return its index
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

    /// Returns the model. The builder is empty afterwards.
    [[nodiscard]] Model finish();

  private:
    Model model_;
    std::vector<int> row_start_{0};  // the rows so far, entries in the order of the calls
    std::vector<int> entry_column_;
    std::vector<double> entry_value_;
};

/// @throws InvalidInput unless `x` has one finite entry per column
void require_values(const Model& model, std::span<const double> x);

/// Returns the model with all columns continuous.
[[nodiscard]] Model lp_relaxation(Model model);

/// Returns the relaxation as the input of an LP solver: a minimisation without offset.
[[nodiscard]] LpProblem lp_problem(const Model& model);

/// A model in which the rows of some groups can be violated at a price. With all groups it always has a
/// solution, unless the bounds of an integer column contain no whole number.
struct ElasticModel : Model {
    int original_columns = 0;
    std::vector<int> shortfall{};  ///< per row: the column of the amount below its lower side, or -1
    std::vector<int> excess{};     ///< per row: the column of the amount above its upper side, or -1
};
template <class F>
constexpr void visit_fields(std::type_identity<ElasticModel>, F&& field) {
    visit_fields(std::type_identity<Model>{}, field);
    field("original_columns", &ElasticModel::original_columns);
    field("shortfall", &ElasticModel::shortfall);
    field("excess", &ElasticModel::excess);
}

/// The violation of a group of rows by a solution of an elastic model.
struct GroupViolation {
    std::string group{};  ///< name of the group
    double amount = 0;    ///< sum over its rows, each in units of its largest coefficient
    int rows = 0;         ///< violated rows
    std::string worst{};  ///< name of the most violated row
};
template <class F>
constexpr void visit_fields(std::type_identity<GroupViolation>, F&& field) {
    field("group", &GroupViolation::group);
    field("amount", &GroupViolation::amount);
    field("rows", &GroupViolation::rows);
    field("worst", &GroupViolation::worst);
}

/// Returns the elastic form: minimise the violation of the rows of these groups, each row in units of its
/// largest coefficient.
///
/// The objective is dropped; bounds and integrality stay. The optimum is 0 if and only if the model is
/// feasible.
/// @param groups names of groups; empty = all
/// @throws InvalidInput for an unknown group
[[nodiscard]] ElasticModel elastic(const Model& model, const std::vector<std::string>& groups = {});

/// Returns the groups that a solution of the elastic form violates by more than `tolerance`, worst first.
/// Relaxing them makes the model feasible.
[[nodiscard]] std::vector<GroupViolation> violated_groups(const ElasticModel& model,
                                                          std::span<const double> x, double tolerance = 1e-6);

/// The objective, feasibility and integrality of a vector.
struct Evaluation {
    double objective = 0;      ///< objective, offset included
    double violation = 0;      ///< largest violation of a row or bound; 0 = none
    std::string violated{};    ///< name of that row or column; empty = none
    double fractionality = 0;  ///< largest distance of an integer column from a whole number
    std::string fractional{};  ///< name of that column; empty = none
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

/// Returns the objective of `x`, offset included. @throws InvalidInput unless `x` has one entry per column
[[nodiscard]] double objective_value(const Model& model, std::span<const double> x);

/// Evaluates `x` without a solver. Entries that are not finite violate by infinity.
/// @throws InvalidInput unless `x` has one entry per column
[[nodiscard]] Evaluation evaluate(const Model& model, std::span<const double> x);

/// Adds lower <= sum of the entries <= upper as the last row of a finished model, for constraints of your
/// own.
///
/// `Model::index` names the columns: `add_row(model, "rack", "r1", -infinity, {{x(k, j), 1}, ...}, 3)`.
/// @param group group of the row; a new one if the model has none of that name
/// @param entries columns of the model, each at most once, with finite numbers other than 0
/// @return the index of the row
/// @throws InvalidInput for wrong entries; the model is then unchanged Complexity: O(columns + entries of the
///     model).
int add_row(Model& model, std::string_view group, std::string name, double lower,
            std::span<const Entry> entries, double upper);

/// Converts names to ones that all readers of both formats accept; valid names stay.
///
/// They are unique and have at most 100 characters. Characters with a meaning in a format become %XX. An
/// underscore precedes names that would be misread.
[[nodiscard]] std::vector<std::string> file_names(const std::vector<std::string>& names);

/// Writes the model in free MPS format.
///
/// MPS files are minimisations: a maximisation is written with its objective negated, as a comment states.
/// All bounds are written, because readers disagree about bounds of integer columns. An offset becomes a
/// column `_constant` fixed at 1, because they disagree about its sign. Rows without sides are omitted.
/// @throws InvalidInput for a model that `validate` rejects
[[nodiscard]] std::string to_mps(const Model& model);

/// Writes the model in CPLEX LP format.
///
/// An offset becomes a column `_constant` fixed at 1. A row with two different sides becomes two rows, the
/// second with `~upper` after its name, because not all readers support ranges. Rows without sides are
/// omitted.
/// @throws InvalidInput for a model that `validate` rejects
[[nodiscard]] std::string to_lp(const Model& model);

/// Writes the model to a file. @throws BackendError if it cannot be written
void write_mps(const Model& model, const std::string& path);
void write_lp(const Model& model, const std::string& path);

}  // namespace gpusched::milp
