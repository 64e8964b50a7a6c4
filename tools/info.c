/* SPDX-License-Identifier: BSD-3-Clause
 *
 * info.c - `runnel info`: what this machine has for messages, and what is in force. Reads, and tries out what it can;
 * changes nothing but this host's table of copies, which it completes (launcher/copy_measure.h). */
#include "info.h"
#include "base/copy.h"
#include "base/env.h"
#include "base/error.h"
#include "base/iface.h"
#include "job/fds.h"
#include "job/proto.h"
#include "launcher/copy_measure.h"
#include "launcher/launcher.h"
#include "launcher/spawn.h"
#include "machine.h"
#include "runnel/runnel.h"
#include "tool.h"

#include <argp.h>
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sysexits.h>
#include <unistd.h>
#if !defined(F_SEAL_FUTURE_WRITE)
#define F_SEAL_FUTURE_WRITE 0x0010 /* Linux 5.1 */
#endif
#if defined(__x86_64__)
#include <cpuid.h>
#endif
#if RNL_HAVE_HWLOC
#include <hwloc.h>
#endif

enum { OPTION_PID = 256, OPTION_JSON };

/* ---- what the system says ---- */

static uint64_t limit_of(int resource, int hard)
{
    struct rlimit r;
    if (getrlimit((__rlimit_resource_t)resource, &r) < 0)
        return INFO_NO_LIMIT;
    rlim_t n = hard ? r.rlim_max : r.rlim_cur;
    return n == RLIM_INFINITY ? INFO_NO_LIMIT : n;
}

static uint64_t physical_memory(void)
{
    long pages = sysconf(_SC_PHYS_PAGES), bytes = sysconf(_SC_PAGESIZE);
    return pages > 0 && bytes > 0 ? (uint64_t)pages * (uint64_t)bytes : 0;
}

/* ---- sections ---- */

static void show_build(struct info_page *p)
{
    info_section(p, "runnel");
    info_row(p, "version", rnl_version(), NULL);
    info_row(p, "stack switching", RNL_HAVE_FCONTEXT ? "Boost.Context" : "ucontext", NULL);
    info_flag(p, "hwloc", RNL_HAVE_HWLOC, "topology of cores, for runnel run --bind core");
}

/* What shm needs; where something is missing, why. */
static int try_memfd(int *future_write, char *why, size_t room)
{
    int fd, e = rnl_memfd_new("runnel-info", 4096, 0, &fd);
    if (e < 0) {
        snprintf(why, room, "no: %s", strerror(rnl_last_error()->sys_errno));
        return 0;
    }
    snprintf(why, room, "yes");
    *future_write = fcntl(fd, F_ADD_SEALS, F_SEAL_FUTURE_WRITE) == 0;
    close(fd);
    return 1;
}

static int try_sockets(char *why, size_t room)
{
    int pair[2], e = rnl_seqpacket_pair(pair);
    snprintf(why, room, e < 0 ? "no: %s" : "yes", e < 0 ? strerror(rnl_last_error()->sys_errno) : "");
    if (e < 0)
        return 0;
    close(pair[0]);
    close(pair[1]);
    return 1;
}

static int try_futex(char *why, size_t room)
{
    uint32_t word = 0;
    int yes = syscall(SYS_futex, &word, FUTEX_WAKE, 1, NULL, NULL, 0) == 0;
    snprintf(why, room, yes ? "yes" : "no: %s", yes ? "" : strerror(errno));
    return yes;
}

static int try_pidfd(void)
{
    int fd = (int)syscall(SYS_pidfd_open, getpid(), 0);
    if (fd >= 0)
        close(fd);
    return fd >= 0;
}

static int try_wipe_on_fork(void)
{
    void *at = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    int yes = at != MAP_FAILED && madvise(at, 4096, MADV_WIPEONFORK) == 0;
    if (at != MAP_FAILED)
        munmap(at, 4096);
    return yes;
}

