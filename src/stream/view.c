/* SPDX-License-Identifier: BSD-3-Clause
 *
 * view.c - what a program may ask without taking anything in or sending anything (runnel/adapter.h): how long an
 * incoming message is, how much can be sent, whether something has come, which job this is and where its peers are. */
#include "runnel/adapter.h"
#include "runnel/meet.h"

#include "endpoint/net.h"
#include "net/wire/key.h"
#include "stream/stream_internal.h"

size_t rnl_length(const rnl_stream *s, int *exact)
{
    bool known;
    size_t n = rnl_stream_length(s, &known);
    if (exact)
        *exact = known;
    return n;
}

/* ---- room ---- */

static uint32_t ahead(const struct rnl_conn *conn)
{
    const struct rnl_stream *s = rnl_stream_out(conn);
    if (conn->post_first || conn->post_sending || s->state == RNL_STREAM_ABORTING)
        return RNL_ROOM_QUEUED;
    return s->state != RNL_STREAM_FREE || s->ep->fast.open_short == s ? RNL_ROOM_OPEN : 0;
}

static int room_of(struct rnl_endpoint *ep, struct rnl_conn *conn, struct rnl_room_info *out)
{
    struct rnl_tx_room room;
    if (conn->shut & RNL_SHUT_DEAD)
        return rnl_ep_gone(ep, conn->rank);
    int status = conn->remote ? rnl_ep_net_activate(ep, conn) : 0;
    if (status < 0)
        return status;
    if (rnl_tx_look(&conn->channel.tx[0], &room) < 0)
        return rnl_ep_broken(ep, conn, "a reading position past what was written");
    out->lacks = ahead(conn);
    if (!room.cells)
        out->lacks |= room.units ? RNL_ROOM_RING : RNL_ROOM_GRANT;
    out->messages = (uint32_t)room.cells;
    out->bulk = room.bulk;
    out->bound = out->lacks ? 0 : room.bulk > RNL_CELL_PAYLOAD ? room.bulk : RNL_CELL_PAYLOAD;
    out->grant = room.units * 64;
    out->window = room.whole * 64;
    out->kept = conn->channel.rx[0].withheld * 64;
    if (out->size > offsetof(struct rnl_room_info, bulk_lane)) {
        uint64_t bulk_lane = 0;
        out->bulk_lane_lacks = rnl_stream_bulk_lacks(conn, &room, &bulk_lane);
        out->bulk_lane = bulk_lane;
    }
    return 0;
}

static int look_for_room(struct rnl_endpoint *ep, unsigned peer, struct rnl_room_info *out)
{
    struct rnl_room_info info = {
        .size = out->size, .lacks = RNL_ROOM_CONNECTION, .bulk_lane_lacks = RNL_ROOM_CONNECTION};
    if (out->size < sizeof info.size || out->size > 4096)
        return rnl_fail(RNL_ERR_ARG, "rnl_room_info.size is %u; set it to sizeof(struct rnl_room_info)", out->size);
    if (peer >= ep->size)
        return rnl_fail(RNL_ERR_RANK, "there is no rank %u: the job has ranks 0 to %u", peer, ep->size - 1);
    rnl_ep_take_events(ep);
    const struct rnl_peer *p = &ep->peer[peer];
    int status = rnl_peer_is_dead(p) ? rnl_ep_gone(ep, peer) : p->conn ? room_of(ep, p->conn, &info) : 0;
    if (status == 0)
        memcpy(out, &info, out->size < sizeof info ? out->size : sizeof info);
    return status;
}

int rnl_room(rnl_endpoint *ep, unsigned peer, struct rnl_room_info *out)
{
    int status = rnl_ep_enter(ep);
    if (status < 0)
        return status;
    status = look_for_room(ep, peer, out);
    rnl_ep_leave(ep);
    return status;
}

/* ---- looking and arming ---- */

/* Receives from other hosts, and sends what an extract that finds nothing would send. */
static bool look(struct rnl_endpoint *ep)
{
    bool network = ep->remote && !ep->fast.in_handler && rnl_ep_net_time(ep);
    if (network)
        rnl_ep_net_receive(ep);
    if (rnl_ep_look_polled(ep) || ep->credit.starved)
        return true;
    if (network)
        rnl_ep_net_send_after(ep);
    if (!ep->fast.in_handler)
        rnl_ep_looked(ep);
    return false;
}

int rnl_look(rnl_endpoint *ep)
{
    int status = rnl_ep_enter(ep);
    if (status < 0)
        return status;
    status = look(ep);
    rnl_ep_leave(ep);
    return status;
}

int rnl_arm(rnl_endpoint *ep, int *fd)
{
    int status = rnl_ep_enter(ep);
    if (status < 0)
        return status;
    status = ep->fast.in_handler ? rnl_fail(RNL_ERR_CONTEXT, "arming does not belong inside a handler: return from it "
                                                             "first")
                                 : rnl_ep_arm_fd(ep, fd);
    rnl_ep_leave(ep);
    return status;
}

/* ---- jobs and places ---- */

int rnl_job_id(rnl_endpoint *ep, unsigned char id[16])
{
    int status = rnl_ep_enter(ep);
    if (status < 0)
        return status;
    if (ep->env->meet)
        memset(id, 0, 16);
    else
        rnl_keyed_hash(id, ep->env->job_key, "runnel job", NULL, 0); /* it tells nobody the key */
    rnl_ep_leave(ep);
    return 0;
}

/* An endpoint alone knows those that were introduced. */
static int check_peer(struct rnl_endpoint *ep, unsigned peer)
{
    struct rnl_cred cred;
    if (peer >= ep->size)
        return rnl_fail(RNL_ERR_RANK, "there is no rank %u: the job has ranks 0 to %u", peer, ep->size - 1);
    return ep->env->meet && peer != ep->rank ? ep->env->meet->cred(ep->env, peer, &cred) : 0;
}

static int place_of(struct rnl_endpoint *ep, unsigned peer, struct rnl_place *out)
{
    struct rnl_place place = {.size = out->size, .where = RNL_ON_OTHER_HOST};
    struct rnl_env *env = ep->env;
    if (out->size < sizeof place || out->size > 4096)
        return rnl_fail(RNL_ERR_ARG, "rnl_place.size is %u; set it to sizeof(struct rnl_place)", out->size);
    int status = check_peer(ep, peer);
    if (status < 0)
        return status;
    if (!rnl_ep_is_remote(ep, peer)) {
        place.pid = env->ops->pid_of ? env->ops->pid_of(env, peer) : 0;
        bool same = peer == ep->rank || (place.pid && place.pid == env->ops->pid_of(env, ep->rank));
        place.where = same ? RNL_IN_PROCESS : RNL_ON_HOST;
    }
    memcpy(out, &place, sizeof place);
    return 0;
}

int rnl_peer_place(rnl_endpoint *ep, unsigned peer, struct rnl_place *out)
{
    int status = rnl_ep_enter(ep);
    if (status < 0)
        return status;
    status = place_of(ep, peer, out);
    rnl_ep_leave(ep);
    return status;
}
