/* SPDX-License-Identifier: BSD-3-Clause
 *
 * slot.c - the peers of an endpoint alone: their numbers, what they say, and the end. (Their greeting:
 * greet.c.)
 *
 * Whatever the peer sends is read without waiting, and so is what is sent to it. A descriptor that it sends is checked
 * before it is used: a segment that could shrink would end this process by SIGBUS. */
#include "base/bug.h"
#include "base/error.h"
#include "meet/meet_internal.h"
#include "meet/who.h"

#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { PACKETS_PER_TURN = 16 /* read from one peer before the next one's turn */ };
#define EXIT_FOLLOWS_NS ((uint64_t)40 * 1000 * 1000) /* between a process closing its sockets and its end being seen */
#define AGAIN_NS        ((uint64_t)20 * 1000 * 1000) /* before a service is asked for again */

static bool is_greeting(const struct meet_slot *s)
{
    return s->state == MEET_GREETING || s->state == MEET_AWAITING;
}

/* ---- slots ---- */

/* Processes that say nothing hold half of the slots at most; those of one other user a quarter, whatever they do. */
static bool is_crowded(const struct meet *m, uint32_t uid)
{
    uint32_t silent = 0, of_user = 0, most = (m->env.size + 2) / 4;
    for (uint32_t i = 1; i < m->env.size; i++) {
        const struct meet_slot *s = &m->slot[i];
        silent += !s->is_ours && s->state == MEET_GREETING;
        of_user += !s->is_ours && s->state != MEET_FREE && s->uid == uid;
    }
    return silent > m->env.size / 2 || (uid != m->own_uid && uid != 0 && of_user >= (most ? most : 1));
}

static int claim(struct meet *m, const struct meet_slot *as)
{
    for (uint32_t i = 1; i < m->env.size; i++) {
        struct meet_slot *s = &m->slot[i];
        if (s->state != MEET_FREE)
            continue;
        *s = *as;
        s->sock = s->watch = s->segment = -1;
        s->state = MEET_GREETING;
        return (int)i;
    }
    return rnl_fail(RNL_NO_ROOM,
                    "all %u numbers of peers are in use: leave peers that are dead or not needed (rnl_leave), or set "
                    "rnl_options.peers",
                    m->env.size - 1);
}

int rnl_meet_claim(struct meet *m)
{
    const struct meet_slot as = {.is_ours = true};
    return claim(m, &as);
}

int rnl_meet_claim_for(struct meet *m, uint32_t uid, struct meet_service *service)
{
    const struct meet_slot as = {.is_known = true, .uid = uid, .service = service};
    if (is_crowded(m, uid))
        return rnl_fail(RNL_NO_ROOM,
                        "user %u has too many connections to this endpoint, or too many processes have "
                        "connected and said nothing",
                        uid);
    return claim(m, &as);
}

void rnl_meet_hang_up(struct meet *m, struct meet_slot *s)
{
    rnl_meet_drop_fd(m, &s->sock);
    rnl_meet_drop_fd(m, &s->watch);
    if (s->segment >= 0)
        close(s->segment);
    s->segment = -1;
    if (s->gifts)
        rnl_meet_forget_gifts(m, (uint32_t)(s - m->slot));
    free(s->who);
    s->who = NULL;
    s->service = NULL;
}

void rnl_meet_end_request(struct meet *m, struct meet_slot *s)
{
    m->requests -= s->state == MEET_REQUESTING && !s->is_announced;
    s->is_announced = true;
}

static void set_free(struct meet *m, uint32_t rank)
{
    struct meet_slot *s = &m->slot[rank];
    rnl_meet_end_request(m, s);
    rnl_meet_hang_up(m, s);
    if (s->shared) { /* the endpoint has not opened it */
        rnl_membership_segment_mapped(m->members, s->shared, 0);
        rnl_membership_segment_close(m->members, s->shared, 0);
        s->shared = NULL;
    }
    if (s->is_remote)
        rnl_meet_remote_forget(m, rank);
    s->state = MEET_FREE;
}

void rnl_meet_abandon(struct meet *m, uint32_t rank)
{
    set_free(m, rank);
}

void rnl_meet_ended(struct meet *m, uint32_t rank, int why, int detail)
{
    struct meet_slot *s = &m->slot[rank];
    rnl_meet_hang_up(m, s);
    s->state = MEET_ENDED;
    rnl_meet_show(m, rank);
    rnl_membership_gone(m->members, rank, why, detail);
}

