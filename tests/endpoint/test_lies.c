/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A peer that lies, field by field: every value of the narrow fields of a header and of its position, and for wide ones
 * and what lines carry each bit and the ends of each range. What is to come of a line is said by `judge`, which knows
 * ring.h's text and nothing of the code that takes lines in. A line that cannot be true makes its sender broken for us,
 * one that can be is taken as it stands, and rank 2 goes on with us in either case. */
#include "endpoint/endpoint.h"
#include "job/job.h"
#include "support/must.h"
#include "support/unit.h"
#include "window/wire.h"

/* Of 16-bit fields the sanitizers try every 31st value. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED 1
#endif
#endif
#ifdef SANITIZED
enum { STEP = 31 };
#else
enum { STEP = 1 };
#endif

enum { LIAR = 0, US = 1, OTHER = 2, SIZE = 3, STREAM = 1, WHOLE = 2, HANDLERS = 8 };
enum { WHOLE_MESSAGE = RNL_EXTENT_FIRST | RNL_EXTENT_LAST | RNL_EXTENT_CLOSED };
enum { RESERVED = 1024, PUBLISHED = 512, BOUND = 2048 }; /* of the message that may be open */

struct heard {
    unsigned whole, begun, ended, honest;
    size_t bytes;
    int status;
};
struct world {
    rnl_hub *hub;
    rnl_endpoint *us, *other;
    struct rnl_env *env;
    struct rnl_channel liar;
    struct heard heard;
    int open; /* the liar's message to STREAM waits for its second half */
};
enum outcome { UNSEEN, TAKEN, STUCK, BROKEN };

/* Windows take in what goes to their handlers, true or not, and nobody hears of it. */
static int is_of_windows(unsigned id)
{
    return id >= RNL_LIBRARY_ID && id < RNL_LIBRARY_ID + WINDOW_KINDS;
}

static int has_handler(unsigned id)
{
    return id == STREAM || id == WHOLE || is_of_windows(id);
}
struct line {
    unsigned lane;
    rnl_header head; /* with the number of items where the position goes */
    unsigned char payload[RNL_CELL_PAYLOAD];
};

static int on_stream(rnl_stream *s, unsigned peer, void *ctx)
{
    static unsigned char buf[RNL_BULK_BYTES];
    struct world *w = ctx;
    struct heard *h = &w->heard;
    if (peer == OTHER) {
        h->honest++;
        return RNL_DONE;
    }
    h->begun++;
    size_t here = rnl_peek(s, NULL);
    h->bytes += here;
    TEST_MUST(rnl_receive(s, buf, here) == 0);
    if (w->open)
        h->status = rnl_receive(s, buf, 1);
    h->ended++;
    return RNL_DONE;
}

static int on_whole(const void *buf, size_t n, unsigned peer, void *ctx)
{
    struct world *w = ctx;
    (void)buf, (void)peer;
    w->heard.whole++;
    w->heard.bytes += n;
    return RNL_DONE;
}

static void publish(struct world *w, const struct line *l, uint64_t start)
{
    const struct rnl_tx *t = &w->liar.tx[l->lane];
    struct rnl_cell *to = rnl_cell_of(t->ring, t->wrap, start);
    memcpy(to->payload, l->payload, sizeof to->payload);
    atomic_store_explicit(&to->header, l->head + (uint16_t)start, memory_order_release);
}

static struct line line_of(unsigned kind, unsigned handler, unsigned len, const void *payload, size_t bytes)
{
    struct line l = {.head = rnl_header_key(kind, handler, len) | 1};
    if (bytes)
        memcpy(l.payload, payload, bytes);
    return l;
}

