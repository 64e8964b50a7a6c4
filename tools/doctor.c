/* SPDX-License-Identifier: BSD-3-Clause
 *
 * doctor.c - `runnel doctor`: what of these hosts, and of the network between them, is in the way of jobs.
 * launcher/doctor/doctor.h looks and draws the findings; this prints them, for people or as JSON. */
#include "launcher/doctor/doctor.h"
#include "info.h"
#include "launcher/hosts.h"
#include "tool.h"

#include <arpa/inet.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { OPT_HOSTS = 256, OPT_HOSTFILE, OPT_LAUNCHER, OPT_AGENT, OPT_TIME, OPT_JSON };
enum { TIME_S = 10, FAN_OUT = 64 };
static const char *const severity_word[] = {"note", "hinders", "stops"};

static const struct argp_option options[] = {
    {"hosts", OPT_HOSTS, "HOST[:N],...", 0, "Examine these hosts, for N processes each, and all paths between them", 0},
    {"hostfile", OPT_HOSTFILE, "FILE", 0, "The same from a file, a host a line", 1},
    {"launcher", OPT_LAUNCHER, "HOW", 0,
     "ssh: reach hosts over ssh (default); netns: hosts are network namespaces of this machine", 2},
    {"agent", OPT_AGENT, "PATH", 0, "Where the runnel command is on the hosts (default: where it is here)", 2},
    {"time", OPT_TIME, "SECONDS", 0, "How long hosts may take, together (default: 10)", 3},
    {"json", OPT_JSON, NULL, 0, "Print JSON", 3},
    {NULL, 0, NULL, 0, NULL, 0},
};

struct doctor_options {
    struct rnl_launch job;
    struct rnl_hosts hosts;
    struct rnl_job_host at[RNL_HOSTS_MAX];
    bool named, json;
    uint64_t time_ns;
    char self[4096];
};

