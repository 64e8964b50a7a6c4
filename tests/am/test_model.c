/* SPDX-License-Identifier: BSD-3-Clause
 *
 * AM-2 against a model: three ranks of two endpoints each, their programs in lockstep, random requests, gets and
 * replies, while tags, handlers, segments, translations and endpoints change under way. Each message runs its handler
 * once, with its bytes, or comes back once, for a reason that was true at some time while it was on its way. */
#include "am/world.h"

#include <stdio.h>
#include <stdlib.h>

#include "support/lockstep.h"
#include "support/model.h"

enum { N_RANKS = 3, N_EPS = 2, ALL_EPS = N_RANKS * N_EPS, MESSAGES = 4096, N_HANDLERS = 4, VANISHED = 15 };
enum { CALM = 200 /* polls */, BURST = 80 /* of an asynchronous request: not all find room */ };
enum {
    REGION = 1 << 16,
    WRITTEN = ALL_EPS * REGION /* below it gets read */,
    ANSWERED = 2 * WRITTEN,
    SEGMENT = 3 * WRITTEN
};
enum op_kind {
    OP_REQUEST,
    OP_POLL,
    OP_TAG,
    OP_SEND_TAG,
    OP_HANDLER,
    OP_SEGMENT,
    OP_NEW,
    OP_REMAP,
    OP_UNMAP,
    OP_MAP_ANY,
    OP_MOVE,
    OP_SIZE,
    OP_WAIT,
    OP_KINDS
};
static const char *const op_names[OP_KINDS] = {
    "request", "poll", "tag", "tag of translation", "handler", "segment", "fresh", "remap", "unmap", "map any",
    "move",    "size", "wait"};
enum { A_RANK, A_EP, A_PEER, A_KIND, A_SIZE, A_REPLY };

struct place { /* an endpoint, and those that had its number before */
    ep_t ep;
    en_t name;
    tag_t tag;
    size_t seg;
    unsigned bundle;
    unsigned char *bytes;
    uint8_t set[1 + N_HANDLERS];
    struct {
        en_t name;
        tag_t tag;
        int used;
    } map[ALL_EPS];
};

struct message {
    op_t op;
    unsigned from, to; /* places */
    en_t from_name, to_name;
    tag_t tag;
    unsigned handler;
    uint64_t offset; /* in the segment of who gets the bytes */
    size_t nbytes;
    int reply;         /* its handler sends such a reply: an op, or 0 */
    uint32_t possible; /* a bit for each outcome; 0 = its handler ran */
    unsigned outcomes;
};

static struct lockstep l;
static eb_t bundle[N_RANKS][2];
static unsigned bundles; /* of each rank */
static struct place place[ALL_EPS];
static struct message message[MESSAGES];
static unsigned messages, unfinished, resting;
static const struct test_op *ops;
static size_t op_count;

/* ---- the model ---- */

static int same(en_t a, en_t b)
{
    return a.rank == b.rank && a.number == b.number && a.generation == b.generation;
}

static int in_segment(const struct place *p, uint64_t offset, size_t nbytes)
{
    return offset > p->seg ? AM_EBADSEGOFF : offset + nbytes > p->seg ? AM_EBADLENGTH : 0;
}

/* What could happen to it where it is going, now: a bit for each. What takes long to arrive may have passed one check
 * before, and not pass another. */
static uint32_t there(const struct message *m)
{
    const struct place *p = &place[m->to];
    uint32_t why = 0;
    if (!same(p->name, m->to_name))
        return 1u << AM_EBADENDPOINT;
    if ((m->op <= AM_REQUEST_XFER_M || m->op == AM_GET_XFER_M) &&
        (p->tag == AM_NONE || (p->tag != AM_ALL && p->tag != m->tag)))
        why |= 1u << AM_EBADTAG;
    if (m->op == AM_GET_XFER_M)
        return why | 1u << in_segment(p, (uint64_t)m->from * REGION, m->nbytes);
    if (!p->set[m->handler])
        why |= 1u << AM_EBADHANDLER;
    if (m->op == AM_REQUEST_XFER_M || m->op == AM_REPLY_XFER_M)
        why |= 1u << in_segment(p, m->offset, m->nbytes) & ~1u;
    return why ? why : 1;
}