static void begin_world(struct world *w, int open)
{
    struct rnl_options opt = {.size = sizeof opt, .handlers = HANDLERS, .stacks = 1, .receive_budget = 1 << 20};
    memset(w, 0, sizeof *w);
    TEST_MUST(rnl_hub_new(SIZE, &w->hub) == 0);
    opt.hub = w->hub;
    opt.hub_rank = US;
    TEST_MUST(rnl_open(&w->us, &opt) == 0);
    opt.hub_rank = OTHER;
    TEST_MUST(rnl_open(&w->other, &opt) == 0);
    TEST_MUST(rnl_hub_env(w->hub, LIAR, 0, &w->env) == 0);
    TEST_MUST(rnl_channel_open(&w->liar, w->env, US, UINT64_MAX) == 0);
    TEST_MUST(rnl_handler_stream(w->us, STREAM, on_stream, w) == STREAM);
    TEST_MUST(rnl_handler_whole(w->us, WHOLE, on_whole, w, RNL_IN_PLACE) == WHOLE);
    TEST_MUST(rnl_extract(w->us, SIZE_MAX) == 0); /* connects */
    w->us->fast.conn[LIAR]->lane1_polled = 1;     /* answers are looked for */
    if (open) {
        const struct rnl_extent e = {
            .reserved = RESERVED, .published = PUBLISHED, .bound = BOUND, .flags = RNL_EXTENT_FIRST};
        struct line l = line_of(RNL_CELL_EXTENT, STREAM, sizeof e, &e, sizeof e);
        l.head |= (rnl_header)(uint16_t)w->us->fast.conn[LIAR]->channel.tx[0].acked << 16;
        publish(w, &l, RNL_CELL_START(w->liar.tx[0].pos));
        w->liar.tx[0].pos += 8;
        w->open = 1;
        TEST_MUST(rnl_extract(w->us, SIZE_MAX) == PUBLISHED);
    }
}

static void end_world(struct world *w)
{
    rnl_hub_kill(w->hub, LIAR, RNL_DEATH_SIGNAL, 9);
    for (int i = 0; i < 3; i++)
        TEST_MUST(rnl_extract(w->us, SIZE_MAX) >= 0);
    TEST_MUST(w->heard.begun == w->heard.ended);
    rnl_channel_close(&w->liar);
    w->env->ops->close(w->env);
    rnl_ep_free(w->us);
    rnl_ep_free(w->other);
    rnl_hub_free(w->hub);
}

/* ---- what ring.h says ---- */

static enum outcome judge_extent(const struct world *w, const struct line *l, unsigned id)
{
    const uint32_t end = RNL_EXTENT_LAST | RNL_EXTENT_CLOSED;
    uint64_t from = w->open ? RESERVED : 0; /* where it may begin at the earliest */
    struct rnl_extent e;
    memcpy(&e, l->payload, sizeof e);
    if (RNL_HEADER_LEN(l->head) != sizeof e || e.flags > RNL_EXTENT_FLAGS)
        return BROKEN;
    if (e.start % 64 || e.start < from || e.start % RNL_BULK_BYTES + e.reserved > RNL_BULK_BYTES ||
        e.start - from >= RNL_BULK_BYTES || e.published > e.reserved)
        return BROKEN;
    if ((e.flags & RNL_EXTENT_LAST && !(e.flags & RNL_EXTENT_CLOSED)) ||
        (e.flags & RNL_EXTENT_ABORT &&
         ((e.flags & end) != end || e.flags & RNL_EXTENT_FIRST || l->lane != 0 || e.published)))
        return BROKEN;
    if (e.flags & RNL_EXTENT_BULK && (l->lane != 0 || !(e.flags & RNL_EXTENT_CLOSED)))
        return BROKEN;
    if (w->open || !(e.flags & RNL_EXTENT_FIRST) || e.bound < e.published)
        return BROKEN; /* the open extent is not closed: neither another message nor its own next extent may follow */
    if (!has_handler(id))
        return STUCK;
    if (e.reply_max > RNL_REPLY_MAX || (e.reply_max && (l->lane || e.flags & RNL_EXTENT_BULK)))
        return BROKEN;
    return TAKEN; /* or STUCK: an answer may have to wait for room */
}

