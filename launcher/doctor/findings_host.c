/* SPDX-License-Identifier: BSD-3-Clause
 *
 * findings_host.c - draws what follows from the facts of one host (doctor.h, host_facts.h). Pure. */
#include "launcher/doctor/doctor.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define MIB (UINT64_C(1) << 20)
enum {
    RANK_MIB = 64,         /* addresses and memory that a rank should have at least: its receive budget */
    MEMLOCK_MIB = 8,       /* for what is locked: io_uring on old kernels, AF_XDP */
    CLOCK_MS = 2000,       /* by which clocks of hosts may differ */
    RECEIVE_BYTES = 212992 /* what kernels come with */
};

static void admin(struct rnl_finding *f)
{
    rnl_finding_contact(f, "the administrator of %s", f->host);
}

static void starter(struct rnl_finding *f)
{
    rnl_finding_contact(f, "nobody: who starts the job can change it");
}

static void system_of(const struct rnl_doctor_report *report, const struct rnl_doctor_host *h, struct rnl_findings *out)
{
    const struct rnl_host_facts *k = &h->facts;
    struct rnl_finding *f;
    const char *n = h->name;
    static const struct {
        uint32_t can;
        enum rnl_severity severity;
        const char *what;
    } tried[] = {
        {RNL_CAN_MEMFD, RNL_FINDING_STOPS, "shared memory cannot be made (memfd_create, ftruncate, mmap)"},
        {RNL_CAN_PASS, RNL_FINDING_STOPS, "descriptors cannot be passed between processes (SCM_RIGHTS)"},
        {RNL_CAN_PIDFD, RNL_FINDING_STOPS, "processes cannot be watched (pidfd_open)"},
        {RNL_CAN_MEMBARRIER, RNL_FINDING_HINDERS,
         "membarrier is not there, so a rank that sleeps costs its peers a fence"},
    };
    if (k->kernel_major < 5 || (k->kernel_major == 5 && k->kernel_minor < 3)) {
        f = rnl_finding_add(out, RNL_FINDING_STOPS, "kernel", n, NULL, "host %s runs Linux %s; Runnel needs 5.3", n,
                            k->kernel);
        rnl_finding_remedy(f, "install a newer kernel");
        admin(f);
    }
    for (unsigned i = 0; i < sizeof tried / sizeof *tried; i++) {
        if (k->can & tried[i].can)
            continue;
        f = rnl_finding_add(out, tried[i].severity, "sandbox", n, NULL, "host %s: %s", n, tried[i].what);
        rnl_finding_remedy(
            f, "allow these calls in the sandbox that the login runs in (a seccomp profile of the container), or "
               "take its limit of memory away");
        admin(f);
    }
    if (!(k->can & RNL_CAN_PROC)) {
        f = rnl_finding_add(out, RNL_FINDING_HINDERS, "proc", n, NULL,
                            "host %s has no /proc: `runnel info --pid`, why and top see nothing there", n);
        rnl_finding_remedy(f, "mount it (mount -t proc proc /proc)");
        admin(f);
    }
    if (!(k->can & RNL_CAN_UDP)) {
        f = rnl_finding_add(out, report->alone ? RNL_FINDING_HINDERS : RNL_FINDING_STOPS, "udp", n, NULL,
                            "host %s opens no UDP socket: no job can span it and other hosts", n);
        rnl_finding_remedy(f, "allow UDP sockets in the sandbox that the login runs in; raise ulimit -n");
        admin(f);
    } else if (!(k->can & RNL_CAN_LOOPBACK)) {
        f = rnl_finding_add(
            out, RNL_FINDING_HINDERS, "loopback", n, NULL,
            "host %s does not hear itself over its loopback interface: --transport udp and `runnel daemon` do not "
            "work there",
            n);
        rnl_finding_remedy(f, "bring it up (ip link set lo up), and let UDP pass on it (nft list ruleset)");
        admin(f);
    }
    if (!report->alone && k->interfaces == 0) {
        f = rnl_finding_add(out, report->hosts > 1 ? RNL_FINDING_STOPS : RNL_FINDING_NOTE, "no address", n, NULL,
                            "host %s has no address but those of its loopback interface, and link-local ones", n);
        rnl_finding_remedy(f, "bring an interface up, and give it an address (ip link set DEVICE up; ip addr add)");
        admin(f);
    }
    if (k->clock[0] != '\0' &&
        strstr("tsc kvm-clock hyperv_clocksource_tsc_page arch_sys_counter xen", k->clock) == NULL) {
        f = rnl_finding_add(out, RNL_FINDING_HINDERS, "clock", n, NULL,
                            "host %s reads its clock by a system call (clock source %s), which every poll pays for", n,
                            k->clock);
        rnl_finding_remedy(f, "let it use tsc (/sys/devices/system/clocksource, the kernel's line tsc=reliable)");
        admin(f);
    }
    if (llabs((long long)h->clock_ns) > CLOCK_MS * INT64_C(1000000)) {
        f = rnl_finding_add(out, RNL_FINDING_NOTE, "time of day", n, NULL,
                            "the time of day of host %s is %.1f s %s of that here: what the two log cannot be compared",
                            n, (double)llabs((long long)h->clock_ns) / 1e9, h->clock_ns > 0 ? "ahead" : "behind");
        rnl_finding_remedy(f, "let both follow a time server (chrony, systemd-timesyncd)");
        admin(f);
    }
}

