/* SPDX-License-Identifier: BSD-3-Clause
 *
 * doctor.c - examines hosts (doctor.h). It uses the agents, their control streams and their probes as a job does, but
 * unlike a job it goes on without the hosts that fail.
 *
 *   GATHER: agents start and greet; who does not is left out --> JOB to the others: FACTS, HERE
 *   --> HOSTS: PATHS --> END */
#include "launcher/doctor/doctor.h"

#include "launcher/node.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { REPORT_PERCENT = 55 /* of the time, for agents to begin */ };

struct doctor {
    struct rnl_launcher *l; /* it starts the agents, and runs no job */
    struct rnl_doctor_report *report;
    struct rnl_job_host *at; /* the hosts that answered, as JOB names them */
    uint32_t *number;        /* of a host in `at`; UINT32_MAX = it did not answer */
    uint32_t answered, waiting;
    bool asked, probing;
    uint64_t greet_end_ns, end_ns;
    uv_timer_t timer;
};

static void wrong(struct doctor *d, struct rnl_node *n, const char *why)
{
    struct rnl_doctor_host *h = &d->report->host[n->host];
    if (h->why[0] == '\0')
        snprintf(h->why, sizeof h->why, "%s", why);
    h->other_release |= n->release[0] != '\0';
    rnl_node_lose(n);
}

/* ---- what agents say: 0, or -1 if no agent of this release says that ---- */

