/* SPDX-License-Identifier: BSD-3-Clause
 *
 * daemon_msg.c - the codec of daemon_msg.h. */
#include "meet/daemon_msg.h"

#include "net/wire/bytes.h"

#include <string.h>

static void put_place(unsigned char *at, const struct rnl_meet_place *p)
{
    rnl_put32(at, p->port);
    rnl_put32(at + 4, p->rank);
    memcpy(at + 8, p->own, sizeof p->own);
}

static void get_place(const unsigned char *at, struct rnl_meet_place *p)
{
    p->port = rnl_get32(at);
    p->rank = rnl_get32(at + 4);
    memcpy(p->own, at + 8, sizeof p->own);
}

static bool is_place(const struct rnl_meet_place *p)
{
    return p->port > 0 && p->port <= UINT16_MAX && p->rank > 0 && p->rank <= RNL_MEET_RANK_MOST;
}

size_t rnl_daemon_msg_encode(const struct rnl_daemon_msg *m, unsigned char out[RNL_SECURE_STREAM_BYTES])
{
    const uint32_t groups = m->groups < RNL_DAEMON_MSG_GROUPS ? m->groups : RNL_DAEMON_MSG_GROUPS;
    memset(out, 0, RNL_SECURE_STREAM_BYTES);
    rnl_put32(out, m->kind);
    if (m->kind == RNL_DAEMON_MSG_GONE) {
        rnl_put32(out + 4, m->why);
        return RNL_DAEMON_MSG_GONE_BYTES;
    }
    rnl_put32(out + 8, m->uid);
    if (m->kind == RNL_DAEMON_MSG_REPLY) {
        rnl_put32(out + 4, (uint32_t)m->status);
        rnl_put32(out + 12, m->group[0]);
        put_place(out + 16, &m->place);
        return RNL_DAEMON_MSG_REPLY_BYTES;
    }
    rnl_put32(out + 4, m->request.flags);
    rnl_put32(out + 12, m->request.uid);
    put_place(out + 16, &m->request.place);
    memcpy(out + 16 + RNL_DAEMON_MSG_PLACE, m->request.token, sizeof m->request.token);
    rnl_put32(out + 32 + RNL_DAEMON_MSG_PLACE, groups);
    memcpy(out + 36 + RNL_DAEMON_MSG_PLACE, m->request.name, sizeof m->request.name);
    for (uint32_t i = 0; i < groups; i++)
        rnl_put32(out + 100 + RNL_DAEMON_MSG_PLACE + 4 * i, m->group[i]);
    return RNL_DAEMON_MSG_REQUEST_BYTES;
}

static bool get_request(const unsigned char *at, struct rnl_daemon_msg *m)
{
    struct rnl_meet_msg msg = {.kind = RNL_MEET_CALL, .u.call = {.request_id = 1}};
    unsigned char bytes[RNL_MEET_BYTES_MAX];
    msg.u.call.ip[10] = msg.u.call.ip[11] = 0xff; /* an address that is none of REQUEST's */
    msg.u.call.ip[12] = 127;
    msg.u.call.ip[15] = 1;
    msg.u.call.flags = rnl_get32(at + 4);
    m->uid = rnl_get32(at + 8);
    msg.u.call.uid = rnl_get32(at + 12);
    get_place(at + 16, &msg.u.call.place);
    memcpy(msg.u.call.token, at + 16 + RNL_DAEMON_MSG_PLACE, sizeof msg.u.call.token);
    m->groups = rnl_get32(at + 32 + RNL_DAEMON_MSG_PLACE);
    memcpy(msg.u.call.name, at + 36 + RNL_DAEMON_MSG_PLACE, sizeof msg.u.call.name);
    if (m->groups < 1 || m->groups > RNL_DAEMON_MSG_GROUPS || m->uid == UINT32_MAX)
        return false;
    for (uint32_t i = 0; i < m->groups; i++)
        m->group[i] = rnl_get32(at + 100 + RNL_DAEMON_MSG_PLACE + 4 * i);
    /* The codec of the message that a process sends to its daemon knows what a call may hold. */
    const size_t n = rnl_meet_encode(&msg, bytes);
    if (rnl_meet_decode(RNL_MEET_FROM_RANK, bytes, n, &msg) != RNL_MEET_GOOD)
        return false;
    m->request = msg.u.call;
    m->request.request_id = 0;
    memset(m->request.ip, 0, sizeof m->request.ip);
    return true;
}

bool rnl_daemon_msg_decode(const unsigned char *at, size_t n, struct rnl_daemon_msg *out)
{
    const uint32_t kind = n >= 4 ? rnl_get32(at) : 0;
    *out = (struct rnl_daemon_msg){.kind = (enum rnl_daemon_msg_kind)kind};
    switch (kind) {
    case RNL_DAEMON_MSG_REQUEST:
        return n == RNL_DAEMON_MSG_REQUEST_BYTES && get_request(at, out);
    case RNL_DAEMON_MSG_REPLY:
        if (n != RNL_DAEMON_MSG_REPLY_BYTES)
            return false;
        out->status = (int32_t)rnl_get32(at + 4);
        out->uid = rnl_get32(at + 8);
        out->groups = 1;
        out->group[0] = rnl_get32(at + 12);
        get_place(at + 16, &out->place);
        return out->status < 0 || (out->status == 0 && is_place(&out->place));
    case RNL_DAEMON_MSG_GONE:
        out->why = n == RNL_DAEMON_MSG_GONE_BYTES ? rnl_get32(at + 4) : 0;
        return n == RNL_DAEMON_MSG_GONE_BYTES;
    default:
        return false;
    }
}
