/* SPDX-License-Identifier: BSD-3-Clause
 *
 * message.c - Panda's messages, their trailers, and the fragments that the initial system makes of them; see panda.h.
 */
#include "sim/myrinet/systems/panda/panda.h"

/* Calls of the message module for a fragment, as Panda 2.0's header has them. At the sender: pan_msg_fragment or _next,
 * pan_fragment_header, _flags, pan_comm_unicast_fragment. At the receiver: pan_fragment_header, _flags, _length,
 * pan_msg_assemble, and for a first one pan_msg_create. */
enum { CUT = 4, ASSEMBLE = 5 };
/* Calls below one another, the program's first, where they lie in register windows. Out: program, rpc or group, message
 * module, its fragments, system layer, and what a send of FM or of the kernel has below it (struct panda_fm). In:
 * thread, its loop, queue, message module, its fragments, rpc or group, the program's handler, and from there on out
 * again, but for the program. */
enum { DEEP_OUT = 5, DEEP_IN = 7 };

static void operate(struct panda *p, uint32_t calls, const char *what)
{
    myri_task_operate(p->side->task, calls * PANDA_CALL, what);
}

/* ---- out ---- */

/* To each of n, or to all where the cards or the Ethernet do that. */
static void give_to_fm(struct panda *p, uint32_t kind, const uint32_t *to, uint32_t n, uint32_t at, uint32_t bytes)
{
    uint32_t depth = p->frames + p->fm->frames + (p->handling ? DEEP_IN + DEEP_OUT - 1 : DEEP_OUT);
    int all = kind == PANDA_MULTICAST && (p->fm->broadcast || !p->lacks.multicast);
    p->within++;
    if (all) {
        panda_deep(p, depth);
        (p->fm->broadcast ? p->fm->broadcast : p->fm->multicast)(p, at, bytes);
        n = 0;
    }
    for (uint32_t i = 0; i < n; i++) {
        if (p->lacks.threads && !p->fm->kernel)
            panda_mutex(p); /* FM's lock */
        panda_deep(p, depth);
        p->fm->send(p, to[i], at, bytes);
    }
    p->within--;
}

static void get_words(const struct panda *p, uint32_t at, uint32_t words[4])
{
    for (uint32_t i = 0; i < PANDA_TRAILER / 4; i++)
        words[i] = myri_host_word(p->side->host, at + 4 * i);
}

static void set_words(const struct panda *p, uint32_t at, const uint32_t words[4])
{
    for (uint32_t i = 0; i < PANDA_TRAILER / 4; i++)
        myri_host_set_word(p->side->host, at + 4 * i, words[i]);
}

/* A message with its trailer, in fragments: each has a trailer of its own, for which what lies there makes room. */
static void put_in_fragments(struct panda *p, uint32_t kind, const uint32_t *to, uint32_t n, uint32_t at,
                             uint32_t bytes)
{
    for (uint32_t from = 0; from < bytes; from += PANDA_FRAGMENT) {
        uint32_t part = bytes - from < PANDA_FRAGMENT ? bytes - from : PANDA_FRAGMENT, end = at + from + part, was[4];
        const uint32_t words[4] = {bytes, from, kind << 24 | p->side->node << 16, 0};
        operate(p, CUT, "fragment");
        get_words(p, end, was);
        set_words(p, end, words);
        give_to_fm(p, kind, to, n, at + from, part + PANDA_TRAILER);
        set_words(p, end, was);
    }
}

static void put_to(struct panda *p, uint32_t kind, uint32_t source, const uint32_t *to, uint32_t n, uint32_t number,
                   uint32_t at, uint32_t bytes)
{
    uint32_t end = at + ((bytes + 3) & ~3u), was[4], all = end + PANDA_TRAILER - at;
    const uint32_t words[4] = {kind << 24 | source << 16, number, p->handled, bytes};
    get_words(p, end, was);
    set_words(p, end, words);
    myri_task_operate(p->side->task, PANDA_TRAILER / 4, "trailer");
    if (p->lacks.whole)
        put_in_fragments(p, kind, to, n, at, all);
    else
        give_to_fm(p, kind, to, n, at, all);
    set_words(p, end, was);
}

