/* SPDX-License-Identifier: BSD-3-Clause
 *
 * link.c - what carries the words of windows to a peer. On one host it is a pair of window endpoints: endpoints alone
 * of both sides, of which the program knows nothing, so that windows and the program's messages never wait for each
 * other. First contact goes over the program's endpoint: each side tells the other the address of its window endpoint
 * and a key; the side whose address is the lower one goes to the other, and shows its key there, by which it is known
 * as this peer. Between hosts the daemons introduce them, if the two endpoints were introduced so themselves; ranks of
 * a job on two hosts tell each other their ports, and the job vouches for them. A peer that cannot be introduced is
 * spoken to over the program's endpoint itself. */
#include "base/bug.h"
#include "window/window_internal.h"

#include "endpoint/net.h"

#include <stdlib.h>
#include <unistd.h>

enum { PEERS_LEAST = 255, PEERS_MOST = 1023, HANDLERS = 1, UIDS = 32, COMING_NS = 2000000000 };

/* ---- the window endpoint ---- */

static void no_inner(struct rnl_windows *ws)
{
    ws->no_inner = 1;
    if (ws->inner)
        (void)!rnl_close(ws->inner);
    ws->inner = NULL;
    free(ws->bound);
    ws->bound = NULL;
}

/* Opens it. Without it windows are carried by the endpoint itself, so no error is recorded. */
static void open_inner(struct rnl_windows *ws)
{
    struct rnl_env *env = ws->ep->env;
    uint32_t peers = ws->ep->size > PEERS_LEAST ? ws->ep->size : PEERS_LEAST;
    const struct rnl_options opt = {.size = sizeof opt,
                                    .flags = RNL_ALONE,
                                    .handlers = HANDLERS,
                                    .name = "windows",
                                    .peers = peers < PEERS_MOST ? peers : PEERS_MOST};
    if (ws->inner || ws->no_inner)
        return;
    if (!env->open || env->ops->fd(env) < 0 || env->open(&ws->inner, &opt) < 0) {
        ws->inner = NULL;
        ws->no_inner = 1;
        return;
    }
    ws->bound = calloc(ws->inner->size, sizeof *ws->bound);
    int fd = rnl_fd(ws->inner);
    if (!ws->bound || fd < 0 || env->ops->fd_watch(env, fd) < 0) {
        no_inner(ws);
        return;
    }
    rnl_send_timeout(ws->inner, WINDOW_LOOK_NS);
    ws->inner->windows = ws;
    ws->ep->wait.by_fd = env->ops->park_on != NULL; /* what sleeps has to wake for both */
    rnl_window_watch(ws);
}

/* Lets the user of that peer come to the window endpoint. */
static void admit(struct rnl_windows *ws, const struct window_peer *p)
{
    struct rnl_cred cred;
    if (!ws->ep->env->meet || rnl_peer_cred(ws->ep, p->rank, &cred) < 0 || cred.uid == geteuid())
        return;
    for (uint32_t i = 0; i < ws->uids; i++)
        if (ws->uid[i] == cred.uid)
            return;
    if (!ws->uid)
        ws->uid = calloc(UIDS, sizeof *ws->uid);
    if (ws->uid && ws->uids < UIDS)
        ws->uid[ws->uids++] = cred.uid;
}

/* Returns whether the peer was told a key. */
static bool has_key(const struct window_peer *p)
{
    static const unsigned char none[WINDOW_KEY_BYTES];
    return memcmp(p->key, none, sizeof none) != 0;
}

/* Reserves a number of the window endpoint for a rank of another host, for which the job vouches. */
static void reserve(struct rnl_windows *ws, struct window_peer *p, struct window_meet *out)
{
    struct rnl_env *env = ws->ep->env, *inner = ws->inner->env;
    if (env->meet || !rnl_ep_is_remote(ws->ep, p->rank))
        return;
    if (p->link < WINDOW_COMING && !p->reserved &&
        inner->meet->reserve(inner, env, p->rank, &p->reserved, &p->port) < 0)
        p->reserved = p->port = 0;
    out->at = p->reserved;
    out->port = p->port;
}

