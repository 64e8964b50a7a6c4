/* SPDX-License-Identifier: BSD-3-Clause
 *
 * orca.c - invocations: at home, by call, by multicast; see orca.h. An invocation is a message of its parameters and a
 * header: object and operation, and whether it succeeded. */
#include "sim/myrinet/systems/orca/orca.h"

/* Host operations beside those of calls: of a look at two counters; of the counts of accesses that objects are placed
 * by, where a call of its own does not do that. */
enum { COMPARE = 2, COUNT = 4 };
/* Frames of the program and the run-time that lie in register windows when a process waits: the process, what the
 * compiler made of the operation, the run-time's invocation and its way to another node. Panda's have none (4.3). A
 * switch of threads fetches one, and each other one traps when it is returned to. */
enum { FRAMES = 4 };
/* Modules below an invocation: objects, processes, marshalling, statistics. Each has a lock and a header, where they
 * have not been made one. */
enum { MODULES = 4 };

static void operate(struct orca *o, uint32_t operations, const char *what)
{
    myri_task_operate(o->side->task, operations, what);
}

/* ---- what an invocation costs beside what it does ---- */

static void enter(struct orca *o)
{
    uint32_t n = o->lacks.lean ? MODULES : 1;
    operate(o, PANDA_CALL, "invocation");
    for (uint32_t i = 0; i < n; i++)
        panda_mutex(&o->on.panda);
    operate(o, o->lacks.lean ? PANDA_CALL : COUNT, "statistics");
}

static void put_header(struct orca *o, uint32_t at, uint32_t first, uint32_t second)
{
    operate(o, o->lacks.lean ? MODULES * PANDA_CALL : ORCA_HEADER / 4, "header");
    myri_host_set_word(o->side->host, at, first);
    myri_host_set_word(o->side->host, at + 4, second);
    myri_host_set_word(o->side->host, at + 8, 0);
    myri_host_set_word(o->side->host, at + 12, 0);
}

/* A routine of its own for each operation, or two passes over a descriptor, for the size and for the data, of which
 * each asks for the parameter's type and calls what is for that. */
static void marshal(struct orca *o, uint32_t to, uint32_t from, uint32_t bytes)
{
    operate(o, o->lacks.marshalling ? 4 * PANDA_CALL : PANDA_CALL, "marshal");
    myri_task_copy(o->side->task, to, from, bytes);
}

static void return_from_wait(struct orca *o)
{
    const struct myri_hw *hw = o->side->hw;
    if (hw->machine.v[MYRI_M_windows] > 0)
        myri_task_spend(o->side->task, (FRAMES - 1) * hw->t.window_trap, "window traps");
}

/* ---- operations, and those that wait for their guards ---- */

static int execute(struct orca *o, struct orca_object *x, uint32_t operation, struct orca_arguments *a)
{
    operate(o, PANDA_CALL, "operation");
    return x->type->operation[operation](o, x, a);
}

static int writes(const struct orca_object *x, uint32_t operation)
{
    return (x->type->writes >> operation & 1) != 0;
}

static void block(struct orca *o, struct orca_object *x, uint32_t operation, struct orca_waiting *w,
                  struct panda_message *m)
{
    struct orca_blocked *b = o->unused;
    if (!b) {
        myri_hw_fault(o->side->hw, "node %u: %u operations wait for their guards, and there can be no more",
                      o->side->node, ORCA_BLOCKED);
        return;
    }
    operate(o, PANDA_CALL, "continuation");
    o->unused = b->next;
    b->next = NULL;
    b->object = x;
    b->operation = operation;
    b->waiting = w;
    b->message = m;
    *o->last = b;
    o->last = &b->next;
}

/* Executes the operation that a message of another node asks for. Returns 0 if its guard is false. */
static int execute_message(struct orca *o, struct orca_object *x, uint32_t operation, struct panda_message *m)
{
    struct orca_arguments a = {.in = o->in, .in_bytes = m->bytes - ORCA_HEADER, .out = o->out, .from = m->from};
    marshal(o, o->in, m->at, a.in_bytes);
    if (!execute(o, x, operation, &a))
        return 0;
    if (m->kind == PANDA_REQUEST) {
        if (a.out_bytes)
            marshal(o, o->reply, a.out, a.out_bytes);
        put_header(o, o->reply + ((a.out_bytes + 3) & ~3u), 1, a.out_bytes);
        panda_rpc_reply(&o->on.panda, m, o->reply, ((a.out_bytes + 3) & ~3u) + ORCA_HEADER);
    }
    panda_free(&o->on.panda, m);
    return 1;
}