static void processor_bits(int *rep_movsb, int *short_rep, int *hypervisor)
{
    *rep_movsb = *short_rep = *hypervisor = 0;
#if defined(__x86_64__)
    unsigned a, b, c, d;
    if (__get_cpuid(1, &a, &b, &c, &d))
        *hypervisor = (int)(c >> 31);
    if (__get_cpuid_count(7, 0, &a, &b, &c, &d)) {
        *rep_movsb = (int)(b >> 9 & 1);
        *short_rep = (int)(d >> 4 & 1);
    }
#endif
}

static void show_features(struct info_page *p)
{
    static const char *const widths[] = {"plain", "AVX2", "AVX-512"};
    struct rnl_env_facts facts = {0};
    int future_write = 0, rep_movsb, short_rep, hypervisor;
    rnl_host_facts(&facts);
    char memory[64], sockets[64], futex[64], needs[320];
    int memfd = try_memfd(&future_write, memory, sizeof memory);
    int all = memfd & try_sockets(sockets, sizeof sockets) & try_futex(futex, sizeof futex);
    processor_bits(&rep_movsb, &short_rep, &hypervisor);

    info_section(p, "transports");
    info_flag(p, "shm", all, "between processes, or threads, of one host; needs no privilege");
    snprintf(needs, sizeof needs, "sealed memory files: %s; unix packet sockets: %s; shared futexes: %s", memory,
             sockets, futex);
    info_row(p, "shm needs", needs, NULL);
    info_section(p, "features");
    info_flag(p, "sealed memory files", memfd, "a peer cannot shrink what we share with it");
    info_flag(p, "write seal", future_write, "only the launcher writes the status page; runnel run needs it");
    info_flag(p, "pidfd", try_pidfd(), "deaths are learnt of at once; runnel run needs it");
    info_flag(p, "membarrier", facts.have_membarrier,
              facts.have_membarrier ? "senders need no fence" : "absent: senders fence after each message");
    info_flag(p, "PMIx", RNL_HAVE_PMIX,
              RNL_HAVE_PMIX ? "mpirun and srun can start ranks" : "built without: mpirun starts jobs of one");
    info_flag(p, "wipe on fork", try_wipe_on_fork(), "a forked child is told that the endpoint is its parent's");
    info_row(p, "copies out", widths[facts.wide_copy <= RNL_COPY_AVX512 ? facts.wide_copy : 0],
             "what bulk areas are read with; chosen now, not when built");
    info_flag(p, "rep movsb", rep_movsb,
              short_rep ? "fast (ERMS), short ones too (FSRM)" : "what bulk areas are written with");
    info_number(p, "time-stamp counter kHz", facts.tsc_khz,
                facts.tsc_khz ? "steady: the distance of peers is sensed" : "none: every peer is taken to be near");
    info_flag(p, "hypervisor", hypervisor,
              hypervisor ? "the distance between processors may change at any time" : "none seen");
}

/* The table of copies, which this measures as `runnel run` does, as far as it is not there. */
static void show_copies(struct info_page *p)
{
    static const char *const kinds[RNL_COPY_KINDS] = {"memcpy", "rep movsb", "past caches (32)", "past caches (64)"},
                             *const distances[RNL_COPIES_DISTANCES] = {"near", "far"};
    struct rnl_copies c;
    char path[RNL_COPIES_PATH_MAX], text[256], remark[96], processor[128];
    bool kept = rnl_copies_path(path, sizeof path);
    (void)rnl_copies_complete(&c);
    info_section(p, "copies into bulk areas");
    info_row(p, "table", kept ? path : "none",
             kept ? "RNL_COPIES names another; empty: none" : "no home, or RNL_COPIES");
    rnl_copies_processor(processor, sizeof processor);
    info_row(p, "of processor", processor, "a table of another one counts as none");
    for (unsigned d = 0; d < RNL_COPIES_DISTANCES; d++) {
        size_t n = 0;
        for (unsigned log2 = 11; log2 <= RNL_COPIES_LOG2_MAX; log2++) {
            enum rnl_copy_kind kind = rnl_copies_kind(c.word[d], (size_t)1 << log2);
            if (log2 > 11 && kind == rnl_copies_kind(c.word[d], (size_t)1 << (log2 - 1)))
                continue;
            n += (size_t)snprintf(text + n, sizeof text - n, "%s%s from %u KiB", log2 > 11 ? ", " : "", kinds[kind],
                                  1u << (log2 - 10));
        }
        snprintf(text + n, sizeof text - n, "; %s", rnl_copies_whole_area(c.word[d]) ? "1 MiB" : "512 KiB");
        if (c.line_ns[d])
            snprintf(remark, sizeof remark, "measured; a line crossed in %u ns", c.line_ns[d]);
        else
            snprintf(remark, sizeof remark, "the defaults: no two processors were that far apart yet");
        info_row(p, distances[d], text, remark);
    }
}