/* What is told to the peer. The address is empty if there is none, or the peer cannot be met anyway. */
static void tell(struct rnl_windows *ws, struct window_peer *p, struct window_meet *out)
{
    memset(out, 0, sizeof *out);
    open_inner(ws);
    if (!ws->inner)
        return;
    admit(ws, p);
    const struct rnl_admit who = {.uids = ws->uids, .uid = ws->uid};
    if (rnl_address(ws->inner, &who, NULL, NULL, out->address, sizeof out->address) < 0) {
        memset(out, 0, sizeof *out);
        return;
    }
    if (!has_key(p)) {
        for (size_t i = 0; i < sizeof p->key; i += 8) {
            uint64_t word = ws->inner->env->ops->random(ws->inner->env);
            memcpy(p->key + i, &word, 8);
        }
    }
    memcpy(out->key, p->key, sizeof out->key);
    reserve(ws, p, out);
}

/* ---- the states of a link ---- */

static void go_on(struct rnl_windows *ws)
{
    ws->due = 1;
    rnl_window_watch(ws);
}

static void ask_for_imports(struct rnl_windows *ws)
{
    ws->imports_due = 1;
    rnl_window_watch(ws);
}

static void up(struct rnl_windows *ws, struct window_peer *p, struct rnl_endpoint *via, uint32_t at)
{
    p->via = via;
    p->at = at;
    p->link = WINDOW_UP;
    p->is_lost = 0;
    go_on(ws);
    ask_for_imports(ws);
}

static void give_back(struct rnl_windows *ws, struct window_peer *p)
{
    if (p->reserved && ws->inner)
        rnl_window_leave_due(ws, p->reserved);
    p->reserved = p->port = 0;
}

void rnl_window_apart(struct rnl_windows *ws, struct window_peer *p)
{
    give_back(ws, p);
    up(ws, p, ws->ep, p->rank);
}

/* Returns whether the process at that number of the window endpoint is that of the peer, as far as the kernel tells. */
static bool is_its_process(const struct rnl_windows *ws, const struct window_peer *p, uint32_t at)
{
    struct rnl_env *env = ws->ep->env, *inner = ws->inner->env;
    int32_t pid = env->ops->pid_of ? env->ops->pid_of(env, p->rank) : 0;
    int32_t other = pid && inner->ops->pid_of ? inner->ops->pid_of(inner, at) : 0;
    return !other || pid == other;
}

/* Addresses are rnl1.USER.HOST.... */
static bool on_one_host(const char *a, const char *b)
{
    for (int dots = 0; dots < 2; dots++) {
        a = strchr(a, '.');
        b = strchr(b, '.');
        if (!a++ || !b++)
            return false;
    }
    const size_t n = strcspn(a, ".");
    return n == strcspn(b, ".") && memcmp(a, b, n) == 0;
}

/* Both sides do so, and each knows the other by the key of the pair. */
static void vouch(struct rnl_windows *ws, struct window_peer *p, const struct window_meet *its)
{
    struct rnl_env *inner = ws->inner->env;
    const uint32_t at = p->reserved;
    if (inner->meet->vouch(inner, at, its->port, its->at, p->key, its->key) < 0) {
        p->is_apart = 1;
        rnl_window_apart(ws, p);
        return;
    }
    ws->bound[at] = 1 + p->rank;
    up(ws, p, ws->inner, at);
}

