/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Two threads of one process, each with ranks of its own that talk: no cache line is written by both. What a thread
 * writes is found by comparing all memory of the process that can be written, before and after it ran alone: so nothing
 * has to be known of who keeps what where. Left out are the threads' stacks and what the test itself keeps; memory that
 * two mappings show is one. A line that is written with what it had is not seen, so each thread runs several times; and
 * one that was common in one turn only is not shared: the dynamic linker, say, writes at a function's first call. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "am/world.h"

enum { LINE = 64, PAGE = 4096, MAPS = 1 << 18, RANGES = 2048, THREADS = 2, TURNS = 4, MORE = 300, STACK = 256 << 10 };
enum { COMMON = 1024 };
enum { ASK = 1, ANSWER, TAKE, TAKEN, GOT };

/* ---- memory of this process ---- */

struct range {
    uintptr_t from, to;
    unsigned long inode, offset; /* of what is mapped; 0 = memory of its own */
};
struct line {
    unsigned long inode, at; /* as above; the place in it, or the address */
};

/* All that the test keeps, itself left out of what is compared. */
static struct kept {
    char maps[MAPS];
    struct range range[RANGES];
    unsigned ranges;
    unsigned char *copy; /* of all their pages, one after another */
    size_t copy_bytes;
    unsigned char *here;        /* by page: it was there */
    struct line *line[THREADS]; /* of one turn */
    size_t lines[THREADS];
    struct line common[COMMON];    /* of all turns so far */
    unsigned commons, again;       /* ... and how many came again */
    unsigned char *stack[THREADS]; /* with a thread's own variables on top */
    pthread_t thread[THREADS];
    pthread_barrier_t begin, end;
    int phase;
} * kept;
enum { COPY = 256 << 20, LINES = 1 << 16 };

static void *map(size_t bytes)
{
    void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    TEST_MUST(p != MAP_FAILED);
    return p;
}

static int overlaps(const struct range *r, const void *at, size_t bytes)
{
    return r->from < (uintptr_t)at + bytes && (uintptr_t)at < r->to;
}

static int is_ours(const struct range *r)
{
    int ours = overlaps(r, kept, sizeof *kept) || overlaps(r, kept->copy, COPY) ||
               overlaps(r, kept->here, COPY / PAGE) || overlaps(r, __builtin_frame_address(0), 1);
    for (unsigned t = 0; t < THREADS; t++)
        ours |= overlaps(r, kept->line[t], LINES * sizeof(struct line)) || overlaps(r, kept->stack[t], STACK);
    return ours;
}

/* The ranges that can be written. */
static void look_up(void)
{
    int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
    size_t n = 0;
    ssize_t got;
    TEST_MUST(fd >= 0);
    while ((got = read(fd, kept->maps + n, MAPS - 1 - n)) > 0)
        n += (size_t)got;
    close(fd);
    TEST_MUST(n < MAPS - 1);
    kept->maps[n] = '\0';
    kept->ranges = 0;
    for (char *at = kept->maps, *end; (end = strchr(at, '\n')) != NULL; at = end + 1) {
        struct range r;
        char *p = at;
        r.from = strtoul(p, &p, 16);
        r.to = strtoul(p + 1, &p, 16);
        const char *mode = p + 1;
        r.offset = strtoul(p + 5, &p, 16);
        (void)strtoul(p, &p, 16); /* the device */
        (void)strtoul(p + 1, &p, 16);
        r.inode = strtoul(p, &p, 10);
        if (mode[3] != 's')
            r.inode = r.offset = 0;
        if (mode[0] != 'r' || mode[1] != 'w' || is_ours(&r))
            continue;
        TEST_MUST(kept->ranges < RANGES);
        kept->range[kept->ranges++] = r;
    }
}

/* A copy of all pages that are there. */
static void copy_all(void)
{
    size_t at = 0;
    look_up();
    for (unsigned i = 0; i < kept->ranges; i++) {
        const struct range *r = &kept->range[i];
        size_t bytes = r->to - r->from;
        TEST_MUST(at + bytes <= COPY);
        TEST_MUST(mincore((void *)r->from, bytes, kept->here + at / PAGE) == 0);
        for (size_t page = 0; page < bytes; page += PAGE)
            if (kept->here[(at + page) / PAGE] & 1)
                memcpy(kept->copy + at + page, (const void *)(r->from + page), PAGE);
        at += bytes;
    }
}