static void consider(struct message *m)
{
    const struct place *from = &place[m->from];
    uint32_t why = there(m);
    if (m->op >= AM_REPLY_M && m->op <= AM_REPLY_XFER_M)
        why = why == 1 ? 1 : 1u << AM_EREPLYREJECTED;
    if (!same(from->name, m->from_name)) {
        why |= 1u << VANISHED; /* nobody is there to learn of it */
    } else if (m->op == AM_GET_XFER_M) {
        why |= from->set[m->handler] ? 0 : 1u << AM_EBADHANDLER;
        why |= 1u << in_segment(from, m->offset, m->nbytes);
    }
    m->possible |= why;
}

static void changed(void)
{
    for (unsigned i = 0; i < messages; i++)
        if (!message[i].outcomes)
            consider(&message[i]);
}

static struct message *begun(op_t op, unsigned from, unsigned to, unsigned handler, size_t nbytes)
{
    TEST_MUST(messages < MESSAGES);
    struct message *m = &message[messages++];
    *m = (struct message){.op = op, .from = from, .to = to, .handler = handler, .nbytes = nbytes};
    m->from_name = place[from].name;
    unfinished++;
    return m;
}

static void came(struct message *m, int outcome)
{
    TEST_MUST(m->outcomes == 0);
    consider(m);
    TEST_MUST(m->possible & 1u << outcome);
    m->outcomes++;
    unfinished--;
}

/* ---- handlers ---- */

static unsigned id_of(const struct message *m)
{
    return (unsigned)(m - message);
}

static void reply(void *token, const struct message *asked)
{
    unsigned handler = 1 + id_of(asked) % N_HANDLERS;
    struct message *m = begun((op_t)asked->reply, asked->to, asked->from, handler, asked->nbytes * 7 % 60000);
    const unsigned char *bytes = test_pattern(id_of(m), 0);
    m->to_name = asked->from_name;
    m->offset = ANSWERED + (uint64_t)m->from * REGION + id_of(m) % 1000;
    consider(m);
    int32_t id = (int32_t)id_of(m);
    if (m->op == AM_REPLY_M)
        TEST_MUST(AM_Reply1(token, (handler_t)handler, id) == AM_OK);
    else if (m->op == AM_REPLY_IM)
        TEST_MUST(AM_ReplyI1(token, (handler_t)handler, bytes, m->nbytes, id) == AM_OK);
    else
        TEST_MUST(AM_ReplyXfer1(token, m->offset, (handler_t)handler, bytes, m->nbytes, id) == AM_OK);
}

static void handled(void *token, const void *buf, size_t nbytes, int32_t id)
{
    TEST_MUST((unsigned)id < messages);
    struct message *m = &message[id];
    struct rnl_am_token_info info;
    en_t source;
    ep_t dest;
    unsigned at = m->op == AM_GET_XFER_M ? m->from : m->to;
    TEST_MUST(AM_GetTokenInfo(token, &info) == AM_OK && info.opcode == m->op && info.handler == m->handler);
    TEST_MUST(AM_GetSourceEndpoint(token, &source) == AM_OK && AM_GetDestEndpoint(token, &dest) == AM_OK);
    TEST_MUST(same(source, m->op == AM_GET_XFER_M ? m->to_name : m->from_name) && dest == place[at].ep);
    if (m->op != AM_REQUEST_M && m->op != AM_REPLY_M) {
        uint64_t pattern = m->op == AM_GET_XFER_M ? 100000 + m->to : (uint64_t)id;
        size_t from = m->op == AM_GET_XFER_M ? (size_t)m->from * REGION : 0;
        TEST_MUST(nbytes == m->nbytes && memcmp(buf, test_pattern(pattern, from), nbytes) == 0);
    }
    came(m, 0);
    if (m->reply)
        reply(token, m);
}

static void on_short(void *token, int32_t id)
{
    handled(token, NULL, 0, id);
}
static void on_payload(void *token, void *buf, size_t nbytes, int32_t id)
{
    handled(token, buf, nbytes, id);
}
static void on_returned(int status, op_t opcode, void *token)
{
    struct rnl_am_token_info info;
    TEST_MUST(AM_GetTokenInfo(token, &info) == AM_OK && info.numargs == 1 && (unsigned)info.args[0] < messages);
    struct message *m = &message[info.args[0]];
    TEST_MUST(opcode == m->op && info.handler == m->handler);
    came(m, status);
}

/* Handlers 1 and 2 take short messages, 3 and 4 those with payload; the kind of a message decides. */
static handler_t handler_for(op_t op, unsigned chance)
{
    int is_short = op == AM_REQUEST_M || op == AM_REPLY_M;
    return (handler_t)((is_short ? 1 : 3) + (chance & 1));
}

/* ---- operations ---- */