/* Both addresses are known. A peer may name the address of another one: that stays bound to whom it is bound to. */
static void go(struct rnl_windows *ws, struct window_peer *p, const struct window_meet *own,
               const struct window_meet *its)
{
    unsigned at;
    memcpy(p->its_key, its->key, sizeof p->its_key);
    if (p->reserved && its->port && !on_one_host(own->address, its->address)) {
        vouch(ws, p, its);
        return;
    }
    give_back(ws, p);
    if (own->address[0] == '\0' || its->address[0] == '\0') {
        rnl_window_apart(ws, p);
    } else if (strcmp(own->address, its->address) > 0) {
        p->link = WINDOW_AWAITED;
    } else if (rnl_insert(ws->inner, its->address, &at) < 0) {
        p->is_apart = 1;
        rnl_window_apart(ws, p);
    } else if (ws->bound[at] && !RNL_BUG(window_link_taken_over)) {
        rnl_window_apart(ws, p);
    } else {
        p->link = WINDOW_COMING;
        p->at = at;
        p->coming_until_ns = ws->ep->env->ops->now_ns(ws->ep->env) + COMING_NS;
        ws->bound[at] = 1 + p->rank;
        go_on(ws);
    }
}

static bool take_meet(rnl_stream *s, struct window_meet *out)
{
    if (rnl_receive(s, out, sizeof *out) < 0)
        return false;
    out->address[sizeof out->address - 1] = '\0';
    return true;
}

int rnl_window_on_meet(rnl_stream *s, unsigned peer, void *ctx)
{
    struct rnl_windows *ws;
    struct window_peer *p;
    struct window_meet its, own;
    (void)ctx;
    if (!take_meet(s, &its))
        return RNL_DONE;
    if (rnl_window_state(s->ep, &ws) < 0 || s->ep == ws->inner || rnl_window_peer(ws, peer, &p) < 0) {
        memset(&own, 0, sizeof own);
    } else {
        tell(ws, p, &own);
        if (p->link < WINDOW_COMING)
            go(ws, p, &own, &its);
        if (p->via == ws->ep)
            own.address[0] = '\0';
    }
    (void)!rnl_reply(s, RNL_LIBRARY_ID + WINDOW_MET, &own, sizeof own);
    return RNL_DONE;
}

int rnl_window_on_met(rnl_stream *s, unsigned peer, void *ctx)
{
    struct rnl_windows *ws = s->ep->windows;
    struct window_meet its, own;
    struct window_peer *p = ws ? rnl_window_sender(ws, s, peer) : NULL;
    (void)ctx;
    if (!p || s->ep == ws->inner || !take_meet(s, &its) || p->link != WINDOW_MET_ASKED)
        return RNL_DONE;
    tell(ws, p, &own);
    go(ws, p, &own, &its);
    return RNL_DONE;
}

/* Returns whether the peer may come to the window endpoint. What it does there may be seen before its reply, MET, which
 * takes another way. */
static bool awaits(const struct window_peer *p)
{
    return p->link == WINDOW_AWAITED || p->link == WINDOW_MET_ASKED;
}

/* The peer could not reach our address, which can happen as late as its window endpoint gives up. */
int rnl_window_on_apart(rnl_stream *s, unsigned peer, void *ctx)
{
    struct rnl_windows *ws = s->ep->windows;
    struct window_peer *p = ws ? rnl_window_sender(ws, s, peer) : NULL;
    (void)ctx;
    if (p && s->ep == ws->ep && (awaits(p) || p->reserved))
        rnl_window_apart(ws, p);
    return RNL_DONE;
}

int rnl_window_on_bind(rnl_stream *s, unsigned peer, void *ctx)
{
    struct rnl_windows *ws = s->ep->windows;
    struct window_bind b;
    (void)ctx;
    if (!ws || s->ep != ws->inner || ws->bound[peer] || rnl_receive(s, &b, sizeof b) < 0)
        return RNL_DONE;
    for (uint32_t i = 0; i < ws->ep->size; i++) {
        struct window_peer *p = ws->peer[i];
        if (!p || !awaits(p) || !has_key(p) || memcmp(p->key, b.key, sizeof b.key) != 0)
            continue;
        give_back(ws, p); /* it is of this host after all: no number for a rank of another one is needed */
        ws->bound[peer] = 1 + i;
        up(ws, p, ws->inner, peer);
        break;
    }
    return RNL_DONE;
}

