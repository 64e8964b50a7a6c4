/* SPDX-License-Identifier: BSD-3-Clause
 *
 * agent.c - see agent.h. A segment belongs to the pair for as long as one of the two has it: what a rank that died had
 * written is read by the other.
 *
 * A rank that comes back has another life, and its segments with others are of that life. Which life of a rank another
 * one means is what it has been told: it moves on when it fetches the event, so what it asks before is of the old. */
#include "sim/cluster/agent.h"

#include "base/error.h"
#include "job/waves.h"
#include "sim/engine/random.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* Its own has cases that fall through, of which clang warns where it is expanded. */
#define HASH_FUNCTION(key, bytes, hash) ((hash) = (unsigned)rnl_sim_random(0, 0, *(const uint64_t *)(key), (bytes)))
#include <uthash.h>

enum { EVENTS_FIRST = 16, SEGMENTS_FIRST = 64 };

enum rank_state { STARTING = 0, JOINED, DEAD, LEFT };

struct vrank {
    _Atomic uint32_t news;
    uint8_t state, lost;          /* lost: an event, for want of memory: it can only be told that the job is gone */
    uint32_t life;                /* 0, and one more each time that it comes back */
    uint64_t incarnation, before; /* before: of its last life */
    int why, detail;              /* of its death */
    struct rnl_event *events;     /* [first, waiting) */
    size_t first, waiting, room;
};

struct pair_key {
    uint64_t ranks; /* lower, higher */
    uint32_t life[2];
};

struct segment { /* side 1: the higher rank's */
    struct pair_key key;
    void *base;
    size_t bytes;
    uint32_t rank[2];
    uint8_t opened[2], settled[2], closed[2];
    int index;
    UT_hash_handle hh;
};

struct seen {     /* the life of a rank that another has been told of, if it is not the first */
    uint64_t who; /* whose, and of which rank */
    uint32_t life;
    UT_hash_handle hh;
};

struct rnl_vagent {
    uint32_t size;
    uint8_t close_done;
    void (*notify)(void *arg, uint32_t rank);
    void *arg;
    struct rnl_waves *waves;
    struct rnl_bell *bells;
    struct vrank *rank;
    struct segment *by_pair, **segment; /* by index */
    struct seen *seen;
    size_t segments, room;
};

/* ---- news ---- */

static void notify(struct rnl_vagent *a, uint32_t rank)
{
    atomic_fetch_add_explicit(&a->rank[rank].news, 1, memory_order_relaxed);
    a->notify(a->arg, rank);
}

static void tell(struct rnl_vagent *a, uint32_t rank, const struct rnl_event *event)
{
    struct vrank *r = &a->rank[rank];
    if (r->state == DEAD || r->state == LEFT)
        return;
    if (r->waiting == r->room) {
        size_t room = r->room ? 2 * r->room : EVENTS_FIRST;
        struct rnl_event *events = realloc(r->events, room * sizeof *events);
        if (events == NULL) {
            r->lost = 1;
            notify(a, rank);
            return;
        }
        r->events = events;
        r->room = room;
    }
    r->events[r->waiting++] = *event;
    notify(a, rank);
}

static void step(struct rnl_vagent *a, enum rnl_waves_step step)
{
    struct rnl_event event = {.kind = RNL_EVENT_CLOSE_ASK, .wave = rnl_waves_now(a->waves)};
    if (step == RNL_WAVES_DONE) {
        event.kind = RNL_EVENT_CLOSE_DONE;
        a->close_done = 1;
    } else if (step != RNL_WAVES_ASK) {
        return;
    }
    for (uint32_t i = 0; i < a->size; i++)
        if (a->rank[i].state == JOINED)
            tell(a, i, &event);
}

int rnl_vagent_join(struct rnl_vagent *a, uint32_t rank, uint64_t incarnation)
{
    struct vrank *r = &a->rank[rank];
    if (r->state != STARTING)
        return rnl_fail(RNL_ERR_JOB,
                        "rank %u has been in this job before: a process joins it once, and one that was "
                        "started anew is not taken back",
                        rank);
    r->state = JOINED;
    r->incarnation = incarnation;
    rnl_waves_join(a->waves, rank);
    return 0;
}