static void set_handler(struct place *p, unsigned h, int on)
{
    p->set[h] = (uint8_t)on;
    rnl_am_fn fn = h <= 2 ? (rnl_am_fn)on_short : (rnl_am_fn)on_payload;
    TEST_MUST(AM_SetHandler(p->ep, (handler_t)h, on ? fn : NULL) == AM_OK);
    changed();
}

static void fresh(unsigned i)
{
    struct place *p = &place[i];
    p->bundle = i % bundles;
    TEST_MUST(AM_AllocateEndpoint(bundle[i / N_EPS][p->bundle], &p->ep, &p->name) == AM_OK);
    p->tag = AM_ALL;
    p->seg = SEGMENT;
    TEST_MUST(AM_SetTag(p->ep, AM_ALL) == AM_OK && AM_SetSeg(p->ep, p->bytes, SEGMENT) == AM_OK);
    TEST_MUST(AM_SetHandler(p->ep, 0, on_returned) == AM_OK);
    for (unsigned j = 0; j < ALL_EPS; j++)
        p->map[j].used = 0;
    for (unsigned h = 1; h <= N_HANDLERS; h++)
        set_handler(p, h, 1);
}

static void map(unsigned i, unsigned j, tag_t tag)
{
    struct place *p = &place[i];
    if (p->map[j].used)
        TEST_MUST(AM_UnMap(p->ep, (int)j) == AM_OK);
    TEST_MUST(AM_Map(p->ep, (int)j, place[j].name, tag) == AM_OK);
    p->map[j].used = 1;
    p->map[j].name = place[j].name;
    p->map[j].tag = tag;
}

static void request(unsigned from, const struct test_op *op)
{
    static const op_t kinds[] = {AM_REQUEST_M, AM_REQUEST_M, AM_REQUEST_IM, AM_REQUEST_XFER_M, AM_GET_XFER_M};
    static const op_t replies[] = {0, AM_REPLY_M, AM_REPLY_M, AM_REPLY_IM, AM_REPLY_XFER_M};
    struct place *p = &place[from];
    unsigned to = op->arg[A_PEER] % ALL_EPS;
    op_t kind = kinds[op->arg[A_KIND] % 5];
    int async = op->arg[A_KIND] / 5 % 2;
    struct message *m = begun(kind, from, to, handler_for(kind, op->id), op->arg[A_SIZE] % 60000);
    const unsigned char *bytes = test_pattern(id_of(m), 0);
    int32_t id = (int32_t)id_of(m);
    handler_t h = (handler_t)m->handler;
    m->to_name = p->map[to].name;
    m->tag = p->map[to].tag;
    m->reply = kind == AM_GET_XFER_M ? 0 : (int)replies[op->arg[A_REPLY] % 5];
    m->offset =
        (kind == AM_GET_XFER_M ? ANSWERED + (uint64_t)to * REGION : WRITTEN + (uint64_t)from * REGION) + op->id % 1000;
    if (!p->map[to].used)
        m->possible = 1u << AM_EBADENTRY;
    else
        consider(m);
    /* A reply's handler takes what the reply is. */
    if (m->reply)
        m->reply = (handler_for((op_t)m->reply, 0) <= 2) == ((unsigned)id % N_HANDLERS + 1 <= 2) ? m->reply : 0;
    int status;
    if (kind == AM_REQUEST_M)
        status = AM_Request1(p->ep, (int)to, h, id);
    else if (kind == AM_REQUEST_IM)
        status = AM_RequestI1(p->ep, (int)to, h, bytes, m->nbytes, id);
    else if (kind == AM_REQUEST_XFER_M)
        status = async ? AM_RequestXferAsync1(p->ep, (int)to, m->offset, h, bytes, m->nbytes, id)
                       : AM_RequestXfer1(p->ep, (int)to, m->offset, h, bytes, m->nbytes, id);
    else
        status = async ? AM_GetXferAsync1(p->ep, (int)to, (uint64_t)from * REGION, h, m->offset, m->nbytes, id)
                       : AM_GetXfer1(p->ep, (int)to, (uint64_t)from * REGION, h, m->offset, m->nbytes, id);
    if (status == AM_ERR_NOT_SENT && async && (kind == AM_REQUEST_XFER_M || kind == AM_GET_XFER_M)) {
        TEST_MUST(m->outcomes == 0);
        m->outcomes++; /* it never was: should it come, that is one too many */
        unfinished--;
        return;
    }
    TEST_MUST(status == AM_OK);
}

