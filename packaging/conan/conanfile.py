# SPDX-License-Identifier: Apache-2.0
"""Conan 2 recipe: `conan create packaging/conan [-o 'gpusched/*:components=core'] [-o 'gpusched/*:system_packages=True']`.

With `system_packages` the packages that gpusched stands on are those of the machine, and no remote is asked.
"""

import re
from pathlib import Path

from conan import ConanFile
from conan.tools.build import check_min_cppstd
from conan.tools.cmake import CMake, CMakeDeps, CMakeToolchain, cmake_layout
from conan.tools.files import copy

ROOT = Path(__file__).resolve().parents[2]


class Gpusched(ConanFile):
    name = "gpusched"
    description = "Scheduling algorithms for GPU clusters"
    license = "Apache-2.0"
    topics = ("gpu", "cluster", "scheduling")
    package_type = "library"
    settings = "os", "compiler", "build_type", "arch"
    options = {
        "shared": [True, False],
        "fPIC": [True, False],
        "components": ["ANY"],  # as GPUSCHED_COMPONENTS: "all", or names joined by ";"
        "system_packages": [True, False],
    }
    default_options = {"shared": False, "fPIC": True, "components": "all", "system_packages": False}
    implements = ["auto_shared_fpic"]

    def set_version(self):
        header = (ROOT / "include/gpusched/version.hpp").read_text(encoding="utf-8")
        self.version = re.search(r'#define GPUSCHED_VERSION "([^"]+)"', header).group(1)

    def export_sources(self):
        for pattern in ("include/*", "src/*", ".cmake/*", "CMakeLists.txt", "LICENSE"):
            copy(self, pattern, ROOT, self.export_sources_folder)

    def requirements(self):
        if self.options.system_packages:
            return
        self.requires("eigen/3.4.0", transitive_headers=True)
        self.requires("boost/[>=1.74 <2]", transitive_headers=True, options={"header_only": True})
        if self.options.components != "core":
            self.requires("nlohmann_json/[>=3.11 <4]")
            self.requires("fast-cpp-csv-parser/cci.20211104")
            self.requires("pugixml/[>=1.11 <2]")
            self.requires("libyaml/0.2.5")
            self.requires("coin-clp/1.17.7")
            self.requires("coin-cbc/2.10.5")

    def validate(self):
        check_min_cppstd(self, 20)

    def layout(self):
        cmake_layout(self)

    def generate(self):
        toolchain = CMakeToolchain(self)
        toolchain.cache_variables["GPUSCHED_COMPONENTS"] = str(self.options.components)
        for extra in ("TESTS", "EXAMPLES", "BENCHMARKS"):
            toolchain.cache_variables[f"GPUSCHED_BUILD_{extra}"] = False
        toolchain.generate()
        if not self.options.system_packages:
            CMakeDeps(self).generate()

    def build(self):
        cmake = CMake(self)
        cmake.configure()
        cmake.build()

    def package(self):
        copy(self, "LICENSE", self.source_folder, Path(self.package_folder) / "licenses")
        CMake(self).install()

    def package_info(self):
        # Users find the package's own CMake files, with its components.
        self.cpp_info.set_property("cmake_find_mode", "none")
        self.cpp_info.builddirs = [
            str(p.parent) for p in Path(self.package_folder).rglob("gpuschedConfig.cmake")
        ]
