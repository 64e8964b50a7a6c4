/* SPDX-License-Identifier: BSD-3-Clause
 *
 * membership_segment.c - the segments of membership.h, which pairs of ranks share. A death costs one pass over all that
 * are not released. */
#include "base/error.h"
#include "job/membership_internal.h"
#include "runnel/runnel.h"

#include <stdlib.h>
#include <string.h>

static bool side_of(const struct rnl_segment *s, uint32_t rank)
{
    return rank != s->rank[0];
}

static void release(struct rnl_membership *m, struct rnl_segment_record *r)
{
    HASH_DEL(m->records, r);
    if (r->segment.index >= 0)
        m->at[r->segment.index] = NULL;
    if (m->opt.release)
        m->opt.release(m->opt.arg, &r->segment);
    free(r);
}

static void side_done(struct rnl_membership *m, struct rnl_segment_record *r, bool side)
{
    r->side[side] = DONE;
    if (r->side[!side] == DONE)
        release(m, r);
}

void rnl_member_drop_wanted(struct rnl_membership *m, uint32_t rank)
{
    struct rnl_segment_record *r, *next;
    HASH_ITER(hh, m->records, r, next)
    {
        bool side = r->key.rank[1] == rank;
        if ((side || r->key.rank[0] == rank) && r->side[side] == WANTED)
            side_done(m, r, side);
    }
}

/* Sets the record's key by the incarnations of the pair that rank knows. */
static void set_key(const struct rnl_membership *m, uint32_t rank, uint32_t other, struct rnl_segment_record *out)
{
    bool side = rank > other;
    out->key.rank[side] = rank;
    out->key.rank[!side] = other;
    out->key.returns[side] = m->member[rank].returns;
    out->key.returns[!side] = rnl_member_returns_seen(m, rank, other);
}

enum rnl_segment_verdict rnl_membership_segment(struct rnl_membership *m, uint32_t rank, uint32_t other, uint64_t bytes,
                                                struct rnl_segment **out)
{
    struct rnl_segment_record key, *r;
    memset(&key, 0, sizeof key);
    set_key(m, rank, other, &key);
    if (rnl_member_bit(m->mapped, rnl_member_pair(m, rank, other)))
        return RNL_SEGMENT_TWICE;
    HASH_FIND(hh, m->records, &key.key, sizeof key.key, r);
    if (r && r->side[side_of(&r->segment, rank)] != WANTED)
        return RNL_SEGMENT_TWICE;
    if (r && bytes && r->segment.bytes != bytes)
        return RNL_SEGMENT_BYTES;
    if (!r &&
        (rnl_member_is_gone(&m->member[other]) || m->member[other].returns != rnl_member_returns_seen(m, rank, other)))
        return RNL_SEGMENT_DEAD;
    *out = r ? &r->segment : NULL; /* even if its maker is dead, as it may have written messages */
    return r ? RNL_SEGMENT_FOUND : RNL_SEGMENT_NONE;
}

static int give_index(struct rnl_membership *m, struct rnl_segment *s)
{
    s->index = -1;
    if (!m->opt.indexed)
        return 0;
    if (m->indices == m->indices_room) {
        int room = m->indices_room ? 2 * m->indices_room : 64;
        struct rnl_segment **at = realloc(m->at, (size_t)room * sizeof(struct rnl_segment *));
        if (!at)
            return RNL_ERR_NO_MEMORY;
        m->at = at;
        m->indices_room = room;
    }
    s->index = m->indices++; /* never reused, so that closing a segment twice cannot hit another one */
    m->at[s->index] = s;
    return 0;
}

