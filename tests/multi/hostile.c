/* SPDX-License-Identifier: BSD-3-Clause
 *
 * hostile.c - a job of three in which rank 2 does harm: multi-hostile MODE SEED MS. Ranks 0 and 1 exchange checked
 * messages, talk to rank 2 as long as that is possible, and must end well: "done RANK: ..." on their output.
 *
 * Modes, what rank 2 does for MS milliseconds before it is gone:
 *   scribble   writes random words over everything it shares and may write, what only its peers should write included
 *   lines      publishes well-formed lines whose every field is random
 *   credit     claims random positions and grants
 *   files      truncates, extends, seals and punches holes into the segments, of which it has kept the descriptors
 *   block      fills the descriptors that others are woken by, has them block, and leaves
 *   stop       stops in the middle of traffic
 *   stop-STATE stops in that state (hostile_stop.c) until somebody kills it; "exchanged RANK" says that ranks 0 and 1
 *              have nothing more to do with each other
 *   states     no job: lists the states */
#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "endpoint/endpoint.h"
#include "multi/fm_check.h"
#include "multi/hostile_stop.h"
#include "runnel/runnel.h"

enum { DATA = 1, TOY, HOSTILE = 2, RANKS = 3, MESSAGES = FM_SANITIZED ? 60 : 400, LONGEST = 300000 };

static rnl_endpoint *ep;
static unsigned me;
static uint64_t seed, random_state;
static unsigned got, sent, harmless;
static enum rnl_death_reason hostile_why;
static int hostile_dead, hostile_stops;

/* ---- the honest ---- */

static uint64_t size_of(unsigned from, unsigned k)
{
    uint64_t x = check_mix(check_key(DATA, from, 0, k) ^ seed);
    return x % 4 ? (x >> 8) % 100 : (x >> 8) % LONGEST;
}

static int on_data(rnl_stream *s, unsigned from, void *ctx)
{
    static unsigned char bufs[RANKS][LONGEST]; /* a handler of each sender may be suspended in it */
    unsigned char *buf = bufs[from];
    (void)ctx;
    if (from == HOSTILE || me == HOSTILE) { /* a stranger's message: anything may be in it, and it may end early */
        size_t n = rnl_peek(s, NULL);
        (void)!rnl_receive(s, buf, n < 100 ? n : 100);
        (void)!rnl_receive(s, buf, 50);
        harmless++;
        return harmless % 3 ? RNL_DONE : RNL_REJECT(1);
    }
    uint64_t n = size_of(from, got), key = check_key(DATA, from, 0, got) ^ seed;
    CHECK(rnl_receive(s, buf, n) == 0);
    check_bytes(key, 0, buf, n, "a message of the honest");
    got++;
    return RNL_DONE;
}

static int on_toy(const void *buf, size_t n, unsigned from, void *ctx)
{
    volatile unsigned char sum = 0;
    (void)from, (void)ctx;
    for (size_t i = 0; buf && i < n; i += 31)
        sum = (unsigned char)(sum + ((const unsigned char *)buf)[i]);
    return RNL_DONE;
}

static void on_death(void *arg, unsigned rank, enum rnl_death_reason why)
{
    (void)arg;
    if (rank != HOSTILE)
        check_fail("rank %u is said to be dead", rank);
    CHECK(!hostile_dead);
    hostile_dead = 1;
    hostile_why = why;
}

static void send_honest(void)
{
    static unsigned char buf[LONGEST];
    uint64_t n = size_of(me, sent), key = check_key(DATA, me, 0, sent) ^ seed;
    const struct rnl_message b = {.peer = 1 - me, .handler = DATA, .bound = n};
    rnl_stream *s;
    check_fill(key, 0, buf, n);
    CHECK(rnl_begin(ep, &b, &s) == 0);
    CHECK(rnl_piece(s, buf, n / 2) == 0 && rnl_piece(s, buf + n / 2, n - n / 2) == 0);
    CHECK(rnl_end(s) == 0);
    sent++;
}

static unsigned bothers;