#if RNL_HAVE_HWLOC
static void add_caches(hwloc_obj_t obj, char *text, size_t room)
{
    size_t n = 0;
    text[0] = '\0';
    for (; obj && n < room; obj = obj->parent)
        if (hwloc_obj_type_is_dcache(obj->type) && obj->attr->cache.size > 0)
            n += (size_t)snprintf(text + n, room - n, "%sL%u %llu KiB / %d", n ? ", " : "", obj->attr->cache.depth,
                                  (unsigned long long)obj->attr->cache.size / 1024, hwloc_bitmap_weight(obj->cpuset));
}

static void show_hwloc(struct info_page *p)
{
    static const struct {
        const char *name;
        hwloc_obj_type_t type;
    } things[] = {{"packages", HWLOC_OBJ_PACKAGE}, {"NUMA nodes", HWLOC_OBJ_NUMANODE}, {"cores", HWLOC_OBJ_CORE}};
    hwloc_topology_t t;
    char caches[160];
    int hushed = rnl_bind_hush();
    int there = hwloc_topology_init(&t) == 0, loaded = there && hwloc_topology_load(t) == 0;
    rnl_bind_unhush(hushed);
    if (!there)
        return;
    if (loaded) {
        for (unsigned i = 0; i < sizeof things / sizeof things[0]; i++)
            info_number(p, things[i].name, (uint64_t)hwloc_get_nbobjs_by_type(t, things[i].type), "");
        add_caches(hwloc_get_obj_by_type(t, HWLOC_OBJ_PU, 0), caches, sizeof caches);
        if (caches[0])
            info_row(p, "caches / processors", caches, NULL);
    }
    hwloc_topology_destroy(t);
}
#endif

/* "0-3,8" */
static void list_cpus(char *text, size_t room)
{
    int cpu[CPU_SETSIZE];
    unsigned char have[CPU_SETSIZE + 1] = {0};
    size_t used = 0;
    int n = rnl_bind_cores(cpu, CPU_SETSIZE);
    for (int i = 0; i < n; i++)
        if (cpu[i] >= 0 && cpu[i] < CPU_SETSIZE)
            have[cpu[i]] = 1;
    text[0] = '\0';
    for (int i = 0, j; i < CPU_SETSIZE && used < room; i = j + 1) {
        for (j = i; have[j]; j++)
            ;
        if (j > i)
            used +=
                (size_t)snprintf(text + used, room - used, j > i + 1 ? "%s%d-%d" : "%s%d", used ? "," : "", i, j - 1);
    }
}

static void show_topology(struct info_page *p)
{
    char text[256], quota[32] = "no limit";
    uint64_t milli = rnl_group_limit(RNL_GROUP_PROCESSORS);
    info_section(p, "topology");
    bench_machine_line(text, sizeof text);
    text[strcspn(text, "\n")] = '\0';
    info_row(p, "processor", text, NULL);
    info_number(p, "processors", (uint64_t)sysconf(_SC_NPROCESSORS_ONLN), "of the host, online");
    info_number(p, "processors allowed", (uint64_t)rnl_bind_count(), "by affinity: the default of runnel run -n");
    list_cpus(text, sizeof text);
    info_row(p, "which", text, NULL);
    if (milli != INFO_NO_LIMIT)
        snprintf(quota, sizeof quota, "%llu.%02llu", (unsigned long long)milli / 1000,
                 (unsigned long long)milli % 1000 / 10);
    info_row(p, "processor time", quota,
             milli == INFO_NO_LIMIT ? "of the cgroup, in processors"
                                    : "processors, of the cgroup: more ranks than that are held up by the system");
#if RNL_HAVE_HWLOC
    show_hwloc(p);
#endif
    info_number(p, "memory bytes", physical_memory(), "of the host");
}

