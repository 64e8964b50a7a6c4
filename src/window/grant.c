/* SPDX-License-Identifier: BSD-3-Clause
 *
 * grant.c - what importers were granted, and who waits for an offer. A peer names what it was granted by its place in a
 * table that is the peer's own, so there is nothing to guess. */
#include "window/window_internal.h"

#include <stdlib.h>
#include <unistd.h>

enum { ENTRIES_FIRST = 8, GRANTS_MOST = 1 << 20 /* of one peer */ };

/* ---- entries ---- */

static int grow(struct window_peer *p)
{
    uint32_t all = p->entries ? 2 * p->entries : ENTRIES_FIRST;
    struct window_entry *entry = all <= GRANTS_MOST ? realloc(p->entry, all * sizeof *entry) : NULL;
    if (!entry)
        return rnl_fail(RNL_ERR_NO_MEMORY, "no memory for the %u-th import of rank %u", p->entries + 1, p->rank);
    for (uint32_t i = p->entries; i < all; i++)
        entry[i] = (struct window_entry){.next_free = i + 1 < all ? i + 2 : 0};
    p->free_entry = p->entries + 1;
    p->entry = entry;
    p->entries = all;
    return 0;
}

struct window_grant *rnl_window_granted(struct window_peer *p, uint32_t index, uint32_t generation)
{
    if (index >= p->entries || p->entry[index].generation != generation)
        return NULL;
    struct window_grant *g = p->entry[index].grant;
    return g && g->state == WINDOW_GRANT_LIVE ? g : NULL;
}

static void unlink_window(struct window_grant *g)
{
    if (!g->window)
        return;
    if (g->next)
        g->next->at = g->at;
    *g->at = g->next;
    g->window = NULL;
}

void rnl_window_grant_free(struct window_grant *g)
{
    struct window_peer *p = g->peer;
    struct window_entry *e = &p->entry[g->index];
    if (g->window && g->state == WINDOW_GRANT_TOLD && g->direct)
        g->window->grants_told--;
    unlink_window(g);
    e->grant = NULL;
    e->generation++;
    e->next_free = p->free_entry;
    p->free_entry = g->index + 1;
    free(g);
}

void rnl_window_grants_free(struct window_peer *p)
{
    for (uint32_t i = 0; i < p->entries; i++) {
        struct window_grant *g = p->entry[i].grant;
        if (!g)
            continue;
        if (g->window && g->direct)
            g->window->may_be_kept = 1;
        rnl_window_grant_free(g);
    }
    for (struct window_waiting *w = p->waiting, *next; w; w = next) {
        next = w->next;
        free(w);
    }
    p->waiting = NULL;
    p->waiting_count = 0;
}

/* ---- who may import ---- */

static bool is_among(const struct rnl_admit *who, const struct rnl_cred *cred)
{
    for (unsigned i = 0; i < who->uids; i++)
        if (who->uid[i] == cred->uid)
            return true;
    for (unsigned i = 0; i < who->gids; i++)
        if (who->gid[i] == cred->gid)
            return true;
    return false;
}

/* Gets what the kernel says of the peer. Returns false: nothing. */
static bool known(const struct rnl_windows *ws, const struct window_peer *p, struct rnl_cred *cred)
{
    if (p->rank == ws->ep->rank) {
        *cred = (struct rnl_cred){.uid = geteuid(), .gid = getegid(), .pid = getpid()};
        return true;
    }
    if (p->reserved)
        return false; /* a job vouches for a rank, and says of no user */
    return p->via && p->via->env->meet && rnl_peer_cred(p->via, p->at, cred) == 0;
}

static bool is_own_user(const struct rnl_cred *cred)
{
    return cred->uid == geteuid() || cred->uid == 0;
}

int rnl_window_admitted(struct rnl_windows *ws, const struct window_peer *p, const struct rnl_window *w)
{
    const struct rnl_admit *who = w->offer.who;
    struct rnl_cred cred;
    bool is_known = known(ws, p, &cred);
    bool in = is_known && is_own_user(&cred);
    if (!who)
        in |= !is_known && !ws->ep->env->meet; /* a rank of the job */
    else
        in |= (who->flags & RNL_ADMIT_ANYONE) || (is_known && is_among(who, &cred));
    if (!in || !w->offer.admit)
        return in;
    uint32_t before = ws->ep->fast.in_handler;
    ws->ep->fast.in_handler = RNL_IN_CALL;
    in = w->offer.admit(w->offer.ctx, p->rank) == 0;
    if (!rnl_ep_forked(ws->ep))
        ws->ep->fast.in_handler = before;
    return in;
}

