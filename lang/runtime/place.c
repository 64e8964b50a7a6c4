/* SPDX-License-Identifier: BSD-3-Clause
 *
 * place.c - the table of shared objects, and where each is. The manager, which is the owner of a single copy, or the
 * rank that made the object replicated, compares what would have been paid: each write of a replica is a multicast,
 * each access to a single copy from another rank is a call. It moves the object by a message to all. */
#include "cluster.h"
#include <stdio.h>
#include <stdlib.h>

enum { BUCKETS = 4096, EVERY = 10 };
static struct orc_object *table[BUCKETS];

/* What the manager has seen. */
struct orc_placing {
    double reads, writes; /* smoothed */
    double new_reads, new_writes;
    uint64_t own_reads, own_writes; /* of this rank, when it looked last */
    uint32_t seen;
    double *expected, *accesses, *new_accesses; /* by rank */
    double by[];
};

static struct orc_object **bucket(uint64_t id)
{
    return &table[(id + (id >> 40) * 37) % BUCKETS];
}

struct orc_object *orc_find(uint64_t id)
{
    for (struct orc_object *o = *bucket(id); o; o = o->shared->next)
        if (o->shared->id == id)
            return o;
    return NULL;
}

void orc_table_add(struct orc_object *o, uint64_t id)
{
    struct orc_shared *s = orc_shared_of(o);
    size_t n = (size_t)orc_ranks();
    s->id = id;
    s->next = *bucket(id);
    *bucket(id) = o;
    s->placing = orc_alloc(sizeof *s->placing + 3 * n * sizeof(double));
    s->placing->expected = s->placing->by;
    s->placing->accesses = s->placing->by + n;
    s->placing->new_accesses = s->placing->by + 2 * n;
    orc_retain(o);
}

static void tell_last(struct orc_object *o);

void orc_table_drop(struct orc_object *o)
{
    struct orc_object **at = bucket(o->shared->id);
    if (orc_options.verbose)
        tell_last(o);
    while (*at != o)
        at = &(*at)->shared->next;
    *at = o->shared->next;
    o->shared->id = 0;
    orc_release(o);
}

void orc_table_free(void)
{
    for (size_t i = 0; i < BUCKETS; i++)
        while (table[i])
            orc_table_drop(table[i]);
}

void orc_each_shared(void (*f)(struct orc_object *o, void *arg), void *arg)
{
    for (size_t i = 0; i < BUCKETS; i++)
        for (struct orc_object *o = table[i]; o; o = o->shared->next)
            f(o, arg);
}

static void tell(const struct orc_object *o, const char *what)
{
    if (!orc_options.verbose)
        return;
    fprintf(stderr, "cpu %d: the object %s (%s) %s: %s\n", orc_rank(), o->shared->name, o->class->name, what,
            o->shared->why);
}

/* ---- estimates ---- */

static double uses(const struct orc_param *p)
{
    return p->type->kind == ORC_ARRAY ? 0 : p->accesses; /* of which elements is not known */
}

int orc_first_place(struct orc_object *o, uint32_t cpu, const struct orc_param *p)
{
    const struct orc_shared *s = o->shared;
    if (s->fixed)
        return (int)s->wish;
    if (orc_options.place == 1)
        return orc_rank();
    if (orc_options.place == 2)
        return -1;
    if (orc_options.conflict == ORC_PLACE_DYNAMIC)
        return orc_rank();
    double here = s->estimated_reads + s->estimated_writes, there = uses(p);
    double writes = s->estimated_writes + (there ? (there - p->score) / 2 : 0);
    if (cpu == (uint32_t)orc_rank() || there == 0)
        return orc_rank();
    double apart = here < there ? here : there;
    return orc_cost_multicast() * writes < 0.9 * orc_cost_call() * apart ? -1 : orc_rank();
}

void orc_expect(struct orc_object *o, uint32_t cpu, const struct orc_param *p)
{
    struct orc_shared *s = o->shared;
    double n = uses(p);
    if (n == 0)
        return;
    s->estimated_reads += (n + p->score) / 2;
    s->estimated_writes += (n - p->score) / 2;
    s->placing->expected[cpu] += n;
    orc_decide(o);
}

/* Calls and multicasts cost as much as they have taken here; before that, as much as each other. */
static double call_ns = 1000, multicast_ns = 1000;

double orc_cost_call(void)
{
    return call_ns;
}

double orc_cost_multicast(void)
{
    return multicast_ns;
}

void orc_cost_measured(bool multicast, double ns)
{
    double *cost = multicast ? &multicast_ns : &call_ns;
    if (ns > 8 * *cost) /* it waited for something else */
        ns = 8 * *cost;
    *cost += (ns - *cost) / 8;
}

/* ---- counts ---- */

void orc_account(struct orc_object *o, uint32_t cpu, uint32_t reads, uint32_t writes)
{
    struct orc_placing *p = o->shared->placing;
    if (o->shared->owner != (uint32_t)orc_rank() || o->shared->fixed || orc_options.place == 1 ||
        orc_options.place == 2)
        return;
    p->new_reads += reads;
    p->new_writes += writes;
    p->new_accesses[cpu] += reads + writes;
    if (++p->seen % EVERY == 0)
        orc_decide(o);
}