static void map_any(struct place *p)
{
    int free = 0, got;
    while (free < ALL_EPS && p->map[free].used)
        free++;
    if (free == ALL_EPS)
        return;
    TEST_MUST(AM_MapAny(p->ep, &got, place[free].name, AM_ALL) == AM_OK && got == free);
    p->map[free].used = 1;
    p->map[free].name = place[free].name;
    p->map[free].tag = AM_ALL;
}

static void move(struct place *p, unsigned rank)
{
    unsigned other = (p->bundle + 1) % bundles;
    eb_t now;
    TEST_MUST(AM_MoveEndpoint(p->ep, bundle[rank][p->bundle], bundle[rank][other]) == AM_OK);
    p->bundle = other;
    TEST_MUST(AM_GetBundle(p->ep, &now) == AM_OK && now == bundle[rank][other]);
}

/* No entry in use is lost; afterwards there is room for all again. */
static void set_size(struct place *p, int entries)
{
    int used = 0, n;
    for (int i = 0; i < ALL_EPS; i++)
        if (p->map[i].used)
            used = i + 1;
    TEST_MUST(AM_SetNumTranslations(p->ep, entries) == (entries < used ? AM_ERR_IN_USE : AM_OK));
    TEST_MUST(AM_GetNumTranslations(p->ep, &n) == AM_OK && (n == entries || entries < used));
    if (n < ALL_EPS)
        TEST_MUST(AM_SetNumTranslations(p->ep, ALL_EPS) == AM_OK);
}

static void wait_a_little(eb_t b)
{
    TEST_MUST(AM_SetEventMask(b, AM_NOTEMPTY) == AM_OK);
    int r = AM_WaitSemaFor(b, 20000);
    TEST_MUST(r == AM_OK || r == AM_ERR_NOT_SENT);
}

/* Bytes that are got never change; what is written lies behind them. */
static void do_op(unsigned rank, const struct test_op *op)
{
    unsigned i = rank * N_EPS + op->arg[A_EP] % N_EPS, j = op->arg[A_PEER] % ALL_EPS;
    struct place *p = &place[i];
    tag_t tag = op->arg[A_SIZE] % 4;
    switch (op->kind) {
    case OP_REQUEST:
        for (unsigned n = op->arg[A_REPLY] % 32 == 1 && op->arg[A_KIND] / 5 % 2 ? BURST : 1; n > 0; n--)
            request(i, op);
        break;
    case OP_TAG:
        p->tag = tag;
        TEST_MUST(AM_SetTag(p->ep, tag) == AM_OK);
        changed();
        break;
    case OP_SEND_TAG:
        if (p->map[j].used)
            TEST_MUST(AM_SetTranslationTag(p->ep, (int)j, p->map[j].tag = tag) == AM_OK);
        break;
    case OP_HANDLER:
        set_handler(p, 1 + op->arg[A_PEER] % N_HANDLERS, op->arg[A_KIND] & 1);
        break;
    case OP_SEGMENT: {
        size_t bytes = op->arg[A_KIND] & 1 ? SEGMENT : op->arg[A_SIZE] * 20 % SEGMENT;
        TEST_MUST(AM_SetSeg(p->ep, p->bytes, bytes) == AM_OK);
        p->seg = bytes;
        changed();
        break;
    }
    case OP_NEW: {
        TEST_MUST(AM_FreeEndpoint(p->ep) == AM_OK);
        p->name.generation = 0; /* until there is another */
        changed();
        fresh(i);
        for (unsigned k = 0; k < ALL_EPS; k++)
            map(i, k, AM_ALL);
        break;
    }
    case OP_REMAP:
        map(i, j, tag);
        break;
    case OP_UNMAP:
        if (p->map[j].used)
            TEST_MUST(AM_UnMap(p->ep, (int)j) == AM_OK);
        p->map[j].used = 0;
        break;
    case OP_MAP_ANY:
        map_any(p);
        break;
    case OP_MOVE:
        move(p, rank);
        break;
    case OP_SIZE:
        set_size(p, 1 + (int)(op->arg[A_SIZE] % (op->arg[A_KIND] & 1 ? ALL_EPS : 1000)));
        break;
    case OP_WAIT:
        wait_a_little(bundle[rank][p->bundle]);
        break;
    default:
        TEST_MUST(AM_Poll(bundle[rank][p->bundle]) == AM_OK);
        break;
    }
}

static unsigned unresolved(void)
{
    unsigned n = 0;
    for (unsigned i = 0; i < messages; i++)
        n += !message[i].outcomes && !(message[i].possible & 1u << VANISHED);
    return n;
}