static void add_hosts(struct doctor_options *o, const char *text, bool file, struct argp_state *state)
{
    char sentence[400];
    if (o->named)
        argp_error(state, "the hosts are named twice: give --hosts or --hostfile once");
    if ((file ? rnl_hosts_file : rnl_hosts_read)(&o->hosts, text, sentence, sizeof sentence) < 0)
        argp_error(state, "%s: %s", file ? "--hostfile" : "--hosts", sentence);
    o->named = true;
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct doctor_options *o = state->input;
    char *end;
    double s;
    switch (key) {
    case OPT_HOSTS:
    case OPT_HOSTFILE:
        add_hosts(o, arg, key == OPT_HOSTFILE, state);
        return 0;
    case OPT_LAUNCHER:
        if (strcmp(arg, "ssh") != 0 && strcmp(arg, "netns") != 0)
            argp_error(state, "--launcher takes ssh or netns, not '%s'", arg);
        o->job.start = strcmp(arg, "ssh") == 0 ? RNL_START_SSH : RNL_START_NETNS;
        return 0;
    case OPT_AGENT:
        if (arg[0] != '/')
            argp_error(state, "--agent takes a path from the root, not '%s'", arg);
        o->job.agent = arg;
        return 0;
    case OPT_TIME:
        s = strtod(arg, &end);
        if (end == arg || *end != '\0' || !isfinite(s) || s < 1 || s > 3600)
            argp_error(state, "--time takes seconds from 1 to 3600, not '%s'", arg);
        o->time_ns = (uint64_t)(s * 1e9);
        return 0;
    case OPT_JSON:
        o->json = true;
        return 0;
    case ARGP_KEY_ARG:
        argp_error(state, "there is no argument such as '%s'; hosts are named with --hosts", arg);
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

/* ---- for people ---- */

static void show_address(const uint8_t ip[16], char *out, size_t room)
{
    static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};
    const bool old = memcmp(ip, mapped, sizeof mapped) == 0;
    if (!inet_ntop(old ? AF_INET : AF_INET6, old ? ip + 12 : ip, out, (socklen_t)room))
        snprintf(out, room, "?");
}

static void print_host(const struct rnl_doctor_host *h)
{
    const struct rnl_host_facts *f = &h->facts;
    if (!h->has_facts) {
        printf("host %-12s could not be examined\n", h->name);
        return;
    }
    printf("host %-12s runnel %s, Linux %s, %u core%s for %u rank%s, %llu MiB of memory, load %.1f\n", h->name,
           f->release, f->kernel, f->allowed, RNL_S(f->allowed), h->ranks, RNL_S(h->ranks),
           (unsigned long long)(f->memory >> 20), f->load_percent / 100.0);
}

static void print_path(const struct rnl_doctor_host *from, const struct rnl_doctor_host *to,
                       const struct rnl_path_report *p)
{
    const struct rnl_path_result *r = &p->result;
    char at[INET6_ADDRSTRLEN];
    if (!from->has_paths)
        return;
    printf("path %s -> %s: ", from->name, to->name);
    if (!p->agreed) {
        puts("none");
        return;
    }
    show_address(p->ip, at, sizeof at);
    printf("%s, datagrams up to %u bytes, %u of %u lost, %u overtaken", at, r->passes, r->sent - r->counts.came,
           r->sent, r->counts.reordered);
    if (r->echoes > 0)
        printf(", round trip %.0f us (median %.0f, longest %.0f)", (double)r->least_ns / 1e3, (double)r->half_ns / 1e3,
               (double)r->most_ns / 1e3);
    puts(r->done ? "" : "; it broke off");
}

static void print_all(const struct rnl_doctor_report *report, const struct rnl_findings *all)
{
    unsigned n[3] = {0};
    for (uint32_t i = 0; i < report->hosts; i++)
        print_host(&report->host[i]);
    for (uint32_t a = 0; a < report->hosts; a++)
        for (uint32_t b = 0; b < report->hosts; b++)
            if (a != b)
                print_path(&report->host[a], &report->host[b], &report->host[a].path[b]);
    for (uint32_t i = 0; i < all->n; i++) {
        const struct rnl_finding *f = &all->at[i];
        n[f->severity]++;
        printf("\n%s: %s.\n  remedy: %s.\n  ask:    %s.\n", severity_word[f->severity], f->text, f->remedy, f->ask);
    }
    printf("\n%u finding%s that stop%s jobs, %u that hinder%s them, %u note%s; %.1f s\n", n[2], RNL_S(n[2]),
           n[2] == 1 ? "s" : "", n[1], n[1] == 1 ? "s" : "", n[0], RNL_S(n[0]), (double)report->took_ns / 1e9);
}

/* ---- for programs ---- */

static void put_text(const char *key, const char *value)
{
    printf(",\"%s\":", key);
    if (value)
        info_put_json(value);
    else
        printf("null");
}

static void put_limit(const char *key, uint64_t value)
{
    if (value == RNL_FACTS_NO_LIMIT)
        printf(",\"%s\":null", key);
    else
        printf(",\"%s\":%llu", key, (unsigned long long)value);
}

static void json_host(const struct rnl_doctor_host *h)
{
    const struct rnl_host_facts *f = &h->facts;
    printf("{\"name\":");
    info_put_json(h->name);
    printf(",\"ranks\":%u,\"examined\":%s", h->ranks, h->has_facts ? "true" : "false");
    if (h->has_facts) {
        put_text("release", f->release);
        put_text("kernel", f->kernel);
        put_text("clock", f->clock);
        printf(",\"cores\":%u,\"allowed_cores\":%u,\"quota_percent\":%u,\"ptrace_scope\":%d,\"load_percent\":%u",
               f->cores, f->allowed, f->quota_percent, f->ptrace_scope, f->load_percent);
        put_limit("descriptors", f->files);
        put_limit("descriptors_hard", f->files_hard);
        put_limit("processes", f->processes);
        put_limit("address_bytes", f->addresses);
        put_limit("memlock_bytes", f->memlock);
        put_limit("memory_bytes", f->memory);
        put_limit("group_memory_bytes", f->group_memory);
        put_limit("receive_buffer_bytes", f->receive_bytes);
        printf(",\"clock_difference_ns\":%lld", (long long)h->clock_ns);
    }
    putchar('}');
}

static void json_path(const struct rnl_doctor_host *from, const struct rnl_doctor_host *to,
                      const struct rnl_path_report *p)
{
    const struct rnl_path_result *r = &p->result;
    char at[INET6_ADDRSTRLEN];
    show_address(p->ip, at, sizeof at);
    printf("{\"from\":");
    info_put_json(from->name);
    put_text("to", to->name);
    printf(",\"works\":%s", p->agreed ? "true" : "false");
    put_text("address", p->agreed ? at : NULL);
    printf(",\"sent\":%u,\"lost\":%u,\"overtaken\":%u,\"twice\":%u,\"whole\":%s,\"passes_bytes\":%u,\"takes_bytes\":%u,"
           "\"trip_least_ns\":%llu,\"trip_median_ns\":%llu,\"trip_most_ns\":%llu}",
           r->sent, r->sent - r->counts.came, r->counts.reordered, r->counts.repeated, r->done ? "true" : "false",
           r->passes, r->takes, (unsigned long long)r->least_ns, (unsigned long long)r->half_ns,
           (unsigned long long)r->most_ns);
}

static void json_all(const struct rnl_doctor_report *report, const struct rnl_findings *all)
{
    bool first = true;
    printf("{\"took_ns\":%llu,\"hosts\":[", (unsigned long long)report->took_ns);
    for (uint32_t i = 0; i < report->hosts; i++) {
        if (i > 0)
            putchar(',');
        json_host(&report->host[i]);
    }
    printf("],\"paths\":[");
    for (uint32_t a = 0; a < report->hosts; a++)
        for (uint32_t b = 0; b < report->hosts; b++)
            if (a != b && report->host[a].has_paths) {
                if (!first)
                    putchar(',');
                first = false;
                json_path(&report->host[a], &report->host[b], &report->host[a].path[b]);
            }
    printf("],\"findings\":[");
    for (uint32_t i = 0; i < all->n; i++) {
        const struct rnl_finding *f = &all->at[i];
        printf("%s{\"severity\":\"%s\"", i ? "," : "", severity_word[f->severity]);
        put_text("code", f->code);
        put_text("host", f->host);
        put_text("other", f->other);
        put_text("text", f->text);
        put_text("remedy", f->remedy);
        put_text("ask", f->ask);
        putchar('}');
    }
    puts("]}");
}

static int examine(struct doctor_options *o)
{
    struct rnl_doctor_report *report;
    struct rnl_findings all;
    const char *ssh = getenv("RUNNEL_SSH");
    o->job.ssh = ssh && ssh[0] != '\0' ? ssh : "ssh";
    o->job.fan_out = FAN_OUT;
    if (o->named) {
        o->job.size = rnl_hosts_slots(&o->hosts);
        if (o->job.size > RNL_JOB_RANKS_MAX) {
            fprintf(stderr, "runnel: %u processes on %u hosts: a job has at most %d\n", o->job.size, o->hosts.n,
                    RNL_JOB_RANKS_MAX);
            return RNL_EXIT_USAGE;
        }
        o->job.hosts = rnl_hosts_deal(&o->hosts, o->job.size, o->at);
        o->job.at = o->at;
        if (rnl_tool_find_self(&o->job, o->self, sizeof o->self) < 0)
            return RNL_EXIT_SYSTEM;
    }
    if (rnl_doctor_examine(&o->job, o->time_ns, &report) < 0)
        return RNL_EXIT_SYSTEM;
    rnl_findings_draw(report, &all);
    if (o->json)
        json_all(report, &all);
    else
        print_all(report, &all);
    int status = all.n > 0 ? (int)all.at[0].severity : 0;
    if (all.failed) {
        fprintf(stderr, "runnel doctor: some findings are missing for want of memory\n");
        status = RNL_EXIT_SYSTEM;
    }
    rnl_findings_free(&all);
    rnl_doctor_free(report);
    return fflush(stdout) == 0 ? status : RNL_EXIT_OUTPUT;
}

int rnl_tool_doctor(int argc, char **argv)
{
    static const struct argp argp = {
        .options = options,
        .parser = parse,
        .children = rnl_tool_help,
        .doc =
            "Examine hosts as a job would find them, and both directions of the path between each two; without --hosts "
            "this machine alone. Each finding says what to do, and who can do it.\v"
            "The exit status is 0 if nothing is in the way of jobs, 1 if something hinders them, 2 if something stops "
            "them. "
            "See runnel-doctor(1).",
    };
    struct doctor_options *o = calloc(1, sizeof *o);
    if (!o) {
        fprintf(stderr, "runnel: no memory for %zu bytes of options; raise ulimit -v, or free memory\n", sizeof *o);
        return RNL_EXIT_SYSTEM;
    }
    o->time_ns = TIME_S * UINT64_C(1000000000);
    argp_err_exit_status = RNL_EXIT_USAGE;
    int status = RNL_EXIT_SYSTEM;
    if (argp_parse(&argp, argc, argv, 0, NULL, o) == 0)
        status = examine(o);
    free(o);
    return status;
}
