// SPDX-License-Identifier: Apache-2.0
// Writers: a model as an MPS or LP file that HiGHS, CBC and GLPK read. A solver's own writer needs that
// solver, and changes names and numbers; these files are read back as the same model.
#pragma once

#include <gpusched/milp/model.hpp>

#include <string>
#include <vector>

namespace gpusched::milp {

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
