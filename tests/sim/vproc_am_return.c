/* SPDX-License-Identifier: BSD-3-Clause
 *
 * vproc_am_return.c - AM-2 where ranks die and are started again. Each rank asks each other one, by the name that the
 * endpoint there had when it was met. Each request is answered or comes back, one of the two and once, or its handler
 * ran in a process that died before its answer was away. What comes back was for a process that died (AM_EUNREACHABLE),
 * or named one that is no more (AM_EBADENDPOINT); an answer is of the process that was asked; and once a rank is taken
 * back nothing of the process before it comes.
 *
 *     runnel sim --keep-going --scenario FILE vproc-am_return.so MILLISECONDS
 *
 * Each asks for so long, then tells all the others, and goes on until all have told it: the scenario's crashes and
 * returns have to be over by then. */
#include <runnel/am.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    MEET = 1,
    MET,
    ASK,
    ANSWER,
    TAKE,
    LAST,
    RANKS_MAX = 16,
    AWAY_MAX = 4,
    SERIALS = 1 << 16,
    DATA = 2000,
    FRESH = 100
};

static struct peer {
    unsigned asked, settled, asked_old, strangers; /* requests; by a name of before; of those back */
    unsigned meets;                                /* that are under way */
    int known;                                     /* its name is in its entry of the table */
    int old;                                       /* the name before is in entry FRESH + its rank */
    int told, last;                                /* it was told that this was the last question; it said so */
    unsigned returns, back;                        /* back: of this life's requests */
} peer[RANKS_MAX];
static unsigned char open[RANKS_MAX][SERIALS / 8]; /* by serial: neither answered nor back */
static rnl_endpoint *rank;
static eb_t eb;
static ep_t ep;
static en_t self;
static unsigned wrong, unreached, answered;
static unsigned char data[DATA], segment[DATA];

static void is_wrong(const char *what, unsigned of, long a, long b)
{
    wrong++;
    printf("rank %u: WRONG: %s, rank %u: %ld, %ld\n", self.rank, what, of, a, b);
}

static void settle(unsigned of, unsigned serial, const char *how)
{
    if (of >= RANKS_MAX || serial >= SERIALS || !(open[of][serial / 8] & 1u << serial % 8)) {
        is_wrong(how, of, (long)serial, 0);
        return;
    }
    open[of][serial / 8] &= (unsigned char)~(1u << serial % 8);
    peer[of].settled++;
}

/* ---- handlers ---- */

static void meet(void *token)
{
    if (AM_Reply1(token, MET, (int32_t)self.generation) != AM_OK)
        is_wrong(rnl_last_error()->text, 0, 0, 0);
}

static void met(void *token, int32_t generation)
{
    en_t name;
    if (AM_GetSourceEndpoint(token, &name) != AM_OK || name.generation != (uint32_t)generation) {
        is_wrong("a name", name.rank, (long)name.generation, generation);
        return;
    }
    struct peer *p = &peer[name.rank];
    if (p->meets == 0)
        is_wrong("met twice", name.rank, generation, 0);
    p->meets = 0;
    p->known = AM_Map(ep, (int)name.rank, name, AM_ALL) == AM_OK;
    if (!p->known)
        is_wrong(rnl_last_error()->text, name.rank, 0, 0);
}

/* generation: whom the asker wants. */
static void ask(void *token, int32_t serial, int32_t generation)
{
    if ((uint32_t)generation != self.generation)
        is_wrong("a question for another", 0, serial, generation);
    (void)AM_Reply2(token, ANSWER, serial, (int32_t)self.generation);
}

static void take(void *token, void *buf, size_t n, int32_t serial, int32_t generation)
{
    if (n != DATA || memcmp(buf, data, n) != 0)
        is_wrong("bytes", 0, (long)n, serial);
    ask(token, serial, generation);
}