void panda_put(struct panda *p, uint32_t to, uint32_t kind, uint32_t number, uint32_t at, uint32_t bytes)
{
    put_to(p, kind, p->side->node, &to, 1, number, at, bytes);
}

/* The two below in a binary tree, of nodes numbered from the source on. */
static uint32_t below(const struct panda *p, uint32_t source, uint32_t to[2])
{
    uint32_t nodes = p->side->nodes, place = (p->side->node + nodes - source) % nodes, n = 0;
    for (uint32_t k = 2 * place + 1; k <= 2 * place + 2 && k < nodes; k++)
        to[n++] = (k + source) % nodes;
    return n;
}

void panda_put_all(struct panda *p, uint32_t source, uint32_t number, uint32_t at, uint32_t bytes)
{
    uint32_t to[2], n = below(p, p->side->node, to);
    put_to(p, PANDA_MULTICAST, source, to, n, number, at, bytes);
}

/* ---- in ---- */

static struct panda_message *take_object(struct panda *p)
{
    struct panda_message *m = p->unused;
    if (!m) {
        myri_hw_fault(p->side->hw, "node %u: Panda keeps %u messages, and there are no more", p->side->node,
                      PANDA_MESSAGES);
        return NULL;
    }
    p->unused = m->link;
    m->link = NULL;
    return m;
}

/* In Panda's own memory, with room for more of it. */
static int keep_copy(struct panda *p, struct panda_message *m, uint32_t from, uint32_t bytes, uint32_t room)
{
    if (!p->free_slots) {
        myri_hw_fault(p->side->hw, "node %u: Panda keeps %u messages, and its memory has no room for one more",
                      p->side->node, p->slots);
        return -1;
    }
    if (room > p->slot) {
        myri_hw_fault(p->side->hw, "node %u: a message of %u bytes comes, which is more than this run has",
                      p->side->node, room);
        return -1;
    }
    m->at = p->slot_at[--p->free_slots];
    m->below = NULL;
    operate(p, 1, "allocate");
    myri_task_copy(p->side->task, m->at, from, bytes);
    return 0;
}

void panda_free(struct panda *p, struct panda_message *m)
{
    if (m->below) {
        p->fm->free(p, m->below);
    } else {
        operate(p, 1, "free");
        p->slot_at[p->free_slots++] = m->at;
    }
    m->link = p->unused;
    p->unused = m;
}

void panda_arrive(struct panda *p, uint32_t from, uint32_t at, uint32_t bytes, void *object)
{
    struct panda_message *m = take_object(p);
    if (!m)
        return;
    m->from = from;
    m->at = at;
    m->bytes = bytes;
    m->below = object;
    if (p->lacks.buffers) {
        if (keep_copy(p, m, at, bytes, bytes) < 0)
            return;
        if (object)
            p->fm->free(p, object);
    }
    *p->last = m;
    p->last = &m->link;
    panda_handle(p);
}

static int forwards(const struct panda *p)
{
    return p->lacks.multicast && !p->fm->broadcast;
}

/* A fragment goes on as it came, if it is of a multicast that hosts forward, and is put to those before it: the message
 * when it is whole, or NULL. */
