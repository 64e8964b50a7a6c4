/* SPDX-License-Identifier: BSD-3-Clause
 *
 * memory.c - one of two processes reads, writes and changes memory of the other: `memory CASE`, or `memory all`. */
#include "sides.h"

#include <complex.h>

enum { KEY = 77, MOST = 5000000, ALL_ACCESS = FI_REMOTE_READ | FI_REMOTE_WRITE };

static struct fid_mr *mr;
static uint64_t base, key; /* by which the other one's memory is reached */

/* Registers memory, and learns where the other one's is. */
static void share(void *at, size_t n, uint64_t access)
{
    uint64_t mine[2], theirs[2];
    MUST(fi_mr_reg(domain, at, n, access, 0, KEY, 0, &mr, NULL) == 0);
    mine[0] = info->domain_attr->mr_mode == FI_MR_BASIC ? (uintptr_t)at : 0;
    mine[1] = fi_mr_key(mr);
    MUST(write(to_other, mine, sizeof mine) == sizeof mine && read(from_other, theirs, sizeof theirs) == sizeof theirs);
    base = theirs[0];
    key = theirs[1];
}

static void withdraw(void)
{
    barrier();
    MUST(fi_close(&mr->fid) == 0);
}

/* Waits for a completion, which is an error if `error` is not 0. */
static void done(void *context, int error)
{
    struct fi_cq_tagged_entry e;
    fi_addr_t source;
    MUST(next(&e, &source) == error && e.op_context == context);
}

/* All lengths around the limits of the ways, from pieces to pieces. */
static void lengths(void)
{
    static const size_t length[] = {0, 1, 8, 9, 4096, 32768, 32769, 65536, 65537, 300000, MOST};
    static unsigned char window[MOST + 100], from[MOST], back[MOST];
    char ctx;
    share(window, sizeof window, ALL_ACCESS);
    for (unsigned i = 0; i < sizeof length / sizeof *length; i++) {
        size_t n = length[i], cut = n / 3;
        struct iovec out[3] = {{from, cut}, {from + cut, 0}, {from + cut, n - cut}}, in[2] = {{back, n - cut}};
        in[1] = (struct iovec){back + n - cut, cut};
        fill(from, n, i);
        if (side == 0) {
            MUST(fi_writev(ep, out, NULL, 3, other, base + i, key, &ctx) == 0);
            done(&ctx, 0);
            memset(back, 0, n);
            MUST(fi_readv(ep, in, NULL, 2, other, base + i, key, &ctx) == 0);
            done(&ctx, 0);
            MUST(memcmp(from, back, n) == 0);
            barrier();
        } else {
            barrier();
            MUST(memcmp(window + i, from, n) == 0);
        }
        barrier();
    }
    withdraw();
}

static uint64_t counted(struct fid_cntr *c, uint64_t least)
{
    time_t begun = time(NULL);
    while (fi_cntr_read(c) < least)
        MUST(!late(begun));
    return fi_cntr_read(c);
}

/* Data with a write is told to the owner, and counters count there, too. */
static void events(void)
{
    static uint64_t window[4];
    struct fid_cntr *c[2];
    uint64_t value = 5, before = 0;
    char ctx;
    for (int i = 0; i < 2; i++)
        MUST(fi_cntr_open(domain, &(struct fi_cntr_attr){.events = FI_CNTR_EVENTS_COMP}, &c[i], NULL) == 0);
    share(window, sizeof window, ALL_ACCESS);
    MUST(fi_mr_bind(mr, &c[0]->fid, FI_REMOTE_WRITE) == 0 && fi_mr_bind(mr, &c[1]->fid, FI_REMOTE_READ) == 0);
    barrier();
    if (side == 0) {
        MUST(fi_writedata(ep, &value, 8, NULL, 31, other, base, key, &ctx) == 0);
        done(&ctx, 0);
        MUST(fi_inject_writedata(ep, &value, 8, 32, other, base + 8, key) == 0);
        MUST(fi_inject_write(ep, &value, 8, other, base + 16, key) == 0);
        value = 6;
        MUST(fi_read(ep, &value, 8, NULL, other, base + 16, key, &ctx) == 0);
        done(&ctx, 0); /* the injected ones complete without a sound */
        MUST(value == 5);
        MUST(fi_fetch_atomic(ep, &value, 1, NULL, &before, NULL, other, base + 24, key, FI_UINT64, FI_SUM, &ctx) == 0);
        done(&ctx, 0);
        MUST(fi_fetch_atomic(ep, NULL, 1, NULL, &before, NULL, other, base + 24, key, FI_UINT64, FI_ATOMIC_READ,
                             &ctx) == 0);
        done(&ctx, 0);
        MUST(before == 5);
    } else {
        struct fi_cq_tagged_entry e;
        fi_addr_t source;
        for (unsigned i = 0; i < 2; i++) {
            MUST(next(&e, &source) == 0 && e.flags == (FI_RMA | FI_REMOTE_WRITE | FI_REMOTE_CQ_DATA));
            MUST(e.data == 31 + i && source == other && e.len == 8 && window[i] == 5);
        }
        MUST(counted(c[1], 3) == 3 && counted(c[0], 4) == 4 && window[2] == 5); /* what fetches and writes is both */
    }
    withdraw();
    MUST(fi_close(&c[0]->fid) == 0 && fi_close(&c[1]->fid) == 0);
}