/* Whatever comes of it, it must come soon. */
static void bother_hostile(void)
{
    static unsigned char buf[3000];
    const struct rnl_message b = {.peer = HOSTILE,
                                  .handler = DATA + check_below(&random_state, 2),
                                  .bound = check_below(&random_state, sizeof buf),
                                  .answer = check_below(&random_state, 2) * 64,
                                  .flags = RNL_NO_WAIT};
    rnl_stream *s;
    if (rnl_begin(ep, &b, &s) == 0) {
        (void)!rnl_piece(s, buf, b.bound);
        (void)!rnl_end(s);
        bothers++;
    }
}

static void wait_a_little(unsigned ms)
{
    int64_t bytes = rnl_wait(ep, (int64_t)ms * 1000000);
    if (bytes < 0 && bytes != RNL_TIMED_OUT)
        check_fail("wait: %s", rnl_last_error()->text);
}

static void be_honest(void)
{
    uint64_t began = check_now_ns();
    while (sent < MESSAGES || got < MESSAGES) {
        if (sent < MESSAGES)
            send_honest();
        bother_hostile();
        if (rnl_extract(ep, check_below(&random_state, 50000)) < 0)
            check_fail("extract: %s", rnl_last_error()->text);
        if (sent == MESSAGES)
            wait_a_little(20);
    }
    for (unsigned i = 0; hostile_stops && bothers < 20 && i < 100; i++) { /* one that starts late needs some, too */
        bother_hostile();
        wait_a_little(2);
    }
    if (hostile_stops)
        CHECK(!hostile_dead && dprintf(STDOUT_FILENO, "exchanged %u\n", me) > 0);
    for (int asked = 0; !hostile_dead; asked++) { /* it will be gone at the latest when its time is up */
        wait_a_little(100);
        CHECK(asked < 1000);
    }
    int status = rnl_close(ep);
    CHECK(status == 0 || status == RNL_ERR_PEER_DEAD || status == RNL_ERR_PEER_BROKEN);
    CHECK(dprintf(STDOUT_FILENO, "done %u: %u messages of the hostile, %s, after %llu ms\n", me, harmless,
                  hostile_why == RNL_DEATH_BROKEN ? "broken" : "gone",
                  (unsigned long long)(check_now_ns() - began) / 1000000) > 0);
}

/* ---- the other ---- */

struct area {
    unsigned char *at;
    size_t bytes;
} area[64];
static unsigned areas;

static void add_area(void *at, size_t bytes)
{
    if (at != MAP_FAILED && areas < sizeof area / sizeof *area)
        area[areas++] = (struct area){at, bytes};
}

/* All shared memory that this process can write: mapped already, or behind its descriptors. */
static void find_areas(void)
{
    char line[512], path[300];
    FILE *maps = fopen("/proc/self/maps", "r");
    CHECK(maps != NULL);
    while (fgets(line, sizeof line, maps)) {
        unsigned long from, to;
        char mode[8];
        if (sscanf(line, "%lx-%lx %7s", &from, &to, mode) == 3 && mode[1] == 'w' && mode[3] == 's' &&
            !strstr(line, "counters"))
            add_area((void *)from, to - from);
    }
    (void)fclose(maps);
    for (int fd = 3; fd < 256; fd++) {
        struct stat st;
        snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
        ssize_t n = readlink(path, line, sizeof line - 1);
        line[n > 0 ? n : 0] = 0;
        if (n > 0 && strncmp(line, "/memfd:", 7) == 0 && !strstr(line, "counters") && fstat(fd, &st) == 0)
            add_area(mmap(NULL, (size_t)st.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0), (size_t)st.st_size);
    }
    CHECK(areas > 0);
}

static uint64_t likely(void)
{
    switch (check_below(&random_state, 5)) {
    case 0:
        return 0;
    case 1:
        return ~(uint64_t)0;
    case 2:
        return check_below(&random_state, 2000);
    default:
        return check_random(&random_state);
    }
}

static void scribble(void)
{
    const struct area *a = &area[check_below(&random_state, areas)];
    /* The first pages hold what steers; the rest is payload. */
    size_t span = check_below(&random_state, 3) && a->bytes > 16384 ? 16384 : a->bytes;
    size_t at = check_below(&random_state, (uint32_t)(span / 8)) * 8;
    uint64_t word = likely();
    memcpy(a->at + at, &word, 8);
}