static int execute_own(struct orca *o, struct orca_object *x, uint32_t operation, struct orca_waiting *w)
{
    if (!execute(o, x, operation, w->arguments))
        return 0;
    panda_signal(&o->on.panda, &w->done);
    return 1;
}

/* After a write: those that wait are tried from the first on, until none of them gets on. What a reply takes in is
 * handled afterwards, also where the program's own write brought us here: it may write, which would begin this anew. */
static void retry(struct orca *o, struct orca_object *x)
{
    struct panda *panda = &o->on.panda;
    int handling = panda->handling;
    operate(o, PANDA_CALL, "retry");
    panda->handling = 1;
    for (struct orca_blocked **p = &o->first; *p && !o->side->hw->fault[0];) {
        struct orca_blocked *b = *p;
        int done = b->object == x && (b->waiting ? execute_own(o, x, b->operation, b->waiting)
                                                 : execute_message(o, x, b->operation, b->message));
        if (!done) {
            p = &b->next;
            continue;
        }
        if (!(*p = b->next))
            o->last = p;
        b->next = o->unused;
        o->unused = b;
        if (writes(x, b->operation))
            p = &o->first;
    }
    panda->handling = handling;
    panda_handle(panda);
}

/* ---- what comes ---- */

static struct orca_object *object_of(struct orca *o, const struct panda_message *m, uint32_t *operation)
{
    uint32_t what = myri_host_word(o->side->host, m->at + m->bytes - ORCA_HEADER), id = what >> 16;
    *operation = what & 0xffff;
    if (id < o->objects && *operation < ORCA_OPERATIONS && o->object[id].type->operation[*operation])
        return &o->object[id];
    myri_hw_fault(o->side->hw, "node %u: an operation of node %u on an object that there is not", o->side->node,
                  m->from);
    return NULL;
}

static void take(struct orca *o, struct panda_message *m)
{
    uint32_t operation;
    enter(o);
    operate(o, PANDA_CALL, "object");
    struct orca_object *x = object_of(o, m, &operation);
    if (!x)
        return;
    struct orca_waiting *own = m->kind == PANDA_MULTICAST && m->from == o->side->node ? o->multicast : NULL;
    int done;
    if (own) { /* runs on the caller's parameters */
        o->multicast = NULL;
        panda_free(&o->on.panda, m);
        done = execute_own(o, x, operation, own);
    } else {
        done = execute_message(o, x, operation, m);
    }
    if (!done)
        block(o, x, operation, own, own ? NULL : m);
    else if (writes(x, operation))
        retry(o, x);
}

/* A call that its sender made after multicasts which have not been handled here waits for them, so that all nodes see
 * one order of both. */
static void on_request(struct panda *p, struct panda_message *m)
{
    struct orca *o = p->owner;
    operate(o, COMPARE, "order");
    if (m->handled <= p->handled) {
        take(o, m);
        return;
    }
    m->link = NULL;
    *o->later = m;
    o->later = &m->link;
}

static void take_late(struct orca *o)
{
    for (struct panda_message **p = &o->late; *p;) {
        struct panda_message *m = *p;
        if (m->handled > o->on.panda.handled) {
            p = &m->link;
            continue;
        }
        if (!(*p = m->link))
            o->later = p;
        m->link = NULL;
        take(o, m);
    }
}

static void on_multicast(struct panda *p, struct panda_message *m)
{
    struct orca *o = p->owner;
    take(o, m);
    if (o->late)
        take_late(o);
    if (o->handled_wanted && p->handled >= o->handled_wanted) {
        o->handled_wanted = 0;
        panda_signal(p, &o->handled_enough);
    }
}

/* ---- invocations ---- */