/* What is done to the same place lands in the order of the calls, short or long, and before a message that follows. */
static void order(void)
{
    enum { ROUNDS = 300, WORDS = 20000 };
    static uint64_t window[WORDS], from[ROUNDS][WORDS / 20];
    static char ctx;
    char to[8];
    share(window, sizeof window, ALL_ACCESS);
    for (uint64_t i = 0; side == 0 && i < ROUNDS; i++) {
        size_t words = i % 7 == 0 ? WORDS / 20 : 1 + i % 5;
        for (size_t k = 0; k < words; k++)
            from[i][k] = i;
        if (words <= 8 && i % 2)
            MUST(fi_inject_write(ep, from[i], 8 * words, other, base, key) == 0);
        else
            MUST(fi_write(ep, from[i], 8 * words, NULL, other, base, key, &ctx) == 0);
    }
    if (side == 0) {
        uint64_t got = 0, one = 1;
        MUST(fi_atomic(ep, &one, 1, NULL, other, base, key, FI_UINT64, FI_SUM, &ctx) == 0);
        MUST(fi_read(ep, &got, 8, NULL, other, base, key, &to) == 0);
        MUST(fi_tinject(ep, "x", 1, other, 3) == 0);
        struct fi_cq_tagged_entry e;
        do
            MUST(next(&e, &(fi_addr_t){0}) == 0);
        while (e.op_context != to);
        MUST(got == ROUNDS);
    } else {
        MUST(fi_trecv(ep, to, 8, NULL, other, 3, 0, &ctx) == 0);
        await(&ctx);
        MUST(window[0] == ROUNDS);
    }
    withdraw();
}

/* Memory that is not registered, or not for this, is not touched; what comes after is served. */
static void refusals(void)
{
    static unsigned char window[4096 + 16], buf[100000];
    char ctx;
    struct fi_rma_iov there[2] = {{0, 8, KEY}, {8, 8, KEY}};
    struct iovec iov = {buf, 8};
    struct fi_msg_rma m = {&iov, NULL, 1, other, there, 2, &ctx, 0};
    uint64_t one = 1;
    share(window, 4096, FI_REMOTE_WRITE);
    if (side == 0) {
        static const struct {
            uint64_t offset;
            size_t n;
        } bad[] = {{4096, 1}, {4095, 2}, {0, 4097}, {UINT64_MAX, 1}, {UINT64_MAX - 7, 16}, {1u << 30, 0}, {0, 100000}};
        memset(buf, 1, sizeof buf);
        for (unsigned i = 0; i < sizeof bad / sizeof *bad; i++) {
            MUST(fi_write(ep, buf, bad[i].n, NULL, other, bad[i].offset, key, &ctx) == 0);
            done(&ctx, FI_EACCES);
        }
        MUST(fi_write(ep, buf, 8, NULL, other, 0, key + 1, &ctx) == 0);
        done(&ctx, FI_ENOKEY);
        MUST(fi_read(ep, buf, 100000, NULL, other, 0, key, &ctx) == 0);
        done(&ctx, FI_EACCES); /* it may not be read */
        MUST(fi_fetch_atomic(ep, &one, 1, NULL, buf, NULL, other, 0, key, FI_UINT64, FI_SUM, &ctx) == 0);
        done(&ctx, FI_EACCES);
        MUST(fi_atomic(ep, &one, 1, NULL, other, 4090, key, FI_UINT64, FI_SUM, &ctx) == 0);
        done(&ctx, FI_EACCES);
        MUST(fi_inject_write(ep, buf, 65, other, 0, key) == -FI_EINVAL);
        MUST(fi_writemsg(ep, &m, 0) == -FI_EINVAL && fi_write(ep, buf, 1, NULL, 9, 0, key, &ctx) == -FI_EINVAL);
        MUST(fi_write(ep, buf, 4096, NULL, other, 0, key, &ctx) == 0);
        done(&ctx, 0);
        barrier();
    } else {
        barrier();
        for (unsigned i = 0; i < sizeof window; i++)
            MUST(window[i] == (i < 4096));
    }
    struct fid_mr *same;
    MUST(fi_mr_reg(domain, buf, 1, ALL_ACCESS, 0, KEY, 0, &same, NULL) == -FI_ENOKEY);
    withdraw();
    barrier();
    if (side == 0) {
        MUST(fi_write(ep, buf, 8, NULL, other, 0, key, &ctx) == 0);
        done(&ctx, FI_ENOKEY);
    }
    barrier();
}

