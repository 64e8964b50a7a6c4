/* SPDX-License-Identifier: BSD-3-Clause
 *
 * nodes.c - brings the node agents of a job together, --fan-out at a time, has them probe each other's addresses, and
 * takes in what they report. Agents form a star: each talks to the launcher only. */
#include "launcher/mpi/mpi.h"
#include "launcher/node.h"

#include "base/bug.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    PING_MS = 2000,
    SILENT_MS = 20000, /* an agent of which nothing is heard for so long is lost */
    LEAVE_MS = 2000    /* for agents to end */
};
#define MS_NS UINT64_C(1000000)

const char *rnl_nodes_host(const struct rnl_launcher *l, uint32_t rank)
{
    uint32_t h = 0;
    while (h + 1 < l->hosts && rank >= l->at[h + 1].first)
        h++;
    return l->at[h].name;
}

static bool is_before_the_ranks(const struct rnl_launcher *l)
{
    return l->phase < RNL_LAUNCH_RUNNING;
}

/* Before the ranks run; or an agent has something to say yet, if only the end of a line. */
bool rnl_nodes_busy(const struct rnl_launcher *l)
{
    for (uint32_t i = 0; i < l->hosts && l->phase == RNL_LAUNCH_RUNNING; i++)
        if (l->node[i]->state < RNL_NODE_DONE)
            return true;
    return is_before_the_ranks(l);
}

/* ---- to the agents ---- */

static void broadcast(struct rnl_launcher *l, enum rnl_control_kind kind, const void *body, size_t bytes)
{
    for (uint32_t i = 0; l->node && i < l->hosts; i++)
        if (rnl_node_talks(l->node[i]))
            rnl_control_send(&l->node[i]->control, kind, body, bytes);
}

void rnl_nodes_signal(struct rnl_launcher *l, int signal)
{
    const uint32_t body = (uint32_t)signal;
    broadcast(l, RNL_CONTROL_SIGNAL, &body, sizeof body);
}

void rnl_nodes_word(void *arg, const struct rnl_word *w)
{
    broadcast(arg, RNL_CONTROL_WORD, w, sizeof *w);
}

void rnl_nodes_input(struct rnl_launcher *l, const void *bytes, size_t n)
{
    if (l->hosts > 0 && rnl_node_talks(l->node[0]))
        rnl_control_send(&l->node[0]->control, RNL_CONTROL_INPUT, bytes, n);
}

/* ---- the beginning, in phases ---- */

static void start_more(struct rnl_launcher *l)
{
    const uint32_t most = l->local ? 1 : l->job->fan_out;
    for (uint32_t i = 0; i < l->hosts && l->starting < most && l->phase == RNL_LAUNCH_GATHERING; i++) {
        if (l->node[i]->state != RNL_NODE_WAITING)
            continue;
        if (rnl_node_start(l->node[i]) < 0)
            rnl_launcher_give_up(l, RNL_EXIT_SYSTEM);
        l->starting++;
    }
}

static void send_job(struct rnl_launcher *l, struct rnl_node *n)
{
    struct rnl_pack p = {.at = NULL};
    l->spec.host = n->host;
    rnl_job_spec_pack(&p, &l->spec);
    rnl_control_send_pack(&n->control, RNL_CONTROL_JOB, &p);
    rnl_pack_free(&p);
    rnl_node_await_here(n);
}

static void begin_probes(struct rnl_launcher *l)
{
    struct rnl_pack p = {.at = NULL};
    for (uint32_t i = 0; i < l->hosts; i++)
        rnl_host_info_pack(&p, &l->info[i]);
    l->phase = RNL_LAUNCH_PROBING;
    for (uint32_t i = 0; i < l->hosts; i++)
        rnl_control_send_pack(&l->node[i]->control, RNL_CONTROL_HOSTS, &p);
    rnl_pack_free(&p);
}

static void go(struct rnl_launcher *l)
{
    if (l->failures > 0) {
        rnl_diagnostics_report(l);
        rnl_launcher_give_up(l, RNL_EXIT_SYSTEM);
        return;
    }
    l->phase = RNL_LAUNCH_RUNNING;
    l->running = l->job->size;
    broadcast(l, RNL_CONTROL_GO, NULL, 0);
}