static void lie_in_a_line(unsigned peer)
{
    struct rnl_conn *conn = ep->fast.conn[peer];
    unsigned lane = check_below(&random_state, RNL_LANES), len = check_below(&random_state, 64);
    struct rnl_tx *t = &conn->channel.tx[lane];
    uint64_t start = RNL_CELL_START(t->pos), words[7];
    struct rnl_cell *line = rnl_cell_of(t->ring, t->wrap, start);
    for (unsigned i = 0; i < 7; i++)
        words[i] = likely();
    if (check_below(&random_state, 2)) { /* an extent that may be true */
        struct rnl_extent e = {.start = t->bulk_head,
                               .reserved = check_below(&random_state, 5000),
                               .published = check_below(&random_state, 5000),
                               .bound = check_below(&random_state, 9000),
                               .flags = check_below(&random_state, 16)};
        memcpy(words, &e, sizeof e);
        len = sizeof e;
    }
    memcpy(line->payload, words, sizeof words);
    unsigned n = check_below(&random_state, 4) ? 1 : check_below(&random_state, 8);
    rnl_header h = rnl_header_key(check_below(&random_state, RNL_CELL_KINDS + 1), check_below(&random_state, 4), len) |
                   (rnl_header)(uint16_t)conn->channel.rx[0].pos << 16 | (uint16_t)(start + n);
    if (check_below(&random_state, 10) == 0)
        h ^= (rnl_header)1 << check_below(&random_state, 64);
    t->pos = start + 8;
    atomic_store_explicit(&line->header, h, memory_order_release);
}

static void lie_about_credit(unsigned peer)
{
    struct rnl_credit_words *back = &ep->fast.conn[peer]->channel.mine->credit[check_below(&random_state, RNL_LANES)];
    atomic_store(&back->position, likely());
    atomic_store(&back->granted, likely());
    atomic_store(&back->bulk_read, likely());
    atomic_store(&ep->fast.conn[peer]->channel.mine->credit_reclaim, likely());
    atomic_store(&ep->fast.conn[peer]->channel.mine->credit_returned, likely());
}

/* The segments, which the library gives back once they are mapped: asked for once more, and kept. */
static int kept[HOSTILE];

static void keep_segments(void)
{
    char path[64], line[300];
    int segment;
    for (unsigned peer = 0; peer < HOSTILE; peer++) {
        CHECK(ep->env->ops->segment_open(ep->env, peer, RNL_CHANNEL_BYTES, UINT64_MAX, &segment) == 0);
        kept[peer] = -1;
        for (int fd = 3; fd < 64 && kept[peer] < 0; fd++) {
            snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
            ssize_t n = readlink(path, line, sizeof line - 1);
            line[n > 0 ? n : 0] = 0;
            if (strncmp(line, "/memfd:runnel-0-2", 17) == 0 || strncmp(line, "/memfd:runnel-1-2", 17) == 0)
                kept[peer] = fcntl(fd, F_DUPFD, 100);
        }
        CHECK(kept[peer] >= 0);
        ep->env->ops->segment_close(ep->env, segment); /* not mapped for good: it is opened again when connecting */
    }
}

/* All of it, a page or two of either side, or any pages. */
static void punch(int fd, off_t size)
{
    off_t pages = size / 4096, at = 0, n = pages;
    if (check_below(&random_state, 4)) {
        at = check_below(&random_state, check_below(&random_state, 2) ? 3 : (uint32_t)pages);
        n = 1 + check_below(&random_state, 2);
    }
    (void)fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, at * 4096, n * 4096);
}

static void spoil(int fd)
{
    struct stat st;
    CHECK(fstat(fd, &st) == 0 && st.st_size == (off_t)RNL_CHANNEL_BYTES);
    switch (check_below(&random_state, 6)) {
    case 0:
        CHECK(ftruncate(fd, check_below(&random_state, 2) ? 0 : 4096) < 0);
        break;
    case 1:
        CHECK(ftruncate(fd, st.st_size * 2) < 0);
        break;
    case 2:
        CHECK(fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE) < 0);
        break;
    default:
        punch(fd, st.st_size);
        break;
    }
}