/* ---- atomics ---- */

static const struct {
    enum fi_op op;
    int old, value, compare, result;
} table[] = {
    {FI_MIN, 5, 3, 0, 3},          {FI_MIN, 3, 5, 0, 3},      {FI_MAX, 5, 3, 0, 5},      {FI_MAX, 3, 5, 0, 5},
    {FI_SUM, 5, 3, 0, 8},          {FI_PROD, 5, 3, 0, 15},    {FI_LOR, 0, 3, 0, 1},      {FI_LOR, 0, 0, 0, 0},
    {FI_LAND, 5, 3, 0, 1},         {FI_LAND, 5, 0, 0, 0},     {FI_BOR, 5, 3, 0, 7},      {FI_BAND, 5, 3, 0, 1},
    {FI_LXOR, 5, 3, 0, 0},         {FI_LXOR, 5, 0, 0, 1},     {FI_BXOR, 5, 3, 0, 6},     {FI_ATOMIC_READ, 5, 3, 0, 5},
    {FI_ATOMIC_WRITE, 5, 3, 0, 3}, {FI_CSWAP, 5, 3, 5, 3},    {FI_CSWAP, 5, 3, 4, 5},    {FI_CSWAP_NE, 5, 3, 5, 5},
    {FI_CSWAP_NE, 5, 3, 4, 3},     {FI_CSWAP_LE, 5, 3, 5, 3}, {FI_CSWAP_LE, 5, 3, 6, 5}, {FI_CSWAP_LT, 5, 3, 4, 3},
    {FI_CSWAP_LT, 5, 3, 5, 5},     {FI_CSWAP_GE, 5, 3, 5, 3}, {FI_CSWAP_GE, 5, 3, 4, 5}, {FI_CSWAP_GT, 5, 3, 6, 3},
    {FI_CSWAP_GT, 5, 3, 5, 5},     {FI_MSWAP, 5, 3, 6, 3},
};

/* Stores an element of the type; returns its size. */
static size_t put_element(enum fi_datatype type, void *at, int v)
{
#define ELEMENT(name, type)                         \
    case name:                                      \
        memcpy(at, &(type){(type)v}, sizeof(type)); \
        return sizeof(type);
    memset(at, 0, sizeof(long double complex)); /* what pads is the same everywhere */
    switch (type) {
        ELEMENT(FI_INT8, int8_t)
        ELEMENT(FI_UINT8, uint8_t)
        ELEMENT(FI_INT16, int16_t)
        ELEMENT(FI_UINT16, uint16_t)
        ELEMENT(FI_INT32, int32_t)
        ELEMENT(FI_UINT32, uint32_t)
        ELEMENT(FI_INT64, int64_t)
        ELEMENT(FI_UINT64, uint64_t)
        ELEMENT(FI_FLOAT, float)
        ELEMENT(FI_DOUBLE, double)
        ELEMENT(FI_FLOAT_COMPLEX, float complex)
        ELEMENT(FI_DOUBLE_COMPLEX, double complex)
        ELEMENT(FI_LONG_DOUBLE, long double)
        ELEMENT(FI_LONG_DOUBLE_COMPLEX, long double complex)
    default:
        return 0;
    }
}