static void cores_of(const struct rnl_doctor_report *report, const struct rnl_doctor_host *h, struct rnl_findings *out)
{
    const struct rnl_host_facts *k = &h->facts;
    const char *n = h->name;
    struct rnl_finding *f;
    if (!report->alone && h->ranks > k->allowed && k->allowed > 0) {
        f = rnl_finding_add(
            out, RNL_FINDING_HINDERS, "cores", n, NULL,
            "host %s gets %u ranks and has %u core%s for them, %.2f a rank: ranks wait for one another's turn", n,
            h->ranks, k->allowed, RNL_S(k->allowed), (double)k->allowed / h->ranks);
        rnl_finding_remedy(f, "give it at most %u rank%s (--hosts %s:%u)", k->allowed, RNL_S(k->allowed), n,
                           k->allowed);
        starter(f);
    }
    const uint32_t used = h->ranks < k->allowed ? h->ranks : k->allowed;
    if (k->quota_percent > 0 && k->quota_percent < 100 * used) {
        f = rnl_finding_add(
            out, RNL_FINDING_HINDERS, "quota", n, NULL,
            "the control group of host %s gets %.2f processors for %u ranks: when they are used up, all its ranks "
            "stand still for a while",
            n, k->quota_percent / 100.0, h->ranks);
        rnl_finding_remedy(f,
                           "raise cpu.max of the group (docker --cpus, a limit of Kubernetes), or start fewer ranks");
        admin(f);
    }
    if (k->allowed < k->cores) {
        f = rnl_finding_add(out, RNL_FINDING_NOTE, "affinity", n, NULL,
                            "host %s has %u cores, and this login may use %u", n, k->cores, k->allowed);
        rnl_finding_remedy(f, "none, if that is meant; else look at taskset -p and cpuset.cpus");
        admin(f);
    }
    if (k->load_percent > 100 * k->allowed) {
        f = rnl_finding_add(out, RNL_FINDING_NOTE, "load", n, NULL,
                            "host %s is busy: %.1f processes wanted to run on %u core%s in the last minute", n,
                            k->load_percent / 100.0, k->allowed, RNL_S(k->allowed));
        rnl_finding_remedy(f, "look who runs there (top), and measure when it is idle");
        starter(f);
    }
}

