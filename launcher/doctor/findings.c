/* SPDX-License-Identifier: BSD-3-Clause
 *
 * findings.c - draws what follows from what was seen of hosts and of the paths between them (doctor.h). Pure. */
#include "launcher/doctor/doctor.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    IPV4_HEADERS = 28, /* of IP and UDP */
    IPV6_HEADERS = 48,
    LOST_PER_MILLE = 5, /* from so many on loss is felt */
    REORDERED_PER_MILLE = 10,
    FAR_MS = 5,
    RANK_MIB = 64,         /* addresses and memory that a rank should have at least: its receive budget */
    MEMLOCK_MIB = 8,       /* for what is locked: io_uring on old kernels, AF_XDP */
    CLOCK_MS = 2000,       /* by which clocks of hosts may differ */
    RECEIVE_BYTES = 212992 /* what kernels come with */
};
#define MIB (UINT64_C(1) << 20)

/* ---- the list ---- */

/* Adds one, for whose sake the caller may `set` a remedy with arguments, or another to ask. Never NULL. */
RNL_PRINTF(7, 0)
static struct rnl_finding *add(struct rnl_findings *all, enum rnl_severity severity, const char *code, const char *host,
                               const char *other, const char *remedy, const char *format, va_list args)
{
    static struct rnl_finding nowhere; /* what is written there is lost, and `failed` says so */
    struct rnl_finding *more = realloc(all->at, (all->n + 1) * sizeof *more);
    all->failed |= !more;
    all->at = more ? more : all->at;
    struct rnl_finding *f = more ? &more[all->n++] : &nowhere;
    *f = (struct rnl_finding){.severity = severity, .code = code, .host = host, .other = other};
    vsnprintf(f->text, sizeof f->text, format, args);
    snprintf(f->remedy, sizeof f->remedy, "%s", remedy);
    return f;
}

RNL_PRINTF(3, 4) static void set(char *to, size_t room, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(to, room, format, args);
    va_end(args);
}

/* About one host, whose administrator can help, or whoever starts jobs. */
RNL_PRINTF(7, 8)
static struct rnl_finding *of_host(struct rnl_findings *out, const struct rnl_doctor_host *h,
                                   enum rnl_severity severity, const char *code, bool by_admin, const char *remedy,
                                   const char *format, ...)
{
    va_list args;
    va_start(args, format);
    struct rnl_finding *f = add(out, severity, code, h->name, NULL, remedy, format, args);
    va_end(args);
    if (by_admin)
        set(f->ask, sizeof f->ask, "the administrator of %s", h->name);
    else
        set(f->ask, sizeof f->ask, "nobody: who starts the job can change it");
    return f;
}

/* About the path between two hosts. */
RNL_PRINTF(7, 8)
static struct rnl_finding *of_path(struct rnl_findings *out, const struct rnl_doctor_host *from,
                                   const struct rnl_doctor_host *to, enum rnl_severity severity, const char *code,
                                   const char *remedy, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    struct rnl_finding *f = add(out, severity, code, from->name, to->name, remedy, format, args);
    va_end(args);
    set(f->ask, sizeof f->ask, "who runs the network between %s and %s", from->name, to->name);
    return f;
}

void rnl_findings_free(struct rnl_findings *all)
{
    free(all->at);
    *all = (struct rnl_findings){.at = NULL};
}

/* ---- paths ---- */

/* No address of the other works. The host that asked knows what it saw; the other one, whether it was heard. */
static void unreachable(const struct rnl_doctor_host *from, const struct rnl_doctor_host *to, uint32_t at,
                        const struct rnl_path_report *back, struct rnl_findings *out)
{
    const struct rnl_probe_failure *seen = &from->path[at].attempts;
    const bool heard = back->attempts.heard != 0;
    char text[600], remedy[200], ask[200];
    unsigned told = 0;
    for (uint32_t k = 0; k < seen->addresses; k++) {
        const struct rnl_probe_attempt *w = &seen->address[k];
        if (rnl_is_loopback(w->ip))
            continue;
        rnl_probe_describe(&to->info, w, heard, from->name, to->name, text, sizeof text);
        const char *code = rnl_probe_remedy(w, heard, from->name, to->name, remedy, ask, sizeof remedy);
        struct rnl_finding *f = of_path(out, from, to, RNL_FINDING_STOPS, code, remedy, "%s", text);
        set(f->ask, sizeof f->ask, "%s", ask);
        told++;
    }
    if (told > 0)
        return;
    rnl_probe_describe(&to->info, NULL, heard, from->name, to->name, text, sizeof text);
    struct rnl_finding *f = of_path(out, from, to, RNL_FINDING_STOPS, "no address", "", "%s", text);
    set(f->remedy, sizeof f->remedy,
        "bring an interface of %s up, and give it an address (ip link set DEVICE up; ip addr add)", to->name);
    set(f->ask, sizeof f->ask, "the administrator of %s", to->name);
}