static enum outcome judge_prefix(const struct world *w, const struct line *l)
{
    const uint32_t end = RNL_EXTENT_LAST | RNL_EXTENT_CLOSED;
    struct rnl_prefix p;
    memcpy(&p, l->payload, sizeof p);
    if (!w->open || l->lane != 0 || RNL_HEADER_LEN(l->head) != sizeof p || p.flags > RNL_EXTENT_FLAGS ||
        p.flags & (RNL_EXTENT_FIRST | RNL_EXTENT_BULK) || p.published < PUBLISHED || p.published > RESERVED)
        return BROKEN;
    if (p.flags & RNL_EXTENT_LAST && !(p.flags & RNL_EXTENT_CLOSED))
        return BROKEN;
    if (p.flags & RNL_EXTENT_ABORT && ((p.flags & end) != end || p.published != PUBLISHED))
        return BROKEN;
    return TAKEN;
}

static enum outcome judge(const struct world *w, const struct line *l)
{
    const struct rnl_channel *p = &w->us->fast.conn[LIAR]->channel;
    unsigned n = (uint16_t)l->head, len = RNL_HEADER_LEN(l->head), id = RNL_HEADER_HANDLER(l->head);
    unsigned acklane = RNL_HEADER_ACKLANE(l->head);
    uint32_t word[2];
    memcpy(word, l->payload, sizeof word);
    if (n < 1 || n > RNL_RECORDS_MAX)
        return UNSEEN;
    if (acklane >= RNL_LANES)
        return BROKEN;
    uint64_t said = p->rx[l->lane].acked_by_peer;
    while ((uint16_t)said != RNL_HEADER_ACK(l->head))
        said++; /* positions never go back */
    if (said > p->tx[acklane].acked && said > RNL_CELL_START(p->tx[acklane].pos))
        return BROKEN;
    int open = w->open && l->lane == 0;
    switch (RNL_HEADER_KIND(l->head)) {
    case RNL_CELL_RECORDS:
        return n * len > RNL_CELL_PAYLOAD || open ? BROKEN : has_handler(id) ? TAKEN : STUCK;
    case RNL_CELL_REQUEST:
        if (n != 1 || len < sizeof(struct rnl_request_record) || len > RNL_CELL_PAYLOAD || open)
            return BROKEN;
        if (!has_handler(id))
            return STUCK;
        return word[0] > RNL_REPLY_MAX || (word[0] && l->lane) ? BROKEN : TAKEN;
    case RNL_CELL_EXTENT:
        return n != 1 ? BROKEN : judge_extent(w, l, id);
    case RNL_CELL_PREFIX:
        return n != 1 ? BROKEN : judge_prefix(w, l);
    case RNL_CELL_REJECTED:
        if (l->lane != 1 || n != 1 || len < sizeof(struct rnl_rejected_record) || len > RNL_CELL_PAYLOAD)
            return BROKEN;
        return word[0] > RNL_REASON_TOO_LONG || word[1] != len - sizeof(struct rnl_rejected_record) ? BROKEN : TAKEN;
    case RNL_CELL_GROW:
        return l->lane == 0 ? TAKEN : BROKEN;
    default:
        return BROKEN;
    }
}

/* ---- what came of it ---- */

static void others_go_on(struct world *w)
{
    unsigned before = w->heard.honest;
    TEST_MUST(rnl_send(w->other, US, STREAM, "x", 1) == 0);
    TEST_MUST(rnl_extract(w->us, SIZE_MAX) >= 0 && rnl_extract(w->us, SIZE_MAX) >= 0);
    if (w->heard.honest != before + 1)
        fail_msg("rank %d's message was not taken in", OTHER);
}

static enum outcome found(const struct world *w, const struct line *l, uint64_t start)
{
    const struct rnl_conn *conn = w->us->fast.conn[LIAR];
    if (w->us->peer[LIAR].reason == RNL_DEATH_BROKEN)
        return BROKEN;
    if (conn->blocked[l->lane] || conn->blocked[RNL_LANE_BULK])
        return STUCK;
    return conn->channel.rx[l->lane].pos > start ? TAKEN : UNSEEN;
}

