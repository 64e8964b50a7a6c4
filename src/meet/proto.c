/* SPDX-License-Identifier: BSD-3-Clause
 *
 * proto.c - the codec of proto.h, and who is admitted: without system calls or state. */
#include "meet/proto.h"

#include "runnel/meet.h"

#include <string.h>

enum { HEAD_BYTES = 8 /* kind 2, zero 2, bytes 4 */ };

static_assert(sizeof(struct rnl_meet_hello) == 56, "HELLO");
static_assert(offsetof(struct rnl_meet_hello, token) == 24, "HELLO.token");
static_assert(sizeof(struct rnl_meet_denied) == 16, "DENIED");
static_assert(sizeof(struct rnl_meet_greet) == 8, "GREET");
static_assert(sizeof(struct rnl_meet_serve) == 336, "SERVE");
static_assert(offsetof(struct rnl_meet_serve, uid) == 80, "SERVE.uid");
static_assert(sizeof(struct rnl_meet_request_id) == 8, "UNSERVE, CANCEL, LIST");
static_assert(sizeof(struct rnl_meet_give) == 8, "GIVE");
static_assert(sizeof(struct rnl_meet_reach) == 72, "REACH");
static_assert(sizeof(struct rnl_meet_result) == 8, "RESULT");
static_assert(sizeof(struct rnl_meet_request) == 16, "REQUEST");
static_assert(sizeof(struct rnl_meet_listed) == 80, "LISTED");
static_assert(sizeof(struct rnl_meet_call) == 136, "CALL");
static_assert(sizeof(struct rnl_meet_reply) == 32, "REPLY");
static_assert(sizeof(struct rnl_meet_called) == 104, "CALLED");
static_assert(sizeof(struct rnl_meet_met) == 88, "MET");
static_assert(sizeof(struct rnl_meet_gone) == 8, "GONE");
static_assert(HEAD_BYTES + sizeof(struct rnl_meet_serve) == RNL_MEET_BYTES_MAX, "the longest message");

/* Returns the bytes of the body of that kind, -1 = there is no such kind. */
static int body_bytes(uint32_t kind)
{
    switch (kind) {
    case RNL_MEET_HELLO:
        return sizeof(struct rnl_meet_hello);
    case RNL_MEET_DENIED:
        return sizeof(struct rnl_meet_denied);
    case RNL_MEET_BROKE:
    case RNL_MEET_LEAVE:
        return 0;
    case RNL_MEET_GIVE:
        return sizeof(struct rnl_meet_give);
    case RNL_MEET_GREET:
        return sizeof(struct rnl_meet_greet);
    case RNL_MEET_SERVE:
        return sizeof(struct rnl_meet_serve);
    case RNL_MEET_UNSERVE:
    case RNL_MEET_CANCEL:
    case RNL_MEET_LIST:
    case RNL_MEET_PART:
        return sizeof(struct rnl_meet_request_id);
    case RNL_MEET_REACH:
        return sizeof(struct rnl_meet_reach);
    case RNL_MEET_RESULT:
        return sizeof(struct rnl_meet_result);
    case RNL_MEET_REQUEST:
        return sizeof(struct rnl_meet_request);
    case RNL_MEET_LISTED:
        return sizeof(struct rnl_meet_listed);
    case RNL_MEET_CALL:
        return sizeof(struct rnl_meet_call);
    case RNL_MEET_REPLY:
        return sizeof(struct rnl_meet_reply);
    case RNL_MEET_CALLED:
        return sizeof(struct rnl_meet_called);
    case RNL_MEET_MET:
        return sizeof(struct rnl_meet_met);
    case RNL_MEET_GONE:
        return sizeof(struct rnl_meet_gone);
    }
    return -1;
}

static bool has_version(uint32_t kind)
{
    return kind == RNL_MEET_HELLO || kind == RNL_MEET_DENIED || kind == RNL_MEET_GREET;
}

unsigned rnl_meet_fds(const struct rnl_meet_msg *msg)
{
    return msg->kind == RNL_MEET_REACH || msg->kind == RNL_MEET_REQUEST || msg->kind == RNL_MEET_GIVE ||
           (msg->kind == RNL_MEET_HELLO && msg->u.hello.offers);
}

size_t rnl_meet_encode(const struct rnl_meet_msg *msg, unsigned char out[RNL_MEET_BYTES_MAX])
{
    int body = body_bytes(msg->kind);
    if (body < 0)
        return 0;
    const uint16_t kind = (uint16_t)msg->kind, zero = 0;
    const uint32_t bytes = HEAD_BYTES + (uint32_t)body;
    memcpy(out, &kind, sizeof kind);
    memcpy(out + 2, &zero, sizeof zero);
    memcpy(out + 4, &bytes, sizeof bytes);
    memcpy(out + HEAD_BYTES, &msg->u, (size_t)body);
    if (has_version(msg->kind)) {
        const uint32_t opening[2] = {RNL_MEET_MAGIC, RNL_MEET_VERSION};
        memcpy(out + HEAD_BYTES, opening, sizeof opening);
    }
    return bytes;
}