static void smooth(struct orc_shared *s)
{
    struct orc_placing *p = s->placing;
    double reads = (double)(s->reads - p->own_reads);
    double writes = s->state == ORC_OWNER ? (double)(s->writes - p->own_writes) : 0;
    p->own_reads = s->reads;
    p->own_writes = s->writes;
    p->new_reads += reads;
    p->new_writes += writes;
    p->new_accesses[orc_rank()] += reads + writes;
    p->reads = (3 * p->reads + p->new_reads) / 4;
    p->writes = (3 * p->writes + p->new_writes) / 4;
    p->new_reads = p->new_writes = 0;
    for (int i = 0; i < orc_ranks(); i++) {
        p->accesses[i] = (3 * p->accesses[i] + p->new_accesses[i]) / 4;
        p->new_accesses[i] = 0;
    }
}

static void start_move(struct orc_object *o, int to, bool fixed, uint32_t why, uint32_t ticket)
{
    struct orc_shared *s = o->shared;
    struct orc_buffer body = {0};
    orc_put_u32(&body, (uint32_t)(to + 1));
    orc_put_u32(&body, fixed);
    orc_put_u32(&body, why);
    if (s->state == ORC_OWNER) {
        orc_put_value(&body, o->class->fields, o->fields);
        s->state = ORC_TRANSIT;
    }
    orc_send_group(ORC_GROUP_MOVE, 0, s->id, ticket, 0, s->moves, &body);
    free(body.p);
}

static const char *const reasons[] = {"Strategy says so", "few writes, by the compiler's estimate and the counts",
                                      "many writes, by the compiler's estimate and the counts",
                                      "that cpu uses it most"};

void orc_decide(struct orc_object *o)
{
    struct orc_shared *s = o->shared;
    struct orc_placing *p = s->placing;
    if (s->owner != (uint32_t)orc_rank() || s->fixed || orc_options.place == 1 || orc_options.place == 2 ||
        (s->state != ORC_OWNER && s->state != ORC_REPLICATED))
        return;
    double a = orc_options.conflict == ORC_PLACE_DYNAMIC ? 0 : 1, b = orc_options.conflict == ORC_PLACE_STATIC ? 0 : 1;
    smooth(s);
    double writes = a * s->estimated_writes + b * p->writes, all = 0, most = 0, here = 0;
    int best = orc_rank();
    for (int i = 0; i < orc_ranks(); i++) {
        double n = a * p->expected[i] + b * p->accesses[i];
        all += n;
        here = i == orc_rank() ? n : here;
        if (n > most) {
            most = n;
            best = i;
        }
        p->expected[i] *= b && p->seen ? 0.5 : 1;
    }
    if (b && p->seen) {
        s->estimated_reads /= 2;
        s->estimated_writes /= 2;
    }
    double everywhere = writes * orc_cost_multicast(), single = (all - most) * orc_cost_call();
    if (s->state == ORC_OWNER && everywhere < 0.9 * single)
        start_move(o, -1, false, 1, 0);
    else if (s->state == ORC_REPLICATED && single < 0.8 * everywhere)
        start_move(o, best, false, 2, 0);
    else if (s->state == ORC_OWNER && most > 1.5 * here + 4 && p->seen)
        start_move(o, best, false, 3, 0);
}

/* ---- moving ---- */

void orc_moved(struct orc_event *e)
{
    struct orc_object *o = orc_find(e->group.id);
    struct orc_reader r = {.p = e->bytes, .n = e->n};
    int to = (int)orc_get_u32(&r) - 1;
    uint32_t fixed = orc_get_u32(&r), why = orc_get_u32(&r);
    bool own = e->source == (uint32_t)orc_rank();
    if (r.bad || to >= orc_ranks() || to < -1 || why >= sizeof reasons / sizeof *reasons)
        orc_broken(e->source);
    struct orc_pending *pending = own && e->group.ticket ? orc_pending_take(e->group.ticket) : NULL;
    if (pending) {
        pending->done = true;
        orc_wake(pending->thread);
    }
    if (!o || o->shared->moves != e->group.moves)
        return; /* it was moved by somebody else before */
    struct orc_shared *s = o->shared;
    bool was_here = s->state == ORC_REPLICATED || own, here = to < 0 || to == orc_rank();
    if (s->state != ORC_REPLICATED && e->source != s->owner)
        orc_broken(e->source);
    orc_flush_blocked(o);
    if (here && !was_here) {
        orc_get_value(&r, o->class->fields, o->fields);
        if (r.bad || r.n)
            orc_broken(e->source);
    } else if (!here && was_here) {
        orc_free(o->class->fields, o->fields);
    }
    s->state = to < 0 ? ORC_REPLICATED : here ? ORC_OWNER : ORC_REMOTE;
    s->owner = to < 0 ? e->source : (uint32_t)to;
    s->moves++;
    s->fixed |= fixed != 0;
    s->why = reasons[why];
    s->told_reads = s->reads;
    s->placing->own_reads = s->reads;
    s->placing->own_writes = s->writes;
    if (own)
        tell(o, to < 0 ? "is at all cpus now" : "moves");
}

