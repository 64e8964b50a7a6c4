/* SPDX-License-Identifier: BSD-3-Clause
 *
 * paths.c - a peer that has several addresses (multihoming): connects the state machine that decides which one is
 * used (net/flow/paths.h), the flow that makes the packets about it, and the transport that sends to one of them. */
#include "base/sometimes.h"
#include "remote/remote_internal.h"

#include <stdlib.h>
#include <string.h>

/* So long nothing is acknowledged until another path is tried, which costs two packets for each. */
static const uint64_t stall_limit_ns = (uint64_t)40 * 1000 * 1000;
static const uint64_t behind_ns = (uint64_t)250 * 1000 * 1000; /* that a socket which is never empty may be */
/* The interval of repeated hints to a peer whose data come from another address (net/flow/paths.h); at most an eighth
 * of the time after which that peer takes us for dead. */
static const uint64_t confirmed_ns = (uint64_t)4 * 1000 * 1000 * 1000;

static void address_of(const struct rnl_rank_address *place, struct rnl_addr *out)
{
    *out = (struct rnl_addr){.len = place->addr_bytes};
    memcpy(out->bytes, place->addr, place->addr_bytes);
}

static int same_address(const struct rnl_addr *a, const struct rnl_addr *b)
{
    return a->len == b->len && memcmp(a->bytes, b->bytes, a->len) == 0;
}

/* Gives the n-th address of a rank, the one of its struct rnl_rank_address first. Returns true, or false = there is
 * none. */
static bool nth_address(struct rnl_remote *r, uint32_t rank, unsigned n, struct rnl_addr *out)
{
    struct rnl_env *env = r->env;
    struct rnl_rank_address place = {0};
    int more = env->ops->size > offsetof(struct rnl_env_ops, alternate_address) && env->ops->alternate_address;
    if (n == 0 ? env->ops->rank_address(env, rank, &place) != 1
               : !more || env->ops->alternate_address(env, rank, n - 1, &place) != 1)
        return false;
    address_of(&place, out);
    return true;
}

unsigned rnl_remote_addresses(struct rnl_remote *r, uint32_t rank, struct rnl_addr out[RNL_FLOW_PATHS_MAX])
{
    unsigned n = 0;
    while (n < RNL_FLOW_PATHS_MAX && nth_address(r, rank, n, &out[n]))
        n++;
    return n;
}

bool rnl_remote_is_of(struct rnl_remote *r, uint32_t rank, const struct rnl_view *v, struct rnl_addr *first)
{
    struct rnl_addr known, from;
    if (r->t->ops->source(r->t, v, &from) != 0)
        return false;
    for (unsigned n = 0; n < RNL_FLOW_PATHS_MAX && nth_address(r, rank, n, &known); n++) {
        if (n == 0)
            *first = known;
        if (same_address(&from, &known))
            return true;
    }
    return false;
}

void rnl_remote_reply(struct rnl_remote *r, const struct rnl_view *v, const void *at, uint32_t bytes, uint64_t now_ns)
{
    (void)r->t->ops->reply(r->t, v, at, bytes, now_ns);
    r->replied = 1;
}

static void look_at_links(struct rnl_remote_conn *rc)
{
    struct rnl_transport *t = rc->remote->t;
    unsigned down = 0;
    for (unsigned path = 0; path < rc->paths->set.count; path++)
        down |= (unsigned)t->ops->is_path_down(t, rc->rank, path) << path;
    rnl_paths_down(&rc->paths->set, down);
}

static uint64_t at_most(uint64_t ns, uint64_t limit_ns) /* 0 = no limit */
{
    return limit_ns && limit_ns < ns ? limit_ns : ns;
}