static int receive_facts(struct rnl_doctor_host *h, struct rnl_unpack *u)
{
    struct timespec now = {0};
    rnl_unpack_bytes(u, &h->facts, sizeof h->facts);
    if (u->bad)
        return -1;
    rnl_host_facts_sanitize(&h->facts);
    (void)clock_gettime(CLOCK_REALTIME, &now);
    h->clock_ns = (int64_t)(h->facts.wall_ns - ((uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec));
    h->has_facts = true;
    return 0;
}

static int receive_here(struct doctor *d, struct rnl_node *n, struct rnl_unpack *u)
{
    struct rnl_doctor_host *h = &d->report->host[n->host];
    if (d->answered > 1 &&
        (rnl_host_info_unpack(u, d->answered, d->at, &h->info) < 0 || h->info.host != d->number[n->host]))
        return -1;
    n->state = d->answered > 1 ? RNL_NODE_HERE : RNL_NODE_PROBED;
    return 0;
}

static int receive_paths(struct doctor *d, struct rnl_node *n, struct rnl_unpack *u)
{
    struct rnl_doctor_host *h = &d->report->host[n->host];
    struct rnl_path_report *one = malloc(sizeof *one);
    uint32_t left = rnl_unpack_32(u);
    int r = one && left + 1 == d->answered ? 0 : -1;
    for (; left > 0 && r == 0; left--) {
        r = rnl_path_report_unpack(u, d->answered, one);
        for (uint32_t i = 0; i < d->report->hosts && r == 0; i++)
            if (d->number[i] == one->attempts.other)
                h->path[i] = *one;
    }
    free(one);
    h->has_paths = r == 0;
    n->state = RNL_NODE_PROBED;
    return r;
}

static int hear(struct doctor *d, struct rnl_node *n, const struct rnl_control_frame *f)
{
    struct rnl_unpack u = {.at = f->body, .left = f->bytes};
    struct rnl_doctor_host *h = &d->report->host[n->host];
    char text[400];
    switch (f->kind) {
    case RNL_CONTROL_FACTS:
        return receive_facts(h, &u);
    case RNL_CONTROL_HERE:
        return n->state == RNL_NODE_GREETED ? receive_here(d, n, &u) : -1;
    case RNL_CONTROL_PATHS:
        return n->state == RNL_NODE_HERE ? receive_paths(d, n, &u) : -1;
    case RNL_CONTROL_PONG:
        return 0;
    case RNL_CONTROL_FAIL:
        (void)rnl_unpack_32(&u);
        snprintf(text, sizeof text, "%.*s", (int)u.left, (const char *)u.at);
        wrong(d, n, text);
        return 0;
    }
    return -1;
}

/* ---- the phases ---- */

/* The agents that greeted get their job, numbered without the others. */
static void ask(struct doctor *d)
{
    struct rnl_job_spec *s = &d->l->spec;
    struct rnl_pack p = {.at = NULL};
    static char nobody[] = "examined", *argv[] = {nobody, NULL}, *none[] = {NULL}, here[] = "";
    d->asked = true;
    for (uint32_t i = 0; i < d->report->hosts; i++) {
        if (d->l->node[i]->state != RNL_NODE_GREETED)
            continue;
        d->number[i] = d->answered;
        d->at[d->answered] = d->l->at[i];
        d->at[d->answered++].first = s->size;
        s->size += d->l->at[i].count;
        d->report->host[i].answered = true;
    }
    s->hosts = d->answered;
    s->at = d->at;
    s->flags = RNL_JOB_EXAMINE;
    s->folder = here;
    s->argv = argv;
    s->environment = none;
    for (uint32_t i = 0; i < d->report->hosts; i++) {
        if (d->number[i] == UINT32_MAX)
            continue;
        s->host = d->number[i];
        rnl_job_spec_pack(&p, s);
        rnl_control_send_pack(&d->l->node[i]->control, RNL_CONTROL_JOB, &p);
        rnl_pack_free(&p);
    }
}

/* All have said where they are, or have failed since: who failed has no address. */
static void probe(struct doctor *d)
{
    struct rnl_pack p = {.at = NULL};
    d->probing = true;
    for (uint32_t i = 0; i < d->report->hosts; i++) {
        struct rnl_host_info *info = &d->report->host[i].info;
        if (d->number[i] == UINT32_MAX)
            continue;
        if (info->probe_port == 0) {
            *info = (struct rnl_host_info){.host = d->number[i], .ranks = d->l->at[i].count, .probe_port = 1};
            for (uint32_t k = 0; k < info->ranks; k++)
                info->port[k] = 1;
        }
        rnl_host_info_pack(&p, info);
    }
    for (uint32_t i = 0; i < d->report->hosts; i++)
        if (d->l->node[i]->state == RNL_NODE_HERE)
            rnl_control_send_pack(&d->l->node[i]->control, RNL_CONTROL_HOSTS, &p);
    rnl_pack_free(&p);
}

static void start_more(struct doctor *d)
{
    for (uint32_t i = 0; i < d->report->hosts && d->waiting < d->l->job->fan_out; i++) {
        struct rnl_node *n = d->l->node[i];
        if (n->state != RNL_NODE_WAITING)
            continue;
        d->waiting++;
        if (rnl_node_start(n) < 0)
            wrong(d, n, "its agent could not be started here");
    }
}

/* Takes in what has come of a host. Returns whether it may still say something. */
static bool look_at(struct doctor *d, struct rnl_node *n)
{
    struct rnl_control_frame f;
    char why[400];
    (void)rnl_node_greeted(n);
    while (rnl_node_talks(n) && n->state != RNL_NODE_PROBED && !n->garbled && rnl_reader_next(&n->control.reader, &f))
        n->garbled = hear(d, n, &f) < 0;
    if (n->state > RNL_NODE_WAITING && n->state < RNL_NODE_PROBED && rnl_node_gone(n, why, sizeof why))
        wrong(d, n, why);
    return n->state < RNL_NODE_PROBED;
}

/* What is due after a turn of the loop. Returns whether something is to come. */
static bool work(struct doctor *d)
{
    const uint64_t now = rnl_now_ns();
    uint32_t open = 0, beginning = 0, here = 0;
    char late[160];
    for (uint32_t i = 0; i < d->report->hosts; i++) {
        struct rnl_node *n = d->l->node[i];
        if (look_at(d, n) &&
            (now >= d->end_ns || (!d->asked && now >= d->greet_end_ns && n->state < RNL_NODE_GREETED))) {
            snprintf(late, sizeof late,
                     n->state < RNL_NODE_GREETED ? "its agent has not answered in time%s%s"
                                                 : "its agent began, and has not reported in time%s%s",
                     n->error_line[0] ? ": " : "", n->error_line);
            wrong(d, n, late);
        }
        open += n->state < RNL_NODE_PROBED;
        beginning += n->state < RNL_NODE_GREETED;
        here += n->state == RNL_NODE_GREETED;
    }
    d->waiting = beginning;
    if (!d->asked)
        start_more(d);
    if (!d->asked && beginning == 0)
        ask(d);
    else if (d->asked && !d->probing && here == 0 && d->answered > 1)
        probe(d);
    rnl_timer_at(&d->timer, rnl_timer_wake, d->asked ? d->end_ns : d->greet_end_ns);
    return open > 0;
}

/* ---- beginning and end ---- */

static struct rnl_doctor_report *new_report(uint32_t hosts)
{
    struct rnl_doctor_report *r = calloc(1, sizeof *r + hosts * sizeof r->host[0]);
    for (uint32_t i = 0; r && i < hosts; i++) {
        r->hosts = i + 1;
        r->host[i].path = calloc(hosts, sizeof *r->host[i].path);
        if (!r->host[i].path) {
            rnl_doctor_free(r);
            return NULL;
        }
    }
    return r;
}

void rnl_doctor_free(struct rnl_doctor_report *r)
{
    for (uint32_t i = 0; r && i < r->hosts; i++)
        free(r->host[i].path);
    free(r);
}

static int make(struct doctor *d, const struct rnl_launch *job)
{
    d->report = new_report(job->hosts);
    d->at = calloc(job->hosts, sizeof *d->at);
    d->number = malloc(job->hosts * sizeof *d->number);
    if (!d->report || !d->at || !d->number || rnl_nodes_make(d->l) < 0) {
        fprintf(stderr, "runnel: no memory to examine %u hosts\n", job->hosts);
        return -1;
    }
    for (uint32_t i = 0; i < job->hosts; i++) {
        d->number[i] = UINT32_MAX;
        d->report->host[i].name = job->at[i].name;
        d->report->host[i].ranks = job->at[i].count;
    }
    return rnl_launcher_draw_keys(d->l);
}

static int examine(struct doctor *d, const struct rnl_launch *job, uint64_t time_ns)
{
    const uint64_t begun = rnl_now_ns();
    if (make(d, job) < 0)
        return -1;
    d->greet_end_ns = begun + time_ns / 100 * REPORT_PERCENT;
    d->end_ns = begun + time_ns;
    while (work(d))
        (void)uv_run(d->l->loop, UV_RUN_ONCE);
    rnl_nodes_end(d->l);
    d->report->took_ns = rnl_now_ns() - begun;
    return 0;
}

static int examine_this(struct rnl_doctor_report **out)
{
    static char name[RNL_JOB_HOST_BYTES];
    struct rnl_doctor_report *r = new_report(1);
    const uint64_t begun = rnl_now_ns();
    if (!r) {
        fprintf(stderr, "runnel: no memory for what is seen of this machine\n");
        return -1;
    }
    if (gethostname(name, sizeof name - 1) < 0)
        memcpy(name, "localhost", sizeof "localhost");
    r->alone = true;
    r->host[0].name = name;
    r->host[0].answered = r->host[0].has_facts = true;
    rnl_host_facts_collect(&r->host[0].facts);
    r->host[0].ranks = r->host[0].facts.allowed;
    r->took_ns = rnl_now_ns() - begun;
    *out = r;
    return 0;
}

int rnl_doctor_examine(const struct rnl_launch *job, uint64_t time_ns, struct rnl_doctor_report **out)
{
    uv_loop_t loop;
    rnl_open_standard();
    rnl_spawn_save_signals();
    if (job->hosts == 0)
        return examine_this(out);
    signal(SIGPIPE, SIG_IGN);
    signal(SIGCHLD, SIG_DFL);
    const int e = rnl_loop_init(&loop);
    struct doctor d = {.l = e < 0 ? NULL : rnl_launcher_new(job, &loop)};
    if (!d.l) {
        fprintf(stderr, "runnel: cannot make an event loop: %s; raise the limits (ulimit -n)\n",
                e < 0 ? strerror(-e) : "no memory");
        return -1;
    }
    (void)uv_timer_init(&loop, &d.timer);
    const int status = examine(&d, job, time_ns);
    rnl_launcher_free(d.l);
    (void)uv_loop_close(&loop);
    if (status == 0)
        *out = d.report;
    else
        rnl_doctor_free(d.report);
    free(d.at);
    free(d.number);
    return status;
}