static void limits_of(const struct rnl_doctor_report *report, const struct rnl_doctor_host *h, struct rnl_findings *out)
{
    const struct rnl_host_facts *k = &h->facts;
    const uint64_t files = RNL_LAUNCH_DESCRIPTORS + (uint64_t)h->ranks * RNL_RANK_DESCRIPTORS;
    const uint64_t memory = k->group_memory < k->memory ? k->group_memory : k->memory;
    const char *n = h->name;
    struct rnl_finding *f;
    if (k->files_hard < files) {
        f = rnl_finding_add(out, RNL_FINDING_STOPS, "descriptors", n, NULL,
                            "host %s allows %" PRIu64 " descriptors (ulimit -Hn), and %u rank%s need%s %" PRIu64, n,
                            k->files_hard, h->ranks, RNL_S(h->ranks), h->ranks == 1 ? "s" : "", files);
        rnl_finding_remedy(
            f, "raise it: nofile in /etc/security/limits.conf, LimitNOFILE of the service, docker --ulimit nofile");
        admin(f);
    }
    if (k->addresses < RANK_MIB * MIB) {
        f = rnl_finding_add(out, RNL_FINDING_STOPS, "addresses", n, NULL,
                            "host %s limits the addresses of a process to %" PRIu64
                            " MiB (ulimit -v); a rank should have %d, or "
                            "messages wait for memory that never comes",
                            n, k->addresses / MIB, RANK_MIB);
        rnl_finding_remedy(f, "raise it (ulimit -v unlimited; `as` in /etc/security/limits.conf)");
        admin(f);
    }
    if (!k->root && k->processes < h->ranks + UINT64_C(4)) {
        f = rnl_finding_add(out, RNL_FINDING_STOPS, "processes", n, NULL,
                            "host %s allows %" PRIu64 " processes of this user (ulimit -u), and the job has %u there",
                            n, k->processes, h->ranks);
        rnl_finding_remedy(f, "raise it: nproc in /etc/security/limits.conf, TasksMax of the service");
        admin(f);
    }
    if (memory > 0 && memory < (uint64_t)h->ranks * RANK_MIB * MIB) {
        f = rnl_finding_add(out, RNL_FINDING_HINDERS, "memory", n, NULL,
                            "host %s has %" PRIu64 " MiB of memory for %u ranks; each may take in up to %d", n,
                            memory / MIB, h->ranks, RANK_MIB);
        rnl_finding_remedy(
            f, "start fewer ranks there, raise memory.max of the control group, or lower receive_budget of struct "
               "rnl_options");
        starter(f);
    }
    if (k->port_last > 0 && k->port_last + 1 - k->port_first < 2 * h->ranks + 16 && report->hosts > 1) {
        f = rnl_finding_add(out, RNL_FINDING_STOPS, "ports", n, NULL,
                            "host %s gives out the ports %u to %u, too few for %u ranks", n, k->port_first,
                            k->port_last, h->ranks);
        rnl_finding_remedy(f, "widen net.ipv4.ip_local_port_range");
        admin(f);
    }
    if (k->memlock < MEMLOCK_MIB * MIB) {
        f = rnl_finding_add(out, RNL_FINDING_NOTE, "memlock", n, NULL,
                            "host %s lets a process lock %" PRIu64
                            " KiB of memory (ulimit -l): enough for messages; io_uring before "
                            "Linux 5.12 and AF_XDP want more",
                            n, k->memlock >> 10);
        rnl_finding_remedy(f, "none is needed; memlock in /etc/security/limits.conf raises it");
        admin(f);
    }
    if (k->receive_bytes > 0 && k->receive_bytes < RECEIVE_BYTES && !report->alone) {
        f = rnl_finding_add(out, RNL_FINDING_HINDERS, "receive buffer", n, NULL,
                            "host %s limits a socket's receive buffer to %" PRIu64
                            " bytes: bursts of several peers are lost",
                            n, k->receive_bytes);
        rnl_finding_remedy(f, "raise net.core.rmem_max (sysctl -w net.core.rmem_max=%d, or more)", RECEIVE_BYTES);
        admin(f);
    }
    if (k->ptrace_scope > 0 && (!k->root || k->ptrace_scope > 2)) {
        f = rnl_finding_add(
            out, RNL_FINDING_NOTE, "ptrace", n, NULL,
            "host %s does not let a process look into others of its user (kernel.yama.ptrace_scope is %d): gdb -p "
            "and copies that read another process's memory (process_vm_readv, as some MPIs make) need root; "
            "Runnel's messages do not",
            n, k->ptrace_scope);
        rnl_finding_remedy(f, "none is needed for Runnel; else sysctl -w kernel.yama.ptrace_scope=0");
        admin(f);
    }
}

void rnl_findings_of_host(const struct rnl_doctor_report *report, const struct rnl_doctor_host *h,
                          struct rnl_findings *out)
{
    system_of(report, h, out);
    cores_of(report, h, out);
    limits_of(report, h, out);
}