void rnl_meet_failed(struct meet *m, uint32_t rank, int status)
{
    struct meet_slot *s = &m->slot[rank];
    if (!s->is_ours) {
        set_free(m, rank);
        return;
    }
    if (s->by_name)
        rnl_meet_cancel(m, rank);
    rnl_meet_hang_up(m, s);
    s->state = MEET_FAILED;
    s->status = status;
    if (!s->quiet && rnl_meet_join(m, rank) == 0)
        rnl_membership_gone(m->members, rank, RNL_DEATH_NEVER_JOINED, status);
}

/* ---- the end of a peer ---- */

void rnl_meet_hung_up(struct meet *m, uint32_t rank)
{
    struct meet_slot *s = &m->slot[rank];
    if (s->state == MEET_UP && s->watch >= 0) {
        rnl_meet_drop_fd(m, &s->sock);
        s->due_ns = m->now_ns + EXIT_FOLLOWS_NS;
        rnl_meet_due(m, s->due_ns);
    } else if (s->state == MEET_UP) {
        rnl_meet_ended(m, rank, RNL_DEATH_EXIT, -1);
    } else if (s->by_name) {
        rnl_meet_hang_up(m, s);
        s->is_requested = false;
        s->due_ns = m->now_ns + AGAIN_NS;
        rnl_meet_due(m, s->due_ns);
    } else {
        rnl_meet_failed(m, rank, RNL_ERR_UNREACHABLE);
    }
}

void rnl_meet_watched(struct meet *m, uint32_t rank)
{
    if (m->slot[rank].state == MEET_UP)
        rnl_meet_ended(m, rank, RNL_DEATH_EXIT, -1);
}

void rnl_meet_slots_due(struct meet *m)
{
    for (uint32_t i = 1; i < m->env.size; i++) {
        struct meet_slot *s = &m->slot[i];
        if (s->due_ns == 0)
            continue;
        if (m->now_ns < s->due_ns) {
            rnl_meet_due(m, s->due_ns);
            continue;
        }
        s->due_ns = 0;
        if (s->state == MEET_UP && s->sock < 0)
            rnl_meet_ended(m, i, RNL_DEATH_LEFT, 0);
        else if (s->state == MEET_GREETING && s->by_name)
            rnl_meet_request_service(m, i);
        else if (s->yields)
            rnl_meet_failed(m, i, RNL_ERR_REFUSED);
        else if (s->state == MEET_REQUESTING)
            rnl_meet_deny(m, i, RNL_DENIED_NO_ROOM);
        else if (is_greeting(s) && !s->is_ours)
            rnl_meet_failed(m, i, RNL_TIMED_OUT);
    }
}

/* ---- the end of a peer on another host ---- */

void rnl_meet_remote_gone(struct meet *m, const struct rnl_meet_gone *g)
{
    for (uint32_t i = 1; g->call && i < m->env.size; i++) {
        if (rnl_meet_remote_call_of(m, i) != g->call)
            continue;
        if (g->why == RNL_DEATH_NONE)
            rnl_meet_remote_orphaned(m, i);
        else if (m->slot[i].state == MEET_UP)
            rnl_meet_ended(m, i, (int)g->why, g->why == RNL_DEATH_EXIT ? -1 : 0);
        else if (m->slot[i].state == MEET_REQUESTING)
            set_free(m, i);
    }
}

/* The next daemon knows nothing of the pairs, and gives their numbers to others. */
void rnl_meet_remote_lost(struct meet *m)
{
    for (uint32_t i = 1; i < m->env.size; i++) {
        if (!m->slot[i].is_remote)
            continue;
        rnl_meet_remote_orphaned(m, i);
        if (m->slot[i].state == MEET_REQUESTING)
            set_free(m, i);
    }
}

/* ---- hearing ---- */