/* ---- an agent's end ---- */

static void lose_ranks(struct rnl_launcher *l, uint32_t host, const char *why)
{
    const struct rnl_job_host *at = &l->at[host];
    const uint32_t end = at->first + at->count;
    uint32_t left = 0;
    char to[16] = "";
    if (at->count > 1)
        snprintf(to, sizeof to, " to %u", end - 1);
    for (uint32_t r = at->first; r < end; r++)
        left += !l->rank[r].finished;
    if (left > 0 && !l->quiet && !(l->ending && l->interrupted != 0))
        rnl_launcher_report(l, "host %s, with rank%s %u%s, is lost: %s; %s", at->name, RNL_S(at->count), at->first, to,
                            why, l->job->keep_going ? "the others go on" : "ending the job");
    if (left > 0 && !l->failed && !l->ending) { /* also if all have ended with 0: what they wrote last is lost */
        l->status = RNL_EXIT_SYSTEM;
        l->failed = true;
        if (!l->job->keep_going)
            rnl_launcher_end_job(l);
    }
    for (uint32_t r = at->first; r < end && left > 0; r++) {
        const struct rnl_rank_exit x = {.rank = r, .status = RNL_EXIT_SYSTEM, .flags = RNL_EXIT_UNSERVED};
        if (l->agent)
            rnl_agent_lost(l->agent, r, rnl_now_ns());
        rnl_launcher_exited(l, &x);
        rnl_launcher_finished(l, r);
    }
}

static void lose(struct rnl_launcher *l, struct rnl_node *n, const char *why)
{
    rnl_node_lose(n);
    if (is_before_the_ranks(l)) {
        rnl_launcher_report(l, "host %s: %s", l->at[n->host].name, why);
        rnl_launcher_give_up(l, RNL_EXIT_SYSTEM);
    }
    l->input.over |= n->host == 0;
    if (l->phase == RNL_LAUNCH_RUNNING)
        lose_ranks(l, n->host, why);
}

/* Pings the agents, and gives up those that were silent for too long, whose hosts are stopped or cut off. */
static void on_ping(uv_timer_t *timer)
{
    struct rnl_launcher *l = timer->data;
    const uint64_t now = rnl_now_ns();
    char why[80];
    snprintf(why, sizeof why, "nothing was heard of its agent for %d s", SILENT_MS / 1000);
    for (uint32_t i = 0; i < l->hosts; i++) {
        struct rnl_node *n = l->node[i];
        if (now > l->pinged_ns + SILENT_MS * MS_NS / 4) /* this process was stopped: nobody was listened to */
            n->heard_ns = now;
        if ((n->state == RNL_NODE_HERE || n->state == RNL_NODE_PROBED) && now >= n->heard_ns + SILENT_MS * MS_NS)
            lose(l, n, why);
    }
    l->pinged_ns = now;
    broadcast(l, RNL_CONTROL_PING, NULL, 0);
}

/* ---- what agents say: each of these returns 0, or -1 if no agent of this release says that ---- */

static bool is_rank_of(const struct rnl_launcher *l, uint32_t host, uint32_t rank)
{
    return rank - l->at[host].first < l->at[host].count;
}

static int receive_here(struct rnl_launcher *l, struct rnl_node *n, struct rnl_unpack *u)
{
    if (n->state != RNL_NODE_GREETED ||
        (l->hosts > 1 &&
         (rnl_host_info_unpack(u, l->hosts, l->at, &l->info[n->host]) < 0 || l->info[n->host].host != n->host)))
        return -1;
    n->state = RNL_NODE_HERE;
    l->starting--;
    if (++l->here < l->hosts)
        start_more(l);
    else if (l->hosts > 1)
        begin_probes(l);
    else
        go(l);
    return u->left == 0 ? 0 : -1;
}

