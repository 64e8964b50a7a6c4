/* SPDX-License-Identifier: BSD-3-Clause
 *
 * import.c - the importer's calls that make and end imports, and what the owner says of them. Imports lie in memory
 * that reads as zero in a forked child, so that the inlined puts find nothing there and the others know why. */
#include "base/bug.h"
#include "window/window_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>

enum { SLAB_BYTES = 4096 };

/* ---- memory ---- */

static int grow(struct rnl_windows *ws)
{
    char *slab = mmap(NULL, SLAB_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (slab == MAP_FAILED)
        return rnl_fail_errno(RNL_ERR_NO_MEMORY, errno, "no memory for an import");
    (void)madvise(slab, SLAB_BYTES, MADV_WIPEONFORK);
    *(void **)(void *)slab = ws->slabs;
    ws->slabs = slab;
    struct rnl_import *m = (struct rnl_import *)(void *)(slab + 64);
    for (; (char *)(m + 1) <= slab + SLAB_BYTES; m++) {
        m->next = ws->free_imports;
        ws->free_imports = m;
    }
    return 0;
}

static int import_new(struct rnl_windows *ws, struct window_peer *p, uint32_t id, struct rnl_import **out)
{
    int status = ws->free_imports ? 0 : grow(ws);
    if (status < 0)
        return status;
    struct rnl_import *m = ws->free_imports;
    ws->free_imports = m->next;
    memset(m, 0, sizeof *m);
    m->ws = ws;
    m->peer = p;
    m->id = id;
    m->state = WINDOW_MEETING;
    m->waits = 1;
    m->next = p->imports;
    m->before = &p->imports;
    if (m->next)
        m->next->before = &m->next;
    p->imports = m;
    *out = m;
    return 0;
}

/* Takes the import out of the list of its peer. */
static void unlink_peer(struct rnl_import *m)
{
    if (!m->peer)
        return;
    *m->before = m->next;
    if (m->next)
        m->next->before = m->before;
    m->peer = NULL;
}

static void import_free(struct rnl_import *m)
{
    struct rnl_windows *ws = m->ws;
    unlink_peer(m);
    if (m->mapped)
        rnl_window_unmap(m->mapped, m->bytes);
    memset(m, 0, sizeof *m);
    m->next = ws->free_imports;
    ws->free_imports = m;
}

void rnl_window_imports_free(struct rnl_windows *ws)
{
    for (void *slab = ws->slabs, *next; slab; slab = next) {
        next = *(void **)slab;
        struct rnl_import *m = (struct rnl_import *)(void *)((char *)slab + 64);
        for (; (char *)(m + 1) <= (char *)slab + SLAB_BYTES; m++)
            if (m->mapped)
                rnl_window_unmap(m->mapped, m->bytes);
        munmap(slab, SLAB_BYTES);
    }
}

/* ---- to ask ---- */

static void fail_import(struct rnl_windows *ws, struct rnl_import *m, int status)
{
    rnl_window_import_end(m, status);
    ws->changes++;
    rnl_window_watch(ws);
}

static void ask(struct rnl_windows *ws, struct rnl_import *m)
{
    struct window_peer *p = m->peer;
    struct window_op *op = rnl_window_op_new(WINDOW_IMPORTED);
    if (!op) {
        fail_import(ws, m, RNL_ERR_NO_MEMORY);
        return;
    }
    op->import = m;
    rnl_window_op_add(p, op);
    m->is_offered = 0;
    struct window_import h = {.tag = op->tag, .id = m->id, .how = m->waits ? WINDOW_IMPORT_WAITS : 0};
    const struct rnl_meet_ops *meet = p->via == ws->inner ? ws->inner->env->meet : NULL;
    if (meet && meet->expect && meet->expect(ws->inner->env, p->at, op->tag) == 0)
        h.how |= WINDOW_IMPORT_MAPS;
    int status = rnl_window_post(ws, p, WINDOW_IMPORT, &h, sizeof h, sizeof(struct window_imported));
    if (status == 0) {
        m->state = WINDOW_ASKED;
        return;
    }
    if (h.how & WINDOW_IMPORT_MAPS)
        (void)meet->take(ws->inner->env, p->at, op->tag, 0, NULL);
    rnl_window_op_remove(p, op);
    rnl_window_op_end(op, status);
    if (status != RNL_NO_ROOM)
        fail_import(ws, m, status);
}

/* Replies must not send, so what is to be sent is due. */
static void due(struct rnl_windows *ws)
{
    ws->imports_due = 1;
    rnl_window_watch(ws);
}

/* Asks for the imports of a peer that are not asked for yet, and gives back those that the program has dropped. Returns
 * true if something stays due. */
static bool imports_on(struct rnl_windows *ws, struct window_peer *p)
{
    bool stays = false;
    for (struct rnl_import *m = p->imports, *next; p->link == WINDOW_UP && m; m = next) {
        next = m->next;
        if (m->is_left && m->state != WINDOW_ASKED)
            (void)rnl_import_drop(m);
        else if (m->state == WINDOW_MEETING)
            ask(ws, m);
        else
            continue;
        stays |= m->state == WINDOW_MEETING;
    }
    return stays;
}

void rnl_window_imports_on(struct rnl_windows *ws)
{
    if (!ws->imports_due || !rnl_window_may_wait(ws))
        return;
    ws->imports_due = 0;
    bool stays = false;
    for (uint32_t i = 0; i < ws->ep->size; i++)
        if (ws->peer[i])
            stays |= imports_on(ws, ws->peer[i]);
    ws->imports_due |= stays;
}

void rnl_window_imports_lost(struct window_peer *p, int status)
{
    while (p->imports)
        rnl_window_import_end(p->imports, status);
    rnl_window_early_free(p);
}

int rnl_import_begin(rnl_endpoint *ep, unsigned peer, uint32_t id, rnl_import **out)
{
    struct rnl_windows *ws;
    struct window_peer *p;
    struct rnl_import *m = NULL;
    int status = rnl_window_enter(ep, &ws);
    if (status < 0)
        return status;
    if (ep->fast.handlers > RNL_LIBRARY_ID)
        status = rnl_fail(RNL_ERR_UNSUPPORTED, "an endpoint with more than %d handlers has no windows", RNL_LIBRARY_ID);
    if (status == 0)
        status = rnl_window_peer(ws, peer, &p);
    if (status == 0)
        status = import_new(ws, p, id, &m);
    if (status == 0)
        status = rnl_window_contact(ws, p);
    if (status < 0 && m)
        import_free(m);
    if (status == 0) {
        *out = m;
        due(ws);
    }
    rnl_window_leave(ws);
    return status;
}

/* Waits until it is here, or is known not to be. */
static int await(struct rnl_windows *ws, struct rnl_import *m, uint64_t deadline_ns)
{
    const uint32_t rank = m->peer->rank;
    int status = 0;
    rnl_window_waits(ws, WINDOW_WAITS_IMPORT, rank);
    while (status == 0 && m->state != WINDOW_HERE && m->state != WINDOW_ENDED) {
        rnl_window_links(ws);
        rnl_window_imports_on(ws);
        if (!m->peer) /* its death was just heard of */
            break;
        status = rnl_window_turn(ws, m->peer->via ? m->peer->via : ws->ep, deadline_ns);
        if (status == RNL_ERR_FORKED)
            return status;
    }
    rnl_window_waited(ws);
    if (status == RNL_TIMED_OUT)
        return rnl_fail(RNL_TIMED_OUT, "rank %u has not offered window %u within the time given", rank, m->id);
    if (status < 0)
        return status;
    return m->state == WINDOW_HERE ? 0 : rnl_import_state(m, NULL);
}

int rnl_window_import(rnl_endpoint *ep, unsigned peer, uint32_t id, int64_t timeout_ns, rnl_import **out, size_t *bytes)
{
    struct rnl_windows *ws;
    struct rnl_import *m;
    int status = rnl_window_enter(ep, &ws);
    if (status < 0)
        return status;
    status = rnl_window_may_wait(ws) ? rnl_import_begin(ep, peer, id, &m) : rnl_window_no_context();
    if (status == 0) {
        m->waits = timeout_ns != 0;
        status = await(ws, m, timeout_ns == 0 ? UINT64_MAX : rnl_window_deadline(ws, timeout_ns));
        if (status == RNL_ERR_FORKED)
            return status;
        if (status < 0)
            (void)rnl_import_drop(m);
    }
    if (status == 0) {
        *out = m;
        if (bytes)
            *bytes = m->bytes;
    }
    rnl_window_leave(ws);
    return status;
}

/* ---- its state ---- */

static int forked(void)
{
    return rnl_fail(RNL_ERR_FORKED, "this process was forked from the one that imported the window");
}

int rnl_window_why(const struct rnl_import *m)
{
    switch (m->status) {
    case RNL_ERR_REVOKED:
        return rnl_fail(m->status, "the window that was imported is not offered any more");
    case RNL_ERR_REFUSED:
        return rnl_fail(m->status, "window %u is offered, but not to this process", m->id);
    case RNL_TIMED_OUT:
        return rnl_fail(m->status, "window %u is not offered", m->id);
    case RNL_NO_ROOM:
        return rnl_fail(m->status, "too many imports wait at the peer: try again later");
    case RNL_ERR_PEER_DEAD:
        return rnl_fail(m->status, "the peer whose window %u was imported is gone", m->id);
    }
    return rnl_fail(m->status, "window %u cannot be imported", m->id);
}

int rnl_import_state(const rnl_import *m, size_t *bytes)
{
    if (!m->ws)
        return forked();
    int status = rnl_ep_enter(m->ws->ep);
    if (status < 0)
        return status;
    status = m->state == WINDOW_ENDED ? rnl_window_why(m) : m->state == WINDOW_HERE;
    if (status == 1 && bytes)
        *bytes = m->bytes;
    rnl_ep_leave(m->ws->ep);
    return status;
}

int rnl_import_is_direct(const rnl_import *m)
{
    return m->mapped != NULL;
}

void rnl_window_import_end(struct rnl_import *m, int status)
{
    struct rnl_windows *ws = m->ws;
    if (m->state == WINDOW_HERE)
        ws->count[WINDOW_IMPORTS]--;
    for (struct window_op *op = m->peer ? m->peer->first : NULL; op; op = op->next)
        if (op->import == m)
            op->import = NULL;
    m->status = status;
    __atomic_store_n(&m->head.direct_words, 0, __ATOMIC_RELEASE); /* a put under way goes into the void */
    if (m->mapped)
        rnl_window_map_nothing(m->mapped, m->bytes);
    m->state = WINDOW_ENDED;
    unlink_peer(m);
    if (m->is_left)
        import_free(m);
}

static void give_back(struct rnl_windows *ws, const struct rnl_import *m)
{
    const struct window_drop d = {.grant = m->grant, .generation = m->generation};
    const struct window_id u = {m->id};
    if (m->state == WINDOW_HERE)
        (void)rnl_window_post(ws, m->peer, WINDOW_DROP, &d, sizeof d, 0);
    else if (m->state == WINDOW_WAITING_FOR_OFFER)
        (void)rnl_window_post(ws, m->peer, WINDOW_UNASK, &u, sizeof u, 0);
}

int rnl_import_drop(rnl_import *m)
{
    struct rnl_windows *ws;
    if (!m)
        return 0;
    if (!m->ws)
        return forked();
    int status = rnl_window_enter(m->ws->ep, &ws);
    if (status < 0)
        return status;
    if (m->state == WINDOW_ASKED) {
        m->is_left = 1; /* until what the peer grants is known */
    } else {
        if (m->state == WINDOW_HERE)
            ws->count[WINDOW_IMPORTS]--;
        give_back(ws, m);
        import_free(m);
    }
    rnl_window_leave(ws);
    return 0;
}

/* ---- what the owner says ---- */

/* Returns whether the grant was revoked before this side knew of it. */
static bool was_revoked(struct window_peer *p, uint32_t grant, uint16_t generation)
{
    for (struct window_early **at = &p->early, *e; (e = *at); at = &e->next) {
        if (e->grant != grant || e->generation != generation)
            continue;
        *at = e->next;
        p->early_count--;
        free(e);
        return true;
    }
    return false;
}

void rnl_window_early_free(struct window_peer *p)
{
    for (struct window_early *e = p->early, *next; e; e = next) {
        next = e->next;
        free(e);
    }
    p->early = NULL;
    p->early_count = 0;
}

/* The answer says yes. A window that cannot be mapped here is carried. Returns 0, or why there is none. */
static int take(struct rnl_windows *ws, struct window_peer *p, struct rnl_import *m, const struct window_imported *in)
{
    const struct rnl_meet_ops *meet = p->via == ws->inner ? ws->inner->env->meet : NULL;
    int file = -1;
    if (in->direct && meet && meet->take)
        (void)meet->take(ws->inner->env, p->at, in->a.tag, in->bytes, &file);
    bool is_revoked = was_revoked(p, in->grant, in->generation);
    if (is_revoked || in->bytes == 0) {
        if (file >= 0)
            rnl_window_close(file);
        return is_revoked ? RNL_ERR_REVOKED : RNL_ERR_PEER_BROKEN;
    }
    m->grant = in->grant;
    m->generation = in->generation;
    m->bytes = in->bytes;
    m->state = WINDOW_HERE;
    ws->count[WINDOW_IMPORTS]++;
    if (file >= 0 && rnl_window_map(file, in->bytes, &m->mapped) == 0) {
        m->head.at = m->mapped;
        m->head.direct_words = m->bytes - 7;
    }
    return 0;
}

int rnl_window_on_imported(rnl_stream *s, unsigned peer, void *ctx)
{
    struct rnl_windows *ws = s->ep->windows;
    struct window_imported in;
    struct window_op *op = ws ? rnl_window_op_answered(ws, s, peer, WINDOW_IMPORTED, &in, sizeof in) : NULL;
    (void)ctx;
    if (!op)
        return RNL_DONE;
    struct rnl_import *m = op->import;
    struct window_peer *p = rnl_window_sender(ws, s, peer);
    rnl_window_op_end(op, in.a.status);
    if (p->via == ws->inner && ws->inner->env->meet->take && !(in.a.status == 0 && in.direct))
        (void)ws->inner->env->meet->take(ws->inner->env, p->at, in.a.tag, 0, NULL);
    if (!m)
        return RNL_DONE;
    if (in.a.status == RNL_TIMED_OUT && m->waits && !m->is_left) {
        m->state = m->is_offered ? WINDOW_MEETING : WINDOW_WAITING_FOR_OFFER;
        due(ws);
        return RNL_DONE;
    }
    int status = in.a.status < 0 ? in.a.status : take(ws, p, m, &in);
    if (status < 0)
        rnl_window_import_end(m, status);
    if (!p->first)
        rnl_window_early_free(p); /* nothing is asked for, so nothing can have been revoked early */
    ws->changes++;
    due(ws);
    return RNL_DONE;
}

int rnl_window_on_offered(rnl_stream *s, unsigned peer, void *ctx)
{
    struct rnl_windows *ws = s->ep->windows;
    struct window_peer *p = ws ? rnl_window_sender(ws, s, peer) : NULL;
    struct window_id in;
    (void)ctx;
    if (!p || rnl_receive(s, &in, sizeof in) < 0)
        return RNL_DONE;
    for (struct rnl_import *m = p->imports; m; m = m->next) {
        if (m->id != in.id)
            continue;
        m->is_offered = 1;
        if (m->state == WINDOW_WAITING_FOR_OFFER)
            m->state = WINDOW_MEETING;
    }
    due(ws);
    return RNL_DONE;
}

/* The answer that grants it may still be on its way, on the other lane. False: there is no memory for it, or the peer
 * revokes so much of what is not known here that it makes it up. */
static bool note_early(struct window_peer *p, const struct window_revoked *in)
{
    const struct window_op *op = p->first;
    while (op && op->kind != WINDOW_IMPORTED)
        op = op->next;
    if (!op)
        return true;
    struct window_early *e =
        p->early_count < WINDOW_EARLY || RNL_BUG(window_early_unbounded) ? malloc(sizeof *e) : NULL;
    if (!e)
        return false;
    *e = (struct window_early){.next = p->early, .grant = in->grant, .generation = in->generation};
    p->early = e;
    p->early_count++;
    return true;
}

int rnl_window_on_revoked(rnl_stream *s, unsigned peer, void *ctx)
{
    struct rnl_windows *ws = s->ep->windows;
    struct window_peer *p = ws ? rnl_window_sender(ws, s, peer) : NULL;
    struct window_revoked in;
    (void)ctx;
    if (!p || rnl_receive(s, &in, sizeof in) < 0)
        return RNL_DONE;
    struct rnl_import *m = p->imports;
    while (m && !(m->state == WINDOW_HERE && m->grant == in.grant && m->generation == in.generation))
        m = m->next;
    if (m)
        rnl_window_import_end(m, RNL_ERR_REVOKED);
    else if (!note_early(p, &in))
        return RNL_DONE; /* no answer: the owner takes the memory away */
    ws->changes++;
    rnl_window_watch(ws);
    const struct window_answer a = {.tag = in.tag};
    (void)!rnl_reply(s, RNL_LIBRARY_ID + WINDOW_UNMAPPED, &a, sizeof a);
    return RNL_DONE;
}
