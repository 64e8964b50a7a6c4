/* SPDX-License-Identifier: BSD-3-Clause
 *
 * proto.c - the codec of proto.h. No system calls, no state. */
#include "job/proto.h"

#include "base/env.h"
#include "runnel/runnel.h"

#include <string.h>

/* kind 2, zero 2, bytes 4 */
enum { HEAD_BYTES = 8 };

static_assert(sizeof(struct rnl_msg_hello) == 8, "HELLO");
static_assert(offsetof(struct rnl_msg_hello, version) == 4, "HELLO.version");
static_assert(sizeof(struct rnl_msg_segment) == 16, "SEGMENT");
static_assert(offsetof(struct rnl_msg_segment, bytes) == 8, "SEGMENT.bytes");
static_assert(sizeof(struct rnl_msg_fd) == 8, "FD");
static_assert(sizeof(struct rnl_msg_peer) == 8, "HAVE, PART");
static_assert(sizeof(struct rnl_msg_report) == 16, "REPORT");
static_assert(sizeof(struct rnl_msg_welcome) == 128, "WELCOME");
static_assert(offsetof(struct rnl_msg_welcome, incarnation) == 16, "WELCOME.incarnation");
static_assert(offsetof(struct rnl_msg_welcome, key) == 32, "WELCOME.key");
static_assert(offsetof(struct rnl_msg_welcome, host) == 64, "WELCOME.host");
static_assert(sizeof(struct rnl_msg_refused) == 16, "REFUSED");
static_assert(offsetof(struct rnl_msg_refused, version) == 4, "REFUSED.version");
static_assert(sizeof(struct rnl_msg_give) == 16, "GIVE");
static_assert(sizeof(struct rnl_msg_event) == 32, "EVENT");
static_assert(offsetof(struct rnl_msg_event, incarnation) == 8, "EVENT.incarnation");
static_assert(offsetof(struct rnl_msg_event, why) == 24, "EVENT.why");
static_assert(HEAD_BYTES + sizeof(struct rnl_msg_welcome) == RNL_MSG_BYTES_MAX, "the longest message");

/* -1: no such kind. */
static int body_bytes(uint32_t kind)
{
    switch (kind) {
    case RNL_MSG_HELLO:
        return sizeof(struct rnl_msg_hello);
    case RNL_MSG_SEGMENT:
        return sizeof(struct rnl_msg_segment);
    case RNL_MSG_FD:
        return sizeof(struct rnl_msg_fd);
    case RNL_MSG_REPORT:
        return sizeof(struct rnl_msg_report);
    case RNL_MSG_LEAVE:
        return 0;
    case RNL_MSG_HAVE:
    case RNL_MSG_PART:
        return sizeof(struct rnl_msg_peer);
    case RNL_MSG_WELCOME:
        return sizeof(struct rnl_msg_welcome);
    case RNL_MSG_REFUSED:
        return sizeof(struct rnl_msg_refused);
    case RNL_MSG_GIVE:
        return sizeof(struct rnl_msg_give);
    case RNL_MSG_EVENT:
        return sizeof(struct rnl_msg_event);
    }
    return -1;
}

unsigned rnl_msg_fds(const struct rnl_msg *msg)
{
    switch (msg->kind) {
    case RNL_MSG_HELLO:
        return 1;
    case RNL_MSG_WELCOME:
        return msg->u.welcome.flags & RNL_WELCOME_NETWORK ? 4 : 2;
    case RNL_MSG_GIVE:
        return msg->u.give.result == RNL_GIVE_OK;
    }
    return 0;
}

size_t rnl_msg_encode(const struct rnl_msg *msg, unsigned char out[RNL_MSG_BYTES_MAX])
{
    int body = body_bytes(msg->kind);
    if (body < 0)
        return 0;
    uint16_t kind = (uint16_t)msg->kind, zero = 0;
    uint32_t bytes = HEAD_BYTES + (uint32_t)body;
    memcpy(out, &kind, sizeof kind);
    memcpy(out + 2, &zero, sizeof zero);
    memcpy(out + 4, &bytes, sizeof bytes);
    memcpy(out + HEAD_BYTES, &msg->u, (size_t)body);
    if (msg->kind == RNL_MSG_HELLO || msg->kind == RNL_MSG_WELCOME || msg->kind == RNL_MSG_REFUSED) {
        const uint32_t opening[2] = {RNL_PROTO_MAGIC, RNL_PROTO_VERSION};
        memcpy(out + HEAD_BYTES, opening, sizeof opening);
    }
    return bytes;
}