/* Handles a packet of the peer. */
static void handle(struct meet *m, uint32_t rank, const unsigned char *bytes, struct rnl_seqpacket *p)
{
    struct meet_slot *s = &m->slot[rank];
    struct rnl_meet_msg msg;
    enum rnl_meet_verdict verdict = p->cut ? RNL_MEET_BAD : rnl_meet_decode(RNL_MEET_FROM_PEER, bytes, p->n, &msg);
    if (s->state != MEET_GREETING && p->has_cred && p->pid != s->cred.pid && !RNL_BUG(meet_child_is_heard))
        verdict = RNL_MEET_BAD; /* another process holds the socket, such as a child: what it says counts for nothing */
    else if (s->state == MEET_GREETING)
        rnl_meet_greeted(m, rank, &msg, verdict, p);
    else if (s->state == MEET_REQUESTING)
        set_free(m, rank); /* it does not wait for its answer */
    else if (verdict == RNL_MEET_GOOD && msg.kind == RNL_MEET_LEAVE)
        rnl_meet_ended(m, rank, RNL_DEATH_LEFT, 0);
    else if (verdict == RNL_MEET_GOOD && msg.kind == RNL_MEET_BROKE)
        rnl_meet_ended(m, rank, RNL_DEATH_DISCONNECTED, 0);
    else if (verdict == RNL_MEET_GOOD && msg.kind == RNL_MEET_GIVE && p->nfds == 1 &&
             rnl_meet_given(m, rank, msg.u.give.tag, p->fds[0]))
        p->nfds = 0;
    else
        rnl_meet_ended(m, rank, RNL_DEATH_BROKEN, 0);
    for (unsigned i = 0; i < p->nfds; i++)
        (void)!rnl_seqpacket_refuse_fd(p->fds[i]);
}

void rnl_meet_receive_slot(struct meet *m, uint32_t rank)
{
    struct meet_slot *s = &m->slot[rank];
    unsigned char bytes[RNL_MEET_BYTES_MAX + 1];
    struct rnl_seqpacket p;
    for (int i = 0; i < PACKETS_PER_TURN && s->sock >= 0; i++) {
        const bool greets = s->state == MEET_GREETING;
        const unsigned fds = (greets && !s->offers) || (s->state == MEET_UP && s->gifts);
        int e = greets && s->wants_pidfd ? rnl_seqpacket_receive_pidfd(s->sock, bytes, sizeof bytes, &p)
                                         : rnl_seqpacket_receive(s->sock, bytes, sizeof bytes, fds, &p, 0);
        if (e == RNL_NO_ROOM)
            return;
        if (e < 0) {
            if (s->state == MEET_REQUESTING)
                set_free(m, rank);
            else
                rnl_meet_hung_up(m, rank);
        } else if (p.n != 1 || p.nfds > 0 || s->state != MEET_UP) { /* one byte wakes, as it has done now */
            handle(m, rank, bytes, &p);
            if (p.pidfd >= 0)
                close(p.pidfd);
        }
    }
}

/* ---- what the endpoint asks ---- */

int rnl_meet_met(struct rnl_env *env, uint32_t rank)
{
    const struct meet_slot *s = &rnl_meet_of(env)->slot[rank];
    if (s->state != MEET_FAILED)
        return s->state == MEET_UP || s->state == MEET_ENDED;
    switch (s->status) {
    case RNL_ERR_REFUSED:
        return rnl_fail(s->status, "the other side does not admit this process, or is of another release: see who may "
                                   "reach the service, and use one release");
    case RNL_ERR_UNREACHABLE:
        if (s->is_remote)
            return rnl_fail(s->status,
                            "no daemon with the key of this one answers at the other host: `runnel key` shows "
                            "keys and ports on both, and how to install one");
        return rnl_fail(s->status, "nothing answers there: no daemon runs for that user and none can be started, or "
                                   "the other endpoint is closed");
    case RNL_ERR_ARG:
        return rnl_fail(s->status, "what came through the socket is no introduction: the other side has to offer one");
    }
    return rnl_fail(s->status, "no memory, or no descriptor, for the introduction of a peer: raise their limits");
}

/* Who is in the slot, as the program is told: to the kernel processes of the virtual cluster are all the simulator. */
static struct rnl_cred cred_of(const struct meet *m, const struct meet_slot *s)
{
    struct rnl_cred cred = s->cred;
    if (m->world)
        cred.pid = s->virtual_pid;
    return cred;
}

int rnl_meet_request(struct rnl_env *env, uint32_t rank, struct rnl_cred *cred, rnl_connection_request **f, void **ctx)
{
    const struct meet_slot *s = &rnl_meet_of(env)->slot[rank];
    if (s->state != MEET_REQUESTING)
        return 0;
    *cred = cred_of(rnl_meet_of(env), s);
    *f = s->service->f;
    *ctx = s->service->ctx;
    return 1;
}

