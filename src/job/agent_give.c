/* SPDX-License-Identifier: BSD-3-Clause
 *
 * agent_give.c - the segments and descriptors that the agent hands out. A segment is made when the first side asks; the
 * other is told, and asks in its own time, so that no descriptors pile up on their way. A side that could not take its
 * descriptor in, or could not map the segment, asks again; the agent keeps its own until both sides have said that they
 * have theirs. Also how two ranks part. */
#include "base/env.h"
#include "base/error.h"
#include "job/agent_in.h"
#include "job/fds.h"
#include "runnel/runnel.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

/* Out of memory shows as a table that does not grow: the pair is then not in it. */
#define HASH_NONFATAL_OOM 1
/* uthash's own choice is a switch with fall-through that clang warns of. */
#define HASH_FUNCTION(key, bytes, hash) HASH_FNV(key, bytes, hash)
#include <uthash.h>

static const uint64_t segment_bytes_max = (uint64_t)1 << 40;

struct agent_pair {
    UT_hash_handle hh;
    uint64_t key; /* low << 32 | high */
    uint64_t bytes;
    uint8_t wants[2]; /* the lower, the higher rank: lives and has not said that it has it */
    int fd;
};

static uint64_t key_of(uint32_t a, uint32_t b)
{
    return a < b ? (uint64_t)a << 32 | b : (uint64_t)b << 32 | a;
}

static void answer(struct rnl_agent *a, uint32_t rank, uint32_t ticket, enum rnl_give result, int sys_errno, int owned)
{
    struct rnl_msg msg = {.kind = RNL_MSG_GIVE};
    msg.u.give.ticket = ticket;
    msg.u.give.result = result;
    msg.u.give.sys_errno = sys_errno;
    rnl_agent_tell(a, rank, &msg, owned);
}

static void drop_pair(struct rnl_agent *a, struct agent_pair *pair)
{
    close(pair->fd);
    HASH_DEL(a->pairs, pair);
    free(pair);
}

/* Whether the pair is still wanted by nobody: then it is dropped. */
static void want_no_more(struct rnl_agent *a, struct agent_pair *pair, uint32_t rank)
{
    pair->wants[rank == (uint32_t)pair->key] = 0;
    if (!pair->wants[0] && !pair->wants[1])
        drop_pair(a, pair);
}

/* Makes the segment and puts it into the table. 0 or -errno. */
static int make_pair(struct rnl_agent *a, uint32_t rank, uint32_t other, uint64_t bytes, struct agent_pair **out)
{
    char name[40];
    struct agent_pair *pair = calloc(1, sizeof *pair), *in = NULL;
    if (pair == NULL)
        return -ENOMEM;
    snprintf(name, sizeof name, "runnel-%u-%u", rank < other ? rank : other, rank < other ? other : rank);
    int e = rnl_memfd_new(name, bytes, F_SEAL_SEAL, &pair->fd);
    if (e < 0) {
        free(pair);
        return e;
    }
    pair->key = key_of(rank, other);
    pair->bytes = bytes;
    pair->wants[0] = pair->wants[1] = 1;
    HASH_ADD(hh, a->pairs, key, sizeof pair->key, pair);
    HASH_FIND(hh, a->pairs, &pair->key, sizeof pair->key, in);
    if (in == NULL) {
        close(pair->fd);
        free(pair);
        return -ENOMEM;
    }
    *out = pair;
    return 0;
}

static void tell_connect(struct rnl_agent *a, uint32_t rank, uint32_t from)
{
    struct rnl_msg msg = {.kind = RNL_MSG_EVENT};
    msg.u.event.kind = RNL_EVENT_CONNECT;
    msg.u.event.rank = from;
    msg.u.event.incarnation = a->rank[from].incarnation;
    rnl_agent_tell(a, rank, &msg, -1);
}

void rnl_agent_give_connects(struct rnl_agent *a, uint32_t rank)
{
    struct agent_pair *pair, *next;
    HASH_ITER(hh, a->pairs, pair, next)
    {
        uint32_t low = (uint32_t)(pair->key >> 32), high = (uint32_t)pair->key;
        if (low == rank || high == rank)
            tell_connect(a, rank, low == rank ? high : low);
    }
}

/* The caller's own copy of the pair's descriptor, to be given away: its answer. */
static void give(struct rnl_agent *a, uint32_t rank, uint32_t ticket, const struct agent_pair *pair)
{
    int fd = fcntl(pair->fd, F_DUPFD_CLOEXEC, 0);
    if (fd < 0)
        answer(a, rank, ticket, RNL_GIVE_NO_ROOM, errno, -1);
    else
        answer(a, rank, ticket, RNL_GIVE_OK, 0, fd);
}

static unsigned char *had_bit(struct rnl_agent *a, uint32_t rank, uint32_t other, unsigned char *mask)
{
    size_t bit = (size_t)rank * a->size + other;
    *mask = (unsigned char)(1u << bit % 8);
    return &a->had[bit / 8];
}