static int may_wait(const struct line *l)
{
    struct rnl_extent e;
    memcpy(&e, l->payload, sizeof e);
    return RNL_HEADER_KIND(l->head) == RNL_CELL_REQUEST || (RNL_HEADER_KIND(l->head) == RNL_CELL_EXTENT && e.reply_max);
}

/* 1 = the world is as it was, but for what it saw. */
static int try_line(struct world *w, const struct line *l)
{
    uint64_t start = RNL_CELL_START(w->liar.tx[l->lane].pos);
    enum outcome expected = judge(w, l), got;
    struct heard before = w->heard;
    publish(w, l, start);
    for (int i = 0; i < 2; i++) {
        int64_t status = rnl_extract(w->us, SIZE_MAX);
        TEST_MUST(status >= 0 || (status == RNL_ERR_TOO_LONG && RNL_HEADER_KIND(l->head) == RNL_CELL_REJECTED));
    }
    got = found(w, l, start);
    if (got != expected && !(expected == TAKEN && got == STUCK && may_wait(l)))
        fail_msg("lane %u, header 0x%016llx (kind %u, %u items of %u): expected outcome %d, not %d", l->lane,
                 (unsigned long long)l->head, RNL_HEADER_KIND(l->head), (unsigned)(uint16_t)l->head,
                 RNL_HEADER_LEN(l->head), (int)expected, (int)got);
    if (got == TAKEN && RNL_HEADER_KIND(l->head) == RNL_CELL_RECORDS) { /* as it stands */
        unsigned n = is_of_windows(RNL_HEADER_HANDLER(l->head)) ? 0 : (uint16_t)l->head;
        unsigned messages = w->heard.whole + w->heard.begun - before.whole - before.begun;
        assert_int_equal(messages, n);
        assert_int_equal(w->heard.bytes - before.bytes, n * RNL_HEADER_LEN(l->head));
    } else if (got != TAKEN) {
        assert_int_equal(w->heard.whole + w->heard.begun, before.whole + before.begun);
    }
    if (got == BROKEN && w->open)
        assert_true(w->heard.status == RNL_ERR_PEER_BROKEN || w->heard.status == RNL_ERR_PEER_DEAD);
    others_go_on(w);
    return got == UNSEEN;
}

struct trier { /* keeps a world as long as it lasts */
    struct world w;
    int open, there;
};

static void attempt(struct trier *t, const struct line *l)
{
    if (!t->there)
        begin_world(&t->w, t->open);
    t->there = try_line(&t->w, l);
    if (!t->there)
        end_world(&t->w);
}

static void done(struct trier *t)
{
    if (t->there)
        end_world(&t->w);
    t->there = 0;
}

/* The position that is read on `lane`, as a truthful header quotes it. */
static rnl_header truth(const struct trier *t, unsigned acklane)
{
    (void)t;
    struct world w;
    begin_world(&w, 0);
    uint64_t acked = w.us->fast.conn[LIAR]->channel.tx[acklane].acked;
    end_world(&w);
    return (rnl_header)(uint16_t)acked << 16 | (rnl_header)acklane << 32;
}

/* ---- headers ---- */

static void positions(void **state)
{
    (void)state;
    for (int open = 0; open < 2; open++) {
        struct trier t = {.open = open};
        struct line l = line_of(RNL_CELL_RECORDS, STREAM, 8, NULL, 0);
        rnl_header rest = (l.head & RNL_HEADER_KEY_MASK) | truth(&t, 0);
        for (unsigned n = 0; n < 65536; n += n < 16 ? 1 : STEP) {
            l.head = rest | n;
            attempt(&t, &l);
        }
        done(&t);
    }
}