static void show_limits(struct info_page *p)
{
    char text[128];
    uint64_t files = limit_of(RLIMIT_NOFILE, 1), ranks = RNL_JOB_RANKS_MAX;
    info_section(p, "limits");
    info_number(p, "descriptors", limit_of(RLIMIT_NOFILE, 0), "now (ulimit -Sn)");
    if (files != INFO_NO_LIMIT) {
        uint64_t enough = files > RNL_LAUNCH_DESCRIPTORS ? (files - RNL_LAUNCH_DESCRIPTORS) / RNL_RANK_DESCRIPTORS : 0;
        ranks = enough < ranks ? enough : ranks;
    }
    snprintf(text, sizeof text, "what runnel run raises itself to (ulimit -Hn): enough for %llu rank%s",
             (unsigned long long)ranks, RNL_S(ranks));
    info_number(p, "descriptors at most", files, text);
    info_number(p, "processes", limit_of(RLIMIT_NPROC, 0), "of this user (ulimit -u)");
    info_number(p, "processes of the cgroup", rnl_group_limit(RNL_GROUP_PROCESSES), "");
    info_number(p, "memory of the cgroup", rnl_group_limit(RNL_GROUP_MEMORY), "bytes; shared segments count");
    info_number(p, "address space", limit_of(RLIMIT_AS, 0), "bytes (ulimit -v, in KiB)");
    info_number(p, "ranks of a job", RNL_JOB_RANKS_MAX, "of this release");
    info_row(p, "without influence", "locked memory, huge pages, size of /dev/shm, ptrace: not used", NULL);
}

static const struct environment_setting {
    const char *name, *unset, *what;
} settings[] = {
    {"RUNNEL_FD", "a job of one", "set by runnel run for its ranks: the descriptor that leads to it"},
    {"RUNNEL_RENDEZVOUS", "no job to join",
     "the file of runnel run --rendezvous, or its text: the job that a program joins"},
    {"RUNNEL_TERMINAL", "no terminal", "set by runnel run to 1 if its standard error is a terminal: show progress"},
    {"RNL_PROTECT", "authenticate",
     "how packets to other hosts are protected: authenticate, encrypt, or nothing-measure-only"},
    {"RNL_STRIPE", "0", "1: long messages to a peer of another host go by all of its addresses at once"},
    {"RNL_FAULT", "nothing", "what befalls the packets of other hosts, for trials, like loss=1%"},
    {"RUNNEL_RPC", "nothing", "for SunRPC programs below runnel rpc: off, explain, strict, now, separated by commas"},
    {"RUNNEL_SSH", "ssh", "the command by which runnel run and amudprun reach hosts"},
    {"RUNNEL_DAEMON", "the usual one", "the name of the daemon that keeps the names of services, for trials"},
    {"PMIX_RANK", "no such job",
     "set by a launcher that serves PMIx: the rank of a process, which finds its job by it"},
    {"PATH", "/bin:/usr/bin", "where runnel run looks for the program, runnel bench for gnuplot and compilers"},
    {"TMPDIR", "/tmp", "where runnel bench --peer works, in folders that it removes"},
};

static void show_settings(struct info_page *p)
{
    info_section(p, "settings");
    for (unsigned i = 0; i < sizeof settings / sizeof settings[0]; i++) {
        const struct environment_setting *s = &settings[i];
        const char *value = getenv(s->name);
        info_setting(p, s->name, value ? value : s->unset, value != NULL, s->what);
    }
}