void orc_request_moved(struct orc_event *e, struct orc_object *o)
{
    if (o->shared->state == ORC_OWNER && e->request.operation <= (uint32_t)orc_ranks())
        start_move(o, (int)e->request.operation - 1, true, 0, 0);
    orc_send_reply(e->upcall, o->shared->state == ORC_TRANSIT ? ORC_REPLY_DONE : ORC_REPLY_MOVED, NULL);
}

static void ask_owner(struct orc_object *o, int64_t to, orc_place at)
{
    struct orc_pending p = {.operation = NULL};
    const struct orc_request head = {
        .id = o->shared->id, .count = orc_count, .kind = ORC_REQUEST_MOVE, .operation = (uint32_t)(to + 1)};
    _Alignas(8) unsigned char proto[64];
    size_t offset = pan_rpc_proto_offset();
    memcpy(proto + offset, &head, sizeof head);
    orc_pending_begin(&p, NULL, at);
    (void)orc_pending_take(p.ticket);
    if (pan_rpc_start((int)o->shared->owner, NULL, 0, proto, offset + sizeof head, orc_replied_later, &p) < 0)
        orc_fail(at, "%s", rnl_last_error()->text);
    orc_wait_until(&p.done);
}

void orc_cluster_strategy(struct orc_object *o, int64_t replicate, int64_t cpu, orc_place at)
{
    struct orc_shared *s = orc_shared_of(o);
    int64_t to = replicate ? -1 : cpu;
    if (orc_options.no_strategy)
        return;
    if (!s->id) {
        s->fixed = true;
        s->wish = to;
        return;
    }
    for (;;) {
        bool there = replicate ? s->state == ORC_REPLICATED
                               : (s->state == ORC_OWNER || s->state == ORC_REMOTE) && s->owner == cpu;
        if (there && s->fixed)
            return;
        if (s->state == ORC_REPLICATED || s->state == ORC_OWNER) {
            struct orc_pending p = {.operation = NULL};
            orc_pending_begin(&p, NULL, at);
            start_move(o, (int)to, true, 0, p.ticket);
            orc_wait_until(&p.done);
        } else if (s->state == ORC_REMOTE) {
            uint32_t moves = s->moves;
            ask_owner(o, to, at);
            while (s->moves == moves && s->state == ORC_REMOTE) {
                if (orc_is_idle())
                    orc_progress(true);
                else
                    orc_yield();
            }
        } else if (orc_is_idle()) {
            orc_progress(true);
        } else {
            orc_yield();
        }
    }
}

/* ---- what is shown ---- */

static void show_object(struct orc_object *o, void *arg)
{
    static const char *const states[] = {[ORC_UNSHARED] = "unshared",
                                         [ORC_REPLICATED] = "at all cpus",
                                         [ORC_OWNER] = "here",
                                         [ORC_REMOTE] = "remote",
                                         [ORC_TRANSIT] = "moving"};
    const struct orc_shared *s = o->shared;
    char line[400];
    int blocked = 0;
    for (const struct orc_blocked *b = s->blocked; b; b = b->next)
        blocked++;
    int n = snprintf(line, sizeof line,
                     "object %s (%s): %s, %s cpu %u, %llu reads and %llu writes of this cpu, %d blocked; %s\n",
                     s->name ? s->name : "?", o->class->name, states[s->state],
                     s->state == ORC_REPLICATED ? "managed by" : "owned by", s->owner, (unsigned long long)s->reads,
                     (unsigned long long)s->writes, blocked, s->why);
    orc_put_bytes(arg, line, (size_t)n < sizeof line ? (size_t)n : sizeof line - 1);
}

/* What has become of it, when no process is left that could use it. */
static void tell_last(struct orc_object *o)
{
    struct orc_buffer text = {0};
    show_object(o, &text);
    fprintf(stderr, "cpu %d: %.*s", orc_rank(), (int)text.n, (const char *)text.p);
    orc_buffer_free(&text);
}

static void show_thread(struct orc_thread *t, void *arg)
{
    char line[400];
    if (!t->object)
        return;
    int n = snprintf(line, sizeof line, "process %s waits in %s of object %s (%s), %s:%u\n", t->process->name,
                     orc_operation_of(t->object->class, t->operation)->name,
                     t->object->shared->name ? t->object->shared->name : "?", t->object->class->name, orc_file(t->at),
                     t->at & 0xfffff);
    orc_put_bytes(arg, line, (size_t)n < sizeof line ? (size_t)n : sizeof line - 1);
}

void orc_show(void)
{
    struct orc_buffer text = {0};
    orc_each_thread(show_thread, &text);
    orc_each_shared(show_object, &text);
    (void)!pan_show((const char *)text.p, text.n);
    orc_buffer_free(&text);
}