static void program(struct lockstep *lock, unsigned rank)
{
    for (size_t i = 0; i < op_count; i++)
        if (ops[i].arg[A_RANK] % N_RANKS == rank)
            do_op(rank, &ops[i]);
    resting++;
    /* What may have vanished is not waited for, but may still come and be replied to: nobody leaves before it has. */
    for (unsigned calm = 0; calm < CALM; calm = resting < N_RANKS || unresolved() ? 0 : calm + 1) {
        TEST_MUST(AM_Poll(bundle[rank][calm % bundles]) == AM_OK);
        lock->done = messages * 2 - unfinished; /* what has happened */
        lockstep_yield(lock);
    }
    for (unsigned i = 0; i < bundles; i++)
        TEST_MUST(AM_FreeBundle(bundle[rank][i]) == AM_OK);
    TEST_MUST(rnl_close(lock->h.ep[rank]) == 0);
    lock->h.ep[rank] = NULL;
}

/* ---- runs ---- */

static size_t generate(uint64_t seed, struct test_op *list, size_t max)
{
    static const uint8_t weights[] = {OP_REQUEST, OP_REQUEST, OP_REQUEST,  OP_REQUEST, OP_REQUEST, OP_REQUEST, OP_POLL,
                                      OP_POLL,    OP_TAG,     OP_SEND_TAG, OP_HANDLER, OP_SEGMENT, OP_NEW,     OP_REMAP,
                                      OP_REMAP,   OP_UNMAP,   OP_MAP_ANY,  OP_MOVE,    OP_SIZE,    OP_WAIT};
    struct test_random r = test_random_of(seed, 1);
    static const size_t edges[] = {0, 1, 512, 16384, 32768, 59999};
    size_t n = 20 + test_random_below(&r, (uint32_t)max - 20);
    for (size_t i = 0; i < n; i++) {
        list[i].kind = weights[test_random_below(&r, sizeof weights)];
        for (unsigned a = 0; a < 6; a++)
            list[i].arg[a] = test_random_below(&r, 1u << 20);
        list[i].arg[A_SIZE] = (uint32_t)test_random_size(&r, 59999, edges, sizeof edges / sizeof *edges);
    }
    return n;
}

static int run(uint64_t seed, const struct test_op *list, size_t n, struct test_why *why)
{
    memset(place, 0, sizeof place);
    messages = unfinished = resting = 0;
    bundles = 1 + seed % 2; /* the second makes all calls lock */
    ops = list;
    op_count = n;
    struct rnl_options opt[N_RANKS] = {{0}};
    lockstep_open(&l, N_RANKS, opt, seed);
    TEST_MUST(AM_Init() == AM_OK);
    for (unsigned i = 0; i < N_RANKS; i++)
        for (unsigned k = 0; k < bundles; k++)
            TEST_MUST(AM_AllocateBundleOn(l.h.ep[i], AM_SEQ, &bundle[i][k]) == AM_OK);
    for (unsigned i = 0; i < ALL_EPS; i++) {
        place[i].bytes = malloc(SEGMENT);
        memcpy(place[i].bytes, test_pattern(100000 + i, 0), SEGMENT);
        fresh(i);
    }
    for (unsigned i = 0; i < ALL_EPS; i++)
        for (unsigned j = 0; j < ALL_EPS; j++)
            map(i, j, AM_ALL);
    int failed = lockstep_run(&l, program);
    if (failed)
        return test_why(why, "%s", l.wrong);
    lockstep_close(&l);
    TEST_MUST(AM_Terminate() == AM_OK);
    for (unsigned i = 0; i < ALL_EPS; i++)
        free(place[i].bytes);
    return unresolved() ? test_why(why, "%u messages neither ran nor came back", unresolved()) : 0;
}

static void print(const struct test_op *op, char *text, size_t bytes)
{
    snprintf(text, bytes, "%s: rank %u ep %u peer %u kind %u size %u reply %u", op_names[op->kind],
             op->arg[A_RANK] % N_RANKS, op->arg[A_EP] % N_EPS, op->arg[A_PEER] % ALL_EPS, op->arg[A_KIND] % 5,
             op->arg[A_SIZE], op->arg[A_REPLY] % 5);
}

static void random_programs_do_as_the_model_says(void **state)
{
    (void)state;
    const struct test_model m = {.name = "am",
                                 .max_ops = 600,
                                 .seeds = 400 / test_slowness(),
                                 .seconds = 3,
                                 .generate = generate,
                                 .run = run,
                                 .print = print};
    assert_int_equal(test_model_check(&m), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(random_programs_do_as_the_model_says)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