/* What an endpoint gets that asks for nothing else. */
static void show_endpoint(struct info_page *p)
{
    struct rnl_options opt = {.size = sizeof opt};
    struct rnl_limits l;
    rnl_endpoint *ep;
    info_section(p, "endpoint defaults");
    if (rnl_hub_new(1, &opt.hub) < 0 || rnl_open(&ep, &opt) < 0) {
        info_row(p, "error", rnl_last_error()->text, NULL);
        rnl_hub_free(opt.hub);
        return;
    }
    rnl_get_limits(ep, &l);
    info_number(p, "receive budget", l.receive_budget, "bytes; rnl_options.receive_budget");
    info_number(p, "handlers", l.handlers, "rnl_options.handlers; at most 65536");
    info_number(p, "stacks", l.stacks, "rnl_options.stacks; more where there are more local peers");
    info_number(p, "stack bytes", l.stack_bytes, "of a handler that waits for bytes");
    info_number(p, "post budget", l.post_budget, "bytes that rnl_post queues");
    info_number(p, "short message", RNL_SHORT_MAX, "bytes, rnl_send");
    info_number(p, "answer", l.reply_max, "bytes, rnl_reply");
    info_number(p, "reserved at once", l.reserve_max, "bytes, rnl_begin inside a handler");
    info_number(p, "whole message", l.whole_max, "bytes, rnl_handler_whole");
    (void)!rnl_close(ep);
    rnl_hub_free(opt.hub);
}

/* What each interface says about itself. */
static void show_interfaces(struct info_page *p)
{
    for (const struct rnl_iface *const *i = rnl_ifaces; *i; i++) {
        info_section(p, (*i)->name);
        for (const struct rnl_iface_row *row = (*i)->info; row && row->name; row++)
            if (row->text)
                info_row(p, row->name, row->text, row->remark);
            else
                info_number(p, row->name, row->number, row->remark);
    }
}

static int show_machine(int json)
{
    struct info_page p = {.json = json};
    show_build(&p);
    show_features(&p);
    show_copies(&p);
    info_network(&p);
    show_topology(&p);
    show_limits(&p);
    show_settings(&p);
    show_endpoint(&p);
    show_interfaces(&p);
    info_running(&p);
    info_services(&p);
    info_end(&p);
    return 0;
}

/* ---- the command line ---- */

struct info_options {
    int json, pid;
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct info_options *q = state->input;
    char *end;
    long n;
    switch (key) {
    case OPTION_JSON:
        q->json = 1;
        return 0;
    case OPTION_PID:
        errno = 0;
        n = strtol(arg, &end, 10);
        if (end == arg || *end || !isdigit((unsigned char)arg[0]) || errno || n < 1 || n > INT_MAX)
            argp_error(state, "--pid takes the number of a process, not '%s'", arg);
        q->pid = (int)n;
        return 0;
    case ARGP_KEY_ARG:
        argp_error(state, "'%s' is one argument too many; did you mean --pid %s?", arg, arg);
        return 0;
    }
    return ARGP_ERR_UNKNOWN;
}

int rnl_tool_info(int argc, char **argv)
{
    static const struct argp_option options[] = {
        {"pid", OPTION_PID, "PID", 0, "Show the counters of this process, even if it hangs or is stopped", 0},
        {"json", OPTION_JSON, NULL, 0, "Print one JSON object", 0},
        {NULL, 0, NULL, 0, NULL, 0},
    };
    static const struct argp argp = {
        .options = options,
        .parser = parse,
        .children = rnl_tool_help,
        .doc = "Show what this machine has for messages, the limits and settings in force, and who is running.\v"
               "See runnel-info(1).",
    };
    struct info_options q = {0};
    argp_err_exit_status = EX_USAGE;
    if (argp_parse(&argp, argc, argv, 0, NULL, &q) != 0)
        return EX_USAGE;
    int status = q.pid ? info_process(q.pid, q.json) : show_machine(q.json);
    if (fflush(stdout) != 0 || ferror(stdout)) {
        fprintf(stderr, "runnel info: cannot write the output: %s\n", strerror(errno));
        return EX_IOERR;
    }
    return status;
}
