/* SPDX-License-Identifier: BSD-3-Clause
 *
 * offer.c - the owner's calls: windows, offers, and their end.
 *
 * A revoked offer is taken out of the table of each importer before anything else, so nothing that is carried reaches
 * the window any more. Importers that have mapped it are told, and answer when they have put nothing in its place. One
 * that has not answered in time is left with pages that are the window's no more. */
#include "base/bug.h"
#include "window/window_internal.h"

#include <stdlib.h>

/* ---- windows ---- */

static int add(struct rnl_windows *ws, const struct window_pages *pages, rnl_window **out)
{
    struct rnl_window *w = calloc(1, sizeof *w);
    if (!w)
        return rnl_fail(RNL_ERR_NO_MEMORY, "no memory for a window");
    w->ws = ws;
    w->pages = *pages;
    rnl_window_fork_lock();
    w->next = ws->all;
    w->before = &ws->all;
    if (w->next)
        w->next->before = &w->next;
    ws->all = w;
    rnl_window_fork_unlock();
    *out = w;
    return 0;
}

static int finish(struct rnl_windows *ws, int status, struct window_pages *pages, rnl_window **out)
{
    if (status == 0) {
        status = add(ws, pages, out);
        if (status < 0)
            rnl_window_pages_free(pages);
    }
    rnl_window_leave(ws);
    return status;
}

int rnl_window_alloc(rnl_endpoint *ep, size_t bytes, void **at, rnl_window **out)
{
    struct rnl_windows *ws;
    struct window_pages pages;
    int status = rnl_window_enter(ep, &ws);
    if (status < 0)
        return status;
    status = finish(ws, rnl_window_pages_new(ws, bytes, &pages), &pages, out);
    if (status == 0)
        *at = pages.at;
    return status;
}

int rnl_window_adopt(rnl_endpoint *ep, void *at, size_t bytes, rnl_window **out)
{
    struct rnl_windows *ws;
    struct window_pages pages;
    int status = rnl_window_enter(ep, &ws);
    if (status < 0)
        return status;
    return finish(ws, rnl_window_pages_adopt(ws, at, bytes, &pages), &pages, out);
}

int rnl_window_wrap(rnl_endpoint *ep, void *at, size_t bytes, rnl_window **out)
{
    struct rnl_windows *ws;
    struct window_pages pages = {.at = at, .bytes = bytes, .file = -1, .kind = WINDOW_WRAPPED};
    int status = rnl_window_enter(ep, &ws);
    if (status < 0)
        return status;
    if (bytes == 0 || bytes > SIZE_MAX - (uintptr_t)at)
        status = rnl_fail(RNL_ERR_ARG, "a window of %zu bytes at %p", bytes, at);
    return finish(ws, status, &pages, out);
}

/* ---- offers ---- */

static int check(const struct rnl_window *w, const struct rnl_offer *o)
{
    const uint32_t kinds = RNL_OFFER_DIRECT | RNL_OFFER_CARRIED, all = kinds | RNL_OFFER_IN_THREAD;
    struct rnl_window *other;
    if (o->size < offsetof(struct rnl_offer, ctx) + sizeof o->ctx)
        return rnl_fail(RNL_ERR_ARG, "rnl_offer.size is %u; set it to sizeof(struct rnl_offer)", o->size);
    if (o->flags & ~all || (o->flags & kinds) == kinds)
        return rnl_fail(RNL_ERR_ARG, "flags 0x%x of an offer: unknown, or both DIRECT and CARRIED", o->flags);
    if (o->flags & RNL_OFFER_DIRECT && w->pages.kind == WINDOW_WRAPPED)
        return rnl_fail(RNL_ERR_ARG, "a window of rnl_window_wrap cannot be mapped by peers: use rnl_window_adopt");
    if (o->who && (o->who->flags & ~(uint32_t)RNL_ADMIT_ANYONE || o->who->uids > 32 || o->who->gids > 32))
        return rnl_fail(RNL_ERR_ARG, "unknown flags in rnl_admit, or more than 32 users or groups");
    if (w->ws->ep->fast.handlers > RNL_LIBRARY_ID)
        return rnl_fail(RNL_ERR_UNSUPPORTED, "an endpoint with more than %d handlers has no windows", RNL_LIBRARY_ID);
    if (w->is_offered)
        return rnl_fail(RNL_BUSY, "the window is offered as %u: revoke that first", w->offer.id);
    HASH_FIND(hh, w->ws->offers, &o->id, sizeof o->id, other);
    return other ? rnl_fail(RNL_ERR_REFUSED, "another window of this endpoint is offered as %u", o->id) : 0;
}

/* Keeps a copy of who may import. */
static int keep_who(struct rnl_window *w, const struct rnl_admit *who)
{
    free(w->ids);
    w->ids = NULL;
    w->offer.who = NULL;
    if (!who)
        return 0;
    w->ids = calloc(who->uids + who->gids + 1, sizeof *w->ids);
    if (!w->ids)
        return rnl_fail(RNL_ERR_NO_MEMORY, "no memory for an offer");
    for (unsigned i = 0; i < who->uids; i++)
        w->ids[i] = who->uid[i];
    for (unsigned i = 0; i < who->gids; i++)
        w->ids[who->uids + i] = who->gid[i];
    w->who = (struct rnl_admit){who->flags, who->uids, who->gids, w->ids, w->ids + who->uids};
    w->offer.who = &w->who;
    return 0;
}