static void note_page(unsigned thread, const struct range *r, const unsigned char *now, const unsigned char *before)
{
    for (unsigned i = 0; i < PAGE; i += LINE) {
        uintptr_t at = (uintptr_t)now + i;
        if (memcmp(now + i, before + i, LINE) == 0)
            continue;
        TEST_MUST(kept->lines[thread] < LINES);
        kept->line[thread][kept->lines[thread]++] = (struct line){r->inode, r->inode ? r->offset + (at - r->from) : at};
    }
}

/* Notes the lines that differ from the copy. Memory that was mapped since then is whose thread mapped it, but memory
 * that it gave to the other would be missed: there is none, since all is warm. */
static void note_changes(unsigned thread)
{
    static const unsigned char zeros[PAGE];
    size_t at = 0;
    for (unsigned i = 0; i < kept->ranges; i++) {
        const struct range *r = &kept->range[i];
        for (uintptr_t p = r->from; p < r->to; p += PAGE, at += PAGE) {
            unsigned char there;
            if (mincore((void *)p, PAGE, &there) < 0 || !(there & 1))
                continue;
            note_page(thread, r, (const unsigned char *)p, kept->here[at / PAGE] & 1 ? kept->copy + at : zeros);
        }
    }
}

static int order(const void *a, const void *b)
{
    const struct line *x = a, *y = b;
    if (x->inode != y->inode)
        return x->inode < y->inode ? -1 : 1;
    return x->at < y->at ? -1 : x->at > y->at;
}

static void note_common(const struct line *l)
{
    unsigned i = 0;
    while (i < kept->commons && order(&kept->common[i], l) != 0)
        i++;
    kept->again += i < kept->commons;
    print_message("both write %s%lx%s\n", l->inode ? "what is mapped, at " : "", l->at,
                  i < kept->commons ? ", again" : "");
    if (i == kept->commons) {
        TEST_MUST(kept->commons < COMMON);
        kept->common[kept->commons++] = *l;
    }
}

/* The lines of this turn that are both's. */
static void compare(void)
{
    for (unsigned t = 0; t < THREADS; t++)
        qsort(kept->line[t], kept->lines[t], sizeof(struct line), order);
    for (size_t i = 0, k = 0; i < kept->lines[0] && k < kept->lines[1];) {
        int which = order(&kept->line[0][i], &kept->line[1][k]);
        if (which == 0 && (i == 0 || order(&kept->line[0][i], &kept->line[0][i - 1]) != 0))
            note_common(&kept->line[0][i]);
        i += which <= 0;
        k += which >= 0;
    }
}

/* ---- the threads ---- */

struct mine { /* beside a thread's stack */
    int answered, taken, got;
};
static __thread struct mine mine;

static void ask(void *token, int32_t x)
{
    TEST_MUST(AM_Reply1(token, ANSWER, x) == AM_OK);
}
static void answer(void *token, int32_t x)
{
    (void)token, (void)x;
    mine.answered++;
}
static void take(void *token, void *buf, size_t n, int32_t x)
{
    (void)x;
    TEST_MUST(AM_ReplyXfer1(token, SEG / 2, TAKEN, buf, n, x) == AM_OK);
}
static void taken(void *token, void *buf, size_t n, int32_t x)
{
    (void)token, (void)buf, (void)n, (void)x;
    mine.taken++;
}
static void got(void *token, void *buf, size_t n)
{
    (void)token, (void)buf, (void)n;
    mine.got++;
}

static void look(unsigned rank)
{
    TEST_MUST(AM_Poll(world.eb[rank]) == AM_OK);
}