/* An address that another peer has, too, is left out: hosts may number their containers alike. */
int rnl_remote_paths_new(struct rnl_remote_conn *rc, const struct rnl_addr *addr, unsigned n, unsigned taken)
{
    struct rnl_remote *r = rc->remote;
    uint32_t rank = rc->rank;
    uint64_t dead_ns = r->config.dead_ns;
    unsigned count = 0;
    if ((taken & (taken - 1)) == 0) /* one address */
        return 0;
    struct rnl_remote_paths *w = calloc(1, sizeof *w);
    if (!w)
        return rnl_fail(RNL_ERR_NO_MEMORY, "no memory for the addresses of rank %u (%zu bytes)", rank, sizeof *w);
    for (unsigned i = 0; i < n; i++)
        if (taken >> i & 1)
            w->addr[count++] = addr[i];
    rnl_paths_init(&w->set, count, 0, at_most(stall_limit_ns, dead_ns / 4), at_most(confirmed_ns, dead_ns / 8));
    w->set.ranked = r->env->facts.prefers_first;
    rc->paths = w;
    if (r->t->ops->is_path_down) /* from now on it is told of changes, too */
        look_at_links(rc);
    return 0;
}

int rnl_remote_path_of(const struct rnl_remote_conn *rc, const struct rnl_view *v)
{
    struct rnl_transport *t = rc->remote->t;
    struct rnl_addr from;
    if (t->ops->source(t, v, &from) < 0)
        return -1;
    for (unsigned i = 0; i < rc->paths->set.count; i++)
        if (same_address(&from, &rc->paths->addr[i]))
            return (int)i;
    return -1;
}

void rnl_remote_set_active(struct rnl_remote_conn *rc, const struct rnl_view *v)
{
    struct rnl_transport *t = rc->remote->t;
    int path = rc->paths ? rnl_remote_path_of(rc, v) : -1;
    if (path < 0)
        return;
    rnl_paths_set_active(&rc->paths->set, (unsigned)path);
    if (path > 0 && rc->remote->env->facts.prefers_first)
        rnl_paths_want_first(&rc->paths->set);
    (void)t->ops->set_active_path(t, rc->rank, (unsigned)path);
}

/* ---- HELLOs ---- */

int rnl_remote_hello_send(struct rnl_remote_conn *rc, const void *at, uint32_t bytes, uint64_t now_ns)
{
    struct rnl_transport *t = rc->remote->t;
    uint32_t rank = rc->rank;
    struct rnl_room room;
    if (rc->paths) {
        unsigned path = rc->paths->hello;
        rc->paths->hello = (uint8_t)((path + 1) % rc->paths->set.count);
        return t->ops->send_on_path(t, rank, path, at, bytes, now_ns);
    }
    int n = t->ops->reserve(t, rank, bytes, &room, 1);
    if (n != 1)
        return n;
    memcpy(room.at, at, bytes);
    return t->ops->commit(t, rank, &room, &bytes, 1, false, now_ns);
}

/* ---- challenges ---- */

static void respond(struct rnl_remote_conn *rc, const struct rnl_view *v, uint64_t value, uint64_t now_ns)
{
    unsigned char out[RNL_PATHS_CHALLENGE_BYTES];
    const struct rnl_path_word word = {RNL_PATH_RESPONSE, value};
    if (v->bytes != sizeof out)
        return;
    uint32_t bytes = rnl_flow_path(&rc->flow, out, sizeof out, sizeof out, &word);
    if (bytes)
        rnl_remote_reply(rc->remote, v, out, bytes, now_ns);
}

static void challenge(struct rnl_remote_conn *rc, unsigned path, uint64_t now_ns)
{
    struct rnl_remote *r = rc->remote;
    struct rnl_env *env = r->env;
    unsigned char out[RNL_PATHS_CHALLENGE_BYTES];
    struct rnl_path_word word = {RNL_PATH_CHALLENGE, env->ops->random(env)};
    word.value += word.value == 0;
    uint32_t bytes = rnl_flow_path(&rc->flow, out, sizeof out, sizeof out, &word);
    if (bytes == 0 || r->t->ops->send_on_path(r->t, rc->rank, path, out, bytes, now_ns) != 1)
        return;
    rnl_paths_challenged(&rc->paths->set, path, word.value, rc->flow.control, now_ns);
}

bool rnl_remote_challenged(const struct rnl_remote_conn *rc, const struct rnl_view *v, uint64_t number)
{
    int path = rc->paths ? rnl_remote_path_of(rc, v) : -1;
    return path >= 0 && rnl_paths_pending(&rc->paths->set, (unsigned)path, number);
}