static int receive_probed(struct rnl_launcher *l, struct rnl_node *n, struct rnl_unpack *u)
{
    const uint32_t failures = rnl_unpack_32(u);
    if (l->phase != RNL_LAUNCH_PROBING || n->state != RNL_NODE_HERE || failures >= l->hosts)
        return -1;
    for (uint32_t i = 0; i < failures; i++) {
        struct rnl_host_failure *more = realloc(l->failure, (l->failures + 1) * sizeof *more);
        if (!more)
            return -1;
        l->failure = more;
        if (rnl_probe_failure_unpack(u, l->hosts, &more[l->failures].what) < 0)
            return -1;
        more[l->failures++].host = n->host;
    }
    n->state = RNL_NODE_PROBED;
    if (++l->probed == l->hosts)
        go(l);
    return u->bad ? -1 : 0;
}

/* An agent of this host needs no name. */
static void receive_report(struct rnl_launcher *l, uint32_t host, struct rnl_unpack *text)
{
    const bool named = !l->local;
    if (!l->quiet && text->left > 0)
        rnl_launcher_report(l, "%s%s%s%.*s", named ? "host " : "", named ? l->at[host].name : "", named ? ": " : "",
                            (int)(text->left < 440 ? text->left : 440), (const char *)text->at);
}

static int receive_fail(struct rnl_launcher *l, uint32_t host, struct rnl_unpack *u)
{
    const uint32_t status = rnl_unpack_32(u);
    if (u->bad)
        return -1;
    snprintf(l->why, sizeof l->why, "%.*s", (int)(u->left < sizeof l->why ? u->left : sizeof l->why - 1),
             (const char *)u->at);
    receive_report(l, host, u);
    rnl_launcher_give_up(l, (int)(status & 255));
    return 0;
}

static int receive_exited(struct rnl_launcher *l, uint32_t host, struct rnl_unpack *u)
{
    struct rnl_rank_exit x;
    rnl_unpack_bytes(u, &x, sizeof x);
    if (u->bad || l->phase < RNL_LAUNCH_RUNNING || !is_rank_of(l, host, x.rank) || x.signal > 127 || x.status > 255)
        return -1;
    rnl_launcher_exited(l, &x);
    return 0;
}

static int receive_finished(struct rnl_launcher *l, uint32_t host, struct rnl_unpack *u)
{
    const uint32_t rank = rnl_unpack_32(u);
    if (u->bad || !is_rank_of(l, host, rank))
        return -1;
    rnl_launcher_finished(l, rank);
    return 0;
}

static int receive_output(struct rnl_launcher *l, struct rnl_node *n, struct rnl_unpack *u)
{
    const uint32_t rank = rnl_unpack_32(u), which = rnl_unpack_32(u);
    if (u->bad || !is_rank_of(l, n->host, rank) || which < 1 || which > 2)
        return -1;
    rnl_console_feed(l->console, rank, (int)which, (const char *)u->at, u->left);
    n->owed[which - 1] += u->left;
    return 0;
}

static int receive_taken(struct rnl_launcher *l, struct rnl_unpack *u)
{
    uint64_t bytes;
    rnl_unpack_bytes(u, &bytes, sizeof bytes);
    l->input.room += bytes;
    l->input.over |= bytes == 0;
    return u->bad ? -1 : 0;
}

/* An agent speaks for the ranks of its own host only. */
static int receive_word(struct rnl_launcher *l, uint32_t host, struct rnl_unpack *u)
{
    struct rnl_word w;
    rnl_unpack_bytes(u, &w, sizeof w);
    if (!l->agent || u->bad || !is_rank_of(l, host, w.rank))
        return -1;
    return rnl_agent_word(l->agent, &w, rnl_now_ns()) < 0 ? -1 : 0;
}

static int hear(struct rnl_launcher *l, struct rnl_node *n, const struct rnl_control_frame *f)
{
    struct rnl_unpack u = {.at = f->body, .left = f->bytes};
    switch (f->kind) {
    case RNL_CONTROL_HERE:
        return receive_here(l, n, &u);
    case RNL_CONTROL_PROBED:
        return receive_probed(l, n, &u);
    case RNL_CONTROL_WORD:
        return receive_word(l, n->host, &u);
    case RNL_CONTROL_FENCE:
        return rnl_fence_receive(n, &u);
    case RNL_CONTROL_EXITED:
        return receive_exited(l, n->host, &u);
    case RNL_CONTROL_FINISHED:
        return receive_finished(l, n->host, &u);
    case RNL_CONTROL_REPORT:
        receive_report(l, n->host, &u);
        return 0;
    case RNL_CONTROL_FAIL:
        return receive_fail(l, n->host, &u);
    case RNL_CONTROL_OUTPUT:
        return receive_output(l, n, &u);
    case RNL_CONTROL_TAKEN:
        return n->host == 0 ? receive_taken(l, &u) : -1;
    case RNL_CONTROL_DONE:
        n->state = RNL_NODE_DONE;
        return 0;
    case RNL_CONTROL_PONG:
        return 0;
    case RNL_CONTROL_ARRIVALS: /* one that was on its way when JOB was sent; the agent turns away who is too many */
        return n->came ? 0 : -1;
    }
    return -1;
}

