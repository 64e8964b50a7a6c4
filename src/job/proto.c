/* SPDX-License-Identifier: BSD-3-Clause
 *
 * proto.c - the codec of proto.h, without state. */
#include "job/proto.h"

#include "job/fds.h"
#include "runnel/runnel.h"

#include <string.h>

enum { HEADER_BYTES = 8 /* kind 2, zero 2, bytes 4 */ };

static_assert(3 + RNL_JOB_CARD_FDS * RNL_JOB_CARDS_MAX <= RNL_SEQPACKET_FDS_MAX, "the descriptors of WELCOME");
static_assert(offsetof(struct rnl_msg_segment, bytes) == 8, "SEGMENT.bytes");
static_assert(offsetof(struct rnl_msg_welcome, incarnation) == 16, "WELCOME.incarnation");
static_assert(offsetof(struct rnl_msg_welcome, key) == 32, "WELCOME.key");
static_assert(offsetof(struct rnl_msg_welcome, host) == 64, "WELCOME.host");
static_assert(offsetof(struct rnl_msg_rejected, version) == 4, "REJECTED.version");
static_assert(offsetof(struct rnl_event, incarnation) == 8 && offsetof(struct rnl_event, why) == 24, "EVENT");

/* 1 + the bytes of each body; 0 = there is no such kind. */
static const uint8_t body_and_1[RNL_MSG_KINDS] = {
    [RNL_MSG_HELLO] = 1 + 8,     [RNL_MSG_SEGMENT] = 1 + 16, [RNL_MSG_HAVE] = 1 + 8,    [RNL_MSG_DISCONNECT] = 1 + 8,
    [RNL_MSG_REPORT] = 1 + 16,   [RNL_MSG_LEAVE] = 1 + 0,    [RNL_MSG_OVERRAN] = 1 + 8, [RNL_MSG_WELCOME] = 1 + 128,
    [RNL_MSG_REJECTED] = 1 + 16, [RNL_MSG_REPLY] = 1 + 16,   [RNL_MSG_EVENT] = 1 + 32};
static_assert(sizeof(struct rnl_msg_hello) == 8 && sizeof(struct rnl_msg_segment) == 16 &&
                  sizeof(struct rnl_msg_peer) == 8 && sizeof(struct rnl_msg_overran) == 8 &&
                  sizeof(struct rnl_msg_report) == 16 && sizeof(struct rnl_msg_welcome) == 128 &&
                  sizeof(struct rnl_msg_rejected) == 16 && sizeof(struct rnl_msg_reply) == 16 &&
                  sizeof(struct rnl_event) == 32 && HEADER_BYTES + sizeof(struct rnl_msg_welcome) == RNL_MSG_BYTES_MAX,
              "bodies as above");

unsigned rnl_msg_fds(const struct rnl_msg *msg)
{
    switch (msg->kind) {
    case RNL_MSG_HELLO:
        return 1;
    case RNL_MSG_WELCOME:
        return 2u + !!(msg->u.welcome.flags & RNL_WELCOME_NETWORK) + 2u * !!(msg->u.welcome.flags & RNL_WELCOME_RINGS) +
               RNL_JOB_CARD_FDS * msg->u.welcome.cards;
    case RNL_MSG_REPLY:
        return msg->u.reply.result == RNL_SEGMENT_FOUND;
    }
    return 0;
}

size_t rnl_msg_encode(const struct rnl_msg *msg, unsigned char out[RNL_MSG_BYTES_MAX])
{
    if (msg->kind >= RNL_MSG_KINDS || body_and_1[msg->kind] == 0)
        return 0;
    const size_t body = body_and_1[msg->kind] - 1u;
    uint16_t kind = (uint16_t)msg->kind, zero = 0;
    uint32_t bytes = HEADER_BYTES + (uint32_t)body;
    memcpy(out, &kind, sizeof kind);
    memcpy(out + 2, &zero, sizeof zero);
    memcpy(out + 4, &bytes, sizeof bytes);
    memcpy(out + HEADER_BYTES, &msg->u, body);
    if (msg->kind == RNL_MSG_HELLO || msg->kind == RNL_MSG_WELCOME || msg->kind == RNL_MSG_REJECTED) {
        const uint32_t opening[2] = {RNL_PROTO_MAGIC, RNL_PROTO_VERSION};
        memcpy(out + HEADER_BYTES, opening, sizeof opening);
    }
    return bytes;
}

static bool good_welcome(const struct rnl_msg_welcome *w)
{
    size_t i = 0;
    while (i < sizeof w->host && w->host[i] != '\0')
        i++;
    if (i == sizeof w->host)
        return false;
    for (; i < sizeof w->host; i++)
        if (w->host[i] != '\0')
            return false;
    return w->magic == RNL_PROTO_MAGIC && w->version == RNL_PROTO_VERSION && w->size >= 1 &&
           w->size <= RNL_JOB_RANKS_MAX && w->rank < w->size && w->incarnation != 0 && w->cards <= RNL_JOB_CARDS_MAX &&
           (w->flags & ~(uint32_t)(RNL_WELCOME_KEEP_GOING | RNL_WELCOME_NETWORK | RNL_WELCOME_RINGS)) == 0 &&
           (!(w->flags & RNL_WELCOME_RINGS) || w->flags & RNL_WELCOME_NETWORK) &&
           (!w->cards || (w->flags & (RNL_WELCOME_NETWORK | RNL_WELCOME_RINGS)) == RNL_WELCOME_NETWORK);
}