int rnl_membership_segment_add(struct rnl_membership *m, uint32_t rank, uint32_t other, uint64_t bytes,
                               struct rnl_segment **out)
{
    struct rnl_segment_record *r = calloc(1, sizeof *r), *in = NULL;
    int status = 0;
    if (r) {
        r->segment.bytes = bytes;
        set_key(m, rank, other, r);
        memcpy(r->segment.rank, r->key.rank, sizeof r->segment.rank);
        r->side[1] = rank == other ? DONE : WANTED;
        HASH_ADD(hh, m->records, key, sizeof r->key, r);
        HASH_FIND(hh, m->records, &r->key, sizeof r->key, in);
    }
    if (!in || give_index(m, &in->segment) < 0)
        status = rnl_fail(RNL_ERR_NO_MEMORY, "no memory to note the segment of ranks %u and %u", rank, other);
    else
        status = m->opt.make(m->opt.arg, &in->segment);
    if (status < 0) {
        if (in)
            HASH_DEL(m->records, in);
        free(r);
        return status;
    }
    if (rank != other)
        rnl_member_connect(m, other, rank);
    *out = &in->segment;
    return 0;
}

int rnl_membership_segment_open(struct rnl_membership *m, uint32_t rank, uint32_t other, uint64_t bytes, int *index)
{
    struct rnl_segment *s = NULL;
    int status = 0;
    switch (rnl_membership_segment(m, rank, other, bytes, &s)) {
    case RNL_SEGMENT_FOUND:
        break;
    case RNL_SEGMENT_NONE:
        status = rnl_membership_segment_add(m, rank, other, bytes, &s);
        break;
    case RNL_SEGMENT_DEAD:
        return rnl_fail(RNL_ERR_PEER_DEAD, "rank %u is gone: there is no segment to share with it", other);
    case RNL_SEGMENT_TWICE:
        return rnl_fail(RNL_ERR_JOB, "the segment of rank %u has been handed out to this rank before", other);
    case RNL_SEGMENT_BYTES:
        return rnl_fail(RNL_ERR_JOB, "rank %u asked for a segment of another size than %llu bytes", other,
                        (unsigned long long)bytes);
    }
    if (status < 0)
        return status;
    ((struct rnl_segment_record *)(void *)s)->side[side_of(s, rank)] = OPEN;
    *index = s->index;
    return 0;
}

int rnl_membership_segment_map(struct rnl_membership *m, int index, size_t offset, size_t bytes, void **at)
{
    const struct rnl_segment *s = m->at[index];
    if (!s || offset > s->bytes || bytes > s->bytes - offset)
        return rnl_fail(RNL_ERR_ARG, "%zu bytes at %zu are not within the segment", bytes, offset);
    *at = (char *)s->base + offset;
    return 0;
}

struct rnl_segment *rnl_membership_segment_at(struct rnl_membership *m, int index)
{
    return m->at[index];
}

void rnl_membership_segment_mapped(struct rnl_membership *m, struct rnl_segment *s, uint32_t rank)
{
    struct rnl_segment_record *r = (struct rnl_segment_record *)(void *)s;
    bool side = side_of(s, rank);
    uint32_t other = s->rank[!side];
    r->side[side] = HAD;
    if (r->key.returns[0] == m->member[s->rank[0]].returns && r->key.returns[1] == m->member[s->rank[1]].returns)
        rnl_member_set_bit(m->mapped, rnl_member_pair(m, rank, other), true);
}

void rnl_membership_segment_close(struct rnl_membership *m, struct rnl_segment *s, uint32_t rank)
{
    struct rnl_segment_record *r = (struct rnl_segment_record *)(void *)s;
    bool side = r && side_of(s, rank);
    if (!r || r->side[side] == DONE)
        return;
    if (r->side[side] == HAD || rnl_member_is_gone(&m->member[rank]))
        side_done(m, r, side);
    else
        r->side[side] = WANTED; /* it was never mapped whole, and may be opened again */
}

void rnl_member_connect_again(struct rnl_membership *m, uint32_t rank)
{
    struct rnl_segment_record *r, *next;
    HASH_ITER(hh, m->records, r, next)
    {
        bool side = r->key.rank[1] == rank;
        if ((side || r->key.rank[0] == rank) && r->side[side] == WANTED)
            rnl_member_connect(m, rank, r->key.rank[!side]);
    }
}

void rnl_member_release_all(struct rnl_membership *m)
{
    struct rnl_segment_record *r, *next;
    HASH_ITER(hh, m->records, r, next)
    {
        release(m, r);
    }
}