/* Addresses that lead nowhere although another one works: they are left out, and that is all. */
static void dead_addresses(const struct rnl_doctor_host *from, const struct rnl_doctor_host *to, uint32_t at,
                           struct rnl_findings *out)
{
    const struct rnl_probe_failure *seen = &from->path[at].attempts;
    char text[600], remedy[200], ask[200];
    for (uint32_t k = 0; k < seen->addresses && seen->asked; k++) {
        const struct rnl_probe_attempt *w = &seen->address[k];
        if (w->works || rnl_is_loopback(w->ip) || memcmp(w->ip, from->path[at].ip, sizeof w->ip) == 0)
            continue;
        rnl_probe_describe(&to->info, w, false, from->name, to->name, text, sizeof text);
        (void)rnl_probe_remedy(w, false, from->name, to->name, remedy, ask, sizeof remedy);
        struct rnl_finding *f =
            of_path(out, from, to, RNL_FINDING_NOTE, "dead address", "", "%s. Another address works", text);
        set(f->remedy, sizeof f->remedy, "none is needed; if it should work: %s", remedy);
        set(f->ask, sizeof f->ask, "%s", ask);
    }
}

static void lossy(const struct rnl_doctor_host *from, const struct rnl_doctor_host *to, const struct rnl_path_result *r,
                  struct rnl_findings *out)
{
    const uint32_t lost = r->sent - r->counts.came;
    if (lost > 0) {
        const bool felt = (uint64_t)lost * 1000 >= (uint64_t)r->sent * LOST_PER_MILLE;
        of_path(out, from, to, felt ? RNL_FINDING_HINDERS : RNL_FINDING_NOTE, "loss",
                "look for errors and drops of both interfaces (ip -s link, ethtool -S DEVICE), for a bad cable, "
                "a full queue of a switch, or a rule that drops (nft list ruleset, tc -s qdisc)",
                "%u of %u datagrams from %s to %s were lost (%.1f %%); Runnel repeats them, which takes time", lost,
                r->sent, from->name, to->name, 100.0 * lost / r->sent);
    }
    if (r->counts.reordered > 0) {
        const bool felt = (uint64_t)r->counts.reordered * 1000 >= (uint64_t)r->sent * REORDERED_PER_MILLE;
        of_path(out, from, to, felt ? RNL_FINDING_HINDERS : RNL_FINDING_NOTE, "reorder",
                "let one path carry all datagrams of a flow: bonds and routes that deal them out in turn do this "
                "(balance-rr; a hash of addresses and ports does not)",
                "%u of %u datagrams from %s to %s were overtaken by later ones", r->counts.reordered, r->sent,
                from->name, to->name);
    }
    if (r->counts.repeated > 0)
        of_path(out, from, to, RNL_FINDING_NOTE, "repeat", "look for a loop of bridges, or a port that mirrors others",
                "%u datagrams from %s to %s arrived twice", r->counts.repeated, from->name, to->name);
}

static void narrow(const struct rnl_doctor_host *from, const struct rnl_doctor_host *to,
                   const struct rnl_path_report *p, struct rnl_findings *out)
{
    static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};
    const uint32_t head = memcmp(p->ip, mapped, sizeof mapped) == 0 ? IPV4_HEADERS : IPV6_HEADERS;
    const uint32_t passes = p->result.passes + head, takes = p->result.takes + head;
    if (p->result.takes <= p->result.passes)
        return;
    struct rnl_finding *f = of_path(out, from, to, RNL_FINDING_HINDERS, "mtu", "",
                                    "packets of more than %u bytes from %s to %s are lost on their way, "
                                    "without a word, although the interface of %s "
                                    "takes %u; Runnel finds that out by itself, and has to send more packets",
                                    passes, from->name, to->name, from->name, takes);
    set(f->remedy, sizeof f->remedy,
        "give all that lies between an MTU of %u, or both interfaces one of %u (ip link set DEVICE mtu %u)", takes,
        passes, passes);
}