static bool good_event(const struct rnl_event *e, uint32_t ranks)
{
    switch (e->kind) {
    case RNL_EVENT_CONNECT:
        return e->rank < ranks && e->incarnation != 0 && e->wave == 0 && e->why == 0 && e->detail == 0;
    case RNL_EVENT_DEATH:
        return e->rank < ranks && e->incarnation != 0 && e->wave == 0 && e->why > RNL_DEATH_NONE &&
               e->why <= RNL_DEATH_HOST;
    case RNL_EVENT_CLOSE_REQUEST:
    case RNL_EVENT_CLOSE_DONE:
        return e->rank == 0 && e->incarnation == 0 && e->why == 0 && e->detail == 0;
    }
    return false; /* JOB_GONE is never sent: a rank concludes it when the connection ends */
}

static int good_body(const struct rnl_msg *m, uint32_t ranks)
{
    switch (m->kind) {
    case RNL_MSG_HELLO:
        return m->u.hello.magic == RNL_PROTO_MAGIC && m->u.hello.version == RNL_PROTO_VERSION;
    case RNL_MSG_SEGMENT:
        return m->u.segment.rank < ranks && m->u.segment.zero == 0 && m->u.segment.bytes != 0;
    case RNL_MSG_HAVE:
    case RNL_MSG_DISCONNECT:
        return m->u.peer.rank < ranks && m->u.peer.zero == 0;
    case RNL_MSG_REPORT:
    case RNL_MSG_LEAVE:
        return 1;
    case RNL_MSG_OVERRAN:
        return m->u.overran.handler <= UINT16_MAX && m->u.overran.stack_bytes > 0;
    case RNL_MSG_WELCOME:
        return good_welcome(&m->u.welcome);
    case RNL_MSG_REJECTED:
        return m->u.rejected.magic == RNL_PROTO_MAGIC && m->u.rejected.version == RNL_PROTO_VERSION &&
               m->u.rejected.why >= RNL_REJECTED_VERSION && m->u.rejected.why <= RNL_REJECTED_NO_ROOM &&
               m->u.rejected.zero == 0;
    case RNL_MSG_REPLY:
        return m->u.reply.rank < ranks && m->u.reply.result <= RNL_SEGMENT_BYTES && m->u.reply.sys_errno >= 0 &&
               m->u.reply.zero == 0 && (m->u.reply.result == RNL_SEGMENT_NONE || m->u.reply.sys_errno == 0);
    case RNL_MSG_EVENT:
        return good_event(&m->u.event, ranks);
    }
    return 0;
}

enum rnl_msg_verdict rnl_msg_decode(enum rnl_msg_from from, const void *bytes, size_t n, uint32_t ranks,
                                    struct rnl_msg *out)
{
    const unsigned char *in = bytes;
    uint16_t kind, zero;
    uint32_t length;
    struct rnl_msg m;
    if (n < HEADER_BYTES)
        return RNL_MSG_BAD;
    memcpy(&kind, in, sizeof kind);
    memcpy(&zero, in + 2, sizeof zero);
    memcpy(&length, in + 4, sizeof length);
    if (zero != 0 || length != n || (kind < RNL_MSG_WELCOME) != (from == RNL_FROM_RANK))
        return RNL_MSG_BAD;
    memset(&m, 0, sizeof m);
    m.kind = kind;
    if ((kind == RNL_MSG_HELLO || kind == RNL_MSG_REJECTED) && n >= HEADER_BYTES + sizeof m.u.hello) {
        memcpy(&m.u.hello, in + HEADER_BYTES, sizeof m.u.hello); /* REJECTED has magic and version at the same places */
        if (m.u.hello.magic == RNL_PROTO_MAGIC && m.u.hello.version != RNL_PROTO_VERSION) {
            *out = m;
            return RNL_MSG_OTHER_VERSION;
        }
    }
    if (kind >= RNL_MSG_KINDS || n + 1 != HEADER_BYTES + (size_t)body_and_1[kind])
        return RNL_MSG_BAD;
    memcpy(&m.u, in + HEADER_BYTES, n - HEADER_BYTES);
    const bool good = good_body(&m, ranks);
    if (good)
        *out = m;
    explicit_bzero(&m, sizeof m); /* WELCOME has the key of the job, whether the rest of it is good or not */
    return good ? RNL_MSG_GOOD : RNL_MSG_BAD;
}

int rnl_msg_send(int sock, const struct rnl_msg *msg, const int *fds, int wait)
{
    unsigned char bytes[RNL_MSG_BYTES_MAX];
    int status = rnl_seqpacket_send(sock, bytes, rnl_msg_encode(msg, bytes), fds, rnl_msg_fds(msg), wait);
    explicit_bzero(bytes, sizeof bytes); /* WELCOME has the key of the job */
    return status;
}
