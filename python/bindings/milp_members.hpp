// Members of models, for pickling.
#pragma once

#include "pickles.hpp"

#include <gpusched/milp/model.hpp>

namespace gpusched::python {

template <>
struct Members<milp::IndexMap> {
    static void visit(auto& m, auto&& each) {
        each(m.name);
        each(m.extents);
        each(m.columns);
    }
};

template <>
struct Members<milp::Model> {
    static void visit(auto& m, auto&& each) {
        each(m.name);
        each(m.sense);
        each(m.offset);
        each(m.column_start);
        each(m.row_index);
        each(m.value);
        each(m.objective);
        each(m.column_lower);
        each(m.column_upper);
        each(m.row_lower);
        each(m.row_upper);
        each(m.integer);
        each(m.column_names);
        each(m.row_names);
        each(m.row_group);
        each(m.group_names);
        each(m.indices);
    }
    static void check(const milp::Model& m) { milp::validate(m); }
};

template <>
struct Members<milp::ElasticModel> {
    static void visit(auto& m, auto&& each) {
        each(base_of<milp::Model>(m));
        each(m.original_columns);
        each(m.shortfall);
        each(m.excess);
    }
};

}  // namespace gpusched::python