int rnl_agent_give_segment(struct rnl_agent *a, uint32_t rank, const struct rnl_msg_segment *q)
{
    struct agent_pair *pair;
    unsigned char mask;
    if (q->rank == rank)
        return rnl_fail(RNL_ERR_JOB, "rank %u asked for a segment with itself", rank);
    if (a->rank[q->rank].host != a->rank[rank].host)
        return rnl_fail(RNL_ERR_JOB, "rank %u asked for a segment with rank %u of another host", rank, q->rank);
    if (*had_bit(a, rank, q->rank, &mask) & mask) {
        answer(a, rank, q->ticket, RNL_GIVE_TWICE, 0, -1);
        return 0;
    }
    uint64_t key = key_of(rank, q->rank);
    HASH_FIND(hh, a->pairs, &key, sizeof key, pair);
    if (pair != NULL) { /* even if its maker is dead: it may have said something in time */
        if (pair->bytes != q->bytes)
            answer(a, rank, q->ticket, RNL_GIVE_BYTES, 0, -1);
        else
            give(a, rank, q->ticket, pair);
        return 0;
    }
    enum rnl_rank_state other = a->rank[q->rank].state;
    if (other == RNL_RANK_DEAD || other == RNL_RANK_LEFT) {
        answer(a, rank, q->ticket, RNL_GIVE_DEAD, 0, -1);
        return 0;
    }
    if (q->bytes > segment_bytes_max) {
        answer(a, rank, q->ticket, RNL_GIVE_BYTES, 0, -1);
        return 0;
    }
    int e = make_pair(a, rank, q->rank, q->bytes, &pair);
    if (e < 0) {
        answer(a, rank, q->ticket, RNL_GIVE_NO_ROOM, -e, -1);
        return 0;
    }
    give(a, rank, q->ticket, pair);
    tell_connect(a, q->rank, rank);
    return 0;
}

int rnl_agent_give_had(struct rnl_agent *a, uint32_t rank, uint32_t other)
{
    uint64_t key = key_of(rank, other);
    struct agent_pair *pair;
    unsigned char mask, *bits = had_bit(a, rank, other, &mask);
    HASH_FIND(hh, a->pairs, &key, sizeof key, pair);
    if (pair == NULL || *bits & mask)
        return rnl_fail(RNL_ERR_JOB, "rank %u claims a segment with rank %u that it was not given", rank, other);
    *bits |= mask;
    want_no_more(a, pair, rank);
    return 0;
}

/* Made here and not by its owner, so that nobody can be handed something on which a write blocks. */
void rnl_agent_give_fd(struct rnl_agent *a, uint32_t rank, const struct rnl_msg_fd *q)
{
    struct agent_rank *r = &a->rank[q->rank];
    if (r->state == RNL_RANK_DEAD || r->state == RNL_RANK_LEFT) {
        answer(a, rank, q->ticket, RNL_GIVE_DEAD, 0, -1);
        return;
    }
    if (r->raise < 0)
        r->raise = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    int fd = r->raise < 0 ? -1 : fcntl(r->raise, F_DUPFD_CLOEXEC, 0);
    if (fd < 0)
        answer(a, rank, q->ticket, RNL_GIVE_NO_ROOM, errno, -1);
    else
        answer(a, rank, q->ticket, RNL_GIVE_OK, 0, fd);
}

/* Whoever breaks the protocol is dead for its victim, and the victim for it: else it would wait for room for ever. Dead
 * for nobody else, since a rank's word about another proves nothing: one that lies loses that connection. Who is silent
 * is dead for the teller alone, too, as long as its own agent sees it run. */
int rnl_agent_part(struct rnl_agent *a, uint32_t rank, uint32_t other, int why)
{
    size_t silent = why == RNL_DEATH_SILENT, bit = (silent * a->size + rank) * a->size + other;
    unsigned char mask = (unsigned char)(1u << bit % 8);
    const struct rnl_word word = {.kind = RNL_WORD_PART, .rank = rank, .other = other, .why = why};
    if (other == rank)
        return rnl_fail(RNL_ERR_JOB, "rank %u parts from itself", rank);
    if (a->parted[bit / 8] & mask) /* once: what is queued for it stays bounded */
        return 0;
    a->parted[bit / 8] |= mask;
    if (a->rank[other].away)
        rnl_agent_spread(a, &word);
    else
        rnl_agent_tell_part(a, rank, other, why);
    return 0;
}

/* One that is silent has nothing to hear: its connections say it when it runs again. */
void rnl_agent_tell_part(struct rnl_agent *a, uint32_t rank, uint32_t other, int why)
{
    struct rnl_msg msg = {.kind = RNL_MSG_EVENT};
    if (a->rank[other].away)
        return;
    if (why == RNL_DEATH_SILENT) {
        a->rank[other].given_up = 1;
        return;
    }
    msg.u.event.kind = RNL_EVENT_DEATH;
    msg.u.event.rank = rank;
    msg.u.event.incarnation = a->rank[rank].incarnation;
    msg.u.event.why = RNL_DEATH_PARTED;
    rnl_agent_tell(a, other, &msg, -1);
}

/* Drops the segments that only this rank could still ask for. */
void rnl_agent_give_gone(struct rnl_agent *a, uint32_t rank)
{
    struct agent_pair *pair, *next;
    HASH_ITER(hh, a->pairs, pair, next)
    {
        if (pair->key >> 32 == rank || (uint32_t)pair->key == rank)
            want_no_more(a, pair, rank);
    }
}

void rnl_agent_give_free(struct rnl_agent *a)
{
    struct agent_pair *pair, *next;
    HASH_ITER(hh, a->pairs, pair, next)
    {
        drop_pair(a, pair);
    }
}