static void timing(const struct rnl_doctor_host *from, const struct rnl_doctor_host *to,
                   const struct rnl_path_result *r, struct rnl_findings *out)
{
    if (r->least_ns < FAR_MS * UINT64_C(1000000))
        return;
    of_path(
        out, from, to, RNL_FINDING_NOTE, "far",
        "run ranks that talk much on hosts of one switch; look for queues that are full (tc -s qdisc)",
        "a datagram from %s to %s and back takes %.1f ms at the least: these hosts are far apart, or something between "
        "them delays",
        from->name, to->name, (double)r->least_ns / 1e6);
}

static void path(const struct rnl_doctor_report *report, uint32_t a, uint32_t b, struct rnl_findings *out)
{
    const struct rnl_doctor_host *from = &report->host[a], *to = &report->host[b];
    const struct rnl_path_report *p = &from->path[b], *back = &to->path[a];
    if (!from->has_paths || !to->answered || to->info.addresses == 0)
        return; /* it was said of the host */
    if (!p->agreed) {
        if (p->attempts.asked)
            unreachable(from, to, b, back, out);
        return;
    }
    dead_addresses(from, to, b, out);
    if (!p->result.done) {
        of_path(out, from, to, RNL_FINDING_HINDERS, "unsteady",
                "look for a limit of packets a second (nft list ruleset: limit, meter), for a host that is "
                "stopped or overloaded, and for routes that change",
                "%s reached %s at first; of %u datagrams that followed at least %u arrived, and then nothing came back",
                from->name, to->name, p->result.sent, p->result.counts.came);
        return;
    }
    lossy(from, to, &p->result, out);
    narrow(from, to, p, out);
    timing(from, to, &p->result, out);
}

/* ---- hosts ---- */

static void system_of(const struct rnl_doctor_report *report, const struct rnl_doctor_host *h, struct rnl_findings *out)
{
    const struct rnl_host_facts *k = &h->facts;
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
    if (k->kernel_major < 5 || (k->kernel_major == 5 && k->kernel_minor < 3))
        of_host(out, h, RNL_FINDING_STOPS, "kernel", true, "install a newer kernel",
                "host %s runs Linux %s; Runnel needs 5.3", n, k->kernel);
    for (unsigned i = 0; i < sizeof tried / sizeof *tried; i++) {
        if (k->can & tried[i].can)
            continue;
        of_host(out, h, tried[i].severity, "sandbox", true,
                "allow these calls in the sandbox that the login runs in (a seccomp profile of the container), or "
                "take its limit of memory away",
                "host %s: %s", n, tried[i].what);
    }
    if (!(k->can & RNL_CAN_PROC))
        of_host(out, h, RNL_FINDING_HINDERS, "proc", true, "mount it (mount -t proc proc /proc)",
                "host %s has no /proc: `runnel info --pid`, why and top see nothing there", n);
    if (!(k->can & RNL_CAN_UDP))
        of_host(out, h, report->alone ? RNL_FINDING_HINDERS : RNL_FINDING_STOPS, "udp", true,
                "allow UDP sockets in the sandbox that the login runs in; raise ulimit -n",
                "host %s opens no UDP socket: no job can span it and other hosts", n);
    else if (!(k->can & RNL_CAN_LOOPBACK))
        of_host(out, h, RNL_FINDING_HINDERS, "loopback", true,
                "bring it up (ip link set lo up), and let UDP pass on it (nft list ruleset)",
                "host %s does not hear itself over its loopback interface: --transport udp and `runnel daemon` do not "
                "work there",
                n);
    if (!report->alone && k->interfaces == 0)
        of_host(out, h, report->hosts > 1 ? RNL_FINDING_STOPS : RNL_FINDING_NOTE, "no address", true,
                "bring an interface up, and give it an address (ip link set DEVICE up; ip addr add)",
                "host %s has no address but those of its loopback interface, and link-local ones", n);
    if (k->clock[0] != '\0' &&
        strstr("tsc kvm-clock hyperv_clocksource_tsc_page arch_sys_counter xen", k->clock) == NULL)
        of_host(out, h, RNL_FINDING_HINDERS, "clock", true,
                "let it use tsc (/sys/devices/system/clocksource, the kernel's line tsc=reliable)",
                "host %s reads its clock by a system call (clock source %s), which every poll pays for", n, k->clock);
    if (llabs((long long)h->clock_ns) > CLOCK_MS * INT64_C(1000000))
        of_host(out, h, RNL_FINDING_NOTE, "time of day", true,
                "let both follow a time server (chrony, systemd-timesyncd)",
                "the time of day of host %s is %.1f s %s of that here: what the two log cannot be compared", n,
                (double)llabs((long long)h->clock_ns) / 1e9, h->clock_ns > 0 ? "ahead" : "behind");
}

