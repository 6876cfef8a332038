// SPDX-License-Identifier: Apache-2.0
// The constraint matrix of a model as Eigen sees it: views and products, all inline.
#pragma once

#include <gpusched/milp/model.hpp>

#include <Eigen/SparseCore>

#include <span>

namespace gpusched::milp {

using Matrix = Eigen::SparseMatrix<double>;                      ///< by columns, as models store it
using RowMatrix = Eigen::SparseMatrix<double, Eigen::RowMajor>;  ///< by rows

/// The constraint matrix A, rows x columns: a view of the model's arrays, which must outlive it.
[[nodiscard]] inline Eigen::Map<const Matrix> A(const Model& model) {
    return {model.rows(),
            model.columns(),
            static_cast<Eigen::Index>(model.nonzeros()),
            model.column_start.data(),
            model.row_index.data(),
            model.value.data()};
}

/// A copy of the constraint matrix by rows, the entries of each by ascending column. O(rows + columns +
/// entries).
[[nodiscard]] inline RowMatrix by_rows(const Model& model) { return A(model); }

/// A x, one entry per row.
/// @param x one entry per column
[[nodiscard]] inline Eigen::VectorXd row_activity(const Model& model, std::span<const double> x) {
    return A(model) * Eigen::Map<const Eigen::VectorXd>(x.data(), static_cast<Eigen::Index>(x.size()));
}

}  // namespace gpusched::milp