/* ---- lives ---- */

static uint32_t life_seen(const struct rnl_vagent *a, uint32_t self, uint32_t rank)
{
    uint64_t who = (uint64_t)self << 32 | rank;
    struct seen *s;
    HASH_FIND(hh, a->seen, &who, sizeof who, s);
    return s ? s->life : 0;
}

static int see(struct rnl_vagent *a, uint32_t self, uint32_t rank, uint32_t life)
{
    uint64_t who = (uint64_t)self << 32 | rank;
    struct seen *s;
    HASH_FIND(hh, a->seen, &who, sizeof who, s);
    if (s == NULL) {
        s = calloc(1, sizeof *s);
        if (s == NULL)
            return rnl_fail(RNL_ERR_NO_MEMORY, "no memory to know which life of rank %u rank %u means", rank, self);
        s->who = who;
        HASH_ADD(hh, a->seen, who, sizeof s->who, s);
    }
    s->life = life;
    return 0;
}

uint64_t rnl_vagent_incarnation(const struct rnl_vagent *a, uint32_t self, uint32_t rank)
{
    const struct vrank *r = &a->rank[rank];
    if (life_seen(a, self, rank) == r->life)
        return r->incarnation;
    return r->before ? r->before : UINT64_MAX;
}

/* What the process that came back has to know of the others. */
static int brief(struct rnl_vagent *a, uint32_t rank)
{
    struct vrank *r = &a->rank[rank];
    r->first = r->waiting = 0;
    for (uint32_t i = 0; i < a->size; i++) {
        const struct vrank *other = &a->rank[i];
        if (i == rank)
            continue;
        if (other->life > 0 && see(a, rank, i, other->life) < 0)
            return RNL_ERR_NO_MEMORY;
        const struct rnl_event dead = {.kind = RNL_EVENT_DEATH,
                                       .rank = i,
                                       .incarnation = other->incarnation,
                                       .why = other->why,
                                       .detail = other->detail};
        if (other->state == DEAD)
            tell(a, rank, &dead);
    }
    const struct rnl_event asked = {.kind = RNL_EVENT_CLOSE_ASK, .wave = rnl_waves_now(a->waves)};
    if (asked.wave > 0)
        tell(a, rank, &asked);
    return 0;
}

int rnl_vagent_rejoin(struct rnl_vagent *a, uint32_t rank, uint64_t incarnation)
{
    struct vrank *r = &a->rank[rank];
    if (r->state == STARTING)
        return rnl_vagent_join(a, rank, incarnation);
    if (r->state != DEAD || a->close_done)
        return rnl_fail(RNL_ERR_JOB, "rank %u cannot come back: %s", rank,
                        r->state == DEAD ? "the job has closed" : "its process lives");
    r->state = JOINED;
    r->life++;
    r->before = r->incarnation;
    r->incarnation = incarnation;
    if (brief(a, rank) < 0)
        return RNL_ERR_NO_MEMORY;
    rnl_waves_join(a->waves, rank);
    const struct rnl_event event = {
        .kind = RNL_EVENT_RETURN, .rank = rank, .incarnation = incarnation, .wave = r->life}; /* see rnl_vagent_event */
    for (uint32_t i = 0; i < a->size; i++)
        if (i != rank)
            tell(a, i, &event);
    return 0;
}

void rnl_vagent_gone(struct rnl_vagent *a, uint32_t rank, int why, int detail)
{
    struct vrank *r = &a->rank[rank];
    if (r->state == DEAD || r->state == LEFT)
        return;
    if (a->close_done) {
        r->state = LEFT;
        return;
    }
    const struct rnl_event event = {.kind = RNL_EVENT_DEATH,
                                    .rank = rank,
                                    .incarnation = r->incarnation,
                                    .why = r->state == JOINED ? why : RNL_DEATH_NEVER_JOINED,
                                    .detail = detail};
    r->state = DEAD;
    r->why = event.why;
    r->detail = detail;
    for (uint32_t i = 0; i < a->size; i++)
        tell(a, i, &event);
    step(a, rnl_waves_gone(a->waves, rank));
}

