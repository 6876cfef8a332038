// Everything in control/.
#pragma once

#include <gpusched/control/estimators.hpp>
#include <gpusched/control/mig_layout.hpp>
#include <gpusched/control/mig_tables.hpp>