/* Whether two elements are the same; of a long double 10 bytes count. */
static bool same(enum fi_datatype type, const unsigned char *a, const unsigned char *b, size_t n)
{
    if (type != FI_LONG_DOUBLE && type != FI_LONG_DOUBLE_COMPLEX)
        return memcmp(a, b, n) == 0;
    return memcmp(a, b, 10) == 0 && (n == 16 || memcmp(a + 16, b + 16, 10) == 0);
}

/* Every operation on every type that has it, in each of the three forms, on the second of three elements. */
static void arithmetic(void)
{
    static unsigned char window[256];
    unsigned char v[64], c[64], old[64], want[64], got[64], now[64];
    unsigned combinations = 0;
    char ctx;
    share(window, sizeof window, ALL_ACCESS);
    for (int t = 0; side == 0 && t < FI_DATATYPE_LAST; t++)
        for (unsigned i = 0; i < sizeof table / sizeof *table; i++) {
            enum fi_datatype type = (enum fi_datatype)t;
            enum fi_op op = table[i].op;
            size_t n = put_element(type, old, table[i].old), count = 0;
            put_element(type, v, table[i].value);
            put_element(type, c, table[i].compare);
            put_element(type, want, table[i].result);
            bool compares = op >= FI_CSWAP && op <= FI_MSWAP;
            int valid =
                compares ? fi_compare_atomicvalid(ep, type, op, &count) : fi_fetch_atomicvalid(ep, type, op, &count);
            struct fi_atomic_attr attr;
            MUST(fi_query_atomic(domain, type, op, &attr, compares ? FI_COMPARE_ATOMIC : FI_FETCH_ATOMIC) == valid);
            if (valid) {
                MUST(valid == -FI_EOPNOTSUPP && t >= FI_FLOAT);
                MUST(fi_fetch_atomic(ep, v, 1, NULL, got, NULL, other, base, key, type, op, &ctx) == -FI_EOPNOTSUPP);
                continue;
            }
            MUST(count == 2048 / n && attr.count == count && attr.size == n);
            combinations++;
            for (int form = 0; form < 2; form++) { /* 0: without the old value, if there is such a form */
                MUST(fi_write(ep, old, n, NULL, other, base + n, key, &ctx) == 0);
                done(&ctx, 0);
                memset(got, 0, sizeof got);
                if (form == 0 && fi_atomicvalid(ep, type, op, &count) != 0)
                    continue;
                if (form == 0)
                    MUST(fi_atomic(ep, v, 1, NULL, other, base + n, key, type, op, &ctx) == 0);
                else if (compares)
                    MUST(fi_compare_atomic(ep, v, 1, NULL, c, NULL, got, NULL, other, base + n, key, type, op, &ctx) ==
                         0);
                else
                    MUST(fi_fetch_atomic(ep, v, 1, NULL, got, NULL, other, base + n, key, type, op, &ctx) == 0);
                done(&ctx, 0);
                MUST(form == 0 || same(type, got, old, n));
                MUST(fi_read(ep, now, n, NULL, other, base + n, key, &ctx) == 0);
                done(&ctx, 0);
                if (!same(type, now, want, n))
                    printf("# type %d, op %d, row %u\n", t, (int)op, i);
                MUST(same(type, now, want, n));
            }
        }
    /* all for 8 sorts of integers; no bits for 3 of real numbers; no order, too, for 3 of complex ones */
    MUST(side == 1 || combinations == 8 * 30 + 3 * 26 + 3 * 14);
    barrier();
    for (unsigned i = 0; i < 8; i++)
        MUST(side == 0 || window[i] == 0 || i > 0); /* nothing before the first long element */
    withdraw();
}