void rnl_remote_paths_input(struct rnl_remote_conn *rc, const struct rnl_view *v, uint64_t now_ns)
{
    struct rnl_remote_paths *w = rc->paths;
    struct rnl_remote *r = rc->remote;
    if (r->has_word) {
        const struct rnl_path_word word = r->word;
        r->has_word = 0;
        int path = w ? rnl_remote_path_of(rc, v) : -1;
        if (word.kind == RNL_PATH_CHALLENGE) {
            respond(rc, v, word.value, now_ns);
            if (w)
                rnl_paths_doubt(&w->set, (unsigned)path);
        } else if (path < 0 || !rnl_paths_response(&w->set, (unsigned)path, word.value, now_ns))
            r->stray_responses++;
        return;
    }
    if (!w || (!(v->flags & RNL_VIEW_ASIDE) && w->set.from == 0) || rnl_packet_is_control(v->at))
        return;
    int path = v->flags & RNL_VIEW_ASIDE ? rnl_remote_path_of(rc, v) : w->set.active;
    const struct rnl_flow *f = &rc->flow;
    if (path >= 0 && rnl_paths_hint(&w->set, (unsigned)path, rnl_flow_next(f), rnl_flow_acked(f), now_ns))
        rnl_flow_ping(&rc->flow);
}

bool rnl_remote_paths_close(const struct rnl_remote_conn *rc, const void *at, uint32_t bytes)
{
    struct rnl_packet p;
    return rc->paths && rnl_flow_close_on_all_paths(&rc->flow) && rnl_packet_decode(at, bytes, &p) == RNL_PACKET_GOOD &&
           p.type == RNL_PACKET_CLOSE;
}

void rnl_remote_paths_send_close(struct rnl_remote_conn *rc, uint64_t now_ns)
{
    struct rnl_transport *t = rc->remote->t;
    unsigned char out[RNL_PACKET_MIN + 8];
    for (unsigned path = 0; path < rc->paths->set.count; path++) {
        uint32_t bytes = path == rc->paths->set.active ? 0 : rnl_flow_repeat_close(&rc->flow, out, sizeof out);
        if (bytes) /* no room: as if it were lost */
            (void)t->ops->send_on_path(t, rc->rank, path, out, bytes, now_ns);
    }
}

/* Returns the time up to which everything that had come has been taken in: a process that was suspended itself first
 * takes in what has come. Where the socket is never empty, that is behind_ns earlier. */
static uint64_t looked_ns(const struct rnl_remote *r)
{
    uint64_t later = r->drained && !r->receiving ? 0 : behind_ns;
    return r->received_ns > later ? r->received_ns - later : 0;
}

void rnl_remote_links_changed(struct rnl_remote *r)
{
    r->links = r->t->frames->links;
    for (uint32_t rank = 0; r->t->ops->is_path_down && rank < r->env->size; rank++) {
        struct rnl_remote_conn *rc = r->conn[rank];
        if (!rc || !rc->paths || !rc->established || rc->closed)
            continue;
        look_at_links(rc);
        rnl_remote_due(rc, r->received_ns);
    }
}

void rnl_remote_paths_step(struct rnl_remote_conn *rc, uint64_t now_ns)
{
    struct rnl_remote *r = rc->remote;
    struct rnl_paths *w = &rc->paths->set;
    int move;
    unsigned from = w->active;
    rnl_paths_acked(w, rnl_flow_acked(&rc->flow));
    unsigned due = rnl_paths_step(w, rnl_flow_stuck_ns(&rc->flow, now_ns), looked_ns(r), now_ns, &move);
    for (unsigned path = 0; due >> path; path++)
        if (due >> path & 1)
            challenge(rc, path, now_ns);
    if (!move) {
        rnl_remote_due(rc, rnl_paths_deadline(w));
        return;
    }
    RNL_SOMETIMES(1, "a peer is reached at another address");
    (void)r->t->ops->set_active_path(r->t, rc->rank, w->active);
    rnl_flow_migrate(&rc->flow, w->rtt_ns, now_ns);
    rc->paths->moved_from = (uint8_t)(from + 1);
    rc->paths->moved_at = rnl_flow_next(&rc->flow);
    r->c->peers_moved++;
}