bool rnl_meet_name(const char *text, char out[RNL_MEET_NAME_BYTES])
{
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
    size_t n = text ? strnlen(text, RNL_MEET_NAME_BYTES) : 0;
    if (n == 0 || n == RNL_MEET_NAME_BYTES || strspn(text, allowed) != n)
        return false;
    memset(out, 0, RNL_MEET_NAME_BYTES);
    memcpy(out, text, n);
    return true;
}

static bool good_name(const char name[RNL_MEET_NAME_BYTES])
{
    char copy[RNL_MEET_NAME_BYTES];
    return memchr(name, '\0', RNL_MEET_NAME_BYTES) && rnl_meet_name(name, copy) &&
           memcmp(name, copy, RNL_MEET_NAME_BYTES) == 0;
}

static bool good_place(const struct rnl_meet_place *p)
{
    return p->port > 0 && p->port <= UINT16_MAX && p->rank > 0 && p->rank <= RNL_MEET_RANK_MOST;
}

static bool good_body(const struct rnl_meet_msg *m)
{
    switch (m->kind) {
    case RNL_MEET_HELLO:
        return m->u.hello.offers <= 1 && m->u.hello.pair <= RNL_MEET_PAIR_MOST;
    case RNL_MEET_DENIED:
        return m->u.denied.why >= RNL_DENIED_VERSION && m->u.denied.why <= RNL_DENIED_TWICE && m->u.denied.zero == 0;
    case RNL_MEET_SERVE:
        return m->u.serve.flags <= RNL_ADMIT_ANYONE && m->u.serve.uids <= RNL_MEET_IDS &&
               m->u.serve.gids <= RNL_MEET_IDS && good_name(m->u.serve.name);
    case RNL_MEET_UNSERVE:
    case RNL_MEET_CANCEL:
    case RNL_MEET_LIST:
    case RNL_MEET_PART:
        return m->u.request_id.zero == 0;
    case RNL_MEET_GIVE:
        return m->u.give.zero == 0;
    case RNL_MEET_REACH:
        return good_name(m->u.reach.name);
    case RNL_MEET_CALL:
        return m->u.call.flags <= RNL_MEET_OWN_USER && m->u.call.port <= UINT16_MAX && good_place(&m->u.call.place) &&
               good_name(m->u.call.name);
    case RNL_MEET_REPLY:
        return m->u.reply.status <= 0 && (m->u.reply.status < 0 || good_place(&m->u.reply.place));
    case RNL_MEET_CALLED:
        return good_place(&m->u.called.place);
    case RNL_MEET_MET:
        return good_place(&m->u.met.place);
    case RNL_MEET_GONE:
        return m->u.gone.why == RNL_DEATH_NONE || m->u.gone.why == RNL_DEATH_EXIT || m->u.gone.why == RNL_DEATH_LEFT;
    case RNL_MEET_RESULT:
        return m->u.result.status <= 0;
    case RNL_MEET_LISTED:
        return m->u.listed.zero == 0 && (m->u.listed.name[0] == '\0' || good_name(m->u.listed.name));
    }
    return true;
}

enum rnl_meet_verdict rnl_meet_decode(enum rnl_meet_from from, const void *bytes, size_t n, struct rnl_meet_msg *out)
{
    const unsigned char *in = bytes;
    uint16_t kind, zero;
    uint32_t length, opening[2];
    struct rnl_meet_msg m;
    if (n < HEAD_BYTES)
        return RNL_MEET_BAD;
    memcpy(&kind, in, sizeof kind);
    memcpy(&zero, in + 2, sizeof zero);
    memcpy(&length, in + 4, sizeof length);
    if (zero != 0 || length != n || (kind & ~15u) != (uint32_t)from)
        return RNL_MEET_BAD;
    memset(&m, 0, sizeof m);
    m.kind = kind;
    if (has_version(kind)) {
        if (n < HEAD_BYTES + sizeof opening)
            return RNL_MEET_BAD;
        memcpy(opening, in + HEAD_BYTES, sizeof opening);
        if (opening[0] != RNL_MEET_MAGIC)
            return RNL_MEET_BAD;
        if (opening[1] != RNL_MEET_VERSION) {
            m.u.greet.version = opening[1];
            *out = m;
            return RNL_MEET_OTHER_VERSION;
        }
    }
    int body = body_bytes(kind);
    if (body < 0 || n != HEAD_BYTES + (size_t)body)
        return RNL_MEET_BAD;
    memcpy(&m.u, in + HEAD_BYTES, (size_t)body);
    if (!good_body(&m))
        return RNL_MEET_BAD;
    *out = m;
    return RNL_MEET_GOOD;
}

bool rnl_meet_admits(const struct rnl_meet_admit *who, uint32_t own_uid, uint32_t uid, const uint32_t *groups,
                     unsigned count)
{
    if (who->flags & RNL_ADMIT_ANYONE)
        return true;
    if (uid == UINT32_MAX) /* of no user that is known here: by number it is nobody */
        return false;
    if (uid == own_uid || uid == 0)
        return true;
    for (uint32_t i = 0; i < who->uids; i++)
        if (who->uid[i] == uid)
            return true;
    for (uint32_t i = 0; i < who->gids; i++)
        for (unsigned k = 0; k < count; k++)
            if (who->gid[i] == groups[k] && groups[k] != UINT32_MAX)
                return true;
    return false;
}