int rnl_vagent_event(struct rnl_vagent *a, uint32_t rank, struct rnl_event *out)
{
    struct vrank *r = &a->rank[rank];
    if (r->first < r->waiting) {
        *out = r->events[r->first++];
        if (r->first == r->waiting)
            r->first = r->waiting = 0;
        if (out->kind == RNL_EVENT_RETURN && see(a, rank, out->rank, (uint32_t)out->wave) < 0)
            *out = (struct rnl_event){.kind = RNL_EVENT_JOB_GONE};
        return 1;
    }
    if (r->lost != 1)
        return 0;
    r->lost = 2;
    *out = (struct rnl_event){.kind = RNL_EVENT_JOB_GONE};
    return 1;
}

int rnl_vagent_report(struct rnl_vagent *a, uint32_t rank, uint64_t wave, uint64_t activity)
{
    enum rnl_waves_step what = rnl_waves_report(a->waves, rank, wave, activity);
    step(a, what);
    return what == RNL_WAVES_WRONG ? rnl_fail(RNL_ERR_JOB, "rank %u reported close wave %llu, which nobody asked for",
                                              rank, (unsigned long long)wave)
                                   : 0;
}

void rnl_vagent_part(struct rnl_vagent *a, uint32_t rank, uint32_t from)
{
    const struct rnl_event event = {
        .kind = RNL_EVENT_DEATH, .rank = rank, .incarnation = a->rank[rank].incarnation, .why = RNL_DEATH_PARTED};
    tell(a, from, &event);
}

struct rnl_bell *rnl_vagent_bell(struct rnl_vagent *a, uint32_t rank)
{
    return &a->bells[rank];
}

const _Atomic uint32_t *rnl_vagent_news(struct rnl_vagent *a, uint32_t rank)
{
    return &a->rank[rank].news;
}

/* ---- segments ---- */

static int add_segment(struct rnl_vagent *a, const struct pair_key *key, size_t bytes, struct segment **out)
{
    if (a->segments == a->room) {
        size_t room = a->room ? 2 * a->room : SEGMENTS_FIRST;
        struct segment **all = realloc(a->segment, room * sizeof(struct segment *));
        if (all == NULL)
            return RNL_ERR_NO_MEMORY;
        a->segment = all;
        a->room = room;
    }
    struct segment *s = calloc(1, sizeof *s);
    /* Untouched pages cost nothing, and those of a pair that both have left go back at once. */
    void *base = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (s == NULL || base == MAP_FAILED) {
        if (base != MAP_FAILED)
            munmap(base, bytes);
        free(s);
        return RNL_ERR_NO_MEMORY;
    }
    s->key = *key;
    s->base = base;
    s->bytes = bytes;
    s->rank[0] = (uint32_t)(key->ranks >> 32);
    s->rank[1] = (uint32_t)key->ranks;
    s->index = (int)a->segments;
    a->segment[a->segments++] = s;
    HASH_ADD(hh, a->by_pair, key, sizeof s->key, s);
    *out = s;
    return 0;
}