static void cores_of(const struct rnl_doctor_report *report, const struct rnl_doctor_host *h, struct rnl_findings *out)
{
    const struct rnl_host_facts *k = &h->facts;
    const char *n = h->name;
    if (!report->alone && h->ranks > k->allowed && k->allowed > 0) {
        struct rnl_finding *f =
            of_host(out, h, RNL_FINDING_HINDERS, "cores", false, "",
                    "host %s gets %u ranks and has %u core%s for them, %.2f a rank: ranks wait for one another's turn",
                    n, h->ranks, k->allowed, RNL_S(k->allowed), (double)k->allowed / h->ranks);
        set(f->remedy, sizeof f->remedy, "give it at most %u rank%s (--hosts %s:%u)", k->allowed, RNL_S(k->allowed), n,
            k->allowed);
    }
    const uint32_t used = h->ranks < k->allowed ? h->ranks : k->allowed;
    if (k->quota_percent > 0 && k->quota_percent < 100 * used)
        of_host(out, h, RNL_FINDING_HINDERS, "quota", true,
                "raise cpu.max of the group (docker --cpus, a limit of Kubernetes), or start fewer ranks",
                "the control group of host %s gets %.2f processors for %u ranks: when they are used up, all its ranks "
                "stand still for a while",
                n, k->quota_percent / 100.0, h->ranks);
    if (k->allowed < k->cores)
        of_host(out, h, RNL_FINDING_NOTE, "affinity", true,
                "none, if that is meant; else look at taskset -p and cpuset.cpus",
                "host %s has %u cores, and this login may use %u", n, k->cores, k->allowed);
    if (k->load_percent > 100 * k->allowed)
        of_host(out, h, RNL_FINDING_NOTE, "load", false, "look who runs there (top), and measure when it is idle",
                "host %s is busy: %.1f processes wanted to run on %u core%s in the last minute", n,
                k->load_percent / 100.0, k->allowed, RNL_S(k->allowed));
}

