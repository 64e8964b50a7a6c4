/* SPDX-License-Identifier: BSD-3-Clause
 *
 * cluster.c - the program on several ranks: upcalls, the queue of events, the loop, and its end. */
#include "cluster.h"
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

uint64_t orc_count, orc_processes = 1;
struct orc_pending *orc_pendings;

static struct orc_event *first, **last = &first;       /* to be executed */
static struct orc_event *early, **early_last = &early; /* whose count is ahead of this rank's, or whose object moves */
static int port, rank, ranks, dead = -1;
enum { CAUSE_MS = 700 }; /* how long the cause of an end is waited for; the launcher kills after 2 s */
static uint32_t tickets;

int orc_rank(void)
{
    return rank;
}

int orc_ranks(void)
{
    return ranks;
}

void orc_broken(uint32_t source)
{
    orc_fail(0, "cpu %u has sent what no program of this kind sends; do all ranks run the same program?", source);
}

/* ---- upcalls ---- */

static void enqueue(struct orc_event *e)
{
    if (!e)
        return;
    *last = e;
    last = &e->next;
}

static void on_group(pan_msg_p msg, void *proto)
{
    enqueue(orc_event_of_group(msg, proto)); /* NULL: more of it comes */
}

static void on_request(pan_upcall_p upcall, pan_msg_p msg, void *proto)
{
    enqueue(orc_event_of_request(msg, proto, upcall));
}

void orc_replied_later(void *arg, int status, pan_msg_p msg, void *proto)
{
    if (status >= 0) /* else its owner is dead, which ends the program */
        enqueue(orc_event_of_reply(msg, proto, arg));
}

static void on_death(void *arg, int pid)
{
    (void)arg;
    if (dead < 0 && orc_processes)
        dead = pid;
}

/* ---- pending invocations ---- */

void orc_pending_begin(struct orc_pending *p, void **args, orc_place at)
{
    p->ticket = ++tickets;
    p->args = args;
    p->thread = orc_self;
    p->at = at;
    p->done = p->again = p->deadlock = false;
    p->next = orc_pendings;
    orc_pendings = p;
}

struct orc_pending *orc_pending_take(uint32_t ticket)
{
    for (struct orc_pending **at = &orc_pendings; *at; at = &(*at)->next)
        if ((*at)->ticket == ticket) {
            struct orc_pending *p = *at;
            *at = p->next;
            return p;
        }
    orc_broken((uint32_t)rank);
}

/* ---- events ---- */

/* Sends all parts but the last, which is left in *iov. */
static int send_parts(const struct orc_group *whole, pan_iovec_t *iov)
{
    struct orc_group head = *whole;
    _Alignas(8) unsigned char proto[64];
    size_t at = pan_group_proto_offset();
    int status = 0;
    head.id = iov->len;
    head.kind_operation |= (uint32_t)ORC_GROUP_MORE << 24;
    memcpy(proto + at, &head, sizeof head);
    while (iov->len > ORC_PART && status >= 0) {
        const pan_iovec_t part = {iov->data, ORC_PART};
        status = pan_group_send(port, &part, 1, proto, at + sizeof head);
        iov->data = (const char *)iov->data + ORC_PART;
        iov->len -= ORC_PART;
    }
    return status;
}

void orc_send_group(enum orc_group_kind kind, uint32_t operation, uint64_t id, uint32_t ticket, uint32_t reads,
                    uint32_t moves, const struct orc_buffer *body)
{
    struct orc_group head = {id, (uint32_t)kind << 24 | operation, ticket, reads, moves};
    _Alignas(8) unsigned char proto[64];
    struct orc_layer layer;
    pan_iovec_t iov = orc_layer_out(&layer, body);
    size_t at = pan_group_proto_offset();
    int status = iov.len > ORC_PART ? send_parts(&head, &iov) : 0;
    memcpy(proto + at, &head, sizeof head);
    if (status >= 0)
        status = pan_group_send(port, &iov, iov.len ? 1 : 0, proto, at + sizeof head);
    orc_buffer_free(&layer.buffer);
    if (status < 0 && dead < 0)
        orc_fail(0, "%s", rnl_last_error()->text);
}