/* The window endpoint is to leave that peer: not at once, since its death may be under way. */
void rnl_window_leave_due(struct rnl_windows *ws, uint32_t at)
{
    ws->bound[at] = UINT32_MAX;
    go_on(ws);
}

static void leave_peers(struct rnl_windows *ws)
{
    for (uint32_t i = 1; ws->inner && i < ws->inner->size; i++) {
        if (ws->bound[i] != UINT32_MAX)
            continue;
        /* The call marks the number once more, as that of a peer that is gone. The next who gets it is not meant. */
        const bool again = rnl_leave(ws->inner, i) == RNL_BUSY;
        ws->bound[i] = again ? UINT32_MAX : 0;
        if (again)
            go_on(ws);
    }
}

/* Goes on with an introduction. */
static void come(struct rnl_windows *ws, struct window_peer *p)
{
    const struct window_bind b = {{0}};
    struct window_bind show = b;
    const enum rnl_peer_state state = rnl_peer_public_state(&ws->inner->peer[p->at]);
    if (state == RNL_PEER_NEW && ws->ep->env->ops->now_ns(ws->ep->env) < p->coming_until_ns)
        return;
    const bool is_other = state == RNL_PEER_UP && !is_its_process(ws, p, p->at);
    if (state != RNL_PEER_UP || is_other) {
        if (is_other)
            ws->bound[p->at] = 0; /* whoever it is can still say so */
        else
            rnl_window_leave_due(ws, p->at);
        p->is_apart = 1;
        rnl_window_apart(ws, p);
        return;
    }
    memcpy(show.key, p->its_key, sizeof show.key);
    p->via = ws->inner;
    if (rnl_window_post(ws, p, WINDOW_BIND, &show, sizeof show, 0) == 0)
        up(ws, p, ws->inner, p->at);
    else
        p->via = NULL;
}

/* Does what is due for a peer. Returns true if something stays due. */
static bool link_on(struct rnl_windows *ws, struct window_peer *p)
{
    if (p->link == WINDOW_COMING)
        come(ws, p);
    if (p->is_apart && rnl_window_post(ws, p, WINDOW_APART, NULL, 0, 0) == 0)
        p->is_apart = 0;
    return p->link == WINDOW_COMING || p->is_apart;
}

void rnl_window_links(struct rnl_windows *ws)
{
    if (!ws->due || !rnl_window_may_wait(ws))
        return;
    ws->due = 0;
    leave_peers(ws);
    if (ws->inner)
        rnl_ep_take_events(ws->inner);
    bool due = false;
    for (uint32_t i = 0; i < ws->ep->size; i++)
        if (ws->peer[i])
            due |= link_on(ws, ws->peer[i]);
    ws->due |= due;
}

int rnl_window_contact(struct rnl_windows *ws, struct window_peer *p)
{
    struct window_meet own;
    if (p->link != WINDOW_NONE)
        return 0;
    if (rnl_peer_is_dead(&ws->ep->peer[p->rank]))
        return rnl_ep_gone(ws->ep, p->rank);
    if (p->rank == ws->ep->rank) {
        rnl_window_apart(ws, p);
        return 0;
    }
    tell(ws, p, &own);
    p->via = ws->ep;
    p->at = p->rank;
    int status = rnl_window_post(ws, p, WINDOW_MEET, &own, sizeof own, sizeof own);
    p->via = NULL;
    if (status == 0)
        p->link = WINDOW_MET_ASKED;
    return status;
}

bool rnl_window_unlink(struct rnl_windows *ws, struct window_peer *p)
{
    if (p->link == WINDOW_NONE)
        return false;
    if (p->reserved)
        give_back(ws, p);
    else if ((p->link == WINDOW_COMING || p->link == WINDOW_UP) && p->via != ws->ep && ws->inner)
        rnl_window_leave_due(ws, p->at);
    p->link = WINDOW_NONE;
    p->via = NULL;
    p->is_apart = p->refused = p->is_unsure = 0;
    p->is_lost = 1;
    memset(p->key, 0, sizeof p->key);
    return true;
}
