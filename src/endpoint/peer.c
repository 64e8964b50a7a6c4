/* SPDX-License-Identifier: BSD-3-Clause
 *
 * peer.c - the state machine of a peer, as peer.h draws it, and the sentences that say why a peer is gone. */
#include "endpoint/endpoint.h"
#include "remote/remote.h"

#include <stdio.h>
#include <string.h>

#define TO(state) (1u << RNL_PEER_IS_##state)
static const uint8_t next_states[] = {
    [RNL_PEER_IS_NEW] = TO(JOINING) | TO(UP) | TO(DEAD),
    [RNL_PEER_IS_JOINING] = TO(NEW) | TO(UP) | TO(ENDING),
    [RNL_PEER_IS_ENDING] = TO(UP) | TO(DEAD),
    [RNL_PEER_IS_UP] = TO(DYING) | TO(DEAD),
    [RNL_PEER_IS_DYING] = TO(DEAD),
    [RNL_PEER_IS_DEAD] = TO(NEW),
};
#undef TO

bool rnl_peer_move(struct rnl_endpoint *ep, uint32_t rank, enum rnl_peer_is to)
{
    struct rnl_peer *p = &ep->peer[rank];
    if (!(next_states[p->state] >> to & 1))
        return false;
    ep->work.joining -= rnl_peer_wants_join(p);
    ep->work.dying -= p->state == RNL_PEER_IS_DYING;
    p->state = (uint8_t)to;
    ep->work.joining += rnl_peer_wants_join(p);
    ep->work.dying += to == RNL_PEER_IS_DYING;
    if (p->conn)
        p->conn->dying = to == RNL_PEER_IS_DYING;
    rnl_ep_set_pending(ep);
    return true;
}

enum rnl_peer_state rnl_peer_public_state(const struct rnl_peer *p)
{
    if (rnl_peer_is_dead(p))
        return p->process >= RNL_PROCESS_NEXT ? RNL_PEER_RETURNED : RNL_PEER_DEAD;
    return p->state == RNL_PEER_IS_UP ? RNL_PEER_UP : RNL_PEER_NEW;
}

static const char *reason_text(const struct rnl_peer *p, char *buf, size_t n)
{
    const char *name, *why = p->conn ? rnl_remote_why(p->conn->remote) : NULL;
    switch (p->reason) {
    case RNL_DEATH_SIGNAL:
        name = strsignal(p->detail);
        snprintf(buf, n, "it was killed by signal %d (%s)", p->detail, name ? name : "unknown");
        return buf;
    case RNL_DEATH_EXIT:
        if (p->detail < 0) /* below a wrapper its status is not known */
            return "it ended, or closed its connection to the launcher, without closing its endpoint";
        snprintf(buf, n, "it exited with status %d without closing its endpoint", p->detail);
        return buf;
    case RNL_DEATH_BROKEN:
        return "it broke the protocol";
    case RNL_DEATH_NEVER_JOINED:
        return "it ended without joining the job, or could not be introduced";
    case RNL_DEATH_LEFT:
        return "it left, replaced its program (exec), or closed its connection to the launcher";
    case RNL_DEATH_DISCONNECTED:
        if (why)
            return why;
        return "it ended the connection: it found that this process broke the protocol, or had no memory for it";
    case RNL_DEATH_SILENT:
        if (why)
            return why;
        return "nothing was heard of it for too long, or it does not know the connection any more";
    case RNL_DEATH_HOST:
        return "its host is lost: the agent there has ended, or nothing is heard of it; its processes cannot come back";
    case RNL_DEATH_NO_MEMORY:
        return "this process lacked memory or a descriptor to take in what it sent, for too long";
    default:
        return "it has left the job";
    }
}

int rnl_ep_gone(struct rnl_endpoint *ep, uint32_t rank)
{
    char buf[96];
    const struct rnl_peer *p = &ep->peer[rank];
    int status = p->reason == RNL_DEATH_BROKEN ? RNL_ERR_PEER_BROKEN : RNL_ERR_PEER_DEAD;
    return rnl_fail(status, "rank %u is gone: %s; do not send to it", rank, reason_text(p, buf, sizeof buf));
}

bool rnl_ep_unread(struct rnl_endpoint *ep, uint32_t rank)
{
    struct rnl_conn *conn = ep->peer[rank].conn;
    if (!conn)
        return false;
    struct rnl_tx *t = &conn->channel.tx[0];
    if (t->acked < t->pos)
        (void)!rnl_tx_refresh(t, NULL, NULL);
    return t->acked < t->pos;
}

int rnl_ep_lost(struct rnl_endpoint *ep, uint32_t rank)
{
    char buf[96];
    const struct rnl_peer *p = &ep->peer[rank];
    int status = p->reason == RNL_DEATH_BROKEN ? RNL_ERR_PEER_BROKEN : RNL_ERR_PEER_DEAD;
    return rnl_fail(status, "rank %u has not said that it took in all that was sent to it, and is gone: %s", rank,
                    reason_text(p, buf, sizeof buf));
}
