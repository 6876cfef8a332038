// Everything in sim/.
#pragma once

#include <gpusched/sim/generator.hpp>