static void last(void *token)
{
    en_t name;
    (void)AM_GetSourceEndpoint(token, &name);
    if (peer[name.rank].last)
        is_wrong("the last question, twice", name.rank, 0, 0);
    peer[name.rank].last = 1;
}

static void answer(void *token, int32_t serial, int32_t generation)
{
    en_t name, mapped;
    (void)AM_GetSourceEndpoint(token, &name);
    if (name.generation != (uint32_t)generation)
        is_wrong("an answer of another", name.rank, serial, generation);
    if (AM_GetTranslationName(ep, (int)name.rank, &mapped) == AM_OK && mapped.generation != name.generation)
        is_wrong("an answer of a process that is no more", name.rank, serial, 0);
    answered++;
    settle(name.rank, (unsigned)serial, "answered twice, or came back too");
}

static void returned(int status, op_t opcode, void *token)
{
    struct rnl_am_token_info info;
    en_t name;
    (void)AM_GetTokenInfo(token, &info);
    (void)AM_GetSourceEndpoint(token, &name);
    struct peer *p = &peer[name.rank < RANKS_MAX ? name.rank : 0];
    if (opcode > AM_REQUEST_XFER_M) { /* an answer to who died */
        if (status != AM_EUNREACHABLE)
            is_wrong("an answer came back", name.rank, status, 0);
    } else if (info.handler == MEET) {
        p->meets--;
        if (status != AM_EUNREACHABLE)
            is_wrong("could not meet", name.rank, status, 0);
    } else if (info.handler == LAST) {
        if (status != AM_EUNREACHABLE)
            is_wrong("was not told", name.rank, status, 0);
    } else if (info.args[0] < 0) { /* by an old name */
        p->strangers++;
        if (status != AM_EBADENDPOINT && status != AM_EUNREACHABLE)
            is_wrong("an old name", name.rank, status, 0);
    } else {
        unreached++;
        p->back++;
        settle(name.rank, (unsigned)info.args[0], "came back twice, or was answered");
        if (status != AM_EUNREACHABLE)
            is_wrong("came back", name.rank, status, info.args[0]);
    }
}

/* ---- the loop ---- */

static int is_dead(unsigned of)
{
    struct rnl_peer_info info;
    if (rnl_peer(rank, of, &info) < 0)
        is_wrong(rnl_last_error()->text, of, 0, 0);
    return info.state == RNL_PEER_DEAD || info.state == RNL_PEER_RETURNED;
}

static void take_back(unsigned of)
{
    struct peer *p = &peer[of];
    int status = AM_Readmit(eb, of);
    if (status == AM_ERR_NOT_SENT || status == AM_ERR_RESOURCE)
        return;
    if (status != AM_OK) {
        is_wrong(rnl_last_error()->text, of, status, 0);
        return;
    }
    memset(open[of], 0, sizeof open[of]);
    p->settled = p->asked;
    p->strangers = p->asked_old;
    p->meets = 0;
    if (p->known) {
        en_t name;
        int old = FRESH + (int)of;
        if (p->old)
            (void)AM_UnMap(ep, old);
        if (AM_GetTranslationName(ep, (int)of, &name) != AM_OK || AM_UnMap(ep, (int)of) != AM_OK ||
            AM_Map(ep, old, name, AM_ALL) != AM_OK)
            is_wrong(rnl_last_error()->text, of, 0, 0);
        p->old = 1;
    }
    p->known = p->told = p->last = 0;
    p->returns++;
    printf("return %u of rank %u: %u had come back\n", p->returns, of, p->back);
    p->back = 0;
}

