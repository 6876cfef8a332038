// SPDX-License-Identifier: Apache-2.0
// Everything in json/.
#pragma once

#include <gpusched/json/document.hpp>
#include <gpusched/json/forms.hpp>
#include <gpusched/json/reader.hpp>
#include <gpusched/json/writer.hpp>