static struct panda_message *assemble(struct panda *p, struct panda_message *m)
{
    const struct myri_host *h = p->side->host;
    uint32_t end = m->at + m->bytes - PANDA_TRAILER, all = myri_host_word(h, end), from = myri_host_word(h, end + 4);
    uint32_t what = myri_host_word(h, end + 8), source = what >> 16 & 0xff, to[2], part = m->bytes - PANDA_TRAILER;
    int many = what >> 24 == PANDA_MULTICAST;
    if (many && forwards(p)) {
        uint32_t n = below(p, source, to);
        give_to_fm(p, PANDA_MULTICAST, to, n, m->at, m->bytes);
    }
    operate(p, ASSEMBLE, "assemble");
    m->bytes = part;
    if (part == all)
        return m;
    struct panda_message **partial = many ? &p->partial_many[source] : &p->partial[m->from], *first = *partial;
    if (!first) {
        if (!(first = *partial = take_object(p)) || keep_copy(p, first, m->at, part, all) < 0)
            return NULL;
        first->from = m->from;
        first->bytes = part;
    } else {
        myri_task_copy(p->side->task, first->at + from, m->at, part);
        first->bytes += part;
    }
    panda_free(p, m);
    if (first->bytes < all)
        return NULL;
    *partial = NULL;
    return first;
}

struct panda_message *panda_own(struct panda *p, uint32_t number, uint32_t at, uint32_t bytes)
{
    struct panda_message *m = take_object(p);
    if (!m || keep_copy(p, m, at, bytes, bytes) < 0)
        return NULL;
    m->from = m->source = p->side->node;
    m->kind = PANDA_MULTICAST;
    m->number = number;
    m->handled = p->handled;
    m->bytes = bytes;
    return m;
}

static void forward(struct panda *p, const struct panda_message *m)
{
    uint32_t to[2], n = below(p, m->source, to);
    give_to_fm(p, PANDA_MULTICAST, to, n, m->at, ((m->bytes + 3) & ~3u) + PANDA_TRAILER);
}

static void handle(struct panda *p, struct panda_message *m)
{
    const struct myri_host *h = p->side->host;
    operate(p, 1, "thread"); /* a light one is made for it; or it is taken off a queue */
    if (p->lacks.whole && !(m = assemble(p, m)))
        return;
    uint32_t end = m->at + m->bytes - PANDA_TRAILER, what = myri_host_word(h, end), kind = what >> 24;
    m->kind = kind;
    m->source = what >> 16 & 0xff;
    m->number = myri_host_word(h, end + 4);
    m->handled = myri_host_word(h, end + 8);
    m->bytes = myri_host_word(h, end + 12);
    myri_task_operate(p->side->task, PANDA_HANDLER, "demultiplex");
    if (kind == PANDA_MULTICAST && forwards(p) && !p->lacks.whole)
        forward(p, m);
    if (kind == PANDA_MULTICAST || kind == PANDA_ASK || kind == PANDA_ORDER)
        panda_group_take(p, m);
    else
        panda_rpc_take(p, m);
}

void panda_dispatch(struct panda *p)
{
    while (p->arrived && !p->side->hw->fault[0]) {
        struct panda_message *m = p->arrived;
        if (!(p->arrived = m->link))
            p->last = &p->arrived;
        m->link = NULL;
        handle(p, m);
    }
}

int panda_init(struct panda *p, struct myri_side *side)
{
    p->side = side;
    p->busy = 1;
    p->last = &p->arrived;
    for (uint32_t i = 0; i < PANDA_MESSAGES; i++) {
        p->message[i].link = p->unused;
        p->unused = &p->message[i];
    }
    p->slot = (side->largest + PANDA_ROOM + 3) & ~3u;
    p->slots = p->lacks.buffers || p->lacks.whole || p->lacks.multicast ? PANDA_POOL_BYTES / p->slot : 0;
    p->slots = p->slots < PANDA_MESSAGES ? p->slots : PANDA_MESSAGES;
    p->small = myri_host_take(side->host, 4 + PANDA_ROOM, 0);
    uint32_t pool = p->slots ? myri_host_take(side->host, p->slots * p->slot, 0) : 0;
    for (uint32_t i = 0; i < p->slots; i++)
        p->slot_at[p->free_slots++] = pool + i * p->slot;
    return side->hw->fault[0] ? -1 : 0;
}