static void acknowledgements(void **state)
{
    (void)state;
    struct trier t = {.open = 0};
    struct line l = line_of(RNL_CELL_RECORDS, STREAM, 8, NULL, 0);
    for (unsigned lane = 0; lane < 4; lane++) { /* half of these are refused and cost a new world */
        for (unsigned ack = 0; ack < 65536; ack += 1 + 36 * STEP) {
            l.head = (l.head & (RNL_HEADER_KEY_MASK | 7)) | (rnl_header)ack << 16 | (rnl_header)lane << 32;
            attempt(&t, &l);
        }
    }
    rnl_header exact = truth(&t, 0); /* and all around the one that is true */
    for (unsigned d = 0; d < 2000; d += STEP) {
        uint16_t ack = (uint16_t)((unsigned)(exact >> 16) + d - 1000);
        l.head = (l.head & (RNL_HEADER_KEY_MASK | 7)) | (rnl_header)ack << 16;
        attempt(&t, &l);
    }
    done(&t);
}

static void kinds_lengths_and_counts(void **state)
{
    (void)state;
    for (unsigned lane = 0; lane < 2; lane++) {
        for (int open = 0; open < 2; open++) {
            struct trier t = {.open = open};
            struct line l = {.lane = lane};
            rnl_header ack = truth(&t, 0);
            for (unsigned kind = 0; kind < 32; kind++)
                for (unsigned len = 0; len < 64; len += kind < RNL_CELL_KINDS ? 1 : 21)
                    for (unsigned n = 1; n <= RNL_RECORDS_MAX; n += STEP > 1 ? 3 : 1) {
                        l.head = rnl_header_key(kind, STREAM, len) | ack | n;
                        attempt(&t, &l);
                    }
            done(&t);
        }
    }
}

static void handlers(void **state)
{
    (void)state;
    struct trier t = {.open = 0};
    static const unsigned kinds[] = {RNL_CELL_RECORDS, RNL_CELL_REQUEST, RNL_CELL_EXTENT};
    rnl_header ack = truth(&t, 0);
    for (unsigned k = 0; k < 3; k++)
        for (unsigned id = 0; id < 65536; id += id < 2 * HANDLERS ? 1 : 1 + 36 * STEP) {
            struct rnl_extent e = {.reserved = 64, .published = 64, .bound = 64, .flags = WHOLE_MESSAGE};
            struct line l = line_of(kinds[k], id, 8, NULL, 0);
            if (kinds[k] == RNL_CELL_EXTENT)
                l = line_of(kinds[k], id, sizeof e, &e, sizeof e);
            l.head |= ack;
            attempt(&t, &l);
        }
    done(&t);
}

static void any_two_bits(void **state)
{
    (void)state;
    struct rnl_extent e = {.reserved = 64, .published = 64, .bound = 64, .flags = WHOLE_MESSAGE};
    for (unsigned kind = 0; kind < RNL_CELL_KINDS; kind++)
        for (unsigned lane = 0; lane < 2; lane++) {
            struct trier t = {.open = 0};
            struct line l = line_of(kind, STREAM, kind == RNL_CELL_EXTENT ? sizeof e : 8, &e, sizeof e);
            rnl_header honest = l.head | truth(&t, 0);
            l.lane = lane;
            for (unsigned a = 0; a < 64; a++)
                for (unsigned b = a; b<64; b += STEP> 1 ? 13 : 3) {
                    l.head = honest ^ (rnl_header)1 << a ^ (a == b ? 0 : (rnl_header)1 << b);
                    attempt(&t, &l);
                }
            done(&t);
        }
}

/* ---- what lines carry ---- */

/* Numbers that are worth a try: small ones, each bit, and both sides of each limit. */
static unsigned numbers(uint64_t *out, unsigned bits)
{
    static const uint64_t limits[] = {64,       PUBLISHED,      RESERVED,           BOUND,    RNL_REPLY_MAX,
                                      1u << 18, RNL_BULK_BYTES, 2 * RNL_BULK_BYTES, 1u << 20, UINT32_MAX};
    unsigned n = 0;
    for (uint64_t i = 0; i < 12; i++)
        out[n++] = i;
    for (unsigned bit = 4; bit < bits; bit++) {
        out[n++] = (uint64_t)1 << bit;
        out[n++] = ((uint64_t)1 << bit) - 1;
        out[n++] = ((uint64_t)1 << bit) + 64;
    }
    for (unsigned i = 0; i < sizeof limits / sizeof *limits; i++)
        for (int d = -64; d <= 64; d += 1 + 31 * (d != -1 && d != 0))
            out[n++] = limits[i] + (uint64_t)d;
    out[n++] = UINT64_MAX;
    return n;
}

