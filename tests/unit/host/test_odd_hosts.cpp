// Files of hosts that are unlike others: many cores, links, timers with numbers, journals that somebody has changed.
#include <gpusched/host/proc_signals.hpp>
#include <gpusched/host/recovery.hpp>

#include <support/catch.hpp>
#include <support/crashing_host.hpp>

using namespace gpusched;
using namespace gpusched::control;
using namespace gpusched::host;
using Catch::Matchers::ContainsSubstring;
using test::CrashingFiles;
using test::CrashWorld;
using test::SharedRun;

TEST_CASE("timers with numbers, as on ARM, disturb nobody") {
    CHECK(parse_interrupts("CPU0 CPU1\n 11: 500 500 GICv3 27 Level arch_timer\n 0: 9 9 IO-APIC 2-edge timer\n"
                           " 50: 10 0 ITS-MSI 1 Edge nvme0q1\n") == std::vector<std::uint64_t>{10, 0});
}

TEST_CASE("limits are ended below the control groups only, and it is seen that they have") {
    CrashWorld w(true);
    SharedRun run{w.shared};
    CrashingFiles files{w.shared};
    w.put_text("victim", "precious");
    JournalFile file(files, w.journal());
    const auto group = w.folder.string();
    for (const auto& name : {group + "/victim", group + "/t2/../t2/io.max", group + "x/t2/io.max"}) {
        Journal journal;
        journal.boot = "b1";
        journal.leases = {{"T2", name, "259:0 rbps=1"}};
        REQUIRE(file.save(journal, w.options.host) == BackendStatus::ok);
        const auto r = w.recover(run, files);
        CHECK(!r.known());
        CHECK_THAT(r.problems.at(0), ContainsSubstring("no io.max below"));
        CHECK(r.journal.leases == journal.leases);
    }
    CHECK(w.text("victim") == "precious");
    // A kernel that takes it and does nothing.
    struct Deaf final : Files {
        int read(const std::string&, std::string& text) override {
            text = "259:0 rbps=5 wbps=5 riops=max wiops=max\n";
            return 0;
        }
        int write(const std::string&, std::string_view) override { return 0; }
        int create(const std::string&, std::string_view) override { return 0; }
        int rename(const std::string&, const std::string&) override { return 0; }
    } deaf;
    const auto end = [&](const char* before) { return end_lease(deaf, {"T2", "/g/io.max", before}); };
    CHECK(end("259:0 rbps=max wbps=max riops=max wiops=max") == BackendStatus::invalid_state);
    CHECK(end("259:0 rbps=5 wbps=5 riops=max wiops=max") == BackendStatus::ok);
    CHECK(end("259:7 rbps=max wbps=max riops=max wiops=max") == BackendStatus::ok);
}

TEST_CASE("more cores than a pin can name are given back, whatever the tenant gets of them") {
    CHECK(same_cores("0-1535\n", "0-191,192-1535"));
    CHECK(!same_cores("0-1535", "0-255"));
    CHECK(!same_cores("0-3", "x"));
    CHECK(!same_cores("0-3", "0-99999"));
    CrashWorld w(true);
    SharedRun run{w.shared};
    CrashingFiles files{w.shared};
    Journal journal;
    journal.boot = "b1";
    journal.of("T1").now = w.before;
    journal.of("T1").cpuset = "0-1535";
    JournalFile file(files, w.journal());
    REQUIRE(file.save(journal, w.options.host) == BackendStatus::ok);
    const auto r = w.recover(run, files);
    CHECK(r.known());
    CHECK(!r.journal.tenants[0].cpuset);
    CHECK(w.text("t1/cpuset.cpus") == "0-1535\n");
    // The group above has fewer.
    struct Narrow final : Files {
        std::string list{};
        int read(const std::string& path, std::string& text) override {
            text = path.ends_with(".effective") ? "0-127\n" : list + "\n";
            return 0;
        }
        int write(const std::string&, std::string_view text) override {
            list = text.substr(0, text.size() - 1);
            return 0;
        }
        int create(const std::string&, std::string_view) override { return 0; }
        int rename(const std::string&, const std::string&) override { return 0; }
    } narrow;
    CHECK(set_cores(narrow, "/g", {}, "0-1535") == BackendStatus::ok);
    CHECK(set_cores(narrow, "/g", parse_cpus("100-200"), "0-1535") == BackendStatus::not_supported);
}

TEST_CASE("links in the place of a file are not followed") {
    CrashWorld w(true);
    w.put_text("victim", "precious");
    SystemFiles files;
    for (const char* name : {"journal.json.new", "t1/io.max"})
        std::filesystem::create_symlink(w.folder / "victim", w.folder / name);
    CHECK(files.create((w.folder / "journal.json.new").string(), "x") == ELOOP);
    CHECK(files.write((w.folder / "t1/io.max").string(), "x") == ELOOP);
    CHECK(errno_status(ELOOP) == BackendStatus::no_permission);
    CHECK(w.text("victim") == "precious");
}