int rnl_window_offer(rnl_window *w, const struct rnl_offer *o)
{
    struct rnl_windows *ws;
    int status = rnl_window_enter(w->ws->ep, &ws);
    if (status < 0)
        return status;
    status = check(w, o);
    if (status == 0)
        status = keep_who(w, o->who);
    if (status == 0) {
        const struct rnl_admit *who = w->offer.who;
        w->offer = *o;
        w->offer.who = who;
        struct rnl_window *added;
        HASH_ADD(hh, ws->offers, offer.id, sizeof w->offer.id, w);
        HASH_FIND(hh, ws->offers, &o->id, sizeof o->id, added);
        if (!added) {
            status = rnl_fail(RNL_ERR_NO_MEMORY, "no memory for the offer of window %u", o->id);
        } else {
            w->is_offered = 1;
            ws->count[WINDOW_OFFERS]++;
            rnl_window_tell_waiting(ws, o->id);
        }
    }
    rnl_window_leave(ws);
    return status;
}

/* ---- the end of an offer ---- */

/* Takes the window from an importer, and tells it. */
static void take_from(struct rnl_windows *ws, struct window_grant *g)
{
    struct rnl_window *w = g->window;
    struct window_peer *p = g->peer;
    struct window_op *op = rnl_window_op_new(WINDOW_UNMAPPED);
    g->state = WINDOW_GRANT_TOLD;
    w->grants_told += g->direct;
    if (!op)
        return; /* it stays in the list, as one that does not answer */
    op->grant = g;
    rnl_window_op_add(p, op);
    const struct window_revoked m = {.tag = op->tag, .grant = g->index, .generation = g->generation};
    if (rnl_window_post(ws, p, WINDOW_REVOKED, &m, sizeof m, sizeof(struct window_answer)) < 0) {
        rnl_window_op_remove(p, op);
        rnl_window_op_end(op, RNL_ERR_SYSTEM);
    }
}

static void end_offer(struct rnl_windows *ws, struct rnl_window *w)
{
    if (!w->is_offered)
        return;
    HASH_DELETE(hh, ws->offers, w);
    w->is_offered = 0;
    ws->count[WINDOW_OFFERS]--;
    for (struct window_grant *g = w->grants, *next; g; g = next) {
        next = g->next;
        take_from(ws, g);
    }
}

/* Forgets the importers of a window: what they say of it later is of nothing. */
static void forget_grants(struct rnl_window *w)
{
    for (struct window_grant *g = w->grants, *next; g; g = next) {
        next = g->next;
        g->window = NULL; /* it is freed by its answer, or with its peer */
    }
    w->grants = NULL;
    w->grants_told = 0;
}

/* Returns the rank of an importer that has not answered yet. */
static uint32_t first_told(const struct rnl_window *w)
{
    const struct window_grant *g = w->grants;
    while (g->next && !(g->state == WINDOW_GRANT_TOLD && g->direct))
        g = g->next;
    return g->peer->rank;
}

static int revoke(struct rnl_windows *ws, struct rnl_window *w, int64_t wait_ns)
{
    end_offer(ws, w);
    if (!rnl_window_may_wait(ws))
        wait_ns = 0;
    uint64_t deadline = wait_ns ? rnl_window_deadline(ws, wait_ns) : 0;
    while (w->grants_told && wait_ns) {
        rnl_window_waits(ws, WINDOW_WAITS_REVOKE, first_told(w));
        int status = rnl_window_turn(ws, ws->inner ? ws->inner : ws->ep, deadline);
        if (status == RNL_ERR_FORKED)
            return status;
        if (status < 0)
            break; /* no time is left, or nobody can answer */
    }
    rnl_window_waited(ws);
    const bool may_be_kept = w->grants_told || w->may_be_kept;
    int status = may_be_kept && !RNL_BUG(window_pages_stay) ? rnl_window_pages_move(&w->pages) : 0;
    if (status == 0) {
        w->may_be_kept = 0;
        forget_grants(w);
    }
    return status;
}

int rnl_window_revoke(rnl_window *w, int64_t wait_ns)
{
    struct rnl_windows *ws;
    int status = rnl_window_enter(w->ws->ep, &ws);
    if (status < 0)
        return status;
    status = revoke(ws, w, wait_ns);
    if (status != RNL_ERR_FORKED)
        rnl_window_leave(ws);
    return status;
}

unsigned rnl_window_importers(const rnl_window *w, unsigned *peers, unsigned most)
{
    struct rnl_windows *ws;
    unsigned n = 0;
    if (rnl_window_enter(w->ws->ep, &ws) < 0)
        return 0;
    for (const struct window_grant *g = w->grants; g; g = g->next) {
        if (g->state != WINDOW_GRANT_LIVE)
            continue;
        if (n < most)
            peers[n] = g->peer->rank;
        n++;
    }
    rnl_window_leave(ws);
    return n;
}

static void drop(struct rnl_windows *ws, struct rnl_window *w)
{
    forget_grants(w);
    rnl_window_notes_purge(ws, w);
    rnl_window_fork_lock();
    *w->before = w->next;
    if (w->next)
        w->next->before = w->before;
    rnl_window_fork_unlock();
    rnl_window_pages_free(&w->pages);
    free(w->ids);
    free(w);
}

int rnl_window_free(rnl_window *w)
{
    struct rnl_windows *ws;
    int status = w ? rnl_window_enter(w->ws->ep, &ws) : 0;
    if (status < 0 || !w)
        return status;
    end_offer(ws, w);
    drop(ws, w); /* adopted memory becomes private, so nobody else has it afterwards */
    rnl_window_leave(ws);
    return 0;
}

void rnl_window_free_all(struct rnl_windows *ws)
{
    HASH_CLEAR(hh, ws->offers);
    while (ws->all)
        drop(ws, ws->all);
}