enum { NUMBERS_MAX = 12 + 3 * 64 + 10 * 8 + 1 };

/* Each field of the extent in turn, the others true; a whole message, and with each other set of flags in turn. */
static void extents(void **state)
{
    (void)state;
    uint64_t value[NUMBERS_MAX];
    for (int open = 0; open < 2; open++) {
        struct trier t = {.open = open};
        rnl_header ack = truth(&t, 0);
        for (unsigned field = 0; field < 5; field++) {
            unsigned n = numbers(value, field == 0 || field == 3 ? 64 : 32);
            for (unsigned i = 0; i < n; i++)
                for (unsigned round = 0; round < 2; round++) {
                    struct rnl_extent e = {
                        .start = open ? RESERVED : 0, .reserved = 128, .published = 100, .bound = 100};
                    e.flags = round ? WHOLE_MESSAGE : (i + field) % (RNL_EXTENT_FLAGS + 2);
                    if (field == 0)
                        e.start = value[i];
                    else if (field == 1)
                        e.reserved = (uint32_t)value[i];
                    else if (field == 2)
                        e.published = (uint32_t)value[i];
                    else if (field == 3)
                        e.bound = value[i];
                    else
                        e.reply_max = (uint32_t)value[i];
                    struct line l = line_of(RNL_CELL_EXTENT, i % 2 ? STREAM : WHOLE, sizeof e, &e, sizeof e);
                    l.head |= ack;
                    attempt(&t, &l);
                }
        }
        done(&t);
    }
}

static void prefixes(void **state)
{
    (void)state;
    uint64_t value[NUMBERS_MAX];
    unsigned n = numbers(value, 32);
    for (int open = 0; open < 2; open++) {
        struct trier t = {.open = open};
        rnl_header ack = truth(&t, 0);
        for (unsigned i = 0; i < n; i++)
            for (uint32_t flags = i % 3; flags <= 2 * RNL_EXTENT_FLAGS; flags += 3) {
                struct rnl_prefix p = {(uint32_t)value[i], flags};
                struct line l = line_of(RNL_CELL_PREFIX, STREAM, sizeof p, &p, sizeof p);
                l.head |= ack;
                attempt(&t, &l);
            }
        done(&t);
    }
}

static void refusals_and_requests(void **state)
{
    (void)state;
    uint64_t value[NUMBERS_MAX];
    unsigned n = numbers(value, 32);
    struct trier t = {.open = 0};
    rnl_header ack = truth(&t, 0);
    for (unsigned field = 0; field < 2; field++)
        for (unsigned i = 0; i < n; i++)
            for (unsigned lane = 0; lane < 2; lane++) {
                uint32_t word[2] = {0, 4};
                word[field] = (uint32_t)value[i];
                struct line l = line_of(RNL_CELL_REJECTED, STREAM, 12, word, sizeof word);
                l.lane = lane;
                l.head |= ack;
                attempt(&t, &l);
                l = line_of(RNL_CELL_REQUEST, i % 2 ? STREAM : WHOLE, 12, word, sizeof word);
                l.lane = lane;
                l.head |= ack;
                attempt(&t, &l);
            }
    done(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(positions),
        cmocka_unit_test(acknowledgements),
        cmocka_unit_test(kinds_lengths_and_counts),
        cmocka_unit_test(handlers),
        cmocka_unit_test(any_two_bits),
        cmocka_unit_test(extents),
        cmocka_unit_test(prefixes),
        cmocka_unit_test(refusals_and_requests),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