/* Returns the credit for output that has been written. */
static void return_room(struct rnl_launcher *l, struct rnl_node *n)
{
    for (uint32_t w = 0; w < 2 && rnl_node_talks(n); w++) {
        const int room = rnl_console_room(l->console, (int)w + 1);
        if ((room > 0 && n->owed[w] > 0) || (room < 0 && !n->reported_gone[w])) {
            const uint64_t body[2] = {w + 1, room < 0 ? 0 : n->owed[w]};
            rnl_control_send(&n->control, RNL_CONTROL_ROOM, body, sizeof body);
            n->reported_gone[w] = room < 0;
            n->owed[w] = 0;
        }
    }
}

void rnl_nodes_work(struct rnl_launcher *l)
{
    struct rnl_control_frame f;
    char why[400];
    for (uint32_t i = 0; i < l->hosts && l->phase != RNL_LAUNCH_OVER; i++) {
        struct rnl_node *n = l->node[i];
        if (rnl_node_greeted(n))
            send_job(l, n);
        while (rnl_node_talks(n) && !n->garbled && rnl_reader_next(&n->control.reader, &f))
            n->garbled = hear(l, n, &f) < 0;
        return_room(l, n);
        if (n->state > RNL_NODE_WAITING && n->state < RNL_NODE_DONE && rnl_node_gone(n, why, sizeof why))
            lose(l, n, why);
    }
    rnl_fence_work(l);
    if (is_before_the_ranks(l) && (l->ending || l->interrupted != 0))
        rnl_launcher_give_up(l, l->interrupted != 0 ? RNL_EXIT_SIGNAL + l->interrupted : l->status);
}

/* ---- beginning and end ---- */

static int fill_spec(struct rnl_launcher *l)
{
    static char nobody[] = "joins", *none[] = {nobody, NULL}, here[] = ""; /* ranks that join are not started */
    const struct rnl_launch *job = l->job;
    struct rnl_job_spec *s = &l->spec;
    const bool local = l->local;
    l->folder = local ? NULL : getcwd(NULL, 0);
    if (!l->folder && !local) {
        rnl_launcher_report(l, "cannot learn the working directory: %s", strerror(errno));
        return -1;
    }
    s->size = job->size;
    s->flags = (job->keep_going ? RNL_JOB_KEEP_GOING : 0u) | (job->bind_core ? RNL_JOB_BIND : 0u) |
               (job->datagrams ? RNL_JOB_DATAGRAMS : 0u) | (job->expected ? RNL_JOB_EXPECTED : 0u) |
               (job->start == RNL_START_NETNS ? RNL_JOB_ONE_MACHINE : 0u) | (local ? RNL_JOB_LOCAL : 0u) |
               (job->rings ? RNL_JOB_RINGS : 0u) | (job->cards ? RNL_JOB_CARDS : 0u) | (job->mpi ? RNL_JOB_MPI : 0u) |
               (local && l->input.over ? RNL_JOB_OWN_INPUT : 0u);
    s->stopped_after_ns = job->stopped_after_ns;
    s->silence_ms = job->silence_ms;
    s->folder = local ? here : l->folder;
    s->argv = job->expected ? none : job->argv;
    s->environment = environ;
    if (RNL_BUG(agents_use_the_job_key))
        memcpy(s->agents, s->key, sizeof s->agents);
    return 0;
}