/* Numbers that wrap around, long operands from pieces, and more than there is room for. */
static void operands(void)
{
    static uint64_t window[256], a[256], b[256], c[256];
    char ctx;
    for (uint64_t i = 0; i < 256; i++) {
        window[i] = i;
        a[i] = UINT64_MAX;
    }
    share(window, sizeof window, ALL_ACCESS);
    barrier();
    if (side == 0) {
        struct fi_ioc from[2] = {{a, 100}, {a + 100, 156}}, back[3] = {{b, 1}, {b + 1, 0}, {b + 1, 255}};
        MUST(fi_fetch_atomicv(ep, from, NULL, 2, back, NULL, 3, other, base, key, FI_UINT64, FI_SUM, &ctx) == 0);
        done(&ctx, 0);
        for (uint64_t i = 0; i < 256; i++)
            MUST(b[i] == i);
        MUST(fi_fetch_atomic(ep, NULL, 256, NULL, c, NULL, other, base, key, FI_UINT64, FI_ATOMIC_READ, &ctx) == 0);
        done(&ctx, 0);
        for (uint64_t i = 0; i < 256; i++)
            MUST(c[i] == i - 1);
        from[1].count = 157;
        MUST(fi_atomicv(ep, from, NULL, 2, other, base, key, FI_UINT64, FI_SUM, &ctx) == -FI_EINVAL);
        struct fi_ioc with[2] = {{c, 200}, {c + 200, 56}};
        from[1].count = 156;
        MUST(fi_compare_atomicv(ep, from, NULL, 2, with, NULL, 2, back, NULL, 3, other, base, key, FI_UINT64, FI_CSWAP,
                                &ctx) == 0);
        done(&ctx, 0);
        MUST(memcmp(b, c, sizeof b) == 0);
        MUST(fi_inject_atomic(ep, a, 8, other, base, key, FI_UINT64, FI_ATOMIC_WRITE) == 0);
        MUST(fi_inject_atomic(ep, a, 9, other, base, key, FI_UINT64, FI_ATOMIC_WRITE) == -FI_EINVAL);
    }
    barrier();
    for (unsigned i = 0; i < 256; i++)
        MUST(side == 0 || window[i] == UINT64_MAX);
    withdraw();
}

/* Both add to one counter, which belongs to side 0: no sum is lost, and no old value seen twice. */
static void contention(void)
{
    enum { ADDS = 5000 };
    static uint64_t window, before[ADDS];
    static unsigned char name[64];
    size_t n = sizeof name;
    fi_addr_t self, to = other;
    uint64_t one = 1;
    char ctx;
    share(&window, sizeof window, ALL_ACCESS);
    MUST(fi_getname(&ep->fid, name, &n) == 0 && fi_av_insert(av, name, 1, &self, 0, NULL) == 1);
    if (side == 0)
        to = self;
    uint64_t at = info->domain_attr->mr_mode == FI_MR_BASIC && side == 0 ? (uintptr_t)&window : base;
    for (unsigned i = 0; i < ADDS; i++) {
        MUST(fi_fetch_atomic(ep, &one, 1, NULL, &before[i], NULL, to, at, key, FI_UINT64, FI_SUM, &ctx) == 0);
        done(&ctx, 0);
        MUST(i == 0 || before[i] > before[i - 1]);
    }
    barrier();
    MUST(side == 1 || window == 2 * ADDS);
    withdraw();
}

/* ---- progress, the grant, death ---- */

/* The owner computes, and calls nothing. */
static void passive(void)
{
    static struct {
        unsigned char bytes[200000];
        uint64_t sum;
        _Atomic uint64_t flag;
    } window;
    static unsigned char from[200000], back[200000];
    uint64_t one = 1, before;
    char ctx;
    share(&window, sizeof window, ALL_ACCESS);
    if (side == 1) {
        time_t begun = time(NULL);
        while (window.flag == 0)
            MUST(!late(begun));
        MUST(window.sum == 100);
    } else {
        fill(from, sizeof from, 9);
        for (unsigned i = 0; i < 100; i++) {
            MUST(fi_write(ep, from, sizeof from, NULL, other, base, key, &ctx) == 0);
            done(&ctx, 0);
            MUST(fi_read(ep, back, sizeof back, NULL, other, base, key, &ctx) == 0);
            done(&ctx, 0);
            MUST(memcmp(from, back, sizeof back) == 0);
            MUST(fi_fetch_atomic(ep, &one, 1, NULL, &before, NULL, other, base + sizeof window.bytes, key, FI_UINT64,
                                 FI_SUM, &ctx) == 0);
            done(&ctx, 0);
            MUST(before == i);
        }
        MUST(fi_inject_write(ep, &one, 8, other, base + sizeof window.bytes + 8, key) == 0);
    }
    withdraw();
}