int rnl_meet_cred(struct rnl_env *env, uint32_t rank, struct rnl_cred *out)
{
    const struct meet *m = rnl_meet_of(env);
    const struct meet_slot *s = &m->slot[rank];
    if (rank == 0)
        *out = (struct rnl_cred){
            .uid = m->own_uid, .gid = getegid(), .pid = m->world ? m->world->pid(env, m->address) : m->owner};
    else if (s->state == MEET_REQUESTING || s->state == MEET_UP || s->state == MEET_ENDED)
        *out = cred_of(m, s);
    else
        return rnl_fail(RNL_ERR_RANK, "nobody has been introduced as peer %u", rank);
    return 0;
}

static void send_leave(struct meet *m, uint32_t rank)
{
    const struct meet_slot *s = &m->slot[rank];
    if (m->world && m->world->is_gone)
        return;
    if (s->is_remote)
        rnl_meet_remote_leave(m, rank);
    else if (s->sock >= 0)
        rnl_meet_send_short(s->sock, RNL_MEET_LEAVE);
}

int rnl_meet_leave(struct rnl_env *env, uint32_t rank, uint64_t *incarnation)
{
    struct meet *m = rnl_meet_of(env);
    struct meet_slot *s = &m->slot[rank];
    if (s->state == MEET_FREE || s->state == MEET_LEFT || (!s->is_ours && is_greeting(s)))
        return rnl_fail(RNL_ERR_RANK, "there is no peer %u to leave", rank);
    if (s->state == MEET_UP) {
        send_leave(m, rank);
        rnl_meet_ended(m, rank, RNL_DEATH_LEFT, 0);
    } else if (s->state == MEET_REQUESTING && s->is_remote) {
        rnl_meet_end_request(m, s);
        (void)!rnl_meet_remote_reply(m, rnl_meet_remote_call_of(m, rank), rank, RNL_ERR_REFUSED);
    } else if (s->state == MEET_REQUESTING) {
        rnl_meet_send_denied(s->sock, RNL_DENIED_ADMIT);
        rnl_meet_end_request(m, s);
    } else if (is_greeting(s) && s->by_name) {
        rnl_meet_cancel(m, rank);
    }
    rnl_meet_hang_up(m, s);
    s->state = MEET_LEFT;
    rnl_meet_show(m, rank);
    *incarnation = s->incarnation;
    return 0;
}

void rnl_meet_release(struct rnl_env *env, uint32_t rank)
{
    if (rnl_meet_of(env)->slot[rank].state == MEET_LEFT)
        set_free(rnl_meet_of(env), rank);
}

void rnl_meet_sides(struct rnl_env *env, uint32_t rank, uint32_t *mine, uint32_t *theirs)
{
    const struct meet_slot *s = &rnl_meet_of(env)->slot[rank];
    struct rnl_rank_address place;
    if (rnl_meet_remote_address(env, rank, &place) == 1) {
        *mine = place.as;
        *theirs = rank;
        return;
    }
    *mine = 2 * s->pair + !s->offers;
    *theirs = 2 * s->pair + s->offers;
}

int rnl_meet_disconnect(struct rnl_env *env, uint32_t rank, int why)
{
    struct meet *m = rnl_meet_of(env);
    if (why != RNL_DEATH_BROKEN || m->slot[rank].state != MEET_UP)
        return 0;
    if (m->slot[rank].sock >= 0)
        rnl_meet_send_short(m->slot[rank].sock, RNL_MEET_BROKE);
    rnl_meet_ended(m, rank, RNL_DEATH_BROKEN, 0);
    return 0;
}

void rnl_meet_forget_service(struct meet *m, const struct meet_service *service)
{
    for (uint32_t i = 1; i < m->env.size; i++)
        if (m->slot[i].service == service && (is_greeting(&m->slot[i]) || m->slot[i].state == MEET_REQUESTING))
            set_free(m, i);
}

void rnl_meet_close_slot(struct meet *m, uint32_t rank)
{
    struct meet_slot *s = &m->slot[rank];
    if (s->state == MEET_UP)
        send_leave(m, rank);
    rnl_meet_hang_up(m, s);
}