/* The leader of the membership, whose host runs no rank. */
static int make_leader(struct rnl_launcher *l)
{
    struct rnl_agent_options opt = {
        .size = l->job->size, .keep_going = l->job->keep_going, .publish = rnl_nodes_word, .arg = l};
    memcpy(opt.host, l->own_host.name, sizeof opt.host);
    memcpy(opt.key, l->spec.key, sizeof opt.key);
    const int r = rnl_agent_new(&opt, &l->agent);
    explicit_bzero(&opt, sizeof opt);
    if (r < 0)
        rnl_launcher_report(l, "%s", rnl_last_error()->text);
    return r < 0 ? r : rnl_agent_serve(&l->watch, l->loop, l->agent);
}

int rnl_nodes_make(struct rnl_launcher *l)
{
    l->node = calloc(l->hosts, sizeof(struct rnl_node *));
    for (; l->node && l->nodes < l->hosts; l->nodes++) {
        struct rnl_node *n = calloc(1, sizeof *n);
        if (!n)
            return -1;
        n->launcher = l;
        n->host = l->nodes;
        n->pidfd = -1;
        l->node[l->nodes] = n;
    }
    return l->node ? 0 : -1;
}

/* The hosts are known. 0, or -1 after printing the reason. */
static int set_hosts(struct rnl_launcher *l)
{
    l->spec.hosts = l->hosts;
    l->spec.at = (struct rnl_job_host *)(uintptr_t)l->at;
    l->info = calloc(l->hosts, sizeof l->info[0]);
    if (!l->info)
        rnl_launcher_report(l, "no memory for the agents of %u host%s", l->hosts, RNL_S(l->hosts));
    if (!l->info || (l->hosts > 1 && make_leader(l) < 0))
        return -1;
    l->pinged_ns = rnl_now_ns();
    if (!l->local) /* the end of a child is seen in any case */
        rnl_timer_start(&l->ping, on_ping, PING_MS, PING_MS);
    return 0;
}

int rnl_nodes_start(struct rnl_launcher *l)
{
    if (fill_spec(l) < 0)
        return -1;
    if (l->hosts == 0)
        return 0;
    if (rnl_nodes_make(l) < 0)
        rnl_launcher_report(l, "no memory for the agents of %u host%s", l->hosts, RNL_S(l->hosts));
    if (l->nodes < l->hosts || set_hosts(l) < 0)
        return -1;
    start_more(l);
    return l->phase == RNL_LAUNCH_OVER ? -1 : 0;
}

void rnl_nodes_gathered(struct rnl_launcher *l)
{
    if (set_hosts(l) < 0)
        rnl_launcher_give_up(l, RNL_EXIT_SYSTEM);
    for (uint32_t i = 0; i < l->hosts && l->phase == RNL_LAUNCH_GATHERING; i++)
        send_job(l, l->node[i]);
}

static void on_leave(uv_timer_t *timer)
{
    struct rnl_launcher *l = timer->data;
    l->left = true;
}

void rnl_nodes_end(struct rnl_launcher *l)
{
    l->phase = RNL_LAUNCH_OVER;
    if (l->running > 0)
        rnl_nodes_signal(l, SIGKILL);
    for (uint32_t i = 0; i < l->nodes; i++)
        if (rnl_node_talks(l->node[i]))
            rnl_control_send(&l->node[i]->control, RNL_CONTROL_END, l->why, strlen(l->why));
    rnl_timer_start(&l->leave, on_leave, LEAVE_MS, 0);
    for (bool some = l->nodes > 0; some && !l->left;) {
        some = false;
        for (uint32_t i = 0; i < l->nodes; i++) {
            struct rnl_node *n = l->node[i];
            if (n->state == RNL_NODE_STARTING) /* it reads no END: the end of its input tells it */
                rnl_control_close(&n->control);
            some |= !rnl_node_has_left(n);
            n->control.reader.taken = n->control.reader.end; /* nobody listens any more */
        }
        if (some)
            (void)uv_run(l->loop, UV_RUN_ONCE);
    }
}

void rnl_nodes_free(struct rnl_launcher *l)
{
    for (uint32_t i = 0; i < l->nodes; i++)
        rnl_node_free(l->node[i]);
    free(l->node);
    free(l->info);
    free(l->failure);
    free(l->folder);
}