/* Sends the window's file to the peer, if it may map it. */
static bool give(struct rnl_windows *ws, const struct window_peer *p, struct rnl_window *w, uint32_t tag)
{
    struct rnl_cred cred;
    if (p->via != ws->inner || w->pages.file < 0 || w->offer.flags & RNL_OFFER_CARRIED || !known(ws, p, &cred))
        return false;
    if (!is_own_user(&cred) && !(w->offer.flags & RNL_OFFER_DIRECT))
        return false;
    const struct rnl_meet_ops *meet = ws->inner->env->meet;
    if (!meet->give || meet->give(ws->inner->env, p->at, tag, w->pages.file) < 0)
        return false;
    w->may_be_kept |= !is_own_user(&cred);
    return true;
}

int rnl_window_grant(struct rnl_windows *ws, struct window_peer *p, struct rnl_window *w, uint32_t tag, uint32_t how,
                     struct window_imported *out)
{
    int status = p->free_entry ? 0 : grow(p);
    struct window_grant *g = status < 0 ? NULL : calloc(1, sizeof *g);
    if (!g)
        return RNL_ERR_NO_MEMORY;
    struct window_entry *e = &p->entry[p->free_entry - 1];
    *g = (struct window_grant){.window = w,
                               .next = w->grants,
                               .at = &w->grants,
                               .peer = p,
                               .index = p->free_entry - 1,
                               .generation = e->generation,
                               .state = WINDOW_GRANT_LIVE};
    if (g->next)
        g->next->at = &g->next;
    w->grants = g;
    p->free_entry = e->next_free;
    e->grant = g;
    g->direct = how & WINDOW_IMPORT_MAPS && give(ws, p, w, tag);
    out->grant = g->index;
    out->generation = g->generation;
    out->direct = g->direct;
    out->bytes = w->pages.bytes;
    return 0;
}

/* ---- who waits ---- */

static int wait_for(struct window_peer *p, uint32_t id)
{
    struct window_waiting *w = p->waiting;
    while (w && w->id != id)
        w = w->next;
    if (w)
        return RNL_TIMED_OUT;
    w = p->waiting_count < WINDOW_WAITING ? malloc(sizeof *w) : NULL;
    if (!w)
        return RNL_NO_ROOM;
    *w = (struct window_waiting){.next = p->waiting, .id = id};
    p->waiting = w;
    p->waiting_count++;
    return RNL_TIMED_OUT;
}

static bool forget(struct window_peer *p, uint32_t id)
{
    for (struct window_waiting **at = &p->waiting, *w; (w = *at); at = &w->next) {
        if (w->id != id)
            continue;
        *at = w->next;
        p->waiting_count--;
        free(w);
        return true;
    }
    return false;
}

void rnl_window_tell_waiting(struct rnl_windows *ws, uint32_t id)
{
    const struct window_id m = {id};
    for (uint32_t i = 0; i < ws->ep->size; i++) {
        struct window_peer *p = ws->peer[i];
        if (p && p->link == WINDOW_UP && forget(p, id))
            (void)rnl_window_post(ws, p, WINDOW_OFFERED, &m, sizeof m, 0);
    }
}

/* ---- what importers say ---- */

static int answer_import(struct rnl_windows *ws, struct window_peer *p, const struct window_import *ask,
                         struct window_imported *out)
{
    struct rnl_window *w;
    HASH_FIND(hh, ws->offers, &ask->id, sizeof ask->id, w);
    if (!w)
        return ask->how & WINDOW_IMPORT_WAITS ? wait_for(p, ask->id) : RNL_TIMED_OUT;
    if (!rnl_window_admitted(ws, p, w))
        return RNL_ERR_REFUSED;
    return rnl_window_grant(ws, p, w, ask->tag, ask->how, out);
}

/* Whether the program is to be asked, and not by this thread. */
static bool is_for_owner(const struct rnl_windows *ws, uint32_t id)
{
    struct rnl_window *w;
    if (!rnl_turn_is_threads(ws->ep))
        return false;
    HASH_FIND(hh, ws->offers, &id, sizeof id, w);
    return w && w->offer.admit && !(w->offer.flags & RNL_OFFER_IN_THREAD);
}