static void execute_group(struct orc_event *e)
{
    switch (e->group.kind_operation >> 24) {
    case ORC_GROUP_INVOKE:
        orc_group_invoked(e);
        break;
    case ORC_GROUP_FORK:
        orc_forked(e);
        break;
    case ORC_GROUP_EXIT:
        orc_exited(e);
        break;
    case ORC_GROUP_MOVE:
        orc_moved(e);
        break;
    default:
        orc_broken(e->source);
    }
    orc_count++;
}

/* Returns false if the event has to wait. */
static bool execute(struct orc_event *e)
{
    if (e->kind == ORC_EVENT_GROUP) {
        execute_group(e);
        return true;
    }
    if (e->kind == ORC_EVENT_REPLY) {
        if (e->reply.count > orc_count)
            return false;
        orc_replied(e);
        return true;
    }
    struct orc_object *o = e->request.count > orc_count ? NULL : orc_find(e->request.id);
    if (e->request.count > orc_count || (o && o->shared->state == ORC_TRANSIT))
        return false;
    if (!o)
        orc_send_reply(e->upcall, ORC_REPLY_MOVED, NULL);
    else if (e->request.kind == ORC_REQUEST_MOVE)
        orc_request_moved(e, o);
    else
        orc_request_invoked(e, o);
    return true;
}

static void run_early(void)
{
    struct orc_event *list = early;
    early = NULL;
    early_last = &early;
    while (list) {
        struct orc_event *e = list;
        list = e->next;
        e->next = NULL;
        if (execute(e)) {
            orc_event_free(e);
        } else {
            *early_last = e;
            early_last = &e->next;
        }
    }
}

static void run_events(void)
{
    while (first) {
        struct orc_event *e = first;
        first = e->next;
        if (!first)
            last = &first;
        e->next = NULL;
        bool group = e->kind == ORC_EVENT_GROUP;
        if (execute(e)) {
            orc_event_free(e);
        } else {
            *early_last = e;
            early_last = &e->next;
        }
        if (group && early)
            run_early();
    }
}

/* ---- a death ---- */

struct losses {
    unsigned count;
    struct orc_buffer text;
};

static void note_loss(struct orc_object *o, void *arg)
{
    struct losses *l = arg;
    char s[256];
    if ((o->shared->state != ORC_REMOTE && o->shared->state != ORC_TRANSIT) || o->shared->owner != (uint32_t)dead)
        return;
    if (l->count++ < 8) {
        int n = snprintf(s, sizeof s, "%s%s (%s)", l->count > 1 ? ", " : "", o->shared->name, o->class->name);
        orc_put_bytes(&l->text, s, (size_t)n < sizeof s ? (size_t)n : sizeof s - 1);
    }
}

static int64_t now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static volatile sig_atomic_t terminated;

/* Returns whether that process has ended itself with an error, and told why. */
static bool has_told(const struct rnl_peer_info *info)
{
    return info->reason == RNL_DEATH_EXIT && info->detail;
}

/* The rank whose death was the first cause, or -1. Where this rank was asked to end, the others were, too. */
static int cause(struct rnl_peer_info *info)
{
    for (int i = 0; i < ranks; i++)
        if (i != rank && rnl_peer(pan_endpoint(), (unsigned)i, info) == 0 &&
            (info->state == RNL_PEER_DEAD || info->state == RNL_PEER_RETURNED) && !has_told(info) &&
            !(terminated && info->reason == RNL_DEATH_SIGNAL && info->detail == SIGTERM))
            return i;
    return -1;
}

/* Returns whether this rank is the lowest of those that live or have told. */
static bool is_lowest(void)
{
    struct rnl_peer_info info;
    for (int i = 0; i < rank; i++)
        if (rnl_peer(pan_endpoint(), (unsigned)i, &info) != 0 ||
            (info.state != RNL_PEER_DEAD && info.state != RNL_PEER_RETURNED) || has_told(&info))
            return false;
    return true;
}

/* One rank tells, the lowest that lives; all end. What ends first for the sake of another's death may be heard of
 * before it. */