/* All kinds of calls, between two ranks of this thread. */
static void work(unsigned a, unsigned b, int turn)
{
    static const unsigned char bytes[3000] = {1, 2, 3};
    int answers = mine.answered, takes = mine.taken, gots = mine.got, at;
    for (int i = 0; i < MORE; i++) {
        ep_t ep = world.ep[i & 1 ? a : b];
        int to = (int)(i & 1 ? b : a);
        TEST_MUST(AM_Request1(ep, to, ASK, turn * MORE + i) == AM_OK);
        if (i % 8 == 0)
            TEST_MUST(AM_RequestXfer1(ep, to, (uintptr_t)i * 8, TAKE, bytes, sizeof bytes - (size_t)turn, i) == AM_OK);
        if (i % 8 == 4)
            TEST_MUST(AM_RequestI1(ep, to, TAKE, bytes, sizeof bytes / 2 - (size_t)turn, i) == AM_OK);
        if (i % 16 == 0) {
            TEST_MUST(AM_GetXfer0(ep, to, 0, GOT, SEG / 4, 100 + (size_t)turn) == AM_OK);
            TEST_MUST(AM_MapAny(ep, &at, world.name[a], TAG) == AM_OK);
            TEST_MUST(AM_UnMap(ep, at) == AM_OK);
            TEST_MUST(AM_Poll(NULL) == AM_ERR_BAD_ARG);
            TEST_MUST(AM_WaitSemaFor(world.eb[a], 1000) >= AM_OK);
        }
        while (mine.answered - answers <= i || mine.taken - takes < i / 8 || mine.got - gots < i / 16) {
            look(a);
            look(b);
        }
    }
    while (mine.taken - takes < (MORE + 3) / 4 || mine.got - gots < (MORE + 15) / 16) {
        look(a);
        look(b);
    }
}

static void *thread(void *arg)
{
    unsigned number = *(const unsigned *)arg;
    for (int turn = 0;; turn++) {
        pthread_barrier_wait(&kept->begin);
        int phase = kept->phase;
        if (phase == (int)number)
            work(number, number + THREADS, turn);
        pthread_barrier_wait(&kept->end);
        if (phase < 0)
            return NULL;
    }
}

static void run(int phase)
{
    kept->phase = phase;
    pthread_barrier_wait(&kept->begin);
    pthread_barrier_wait(&kept->end);
}

static void threads_with_ranks_of_their_own_write_no_common_cache_line(void **state)
{
    static const unsigned number[THREADS] = {0, 1};
    (void)state;
    if (test_slowness() > 1)
        skip(); /* a sanitizer's own memory is not for this */
    kept = map(sizeof *kept);
    kept->copy = map(COPY);
    kept->here = map(COPY / PAGE);
    world_open(2 * THREADS, AM_PAR);
    for (unsigned i = 0; i < 2 * THREADS; i++) {
        assert_int_equal(AM_SetHandler(world.ep[i], ASK, ask), AM_OK);
        assert_int_equal(AM_SetHandler(world.ep[i], ANSWER, answer), AM_OK);
        assert_int_equal(AM_SetHandler(world.ep[i], TAKE, take), AM_OK);
        assert_int_equal(AM_SetHandler(world.ep[i], TAKEN, taken), AM_OK);
        assert_int_equal(AM_SetHandler(world.ep[i], GOT, got), AM_OK);
        assert_int_equal(AM_SetEventMask(world.eb[i], AM_NOTEMPTY), AM_OK);
    }
    pthread_barrier_init(&kept->begin, NULL, THREADS + 1);
    pthread_barrier_init(&kept->end, NULL, THREADS + 1);
    for (unsigned t = 0; t < THREADS; t++) {
        pthread_attr_t attr;
        kept->line[t] = map(LINES * sizeof(struct line));
        kept->stack[t] = map(STACK);
        pthread_attr_init(&attr);
        assert_int_equal(pthread_attr_setstack(&attr, kept->stack[t], STACK), 0);
        assert_int_equal(pthread_create(&kept->thread[t], &attr, thread, (void *)(uintptr_t)&number[t]), 0);
        pthread_attr_destroy(&attr);
    }
    for (int t = 0; t < THREADS; t++)
        run(t); /* connected, grown, allocated */
    for (unsigned turn = 0; turn < TURNS; turn++) {
        for (int t = 0; t < THREADS; t++) {
            copy_all();
            kept->lines[t] = 0;
            run(t);
            note_changes((unsigned)t);
        }
        print_message("lines written by each: %zu, %zu\n", kept->lines[0], kept->lines[1]);
        for (unsigned t = 0; t < THREADS; t++)
            assert_true(kept->lines[t] > 20); /* they were seen */
        compare();
    }
    run(-1);
    for (unsigned t = 0; t < THREADS; t++)
        assert_int_equal(pthread_join(kept->thread[t], NULL), 0);
    assert_int_equal(kept->again, 0);
    world_close();
    for (unsigned t = 0; t < THREADS; t++) {
        munmap(kept->line[t], LINES * sizeof(struct line));
        munmap(kept->stack[t], STACK);
    }
    munmap(kept->copy, COPY);
    munmap(kept->here, COPY / PAGE);
    munmap(kept, sizeof *kept);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(threads_with_ranks_of_their_own_write_no_common_cache_line),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
