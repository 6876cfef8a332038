// Everything in verify/.
#pragma once

#include <gpusched/verify/plan.hpp>