static void send_next(unsigned of, int is_over)
{
    struct peer *p = &peer[of];
    en_t name;
    int r = AM_OK;
    if (!p->known) {
        if (p->meets == 0) {
            p->meets++;
            if (AM_GetTranslationInuse(ep, 2 * FRESH + (int)of) != AM_OK)
                r = AM_Map(ep, 2 * FRESH + (int)of, AM_NameOf(of, 0), AM_ALL);
            if (r == AM_OK)
                r = AM_Request0(ep, 2 * FRESH + (int)of, MEET);
        }
    } else if (is_over) {
        if (!p->told && p->asked == p->settled && p->asked_old == p->strangers) {
            p->told = 1;
            r = AM_Request0(ep, (int)of, LAST);
        }
    } else if (p->asked - p->settled < AWAY_MAX && p->asked < SERIALS) {
        unsigned serial = p->asked++;
        open[of][serial / 8] |= (unsigned char)(1u << serial % 8);
        (void)AM_GetTranslationName(ep, (int)of, &name);
        r = serial % 3 ? AM_Request2(ep, (int)of, ASK, (int32_t)serial, (int32_t)name.generation)
                       : AM_RequestXfer2(ep, (int)of, 0, TAKE, data, DATA, (int32_t)serial, (int32_t)name.generation);
        if (r == AM_OK && p->old && serial % 5 == 0) {
            p->asked_old++;
            r = AM_Request2(ep, FRESH + (int)of, ASK, -1, 0);
        }
    }
    if (r != AM_OK)
        is_wrong(rnl_last_error()->text, of, r, 0);
}

static uint64_t now_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

static int set_up(void)
{
    const struct rnl_options opt = {.size = sizeof(struct rnl_options), .flags = RNL_RESTARTED};
    for (unsigned i = 0; i < DATA; i++)
        data[i] = (unsigned char)(i * 7);
    return rnl_open(&rank, &opt) == 0 && AM_Init() == AM_OK && AM_AllocateBundleOn(rank, AM_SEQ, &eb) == AM_OK &&
           AM_AllocateEndpoint(eb, &ep, &self) == AM_OK && AM_SetTag(ep, AM_ALL) == AM_OK &&
           AM_SetSeg(ep, segment, sizeof segment) == AM_OK && AM_SetHandler(ep, 0, returned) == AM_OK &&
           AM_SetHandler(ep, MEET, meet) == AM_OK && AM_SetHandler(ep, MET, met) == AM_OK &&
           AM_SetHandler(ep, ASK, ask) == AM_OK && AM_SetHandler(ep, ANSWER, answer) == AM_OK &&
           AM_SetHandler(ep, TAKE, take) == AM_OK && AM_SetHandler(ep, LAST, last) == AM_OK &&
           AM_SetEventMask(eb, AM_NOTEMPTY) == AM_OK;
}

int main(int argc, char **argv)
{
    uint64_t end = now_us() + (argc > 1 ? (uint64_t)atoi(argv[1]) : 10) * 1000;
    if (!set_up()) {
        printf("WRONG: %s\n", rnl_last_error()->text);
        return 1;
    }
    unsigned size = rnl_size(rank), missing = 1, returns = 0, strangers = 0;
    while (missing && wrong == 0) {
        int is_over = now_us() >= end;
        missing = 0;
        for (unsigned i = 0; i < size; i++) {
            struct peer *p = &peer[i];
            if (i != self.rank && is_dead(i))
                take_back(i);
            else if (i != self.rank)
                send_next(i, is_over);
            missing += i != self.rank && (!p->told || !p->last);
        }
        int status = AM_WaitSemaFor(eb, 500000);
        if (status != AM_OK && status != AM_ERR_NOT_SENT)
            is_wrong(rnl_last_error()->text, self.rank, status, 0);
    }
    for (unsigned i = 0; i < size; i++) {
        returns += peer[i].returns;
        strangers += peer[i].strangers;
    }
    if (wrong == 0 && (AM_FreeBundle(eb) != AM_OK || rnl_close(rank) < 0 || AM_Terminate() != AM_OK))
        is_wrong(rnl_last_error()->text, self.rank, 0, 0);
    if (wrong == 0)
        printf("rank %u: right, %u returns, %u answered, %u unreached, %u by old names\n", self.rank, returns, answered,
               unreached, strangers);
    return wrong != 0;
}
