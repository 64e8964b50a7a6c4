/* SPDX-License-Identifier: BSD-3-Clause
 *
 * head.c - the launcher of a job on several hosts: starts an agent on each, has them find each other, and is what the
 * agents have in common from then on: the leader (job/agent.h), the judge, the terminal. */
#include "job/head.h"

#include "base/env.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

enum { INPUT_BYTES = 16384 };
#define MS ((uint64_t)1000 * 1000)
static const uint64_t tell_ns = 15000 * MS; /* for all that is to be said before the ranks start */
static const uint64_t ping_ns = 2000 * MS;
static const uint64_t silent_ns = 20000 * MS; /* an agent that says nothing for so long is gone */

static uint64_t earliest(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

const char *rnl_head_host(const struct rnl_launcher *l, uint32_t rank)
{
    uint32_t h = 0;
    while (h + 1 < l->job->hosts && rank >= l->job->at[h + 1].first)
        h++;
    return l->job->at[h].name;
}

int rnl_head_busy(const struct rnl_head *h)
{
    return h->phase == RNL_HEAD_GATHERS || h->phase == RNL_HEAD_PROBES;
}

/* An agent has something to say yet, if only the end of a line. */
int rnl_head_waits(const struct rnl_head *h)
{
    for (uint32_t i = 0; i < h->brief.hosts; i++)
        if (h->phase == RNL_HEAD_RUNS && h->at[i].state != RNL_CHILD_DONE && h->at[i].state != RNL_CHILD_LOST)
            return 1;
    return 0;
}

/* Nothing will come of this job. */
static void give_up(struct rnl_launcher *l, int status)
{
    l->head->phase = RNL_HEAD_OVER;
    if (!l->failed)
        l->status = status;
    l->failed = l->ending = l->quiet = 1;
}

/* ---- to all ---- */

static void broadcast(struct rnl_launcher *l, enum rnl_frame_kind kind, const struct rnl_pack *body)
{
    if (!body->failed)
        rnl_branches_send(l->head->branch, l->head->branches, kind, body->at, body->bytes);
}

void rnl_head_signal(struct rnl_launcher *l, int signal)
{
    struct rnl_pack p = {.at = NULL};
    rnl_pack_32(&p, (uint32_t)signal);
    broadcast(l, RNL_FRAME_SIGNAL, &p);
    rnl_pack_free(&p);
}

void rnl_head_tell(void *arg, const struct rnl_word *w)
{
    struct rnl_launcher *l = arg;
    struct rnl_pack p = {.at = NULL};
    if (l->head == NULL)
        return;
    rnl_word_pack(&p, w);
    broadcast(l, RNL_FRAME_WORD, &p);
    rnl_pack_free(&p);
}

static void send_to(struct rnl_launcher *l, uint32_t host, enum rnl_frame_kind kind, const struct rnl_pack *body)
{
    rnl_branches_send_to(l->head->branch, l->head->branches, host, kind, body);
}

/* ---- the beginning, in phases ---- */

static void begin_probes(struct rnl_launcher *l)
{
    struct rnl_head *h = l->head;
    struct rnl_pack p = {.at = NULL};
    for (uint32_t i = 0; i < l->job->hosts; i++)
        rnl_pack_bytes(&p, h->at[i].here.at, h->at[i].here.bytes);
    h->phase = RNL_HEAD_PROBES;
    h->phase_ends = rnl_host_now_ns(NULL) + tell_ns;
    broadcast(l, RNL_FRAME_HOSTS, &p);
    rnl_pack_free(&p);
}

static void go(struct rnl_launcher *l)
{
    struct rnl_head *h = l->head;
    const struct rnl_pack nothing = {.at = NULL};
    if (h->vains > 0) {
        rnl_head_troubles(l);
        give_up(l, RNL_EXIT_SYSTEM);
        return;
    }
    h->phase = RNL_HEAD_RUNS;
    h->phase_ends = UINT64_MAX;
    l->running = l->job->size;
    for (uint32_t i = 0; i < l->job->size; i++)
        l->proc[i].started = 1;
    broadcast(l, RNL_FRAME_GO, &nothing);
}

static int hear_here(struct rnl_launcher *l, uint32_t host, const struct rnl_frame *f)
{
    struct rnl_head *h = l->head;
    struct rnl_child *c = &h->at[host];
    struct rnl_unpack u = {.at = f->body, .left = f->bytes};
    struct rnl_here here;
    if (h->phase != RNL_HEAD_GATHERS || c->state != RNL_CHILD_STARTS ||
        rnl_here_unpack(&u, l->job->hosts, l->job->at, &here) < 0)
        return -1;
    int bad = here.host != host || u.left != 0;
    c->ways = here.ways;
    memcpy(c->way, here.way, sizeof c->way);
    rnl_here_free(&here);
    if (bad)
        return -1;
    rnl_pack_bytes(&c->here, f->body, f->bytes);
    c->state = RNL_CHILD_HERE;
    if (++h->here == l->job->hosts)
        begin_probes(l);
    return 0;
}

static int hear_probed(struct rnl_launcher *l, uint32_t host, const struct rnl_frame *f)
{
    struct rnl_head *h = l->head;
    struct rnl_child *c = &h->at[host];
    struct rnl_unpack u = {.at = f->body, .left = f->bytes};
    uint32_t n = rnl_unpack_32(&u);
    if (h->phase != RNL_HEAD_PROBES || c->state != RNL_CHILD_HERE || n >= l->job->hosts)
        return -1;
    for (uint32_t i = 0; i < n; i++) {
        struct rnl_trouble *more = realloc(h->vain, (h->vains + 1) * sizeof *more);
        if (more == NULL || rnl_vain_unpack(&u, l->job->hosts, &more[h->vains].what) < 0) {
            h->vain = more != NULL ? more : h->vain;
            return -1;
        }
        h->vain = more;
        more[h->vains++].host = host;
    }
    c->state = RNL_CHILD_PROBED;
    if (++h->probed == l->job->hosts)
        go(l);
    return 0;
}

/* ---- an agent's end ---- */

static void lose_ranks(struct rnl_launcher *l, uint32_t host, const char *why, uint64_t now)
{
    const struct rnl_host *at = &l->job->at[host];
    uint32_t left = 0;
    char to[16] = "";
    if (at->count > 1)
        snprintf(to, sizeof to, " to %u", at->first + at->count - 1);
    for (uint32_t r = at->first; r < at->first + at->count; r++)
        left += !l->proc[r].finished;
    if (left == 0)
        return;
    if (!l->quiet && !(l->ending && l->interrupted != 0))
        rnl_launch_say(l, "host %s, with rank%s %u%s, is lost: %s; %s", at->name, RNL_S(at->count), at->first, to, why,
                       l->job->keep_going ? "the others go on" : "ending the job");
    rnl_console_end(l->console, host);
    for (uint32_t r = at->first; r < at->first + at->count; r++) {
        rnl_agent_lost(l->agent, r, now);
        rnl_launch_exited(l, r, 0, RNL_EXIT_SYSTEM, RNL_EXIT_LOST, now);
        rnl_launch_finished(l, r);
    }
}

static void lose(struct rnl_launcher *l, uint32_t host, const char *why, uint64_t now)
{
    struct rnl_child *c = &l->head->at[host];
    if (c->state == RNL_CHILD_LOST)
        return;
    if (rnl_head_busy(l->head)) {
        rnl_launch_say(l, "host %s: %s", l->job->at[host].name, why);
        give_up(l, RNL_EXIT_SYSTEM);
    }
    if (host == 0)
        l->head->input_over = 1;
    c->state = RNL_CHILD_LOST;
    if (l->head->phase == RNL_HEAD_RUNS)
        lose_ranks(l, host, why, now);
}

/* With those that are reached through it. */
static void lose_all(struct rnl_launcher *l, uint32_t host, uint32_t end, const char *why, uint64_t now)
{
    char through[RNL_JOB_HOST_BYTES + 80];
    snprintf(through, sizeof through, "the agent of host %s, which had started its agent, is gone",
             l->job->at[host].name);
    for (uint32_t i = host; i < end; i++)
        lose(l, i, i == host ? why : through, now);
}

static int hear_lost(struct rnl_launcher *l, uint32_t host, const struct rnl_frame *f, uint64_t now)
{
    char why[400];
    uint32_t parent, end = rnl_tree_end(l->job->hosts, l->job->fan, host, &parent);
    if (parent == UINT32_MAX)
        return -1; /* we have started it */
    snprintf(why, sizeof why, "%.*s (seen from host %s)", (int)(f->bytes < 330 ? f->bytes : 330), (const char *)f->body,
             l->job->at[parent].name);
    lose_all(l, host, end, why, now);
    return 0;
}

/* It is connected to by who started it, and says nothing. */
static void give_up_silent(struct rnl_launcher *l, uint32_t host, uint64_t now)
{
    char why[320], at[160];
    struct rnl_pack p = {.at = NULL};
    uint32_t parent, end = rnl_tree_end(l->job->hosts, l->job->fan, host, &parent);
    int n = snprintf(why, sizeof why, "nothing was heard of its agent for %d s", (int)(silent_ns / (1000 * MS)));
    if (parent == UINT32_MAX && l->back != NULL)
        snprintf(why + n, sizeof why - (size_t)n, ", nor has it come back by way of %s, port %u",
                 rnl_back_addresses(&l->back->at, at, sizeof at), l->back->at.port);
    lose_all(l, host, end, why, now);
    if (parent == UINT32_MAX) {
        rnl_branch_lose(l, rnl_branch_of(l->head->branch, l->head->branches, host));
        return;
    }
    rnl_pack_32(&p, host);
    send_to(l, parent, RNL_FRAME_DROP, &p);
    rnl_pack_free(&p);
}

static void look_after(struct rnl_launcher *l, uint64_t now)
{
    struct rnl_head *h = l->head;
    char why[400];
    for (uint32_t i = 0; i < l->job->hosts; i++) /* parents come first, and take those behind them along */
        if ((h->at[i].state == RNL_CHILD_HERE || h->at[i].state == RNL_CHILD_PROBED) &&
            now >= h->at[i].heard_ns + silent_ns)
            give_up_silent(l, i, now);
    for (uint32_t k = 0; k < h->branches; k++) {
        struct rnl_branch *b = &h->branch[k];
        uint32_t waits = 0;
        for (uint32_t i = b->host; i < b->end; i++)
            waits += h->at[i].state != RNL_CHILD_DONE && h->at[i].state != RNL_CHILD_LOST;
        if (waits > 0 && rnl_branch_gone(l, b, now, why, sizeof why))
            lose_all(l, b->host, b->end, why, now);
    }
}

/* ---- what agents say ---- */

static int rank_of(const struct rnl_launcher *l, uint32_t host, struct rnl_unpack *u, uint32_t *rank)
{
    *rank = rnl_unpack_32(u);
    return !u->bad && *rank - l->job->at[host].first < l->job->at[host].count ? 0 : -1;
}

static void hear_say(struct rnl_launcher *l, uint32_t host, const void *text, size_t bytes)
{
    if (!l->quiet)
        rnl_launch_say(l, "host %s: %.*s", l->job->at[host].name, (int)(bytes < 440 ? bytes : 440), (const char *)text);
}

/* The first that says so, and why, is the one that counts. */
static int hear_fail(struct rnl_launcher *l, uint32_t host, struct rnl_unpack *u, uint64_t now)
{
    int status = (int)(rnl_unpack_32(u) & 255);
    if (u->bad)
        return -1;
    if (u->left > 0)
        hear_say(l, host, u->at, u->left);
    if (l->head->phase != RNL_HEAD_RUNS) {
        give_up(l, status);
    } else if (!l->quiet) {
        l->status = status;
        l->quiet = l->ending = l->failed = 1;
        rnl_launch_kill_all(l, now);
    }
    return 0;
}

static int hear_output(struct rnl_launcher *l, uint32_t host, const struct rnl_frame *f)
{
    struct rnl_unpack u = {.at = f->body, .left = f->bytes};
    uint32_t which = rnl_unpack_32(&u);
    if (u.bad || which < 1 || which > 2)
        return -1;
    rnl_console_feed(l->console, host, (int)which, (const char *)u.at, u.left);
    l->head->at[host].owed[which - 1] += u.left;
    return 0;
}

static int hear_taken(struct rnl_launcher *l, struct rnl_unpack *u)
{
    struct rnl_head *h = l->head;
    uint64_t n = rnl_unpack_64(u);
    if (u->bad)
        return -1;
    h->input_room += n;
    if (n == 0)
        h->input_over = 1;
    return 0;
}

static int hear(struct rnl_launcher *l, uint32_t host, const struct rnl_frame *f, uint64_t now)
{
    struct rnl_unpack u = {.at = f->body, .left = f->bytes};
    struct rnl_child *c = &l->head->at[host];
    struct rnl_word w;
    uint32_t rank, signal, status, flags;
    switch (f->kind) {
    case RNL_FRAME_HERE:
        return hear_here(l, host, f);
    case RNL_FRAME_PROBED:
        return hear_probed(l, host, f);
    case RNL_FRAME_WORD:
        rnl_word_unpack(&u, &w);
        if (u.bad || w.rank - l->job->at[host].first >= l->job->at[host].count)
            return -1;
        return rnl_agent_word(l->agent, &w, now) < 0 ? -1 : 0;
    case RNL_FRAME_EXITED:
        if (rank_of(l, host, &u, &rank) < 0)
            return -1;
        signal = rnl_unpack_32(&u);
        status = rnl_unpack_32(&u);
        flags = rnl_unpack_32(&u);
        if (u.bad || signal > 127 || status > 255)
            return -1;
        rnl_launch_exited(l, rank, (int)signal, (int)status, flags & (RNL_EXIT_BROKEN | RNL_EXIT_UNSERVED), now);
        return 0;
    case RNL_FRAME_FINISHED:
        if (rank_of(l, host, &u, &rank) < 0)
            return -1;
        rnl_launch_finished(l, rank);
        return 0;
    case RNL_FRAME_SAY:
        hear_say(l, host, f->body, f->bytes);
        return 0;
    case RNL_FRAME_FAIL:
        return hear_fail(l, host, &u, now);
    case RNL_FRAME_LOST:
        return hear_lost(l, host, f, now);
    case RNL_FRAME_OUTPUT:
        return hear_output(l, host, f);
    case RNL_FRAME_TAKEN:
        return host == 0 ? hear_taken(l, &u) : -1;
    case RNL_FRAME_DONE:
        c->state = RNL_CHILD_DONE;
        rnl_console_end(l->console, host);
        return 0;
    case RNL_FRAME_PONG:
        return 0;
    }
    return -1;
}

/* ---- the loop's parts ---- */

static void read_branch(struct rnl_launcher *l, struct rnl_branch *b, uint64_t now)
{
    struct rnl_frame f;
    if (rnl_branch_read(l, b, now)) {
        struct rnl_brief brief = l->head->brief;
        rnl_branch_may_return(l, b, &brief.back);
        struct rnl_pack p = {.at = NULL};
        brief.host = b->host;
        rnl_brief_pack(&p, &brief);
        send_to(l, b->host, RNL_FRAME_JOB, &p);
        rnl_pack_free(&p);
    }
    while (rnl_branch_next(b, &f)) {
        struct rnl_child *c = &l->head->at[f.host];
        c->heard_ns = now;
        if (c->state != RNL_CHILD_LOST && hear(l, f.host, &f, now) < 0)
            b->garbled = 1;
    }
}

void rnl_head_event(struct rnl_launcher *l, enum rnl_source source, uint32_t index, uint64_t now)
{
    if (source != RNL_SOURCE_BACK && index >= l->head->branches) /* our input: the work follows */
        return;
    if (source == RNL_SOURCE_BACK) {
        rnl_branches_back(l, l->head->branch, l->head->branches, index, now);
        return;
    }
    struct rnl_branch *b = &l->head->branch[index];
    if (source == RNL_SOURCE_BRANCH)
        read_branch(l, b, now);
    else if (source == RNL_SOURCE_BRANCH_ROOM)
        rnl_trunk_flush(&b->trunk);
    else
        rnl_branch_hear_error(l, b);
}

static void pass_output_room(struct rnl_launcher *l, uint32_t host)
{
    struct rnl_child *c = &l->head->at[host];
    for (uint32_t w = 1; w <= 2; w++) {
        uint64_t *owed = &c->owed[w - 1];
        int room = rnl_console_room(l->console, (int)w);
        if ((room > 0 && *owed > 0) || (room < 0 && !c->told_gone[w - 1])) {
            struct rnl_pack p = {.at = NULL};
            rnl_pack_32(&p, w);
            rnl_pack_64(&p, room < 0 ? 0 : *owed);
            send_to(l, host, RNL_FRAME_ROOM, &p);
            rnl_pack_free(&p);
            c->told_gone[w - 1] = room < 0;
            *owed = 0;
        }
    }
}

static void watch_input(struct rnl_launcher *l, int yes)
{
    struct rnl_head *h = l->head;
    if (yes && !h->input_watched)
        h->input_watched = rnl_source_add(l->epoll, h->input, RNL_SOURCE_BRANCH, h->branches, EPOLLIN) == 0;
    else if (!yes && h->input_watched)
        h->input_watched = epoll_ctl(l->epoll, EPOLL_CTL_DEL, h->input, NULL) != 0;
}

static void pass_input(struct rnl_launcher *l)
{
    struct rnl_head *h = l->head;
    char data[INPUT_BYTES];
    while (h->phase == RNL_HEAD_RUNS && !h->input_over && h->input_room > 0) {
        struct pollfd p = {.fd = h->input, .events = POLLIN};
        if (poll(&p, 1, 0) <= 0) {
            watch_input(l, 1);
            return;
        }
        ssize_t n = read(h->input, data, h->input_room < sizeof data ? (size_t)h->input_room : sizeof data);
        if (n < 0 && (errno == EINTR || errno == EAGAIN))
            return;
        const struct rnl_pack given = {.at = (unsigned char *)data, .bytes = n > 0 ? (size_t)n : 0};
        send_to(l, 0, RNL_FRAME_INPUT, &given);
        h->input_room -= n > 0 ? (uint64_t)n : 0;
        h->input_over = n <= 0;
    }
    watch_input(l, 0);
}

void rnl_head_work(struct rnl_launcher *l, uint64_t now)
{
    struct rnl_head *h = l->head;
    const struct rnl_pack nothing = {.at = NULL};
    if (now > h->worked_ns + silent_ns / 4) /* we were stopped: nobody was listened to */
        for (uint32_t i = 0; i < l->job->hosts; i++)
            h->at[i].heard_ns = now;
    h->worked_ns = now;
    if (rnl_head_busy(h) && (l->ending || l->interrupted != 0))
        give_up(l, l->interrupted != 0 ? RNL_EXIT_SIGNAL + l->interrupted : l->status);
    for (uint32_t i = 0; i < l->job->hosts; i++)
        pass_output_room(l, i);
    look_after(l, now);
    if (now >= h->phase_ends && rnl_head_busy(h)) {
        for (uint32_t i = 0; i < l->job->hosts; i++)
            if (h->at[i].state < RNL_CHILD_PROBED && !l->quiet)
                rnl_launch_say(l, "host %s: its agent has not answered in time; is the host overloaded?",
                               l->job->at[i].name);
        give_up(l, RNL_EXIT_SYSTEM);
    }
    if (now >= h->ping_at) {
        broadcast(l, RNL_FRAME_PING, &nothing);
        h->ping_at = now + ping_ns;
    }
    pass_input(l);
}

uint64_t rnl_head_deadline_ns(const struct rnl_launcher *l)
{
    const struct rnl_head *h = l->head;
    uint64_t at = earliest(h->ping_at, h->phase_ends);
    if (rnl_branches_ending(h->branch, h->branches))
        at = earliest(at, h->worked_ns + 5 * MS); /* how it ended is to be known soon */
    return at;
}

/* ---- beginning and end ---- */

static char *working_folder(void)
{
    char *folder = getcwd(NULL, 0);
    return folder;
}

int rnl_head_new(struct rnl_launcher *l, const struct rnl_spawn *how)
{
    const struct rnl_launch *job = l->job;
    struct rnl_head *h = calloc(1, sizeof *h + job->hosts * sizeof h->at[0]);
    char *folder = working_folder();
    if (h == NULL || folder == NULL) {
        rnl_launch_say(l, "cannot learn the working directory, or have no memory: %s", strerror(errno));
        free(folder);
        free(h);
        return -1;
    }
    l->head = h;
    h->input = how->in;
    h->input_room = RNL_INPUT_ROOM;
    h->folder = folder;
    h->ping_at = h->worked_ns = rnl_host_now_ns(NULL);
    h->phase_ends = UINT64_MAX;
    h->brief = (struct rnl_brief){
        .size = job->size,
        .hosts = job->hosts,
        .flags = (job->keep_going ? RNL_BRIEF_KEEP_GOING : 0u) | (job->tag ? RNL_BRIEF_TAG : 0u) |
                 (job->bind_core ? RNL_BRIEF_BIND : 0u) | (job->datagrams ? RNL_BRIEF_DATAGRAMS : 0u) |
                 (job->no_call_back ? RNL_BRIEF_NO_CALL_BACK : 0u) |
                 (job->reach == RNL_REACH_NETNS ? RNL_BRIEF_ONE_MACHINE : 0u) |
                 (isatty(STDOUT_FILENO) ? RNL_BRIEF_OUT_TERMINAL : 0u) |
                 (isatty(STDERR_FILENO) ? RNL_BRIEF_ERR_TERMINAL : 0u),
        .at = (struct rnl_host *)(uintptr_t)job->at,
        .reach = job->reach,
        .fan = job->fan,
        .ssh = (char *)(uintptr_t)job->ssh,
        .agent = (char *)(uintptr_t)job->agent,
        .folder = folder,
        .argv = job->argv,
        .environment = environ,
    };
    memcpy(h->brief.key, l->key, sizeof h->brief.key);
    return rnl_branches_start(l, l->below, l->below_end, how, &h->branch, &h->branches);
}

void rnl_head_end(struct rnl_launcher *l)
{
    l->head->phase = RNL_HEAD_OVER;
    rnl_branches_end(l, l->head->branch, l->head->branches);
}

void rnl_head_free(struct rnl_head *h)
{
    if (h == NULL)
        return;
    for (uint32_t i = 0; i < h->brief.hosts; i++)
        rnl_pack_free(&h->at[i].here);
    rnl_branches_free(h->branch, h->branches);
    free(h->vain);
    free(h->folder);
    explicit_bzero(&h->brief, sizeof h->brief);
    free(h);
}