int rnl_vagent_segment_open(struct rnl_vagent *a, uint32_t self, uint32_t rank, size_t bytes, int *segment)
{
    uint64_t low = rank < self ? rank : self, high = rank < self ? self : rank;
    unsigned side = self != low;
    uint32_t life = rank == self ? a->rank[self].life : life_seen(a, self, rank);
    const struct pair_key key = {low << 32 | high,
                                 {side ? life : a->rank[self].life, side ? a->rank[self].life : life}};
    struct segment *s;
    HASH_FIND(hh, a->by_pair, &key, sizeof key, s);
    if (s != NULL && s->opened[side])
        return rnl_fail(RNL_ERR_JOB, "the segment of rank %u has been handed out to this rank before", rank);
    if (s != NULL && s->bytes != bytes)
        return rnl_fail(RNL_ERR_JOB, "rank %u asked for a segment of %zu bytes, we for one of %zu", rank, s->bytes,
                        bytes);
    if (s == NULL) {
        uint8_t other = a->rank[rank].state;
        if (other == DEAD || other == LEFT || life != a->rank[rank].life)
            return rnl_fail(RNL_ERR_PEER_DEAD, "rank %u is gone: there is no segment to share with it", rank);
        if (add_segment(a, &key, bytes, &s) < 0)
            return rnl_fail(RNL_ERR_NO_MEMORY, "no memory for a segment of %zu bytes with rank %u", bytes, rank);
        if (rank != self) {
            const struct rnl_event event = {
                .kind = RNL_EVENT_CONNECT, .rank = self, .incarnation = a->rank[self].incarnation};
            tell(a, rank, &event);
        }
    }
    s->opened[side] = 1;
    *segment = s->index;
    return 0;
}

int rnl_vagent_segment_map(struct rnl_vagent *a, int segment, size_t offset, size_t bytes, void **at)
{
    const struct segment *s = a->segment[segment];
    if (offset > s->bytes || bytes > s->bytes - offset)
        return rnl_fail(RNL_ERR_ARG, "%zu bytes at %zu are not within the segment", bytes, offset);
    *at = (char *)s->base + offset;
    return 0;
}

void rnl_vagent_segment_settle(struct rnl_vagent *a, uint32_t self, int segment)
{
    struct segment *s = a->segment[segment];
    s->settled[self != s->rank[0]] = 1;
}

void rnl_vagent_segment_close(struct rnl_vagent *a, uint32_t self, int segment)
{
    struct segment *s = a->segment[segment];
    unsigned side = self != s->rank[0];
    if (s->settled[side])
        s->closed[side] = 1;
    else
        s->opened[side] = 0;
    if (s->closed[0] && (s->closed[1] || s->rank[0] == s->rank[1]) && s->base != NULL) {
        munmap(s->base, s->bytes);
        s->base = NULL;
        s->bytes = 0;
    }
}

/* ---- life ---- */

int rnl_vagent_new(uint32_t size, void (*notify_fn)(void *arg, uint32_t rank), void *arg, struct rnl_vagent **out)
{
    struct rnl_vagent *a = calloc(1, sizeof *a);
    if (a == NULL)
        return rnl_fail(RNL_ERR_NO_MEMORY, "no memory for a job of %u rank%s", size, RNL_S(size));
    a->size = size;
    a->notify = notify_fn;
    a->arg = arg;
    a->bells = aligned_alloc(RNL_BELL_BYTES, (size_t)size * RNL_BELL_BYTES);
    a->rank = calloc(size, sizeof *a->rank);
    if (a->bells == NULL || a->rank == NULL || rnl_waves_new(size, &a->waves) < 0) {
        rnl_vagent_free(a);
        return rnl_fail(RNL_ERR_NO_MEMORY, "no memory for a job of %u rank%s", size, RNL_S(size));
    }
    memset(a->bells, 0, (size_t)size * RNL_BELL_BYTES);
    *out = a;
    return 0;
}

void rnl_vagent_free(struct rnl_vagent *a)
{
    if (a == NULL)
        return;
    HASH_CLEAR(hh, a->by_pair);
    for (struct seen *s = a->seen, *next; s != NULL; s = next) {
        next = s->hh.next;
        HASH_DEL(a->seen, s);
        free(s);
    }
    for (size_t i = 0; i < a->segments; i++) {
        if (a->segment[i]->base != NULL)
            munmap(a->segment[i]->base, a->segment[i]->bytes);
        free(a->segment[i]);
    }
    for (uint32_t i = 0; a->rank != NULL && i < a->size; i++)
        free(a->rank[i].events);
    rnl_waves_free(a->waves);
    free(a->segment);
    free(a->bells);
    free(a->rank);
    free(a);
}