static int good_welcome(const struct rnl_msg_welcome *w)
{
    size_t i = 0;
    while (i < sizeof w->host && w->host[i] != '\0')
        i++;
    if (i == sizeof w->host)
        return 0;
    for (; i < sizeof w->host; i++)
        if (w->host[i] != '\0')
            return 0;
    return w->magic == RNL_PROTO_MAGIC && w->version == RNL_PROTO_VERSION && w->size >= 1 &&
           w->size <= RNL_JOB_RANKS_MAX && w->rank < w->size && w->incarnation != 0 && w->zero == 0 &&
           (w->flags & ~(uint32_t)(RNL_WELCOME_KEEP_GOING | RNL_WELCOME_NETWORK)) == 0;
}

static int good_event(const struct rnl_msg_event *e, uint32_t ranks)
{
    switch (e->kind) {
    case RNL_EVENT_CONNECT:
        return e->rank < ranks && e->incarnation != 0 && e->wave == 0 && e->why == 0 && e->detail == 0;
    case RNL_EVENT_DEATH:
        return e->rank < ranks && e->incarnation != 0 && e->wave == 0 && e->why > RNL_DEATH_NONE &&
               e->why <= RNL_DEATH_HOST;
    case RNL_EVENT_CLOSE_ASK:
    case RNL_EVENT_CLOSE_DONE:
        return e->rank == 0 && e->incarnation == 0 && e->why == 0 && e->detail == 0;
    }
    return 0; /* JOB_GONE is concluded, not sent */
}

static int good_body(const struct rnl_msg *m, uint32_t ranks)
{
    switch (m->kind) {
    case RNL_MSG_HELLO:
        return m->u.hello.magic == RNL_PROTO_MAGIC && m->u.hello.version == RNL_PROTO_VERSION;
    case RNL_MSG_SEGMENT:
        return m->u.segment.rank < ranks && m->u.segment.bytes != 0;
    case RNL_MSG_FD:
        return m->u.fd.rank < ranks;
    case RNL_MSG_HAVE:
        return m->u.peer.rank < ranks && m->u.peer.why == 0;
    case RNL_MSG_PART:
        return m->u.peer.rank < ranks && (m->u.peer.why == RNL_DEATH_BROKEN || m->u.peer.why == RNL_DEATH_SILENT);
    case RNL_MSG_REPORT:
    case RNL_MSG_LEAVE:
        return 1;
    case RNL_MSG_WELCOME:
        return good_welcome(&m->u.welcome);
    case RNL_MSG_REFUSED:
        return m->u.refused.magic == RNL_PROTO_MAGIC && m->u.refused.version == RNL_PROTO_VERSION &&
               m->u.refused.why >= RNL_REFUSED_VERSION && m->u.refused.why <= RNL_REFUSED_NO_ROOM &&
               m->u.refused.zero == 0;
    case RNL_MSG_GIVE:
        return m->u.give.result <= RNL_GIVE_NO_ROOM && m->u.give.sys_errno >= 0 && m->u.give.zero == 0 &&
               (m->u.give.result == RNL_GIVE_NO_ROOM || m->u.give.sys_errno == 0);
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
    if (n < HEAD_BYTES)
        return RNL_MSG_BAD;
    memcpy(&kind, in, sizeof kind);
    memcpy(&zero, in + 2, sizeof zero);
    memcpy(&length, in + 4, sizeof length);
    if (zero != 0 || length != n || (kind < RNL_MSG_WELCOME) != (from == RNL_FROM_RANK))
        return RNL_MSG_BAD;
    memset(&m, 0, sizeof m);
    m.kind = kind;
    if ((kind == RNL_MSG_HELLO || kind == RNL_MSG_REFUSED) && n >= HEAD_BYTES + sizeof m.u.hello) {
        memcpy(&m.u.hello, in + HEAD_BYTES, sizeof m.u.hello); /* REFUSED begins alike */
        if (m.u.hello.magic == RNL_PROTO_MAGIC && m.u.hello.version != RNL_PROTO_VERSION) {
            *out = m;
            return RNL_MSG_OTHER_VERSION;
        }
    }
    int body = body_bytes(kind);
    if (body < 0 || n != HEAD_BYTES + (size_t)body)
        return RNL_MSG_BAD;
    memcpy(&m.u, in + HEAD_BYTES, (size_t)body);
    if (!good_body(&m, ranks))
        return RNL_MSG_BAD;
    *out = m;
    return RNL_MSG_GOOD;
}