/* Messages that the other one does not receive use up the grant: writes land all the same. */
static void behind_messages(void)
{
    enum { MANY = 400, BYTES = 32 << 10 };
    static unsigned char window[65536], from[65536], to[BYTES];
    static char sent, ctx;
    share(window, sizeof window, ALL_ACCESS);
    if (side == 0) {
        unsigned left = MANY;
        bool landed = false;
        fill(from, sizeof from, 4);
        for (unsigned i = 0; i < MANY; i++)
            MUST(fi_tsend(ep, from, BYTES, NULL, other, i, &sent) == 0);
        for (unsigned i = 0; i < 100; i++)
            MUST(fi_write(ep, from, sizeof from, NULL, other, base, key, i == 99 ? &ctx : &sent) == 0);
        for (struct fi_cq_tagged_entry e; !landed;) {
            MUST(next(&e, &(fi_addr_t){0}) == 0);
            landed = e.op_context == &ctx;
            left -= !landed && e.flags & FI_TAGGED;
        }
        MUST(left > 0); /* some were announced only, so this was a test */
        barrier();
        while (left) {
            done(&sent, 0);
            left--;
        }
    } else {
        barrier();
        fill(from, sizeof from, 4);
        MUST(memcmp(window, from, sizeof from) == 0);
        for (unsigned i = 0; i < MANY; i++) {
            MUST(fi_trecv(ep, to, BYTES, NULL, other, i, 0, &ctx) == 0);
            done(&ctx, 0);
        }
    }
    withdraw();
}

/* The other one dies while much is under way: each request ends once, with an error. */
static void death(void)
{
    enum { EACH = 20 };
    static unsigned char window[1 << 20], from[1 << 20];
    static char ctx[3 * EACH];
    uint64_t one = 1;
    struct fi_cq_tagged_entry e;
    fi_addr_t source;
    share(window, sizeof window, ALL_ACCESS);
    barrier();
    if (side == 1) {
        for (unsigned i = 0; i < 3; i++)
            (void)fi_cq_read(cq, NULL, 0);
        raise(SIGKILL);
    }
    bool ended[3 * EACH] = {false};
    for (unsigned i = 0; i < EACH; i++) {
        int status = (int)fi_write(ep, from, sizeof from, NULL, other, base, key, &ctx[3 * i]);
        if (status == 0)
            status = (int)fi_read(ep, from, sizeof from, NULL, other, base, key, &ctx[3 * i + 1]);
        else
            ended[3 * i] = ended[3 * i + 1] = true;
        if (status == 0)
            status = (int)fi_atomic(ep, &one, 1, NULL, other, base, key, FI_UINT64, FI_SUM, &ctx[3 * i + 2]);
        else
            ended[3 * i + 1] = true;
        ended[3 * i + 2] |= status != 0;
        MUST(status == 0 || status == -FI_ECONNRESET);
    }
    unsigned wanted = 0;
    for (unsigned i = 0; i < 3 * EACH; i++)
        wanted += !ended[i];
    for (; wanted; wanted--) {
        int status = next(&e, &source);
        size_t i = (size_t)((char *)e.op_context - ctx);
        MUST((status == 0 || status == FI_ECONNRESET) && i < sizeof ctx && !ended[i]);
        ended[i] = true;
    }
    MUST(fi_write(ep, from, 8, NULL, other, base, key, &ctx[0]) == -FI_ECONNRESET);
    MUST(fi_close(&mr->fid) == 0);
}

static const struct side_case cases[] = {
    {.name = "lengths", .run = lengths, .threading = FI_THREAD_DOMAIN},
    {.name = "lengths by address", .run = lengths, .threading = FI_THREAD_SAFE, .mr_mode = FI_MR_BASIC},
    {.name = "lengths, scalable", .run = lengths, .threading = FI_THREAD_SAFE, .mr_mode = FI_MR_SCALABLE},
    {.name = "events", .run = events, .threading = FI_THREAD_SAFE},
    {.name = "order", .run = order, .threading = FI_THREAD_SAFE},
    {.name = "refusals", .run = refusals, .threading = FI_THREAD_SAFE},
    {.name = "arithmetic", .run = arithmetic, .threading = FI_THREAD_DOMAIN},
    {.name = "operands", .run = operands, .threading = FI_THREAD_SAFE},
    {.name = "contention", .run = contention, .threading = FI_THREAD_SAFE},
    {.name = "an owner that computes", .run = passive, .threading = FI_THREAD_DOMAIN, .progress = FI_PROGRESS_AUTO},
    {.name = "behind messages", .run = behind_messages, .threading = FI_THREAD_DOMAIN},
    {.name = "death", .run = death, .threading = FI_THREAD_SAFE, .kills = true},
};

int main(int argc, char **argv)
{
    return run_cases(cases, sizeof cases / sizeof *cases, argc, argv);
}