static bool put_off(struct rnl_windows *ws, rnl_stream *s, struct window_peer *p, const struct window_import *ask)
{
    struct window_late *late = malloc(sizeof *late);
    if (!late)
        return false;
    *late = (struct window_late){.next = ws->put_off, .via = s->ep, .peer = p, .ask = *ask};
    if (rnl_defer(s, &late->name) < 0) {
        free(late);
        return false;
    }
    ws->put_off = late;
    rnl_window_watch(ws);
    return true;
}

void rnl_window_answer_late(struct rnl_windows *ws)
{
    struct window_late *late;
    while ((late = ws->put_off)) {
        struct window_imported out = {.a.tag = late->ask.tag};
        const struct rnl_buffer piece = {&out, sizeof out};
        ws->put_off = late->next;
        out.a.status =
            late->peer->link == WINDOW_UP ? answer_import(ws, late->peer, &late->ask, &out) : RNL_ERR_REFUSED;
        if (rnl_ep_forked(ws->ep))
            return;
        (void)!rnl_answer(late->via, late->name, RNL_LIBRARY_ID + WINDOW_IMPORTED, &piece, 1);
        free(late);
    }
}

void rnl_window_forget_late(struct rnl_windows *ws)
{
    for (struct window_late *late; (late = ws->put_off); free(late))
        ws->put_off = late->next;
}

int rnl_window_on_import(rnl_stream *s, unsigned peer, void *ctx)
{
    struct rnl_endpoint *ep = s->ep;
    struct rnl_windows *ws;
    struct window_import ask;
    struct window_imported out;
    (void)ctx;
    if (rnl_receive(s, &ask, sizeof ask) < 0)
        return RNL_DONE;
    memset(&out, 0, sizeof out);
    out.a.tag = ask.tag;
    int status = rnl_window_state(ep, &ws);
    struct window_peer *p = status < 0 ? NULL : rnl_window_sender(ws, s, peer);
    if (p && p->link != WINDOW_UP && ep == ws->ep) /* it has found that our window endpoint cannot be reached */
        rnl_window_apart(ws, p);
    if (status == 0 && p && p->link == WINDOW_UP && is_for_owner(ws, ask.id) && put_off(ws, s, p, &ask))
        return RNL_DONE;
    if (status == 0)
        status = p && p->link == WINDOW_UP ? answer_import(ws, p, &ask, &out) : RNL_ERR_REFUSED;
    if (rnl_ep_forked(ep))
        return RNL_DONE;
    out.a.status = status;
    (void)!rnl_reply(s, RNL_LIBRARY_ID + WINDOW_IMPORTED, &out, sizeof out);
    return RNL_DONE;
}

int rnl_window_on_unask(rnl_stream *s, unsigned peer, void *ctx)
{
    struct rnl_windows *ws = s->ep->windows;
    struct window_peer *p = ws ? rnl_window_sender(ws, s, peer) : NULL;
    struct window_id m;
    (void)ctx;
    if (p && rnl_receive(s, &m, sizeof m) == 0)
        (void)forget(p, m.id);
    return RNL_DONE;
}

int rnl_window_on_drop(rnl_stream *s, unsigned peer, void *ctx)
{
    struct rnl_windows *ws = s->ep->windows;
    struct window_peer *p = ws ? rnl_window_sender(ws, s, peer) : NULL;
    struct window_drop m;
    (void)ctx;
    struct window_grant *g =
        p && rnl_receive(s, &m, sizeof m) == 0 ? rnl_window_granted(p, m.grant, m.generation) : NULL;
    if (g)
        rnl_window_grant_free(g);
    return RNL_DONE;
}

/* The importer uses it no more. */
int rnl_window_on_unmapped(rnl_stream *s, unsigned peer, void *ctx)
{
    struct rnl_windows *ws = s->ep->windows;
    struct window_answer a;
    struct window_op *op = ws ? rnl_window_op_answered(ws, s, peer, WINDOW_UNMAPPED, &a, sizeof a) : NULL;
    (void)ctx;
    if (!op)
        return RNL_DONE;
    rnl_window_grant_free(op->grant);
    rnl_window_op_end(op, 0);
    ws->changes++;
    rnl_window_watch(ws);
    return RNL_DONE;
}