/* Each descriptor that others are woken by and that this process was given: full, and blocking where that is shared. */
static void block_wakers(void)
{
    char path[64], line[300];
    for (unsigned peer = 0; peer < HOSTILE; peer++)
        for (int i = 0; i < 100; i++) { /* the first time it is asked for */
            ep->env->ops->fd_raise(ep->env, peer);
            check_sleep_ms(1);
        }
    for (int fd = 3; fd < 256; fd++) {
        int type = 0;
        socklen_t size = sizeof type;
        snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
        ssize_t bytes = readlink(path, line, sizeof line - 1);
        line[bytes > 0 ? bytes : 0] = 0;
        if (!strstr(line, "eventfd") && (getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) < 0 || type != SOCK_DGRAM))
            continue;
        CHECK(fcntl(fd, F_SETFL, O_NONBLOCK) == 0);
        for (uint64_t n = UINT64_MAX - 1; n > 0; n /= 2) /* a counter, to the last one */
            for (int i = 0; i < 10000 && write(fd, &n, sizeof n) > 0; i++)
                ;
        CHECK(fcntl(fd, F_SETFL, 0) == 0);
    }
}

static void be_hostile(const char *mode, unsigned ms)
{
    uint64_t end = check_now_ns() + (uint64_t)ms * 1000000;
    struct rnl_conn *conn;
    if (hostile_stops)
        CHECK(hostile_stop(ep, mode + 5) == 0);
    if (strcmp(mode, "files") == 0)
        keep_segments();
    for (unsigned peer = 0; peer < HOSTILE; peer++) {
        CHECK(rnl_ep_connect(ep, peer, &conn) == 0);
        CHECK(rnl_send(ep, peer, DATA, "hello", 5) == 0);
    }
    check_sleep_ms(check_below(&random_state, 10));
    find_areas();
    if (strcmp(mode, "block") == 0) {
        block_wakers();
        check_sleep_ms(ms);
        _exit(0); /* of which the launcher tells the others */
    }
    if (strcmp(mode, "stop") == 0) {
        for (unsigned i = check_below(&random_state, 2000); i > 0; i--) {
            (void)!rnl_send(ep, i % 2, DATA, "hello", 5);
            (void)!rnl_extract(ep, 1000);
        }
        pid_t self = getpid();
        if (fork() == 0) { /* who ends it */
            check_sleep_ms(ms);
            (void)kill(self, SIGKILL);
            _exit(0);
        }
        (void)raise(SIGSTOP);
    }
    while (check_now_ns() < end) {
        for (int i = 0; i < 50; i++) {
            unsigned peer = check_below(&random_state, HOSTILE);
            if (strcmp(mode, "scribble") == 0)
                scribble();
            else if (strcmp(mode, "lines") == 0)
                lie_in_a_line(peer);
            else if (strcmp(mode, "credit") == 0)
                lie_about_credit(peer);
            else
                spoil(kept[peer]);
        }
        if (check_below(&random_state, 3) == 0)
            check_sleep_ms(1);
    }
    _exit(0); /* without a word */
}

int main(int argc, char **argv)
{
    struct rnl_options opt = {.size = sizeof opt, .name = "hostile"};
    if (argc == 2 && strcmp(argv[1], "states") == 0) {
        hostile_stop_list();
        return 0;
    }
    if (argc < 4) {
        printf("multi-hostile MODE SEED MS: run by tests/multi/test_hostile.sh\n");
        return 77;
    }
    seed = strtoull(argv[2], NULL, 0);
    hostile_stops = strncmp(argv[1], "stop-", 5) == 0;
    CHECK(rnl_open(&ep, &opt) == 0);
    me = rnl_rank(ep);
    check_rank = me;
    random_state = seed + me;
    CHECK(rnl_size(ep) == RANKS);
    rnl_on_death(ep, on_death, NULL);
    CHECK(rnl_handler_stream(ep, DATA, on_data, NULL) == DATA);
    CHECK(rnl_handler_whole(ep, TOY, on_toy, NULL, check_below(&random_state, 2) ? RNL_IN_PLACE : 0) == TOY);
    if (me == HOSTILE)
        be_hostile(argv[1], (unsigned)strtoul(argv[3], NULL, 0));
    be_honest();
    return 0;
}