static void limits_of(const struct rnl_doctor_report *report, const struct rnl_doctor_host *h, struct rnl_findings *out)
{
    const struct rnl_host_facts *k = &h->facts;
    const uint64_t files = RNL_LAUNCH_DESCRIPTORS + (uint64_t)h->ranks * RNL_RANK_DESCRIPTORS;
    const uint64_t memory = k->group_memory < k->memory ? k->group_memory : k->memory;
    const char *n = h->name;
    if (k->files_hard < files)
        of_host(out, h, RNL_FINDING_STOPS, "descriptors", true,
                "raise it: nofile in /etc/security/limits.conf, LimitNOFILE of the service, docker --ulimit nofile",
                "host %s allows %" PRIu64 " descriptors (ulimit -Hn), and %u rank%s need%s %" PRIu64, n, k->files_hard,
                h->ranks, RNL_S(h->ranks), h->ranks == 1 ? "s" : "", files);
    if (k->addresses < RANK_MIB * MIB)
        of_host(out, h, RNL_FINDING_STOPS, "addresses", true,
                "raise it (ulimit -v unlimited; `as` in /etc/security/limits.conf)",
                "host %s limits the addresses of a process to %" PRIu64 " MiB (ulimit -v); a rank should have %d, or "
                "messages wait for memory that never comes",
                n, k->addresses / MIB, RANK_MIB);
    if (!k->root && k->processes < h->ranks + UINT64_C(4))
        of_host(out, h, RNL_FINDING_STOPS, "processes", true,
                "raise it: nproc in /etc/security/limits.conf, TasksMax of the service",
                "host %s allows %" PRIu64 " processes of this user (ulimit -u), and the job has %u there", n,
                k->processes, h->ranks);
    if (memory > 0 && memory < (uint64_t)h->ranks * RANK_MIB * MIB)
        of_host(out, h, RNL_FINDING_HINDERS, "memory", false,
                "start fewer ranks there, raise memory.max of the control group, or lower receive_budget of struct "
                "rnl_options",
                "host %s has %" PRIu64 " MiB of memory for %u ranks; each may take in up to %d", n, memory / MIB,
                h->ranks, RANK_MIB);
    if (k->port_last > 0 && k->port_last + 1 - k->port_first < 2 * h->ranks + 16 && report->hosts > 1)
        of_host(out, h, RNL_FINDING_STOPS, "ports", true, "widen net.ipv4.ip_local_port_range",
                "host %s gives out the ports %u to %u, too few for %u ranks", n, k->port_first, k->port_last, h->ranks);
    if (k->memlock < MEMLOCK_MIB * MIB)
        of_host(
            out, h, RNL_FINDING_NOTE, "memlock", true, "none is needed; memlock in /etc/security/limits.conf raises it",
            "host %s lets a process lock %" PRIu64 " KiB of memory (ulimit -l): enough for messages; io_uring before "
            "Linux 5.12 and AF_XDP want more",
            n, k->memlock >> 10);
    if (k->receive_bytes > 0 && k->receive_bytes < RECEIVE_BYTES && !report->alone) {
        struct rnl_finding *f =
            of_host(out, h, RNL_FINDING_HINDERS, "receive buffer", true, "",
                    "host %s limits a socket's receive buffer to %" PRIu64 " bytes: bursts of several peers are lost",
                    n, k->receive_bytes);
        set(f->remedy, sizeof f->remedy, "raise net.core.rmem_max (sysctl -w net.core.rmem_max=%d, or more)",
            RECEIVE_BYTES);
    }
    if (k->ptrace_scope > 0 && (!k->root || k->ptrace_scope > 2))
        of_host(out, h, RNL_FINDING_NOTE, "ptrace", true,
                "none is needed for Runnel; else sysctl -w kernel.yama.ptrace_scope=0",
                "host %s does not let a process look into others of its user (kernel.yama.ptrace_scope is %d): gdb -p "
                "and copies that read another process's memory (process_vm_readv, as some MPIs make) need root; "
                "Runnel's messages do not",
                n, k->ptrace_scope);
}

static void absent(const struct rnl_doctor_host *h, struct rnl_findings *out)
{
    struct rnl_finding *f =
        of_host(out, h, RNL_FINDING_STOPS, h->other_release ? "version" : "agent", true,
                h->other_release ? "install one release of Runnel on all hosts, or say with --agent where the one is"
                                 : "mend what it says, and examine this host by itself: runnel doctor, there",
                "host %s: %s", h->name, h->why);
    if (!h->other_release && !h->answered)
        set(f->remedy, sizeof f->remedy,
            "`ssh %s true` has to work without a password, and the runnel command has to be "
            "there, where it is here or where --agent says",
            h->name);
}

static int worse_first(const void *a, const void *b)
{
    const struct rnl_finding *x = a, *y = b;
    if (x->severity != y->severity)
        return x->severity > y->severity ? -1 : 1;
    return strcmp(x->text, y->text);
}

void rnl_findings_draw(const struct rnl_doctor_report *report, struct rnl_findings *out)
{
    *out = (struct rnl_findings){.at = NULL};
    for (uint32_t a = 0; a < report->hosts; a++) {
        const struct rnl_doctor_host *h = &report->host[a];
        if (h->why[0] != '\0')
            absent(h, out);
        if (h->has_facts) {
            system_of(report, h, out);
            cores_of(report, h, out);
            limits_of(report, h, out);
        }
        for (uint32_t b = 0; b < report->hosts; b++)
            if (a != b)
                path(report, a, b, out);
    }
    if (out->n > 0)
        qsort(out->at, out->n, sizeof *out->at, worse_first);
}