static uint32_t put_message(struct orca *o, const struct orca_object *x, uint32_t operation,
                            const struct orca_arguments *a)
{
    uint32_t room = (a->in_bytes + 3) & ~3u;
    marshal(o, o->message, a->in, a->in_bytes);
    put_header(o, o->message + room, x->id << 16 | operation, a->in_bytes);
    return room + ORCA_HEADER;
}

static int wait_for(struct orca *o, const int *done)
{
    if (*done)
        return 1;
    int is = panda_wait(&o->on.panda, done, RNL_SIM_NEVER);
    return_from_wait(o);
    return is;
}

static int invoke_remote(struct orca *o, struct orca_object *x, uint32_t operation, struct orca_arguments *a)
{
    uint32_t bytes = put_message(o, x, operation, a);
    struct panda_message *m = panda_rpc_trans(&o->on.panda, x->owner, o->message, bytes);
    if (!m)
        return 0;
    return_from_wait(o);
    operate(o, COMPARE, "order");
    if (m->handled > o->on.panda.handled) {
        o->handled_enough = 0;
        o->handled_wanted = m->handled;
        if (!wait_for(o, &o->handled_enough))
            return 0;
    }
    a->out_bytes = myri_host_word(o->side->host, m->at + m->bytes - ORCA_HEADER + 4);
    if (a->out_bytes)
        marshal(o, a->out, m->at, a->out_bytes);
    panda_free(&o->on.panda, m);
    return 1;
}

static int invoke_everywhere(struct orca *o, struct orca_object *x, uint32_t operation, struct orca_arguments *a)
{
    struct orca_waiting w = {a, 0};
    uint32_t bytes = put_message(o, x, operation, a);
    o->multicast = &w;
    panda_group_send(&o->on.panda, o->message, bytes);
    return wait_for(o, &w.done);
}

static int invoke_here(struct orca *o, struct orca_object *x, uint32_t operation, struct orca_arguments *a)
{
    struct orca_waiting w = {a, 0};
    if (!execute(o, x, operation, a)) {
        block(o, x, operation, &w, NULL);
        return wait_for(o, &w.done);
    }
    if (writes(x, operation))
        retry(o, x);
    return 1;
}

int orca_invoke(struct orca *o, struct orca_object *x, uint32_t operation, struct orca_arguments *a)
{
    a->from = o->side->node;
    enter(o);
    if (x->owner == o->side->node || (x->owner == ORCA_EVERYWHERE && !writes(x, operation)))
        return invoke_here(o, x, operation, a);
    return x->owner == ORCA_EVERYWHERE ? invoke_everywhere(o, x, operation, a) : invoke_remote(o, x, operation, a);
}

/* ---- set-up ---- */

struct orca_object *orca_new(struct orca *o, const struct orca_type *type, uint32_t owner, void *state)
{
    if (o->objects == ORCA_OBJECTS) {
        myri_hw_fault(o->side->hw, "node %u: there can be no more than %u objects", o->side->node, ORCA_OBJECTS);
        return NULL;
    }
    struct orca_object *x = &o->object[o->objects];
    x->type = type;
    x->id = o->objects++;
    x->owner = owner;
    x->state = state;
    return x;
}

int orca_open(struct orca *o, struct myri_side *side, enum panda_below below)
{
    struct panda *p = &o->on.panda;
    uint32_t largest = (side->largest + 3) & ~3u, room = largest + ORCA_HEADER + PANDA_ROOM;
    o->side = side;
    o->last = &o->first;
    o->later = &o->late;
    for (uint32_t i = 0; i < ORCA_BLOCKED; i++) {
        o->blocked[i].next = o->unused;
        o->unused = &o->blocked[i];
    }
    o->message = myri_host_take(side->host, room, 0);
    o->reply = myri_host_take(side->host, room, 0);
    o->in = myri_host_take(side->host, largest, 0);
    o->out = myri_host_take(side->host, largest, 0);
    p->owner = o;
    p->on_request = on_request;
    p->on_multicast = on_multicast;
    p->frames = FRAMES - 1;
    side->largest = largest + ORCA_HEADER;
    return panda_open_on(&o->on, side, below);
}
