/* SPDX-License-Identifier: BSD-3-Clause
 *
 * line_msg.c - the codec of line_msg.h. */
#include "meet/line_msg.h"

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

size_t rnl_line_msg_encode(const struct rnl_line_msg *m, unsigned char out[RNL_LINE_BYTES])
{
    const uint32_t groups = m->groups < RNL_LINE_GROUPS ? m->groups : RNL_LINE_GROUPS;
    memset(out, 0, RNL_LINE_BYTES);
    rnl_put32(out, m->kind);
    if (m->kind == RNL_LINE_GONE) {
        rnl_put32(out + 4, m->why);
        return RNL_LINE_GONE_BYTES;
    }
    rnl_put32(out + 8, m->uid);
    if (m->kind == RNL_LINE_ANSWER) {
        rnl_put32(out + 4, (uint32_t)m->status);
        rnl_put32(out + 12, m->group[0]);
        put_place(out + 16, &m->place);
        return RNL_LINE_ANSWER_BYTES;
    }
    rnl_put32(out + 4, m->ask.flags);
    rnl_put32(out + 12, m->ask.uid);
    put_place(out + 16, &m->ask.place);
    memcpy(out + 16 + RNL_LINE_PLACE, m->ask.token, sizeof m->ask.token);
    rnl_put32(out + 32 + RNL_LINE_PLACE, groups);
    memcpy(out + 36 + RNL_LINE_PLACE, m->ask.name, sizeof m->ask.name);
    for (uint32_t i = 0; i < groups; i++)
        rnl_put32(out + 100 + RNL_LINE_PLACE + 4 * i, m->group[i]);
    return RNL_LINE_REQUEST_BYTES;
}

static bool get_request(const unsigned char *at, struct rnl_line_msg *m)
{
    struct rnl_meet_msg msg = {.kind = RNL_MEET_CALL, .u.call = {.ticket = 1}};
    unsigned char bytes[RNL_MEET_BYTES_MAX];
    msg.u.call.ip[10] = msg.u.call.ip[11] = 0xff; /* an address that is none of REQUEST's */
    msg.u.call.ip[12] = 127;
    msg.u.call.ip[15] = 1;
    msg.u.call.flags = rnl_get32(at + 4);
    m->uid = rnl_get32(at + 8);
    msg.u.call.uid = rnl_get32(at + 12);
    get_place(at + 16, &msg.u.call.place);
    memcpy(msg.u.call.token, at + 16 + RNL_LINE_PLACE, sizeof msg.u.call.token);
    m->groups = rnl_get32(at + 32 + RNL_LINE_PLACE);
    memcpy(msg.u.call.name, at + 36 + RNL_LINE_PLACE, sizeof msg.u.call.name);
    if (m->groups < 1 || m->groups > RNL_LINE_GROUPS || m->uid == UINT32_MAX)
        return false;
    for (uint32_t i = 0; i < m->groups; i++)
        m->group[i] = rnl_get32(at + 100 + RNL_LINE_PLACE + 4 * i);
    /* The codec of the message that a process sends to its daemon knows what a call may hold. */
    const size_t n = rnl_meet_encode(&msg, bytes);
    if (rnl_meet_decode(RNL_MEET_FROM_RANK, bytes, n, &msg) != RNL_MEET_GOOD)
        return false;
    m->ask = msg.u.call;
    m->ask.ticket = 0;
    memset(m->ask.ip, 0, sizeof m->ask.ip);
    return true;
}

bool rnl_line_msg_decode(const unsigned char *at, size_t n, struct rnl_line_msg *out)
{
    const uint32_t kind = n >= 4 ? rnl_get32(at) : 0;
    *out = (struct rnl_line_msg){.kind = (enum rnl_line_kind)kind};
    switch (kind) {
    case RNL_LINE_REQUEST:
        return n == RNL_LINE_REQUEST_BYTES && get_request(at, out);
    case RNL_LINE_ANSWER:
        if (n != RNL_LINE_ANSWER_BYTES)
            return false;
        out->status = (int32_t)rnl_get32(at + 4);
        out->uid = rnl_get32(at + 8);
        out->groups = 1;
        out->group[0] = rnl_get32(at + 12);
        get_place(at + 16, &out->place);
        return out->status < 0 || (out->status == 0 && is_place(&out->place));
    case RNL_LINE_GONE:
        out->why = n == RNL_LINE_GONE_BYTES ? rnl_get32(at + 4) : 0;
        return n == RNL_LINE_GONE_BYTES;
    default:
        return false;
    }
}
