// SPDX-License-Identifier: Apache-2.0
// Writers: a model as an MPS or LP file that HiGHS, CBC and GLPK read. Own, because a solver's writer is
// there only with that solver, and changes names and numbers: what is written here reads back as the same
// model.
#pragma once

#include <gpusched/milp/model.hpp>

#include <string>
#include <vector>

namespace gpusched::milp {

/// Names that all readers of both formats take: unique, at most 100 characters, characters that a format
/// gives a meaning as %XX, and an underscore before a start or a word that would be misread. Names that are
/// fine already stay.
[[nodiscard]] std::vector<std::string> file_names(const std::vector<std::string>& names);

/// The model in free MPS format.
///
/// MPS files are minimisations: a maximisation is written with its objective negated, and a comment says so.
/// All bounds are written out, because readers disagree about those of integer columns, and an offset becomes
/// a column `_constant` fixed at 1, because they disagree about its sign. Rows without sides are left out.
/// @throws InvalidInput for a model that `validate` refuses
[[nodiscard]] std::string to_mps(const Model& model);

/// The model in CPLEX LP format.
///
/// Where it has an offset, a column `_constant` fixed at 1 carries it. A row with two different sides is
/// written as two rows, the second with `~upper` at its name, because not all readers know ranges. Rows
/// without sides are left out.
/// @throws InvalidInput for a model that `validate` refuses
[[nodiscard]] std::string to_lp(const Model& model);

/// @throws BackendError when the file cannot be written
void write_mps(const Model& model, const std::string& path);
void write_lp(const Model& model, const std::string& path);

}  // namespace gpusched::milp