_Noreturn static void end_of_death(void)
{
    struct rnl_peer_info info;
    struct losses l = {0};
    int64_t begin = now_ms();
    fflush(stdout);
    while (is_lowest() && (dead = cause(&info)) < 0 && now_ms() - begin < CAUSE_MS)
        (void)!pan_wait(10000000);
    if (dead >= 0 && is_lowest()) {
        char how[32] = "";
        orc_each_shared(note_loss, &l);
        if (info.reason == RNL_DEATH_SIGNAL)
            snprintf(how, sizeof how, " of signal %d", info.detail);
        fprintf(stderr, "cpu %d died%s, and the program ends: %s%.*s%s\n", dead, how,
                l.count == 1 ? "lost with it is the object "
                : l.count    ? "lost with it are the objects "
                             : "no object had its only copy there",
                (int)l.text.n, l.text.n ? (char *)l.text.p : "", l.count > 8 ? " and more" : "");
    }
    orc_end(1);
}

enum { SHOW_MS = 200, LOOKS = 1000 }; /* what is shown is that old at most; looks at the clock */

/* Now and then, and when it waits for long. */
static void show_sometimes(bool late)
{
    static unsigned looks;
    static int64_t shown;
    if (!late && ++looks % LOOKS)
        return;
    int64_t now = now_ms();
    if (shown && now - shown < SHOW_MS)
        return;
    shown = now;
    orc_show();
}

static void on_term(int number)
{
    (void)number;
    terminated = 1;
    rnl_wake(pan_endpoint());
}

/* The launcher ends the job. If a rank has died, that is why, and the news of it may come a little later. */
_Noreturn static void end_of_job(void)
{
    for (int64_t begin = now_ms(); dead < 0 && now_ms() - begin < CAUSE_MS;)
        (void)!pan_wait(10000000);
    if (dead >= 0)
        end_of_death();
    fflush(stdout);
    signal(SIGTERM, SIG_DFL);
    raise(SIGTERM);
    orc_end(1);
}

void orc_progress(bool wait)
{
    if (first) {
        (void)!pan_poll();
    } else {
        int status = wait ? pan_wait((int64_t)SHOW_MS * 1000000) : pan_poll();
        show_sometimes(status == RNL_TIMED_OUT);
        if (status < 0 && status != RNL_INTERRUPTED && status != RNL_TIMED_OUT && dead < 0)
            orc_fail(0, "%s", rnl_last_error()->text);
    }
    run_events();
    if (dead >= 0 && orc_processes)
        end_of_death();
    if (terminated && orc_processes)
        end_of_job();
}

void orc_wait_until(const bool *flag)
{
    while (!*flag) {
        if (!orc_is_idle() || orc_options.without[ORC_SAVES_SWITCHES])
            orc_sleep();
        else
            orc_progress(true);
    }
}

/* ---- the system ---- */

static void cluster_poll(void)
{
    orc_progress(false);
}

static int cluster_loop(void)
{
    rank = pan_my_pid();
    ranks = pan_nr_processes();
    pan_rpc_register(on_request);
    port = pan_group_register_port(on_group);
    pan_on_death(on_death, NULL);
    if (port < 0 || pan_start() < 0)
        orc_fail(0, "%s", rnl_last_error()->text);
    struct sigaction term = {.sa_handler = on_term};
    sigaction(SIGTERM, &term, NULL);
    if (rank == 0)
        orc_spawn(0, orc_alloc(sizeof(void *)))->cpu = 0;
    while (orc_processes) {
        bool ran = orc_run_some();
        if (orc_processes)
            orc_progress(!ran && orc_is_idle());
    }
    signal(SIGTERM, SIG_DFL);
    orc_events_free();
    orc_table_free();
    return 0;
}

const struct orc_system orc_cluster = {
    .ncpus = pan_nr_processes,
    .mycpu = pan_my_pid,
    .fork = orc_cluster_fork,
    .invoke = orc_cluster_invoke,
    .strategy = orc_cluster_strategy,
    .ended = orc_process_ended,
    .handle_dropped = orc_handle_dropped,
    .poll = cluster_poll,
    .loop = cluster_loop,
};
