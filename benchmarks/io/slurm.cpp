// SPDX-License-Identifier: Apache-2.0
// How fast a Slurm cluster is read: see reading.hpp.
#include "reading.hpp"

#include <gpusched/io/slurm.hpp>

#include <array>
#include <string>
#include <string_view>

namespace {

/// What `scontrol show nodes` prints: nodes of 8 H100s in one partition.
std::string nodes_text(int nodes) {
    std::string out;
    for (int n = 0; n < nodes; ++n) {
        const int running = n % 10 == 9 ? 0 : 5;  // as in `jobs_text`
        out += "NodeName=gpu" + std::to_string(n) +
               " Arch=x86_64 CoresPerSocket=48\n   CPUAlloc=" + std::to_string(8 * running) +
               R"( CPUEfctv=192 CPUTot=192 CPULoad=61.20
   AvailableFeatures=h100,nvlink,rack)" +
               std::to_string(n / 16) + "\n   ActiveFeatures=h100,nvlink,rack" + std::to_string(n / 16) + R"(
   Gres=gpu:h100:8(S:0-1)
   NodeAddr=10.0.1.1 NodeHostName=gpu Version=25.05.3
   OS=Linux 6.8.0-60-generic #63-Ubuntu SMP PREEMPT_DYNAMIC Tue Apr 15
   RealMemory=2063000 AllocMem=)" +
               std::to_string(65536 * running) + R"( FreeMem=1203344 Sockets=2 Boards=1
   State=MIXED ThreadsPerCore=2 TmpDisk=7000000 Weight=10 Owner=N/A MCS_label=N/A
   Partitions=gpu
   BootTime=2026-11-01T08:00:00 SlurmdStartTime=2026-11-01T08:01:00
   CfgTRES=cpu=192,mem=2063000M,billing=192,gres/gpu=8,gres/gpu:h100=8

)";
    }
    return out;
}

/// What `scontrol show jobs -d` prints: jobs of one GPU each, one after another on all nodes, and every tenth pending.
std::string jobs_text(int nodes, int jobs) {
    std::string out;
    for (int j = 0; j < jobs; ++j) {
        const bool runs = j % 10 != 9;
        const auto node = "gpu" + std::to_string(j % nodes);
        const auto card = std::to_string(j / nodes % 8);
        out += "JobId=" + std::to_string(1000 + j) + " JobName=train-" + std::to_string(j) + R"(
   UserId=alice(1001) GroupId=ml(100) MCS_label=N/A
   Priority=4294901757 Nice=0 Account=ml QOS=normal WCKey=*
   JobState=)" +
               (runs ? "RUNNING" : "PENDING") +
               R"( Reason=None Dependency=(null)
   Requeue=1 Restarts=0 BatchFlag=1 Reboot=0 ExitCode=0:0
   SubmitTime=2026-11-19T05:00:00 EligibleTime=2026-11-19T05:00:00
   StartTime=2026-11-19T06:00:00 EndTime=2026-11-22T06:00:00 Deadline=N/A
   Partition=gpu AllocNode:Sid=login1:44713
   ReqNodeList=(null) ExcNodeList=(null)
   NodeList=)" +
               (runs ? node : std::string("(null)")) +
               R"(
   NumNodes=1 NumCPUs=8 NumTasks=1 CPUs/Task=8 ReqB:S:C:T=0:0:*:*
   ReqTRES=cpu=8,mem=64G,node=1,billing=8,gres/gpu=1
)";
        if (runs)
            out += "   AllocTRES=cpu=8,mem=64G,node=1,billing=8,gres/gpu=1,gres/gpu:h100=1\n"
                   "   JOB_GRES=gpu:h100:1\n     Nodes=" +
                   node + " CPU_IDs=0-7 Mem=65536 GRES=gpu:h100:1(IDX:" + card + ")\n";
        out += R"(   MinCPUsNode=8 MinMemoryNode=64G MinTmpDiskNode=0
   Features=h100&nvlink DelayBoot=00:00:00
   OverSubscribe=OK Contiguous=0 Licenses=(null) Network=(null)
   Command=/home/alice/run.sh
   WorkDir=/home/alice
   TresPerNode=gres/gpu:h100:1

)";
    }
    return out;
}

constexpr std::string_view partitions_text = R"(PartitionName=gpu
   Nodes=ALL
   PriorityJobFactor=1 PriorityTier=10 RootOnly=NO ReqResv=NO OverSubscribe=NO
   OverTimeLimit=NONE PreemptMode=OFF
   State=UP
)";

}  // namespace

int main(int argc, char** argv) {
    const auto size = gpusched::bench::reading_size("How fast a Slurm cluster is read.", argc, argv);
    const auto of_nodes = nodes_text(size.nodes), of_jobs = jobs_text(size.nodes, size.tasks);
    const std::array<gpusched::io::NamedText, 3> texts{
        {{of_nodes, "nodes"}, {of_jobs, "jobs"}, {partitions_text, "partitions"}}};
    return gpusched::bench::report_reading(size, of_nodes.size() + of_jobs.size(),
                                           [&] { return gpusched::io::slurm_from_texts(texts, {}); });
}
