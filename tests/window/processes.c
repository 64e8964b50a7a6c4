/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Windows between processes that were introduced: memory that was adopted, a revoke under fire, a kill of either side,
 * fork, thousands of offers, and importers that forge what they say. */
#include "endpoint/endpoint.h"
#include "runnel/window.h"
#include "window/wire.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/must.h"

enum { PAGE = 4096, BYTES = 4 * PAGE, ID = 3, MANY = 10000, IMPORTS_AT_A_TIME = 1 };
#define BOUND_NS ((int64_t)30 * 1000 * 1000 * 1000)

struct shared { /* by both processes */
    _Atomic int step;
    _Atomic uint64_t word;
};

struct side {
    rnl_endpoint *ep;
    unsigned peer;
    struct shared *shared;
    pid_t other; /* of the owner: the importer's process */
};

static void say(struct side *s, int step)
{
    atomic_store(&s->shared->step, step);
}

static void progress(struct side *s)
{
    int64_t did = rnl_wait(s->ep, 1000000);
    TEST_MUST(did >= 0 || did == RNL_TIMED_OUT);
}

static void await(struct side *s, int step)
{
    uint64_t end = test_now_ns() + (uint64_t)BOUND_NS;
    while (atomic_load(&s->shared->step) < step) {
        progress(s);
        TEST_MUST(test_now_ns() < end);
    }
}

#define UNTIL(s, x)                                              \
    do {                                                         \
        uint64_t until_end = test_now_ns() + (uint64_t)BOUND_NS; \
        while (!(x)) {                                           \
            progress(s);                                         \
            TEST_MUST(test_now_ns() < until_end);                \
        }                                                        \
    } while (0)

static rnl_window *window(struct side *s, uint32_t id, uint32_t flags, unsigned char **at)
{
    const struct rnl_offer o = {.size = sizeof o, .id = id, .flags = flags};
    rnl_window *w;
    void *p;
    TEST_MUST(rnl_window_alloc(s->ep, BYTES, &p, &w) == 0);
    TEST_MUST(rnl_window_offer(w, &o) == 0);
    *at = p;
    return w;
}

static rnl_import *import(struct side *s)
{
    rnl_import *m;
    TEST_MUST(rnl_window_import(s->ep, s->peer, ID, BOUND_NS, &m, NULL) == 0);
    return m;
}

/* Which file's pages lie there. */
static unsigned long file_at(const void *at)
{
    char line[512];
    unsigned long from, inode = 0;
    FILE *maps = fopen("/proc/self/maps", "r");
    TEST_MUST(maps);
    while (fgets(line, sizeof line, maps))
        if (sscanf(line, "%lx-%*x %*s %*x %*s %lu", &from, &inode) == 2 && from == (unsigned long)(uintptr_t)at)
            break;
    fclose(maps);
    return inode;
}

static uid_t stranger; /* the importer's user, if it is another one */

static void become_stranger(void)
{
    TEST_MUST(!stranger || setresuid(stranger, stranger, stranger) == 0);
}

/* Runs importer in a process of its own, introduced to this one. */
static void play(const char *name, void (*owner)(struct side *), void (*importer)(struct side *))
{
    const struct rnl_admit anyone = {.flags = RNL_ADMIT_ANYONE};
    const struct rnl_options alone = {.size = sizeof alone, .flags = RNL_ALONE};
    struct shared *shared = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    struct side s = {.shared = shared};
    int pair[2], status;
    TEST_MUST(shared != MAP_FAILED && socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair) == 0);
    fflush(stdout);
    pid_t child = fork();
    TEST_MUST(child >= 0);
    if (child == 0)
        become_stranger();
    TEST_MUST(child || prctl(PR_SET_PDEATHSIG, SIGKILL) == 0); /* the child outlives no test that has failed */
    TEST_MUST(rnl_open(&s.ep, &alone) == 0);
    TEST_MUST(rnl_introduce(s.ep, pair[child == 0], child ? RNL_ACCEPT : RNL_OFFER, stranger ? &anyone : NULL, BOUND_NS,
                            &s.peer) == 0);
    close(pair[0]);
    close(pair[1]);
    if (child == 0) {
        importer(&s);
        TEST_MUST(rnl_close(s.ep) == 0);
        _exit(0);
    }
    s.other = child;
    owner(&s);
    TEST_MUST(rnl_close(s.ep) == 0);
    TEST_MUST(waitpid(child, &status, 0) == child);
    TEST_MUST(WIFEXITED(status) ? WEXITSTATUS(status) == 0 : WTERMSIG(status) == SIGKILL);
    munmap(shared, PAGE);
    printf("ok - %s\n", name);
}

/* ---- adopted memory ---- */

static _Alignas(PAGE) unsigned char in_bss[BYTES];

static void adopt_owner(struct side *s)
{
    const struct rnl_offer o = {.size = sizeof o, .id = ID};
    rnl_window *w;
    unsigned char on_stack[3 * PAGE];
    unsigned char *aligned = on_stack + (-(uintptr_t)on_stack & (PAGE - 1));
    unsigned char *heap = aligned_alloc(PAGE, BYTES);
    FILE *file = tmpfile();
    TEST_MUST(heap && file && ftruncate(fileno(file), PAGE) == 0);
    void *mapped = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE, fileno(file), 0);
    TEST_MUST(mapped != MAP_FAILED);
    TEST_MUST(rnl_window_adopt(s->ep, aligned, PAGE, &w) == RNL_ERR_UNSUPPORTED);
    TEST_MUST(rnl_window_adopt(s->ep, mapped, PAGE, &w) == RNL_ERR_UNSUPPORTED);
    TEST_MUST(rnl_window_adopt(s->ep, in_bss + 8, PAGE, &w) == RNL_ERR_UNSUPPORTED);
    TEST_MUST(rnl_window_adopt(s->ep, in_bss, 100, &w) == RNL_ERR_UNSUPPORTED);
    munmap(mapped, PAGE);
    fclose(file);
    heap[17] = 17;
    TEST_MUST(rnl_window_adopt(s->ep, heap, BYTES, &w) == 0 && heap[17] == 17 && rnl_window_free(w) == 0);
    TEST_MUST(heap[17] == 17);
    free(heap);
    in_bss[5] = 55;
    TEST_MUST(rnl_window_adopt(s->ep, in_bss, BYTES, &w) == 0 && in_bss[5] == 55);
    TEST_MUST(rnl_window_offer(w, &o) == 0);
    await(s, 1);
    TEST_MUST(in_bss[6] == 66);
    TEST_MUST(rnl_window_free(w) == 0 && in_bss[6] == 66);
    in_bss[6] = 0;
    say(s, 2);
    await(s, 3);
    TEST_MUST(in_bss[6] == 0); /* the importer wrote it through its mapping */
}

static void adopt_importer(struct side *s)
{
    unsigned char byte = 0;
    rnl_import *m = import(s);
    volatile unsigned char *at = ((struct rnl_import_head *)(void *)m)->at;
    TEST_MUST(rnl_import_is_direct(m) && rnl_get(m, 5, &byte, 1) == 0 && byte == 55);
    byte = 66;
    TEST_MUST(rnl_put(m, 6, &byte, 1, 0) == 0);
    say(s, 1);
    while (atomic_load(&s->shared->step) < 2) /* makes no progress */
        test_sleep_ms(1);
    at[6] = 99;
    say(s, 3);
}

/* ---- a revoke under fire ---- */

static void *fire(void *arg)
{
    volatile unsigned char *at = arg;
    for (;;)
        for (size_t i = 0; i < BYTES; i += 64)
            at[i] = 0xbb;
    return NULL;
}

static void fire_owner(struct side *s)
{
    unsigned char *at;
    rnl_window *w = window(s, ID, 0, &at);
    await(s, 1);
    UNTIL(s, at[0] == 0xbb);
    const unsigned long file = file_at(at);
    const uint64_t began = test_now_ns();
    TEST_MUST(rnl_window_revoke(w, 20 * 1000 * 1000) == 0);
    TEST_MUST(test_now_ns() - began >= 20 * 1000 * 1000 && file_at(at) != file);
    memset(at, 1, BYTES);
    test_sleep_ms(50);
    for (size_t i = 0; i < BYTES; i++)
        TEST_MUST(at[i] == 1);
    TEST_MUST(kill(s->other, SIGKILL) == 0);
    UNTIL(s, rnl_window_revoke(w, -1) == 0);
}

/* A process that has mapped the window and does not keep the rules: nothing that its library is told is looked at. */
static void fire_importer(struct side *s)
{
    pthread_t t;
    rnl_import *m = import(s);
    unsigned char *at = ((struct rnl_import_head *)(void *)m)->at;
    TEST_MUST(pthread_create(&t, NULL, fire, at) == 0);
    say(s, 1);
    for (;;)
        pause();
}

static void polite_owner(struct side *s)
{
    unsigned char *at;
    rnl_window *w = window(s, ID, 0, &at);
    await(s, 1);
    const unsigned long file = file_at(at);
    TEST_MUST(rnl_window_revoke(w, BOUND_NS) == 0);
    TEST_MUST(file != 0 && file_at(at) == file); /* it has waited for the answer, and nothing was moved */
    memset(at, 1, BYTES);
    await(s, 2);
    for (size_t i = 0; i < BYTES; i++)
        TEST_MUST(at[i] == 1);
}

static void polite_importer(struct side *s)
{
    unsigned char own[700];
    rnl_import *m = import(s);
    int status = 0;
    memset(own, 7, sizeof own);
    uint64_t end = test_now_ns() + (uint64_t)BOUND_NS;
    for (size_t i = 0; status == 0; i = (i + 1) % BYTES) {
        status = rnl_put(m, i, own, i + sizeof own <= BYTES ? sizeof own : 1, 0);
        TEST_MUST(rnl_extract(s->ep, SIZE_MAX) >= 0 && test_now_ns() < end);
        say(s, 1);
    }
    TEST_MUST(status == RNL_ERR_REVOKED);
    say(s, 2);
}

/* An importer of another user that says what it should, and keeps the memory. */
static void stranger_owner(struct side *s)
{
    const struct rnl_admit anyone = {.flags = RNL_ADMIT_ANYONE};
    const struct rnl_offer o = {.size = sizeof o, .id = ID, .flags = RNL_OFFER_DIRECT, .who = &anyone};
    rnl_window *w;
    void *p;
    TEST_MUST(rnl_window_alloc(s->ep, BYTES, &p, &w) == 0);
    const unsigned char *at = p;
    for (int turn = 0; turn < 2; turn++) {
        TEST_MUST(rnl_window_offer(w, &o) == 0);
        await(s, 3 * turn + 1);
        TEST_MUST(rnl_window_revoke(w, BOUND_NS) == 0);
        memset(p, 1, BYTES);
        say(s, 3 * turn + 2);
        await(s, 3 * turn + 3);
        for (size_t i = 0; i < BYTES; i++)
            TEST_MUST(at[i] == 1);
    }
}

static void stranger_importer(struct side *s)
{
    for (int turn = 0; turn < 2; turn++) {
        rnl_import *m = import(s);
        TEST_MUST(rnl_import_is_direct(m));
        unsigned char *kept = mremap(((struct rnl_import_head *)(void *)m)->at, 0, BYTES, MREMAP_MAYMOVE);
        TEST_MUST(kept != MAP_FAILED);
        if (turn == 1)
            TEST_MUST(rnl_import_drop(m) == 0 && rnl_quiet(s->ep, s->peer, BOUND_NS) == 0);
        say(s, 3 * turn + 1);
        await(s, 3 * turn + 2);
        memset(kept, 0xbb, BYTES);
        say(s, 3 * turn + 3);
    }
}

/* ---- death ---- */

static void killed_importer_owner(struct side *s)
{
    unsigned char *at;
    unsigned peer;
    rnl_window *w = window(s, ID, 0, &at);
    await(s, 1);
    TEST_MUST(rnl_window_importers(w, &peer, 1) == 1 && peer == s->peer);
    TEST_MUST(kill(s->other, SIGKILL) == 0);
    UNTIL(s, rnl_window_importers(w, &peer, 1) == 0);
    TEST_MUST(rnl_window_revoke(w, -1) == 0);
}

static void killed_importer(struct side *s)
{
    (void)import(s);
    say(s, 1);
    for (;;)
        pause();
}

/* The roles are changed: the process of ours imports. */
static void killed_owner_importer(struct side *s)
{
    const uint64_t word = 5;
    rnl_import *m = import(s);
    TEST_MUST(rnl_put(m, 0, &word, 8, 0) == 0);
    TEST_MUST(kill(s->other, SIGKILL) == 0);
    UNTIL(s, rnl_put(m, 0, &word, 8, 0) == RNL_ERR_PEER_DEAD);
    TEST_MUST(rnl_put(m, 4, &word, 8, 0) == RNL_ERR_PEER_DEAD && rnl_import_state(m, NULL) == RNL_ERR_PEER_DEAD);
    TEST_MUST(rnl_quiet(s->ep, s->peer, BOUND_NS) == RNL_ERR_PEER_DEAD);
    TEST_MUST(rnl_import_drop(m) == 0);
}

static void killed_owner(struct side *s)
{
    unsigned char *at;
    (void)window(s, ID, 0, &at);
    for (;;)
        progress(s);
}

/* The thread of each side works when its process is killed: the owner of the carried window, or its importer. */
static void compute_until(struct side *s, int step)
{
    uint64_t end = test_now_ns() + (uint64_t)BOUND_NS;
    while (atomic_load(&s->shared->step) < step) {
        TEST_MUST(test_now_ns() < end);
        test_sleep_ms(1);
    }
}

static void served_survivor_owner(struct side *s)
{
    unsigned char *at;
    unsigned peer;
    TEST_MUST(rnl_progress_start(s->ep) == 0);
    rnl_window *w = window(s, ID, RNL_OFFER_CARRIED, &at);
    compute_until(s, 1);
    const uint64_t seen = __atomic_load_n((uint64_t *)(void *)at, __ATOMIC_ACQUIRE);
    TEST_MUST(seen > 0 && kill(s->other, SIGKILL) == 0);
    test_sleep_ms(20); /* the thread meets the death first, if it is quick */
    UNTIL(s, rnl_window_importers(w, &peer, 1) == 0);
    TEST_MUST(rnl_window_revoke(w, -1) == 0 && rnl_quiet(s->ep, s->peer, BOUND_NS) == RNL_ERR_PEER_DEAD);
}

static void served_victim_importer(struct side *s)
{
    uint64_t was;
    TEST_MUST(rnl_progress_start(s->ep) == 0);
    for (rnl_import *m = import(s);; say(s, 1))
        TEST_MUST(rnl_fetch_add(m, 0, 1, &was) == 0 || rnl_last_error()->status == RNL_ERR_PEER_DEAD);
}

static void served_survivor_importer(struct side *s)
{
    uint64_t was, turns = 0, end = test_now_ns() + (uint64_t)BOUND_NS;
    int status;
    rnl_import *m = import(s);
    while ((status = rnl_fetch_add(m, 0, 1, &was)) == 0) {
        TEST_MUST(was == turns++ && test_now_ns() < end);
        if (turns == 200) /* the thread of that process is at work */
            TEST_MUST(kill(s->other, SIGKILL) == 0);
    }
    TEST_MUST(status == RNL_ERR_PEER_DEAD && turns >= 200);
    TEST_MUST(rnl_put(m, 0, &was, 8, 0) == RNL_ERR_PEER_DEAD && rnl_import_drop(m) == 0);
}

static void served_victim_owner(struct side *s)
{
    unsigned char *at;
    TEST_MUST(rnl_progress_start(s->ep) == 0);
    (void)window(s, ID, RNL_OFFER_CARRIED, &at);
    compute_until(s, 1);
}

/* ---- descriptors that others hold, or nobody ---- */

/* A child of the importer holds all descriptors of it, those of the pair and of the window among them, when it dies. */
static void stolen_owner(struct side *s)
{
    unsigned char *at;
    unsigned peer;
    rnl_window *w = window(s, ID, 0, &at);
    await(s, 1);
    TEST_MUST(kill(s->other, SIGKILL) == 0);
    UNTIL(s, rnl_window_importers(w, &peer, 1) == 0);
    TEST_MUST(rnl_window_revoke(w, -1) == 0);
    memset(at, 1, BYTES);
    say(s, 2);
    compute_until(s, 3);
    for (size_t i = 0; i < BYTES; i++)
        TEST_MUST(at[i] == 1);
}

/* The thief maps every file of that length which it finds among its descriptors, and what it has mapped already. */
static void steal(struct side *s, void *mapped)
{
    struct stat about;
    compute_until(s, 2);
    memset(mapped, 0xbb, BYTES);
    for (int fd = 0; fd < 256; fd++) {
        void *at = fstat(fd, &about) == 0 && S_ISREG(about.st_mode) && about.st_size == BYTES
                       ? mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0)
                       : MAP_FAILED;
        if (at != MAP_FAILED)
            memset(at, 0xbb, BYTES);
    }
    say(s, 3);
    _exit(0);
}

static void stolen_importer(struct side *s)
{
    rnl_import *m = import(s);
    void *kept = mremap(((struct rnl_import_head *)(void *)m)->at, 0, BYTES, MREMAP_MAYMOVE);
    TEST_MUST(kept != MAP_FAILED && madvise(kept, BYTES, MADV_DOFORK) == 0);
    pid_t thief = fork(); /* it ends by itself, at the latest when its time is up */
    TEST_MUST(thief >= 0);
    if (thief == 0)
        steal(s, kept);
    say(s, 1);
    for (;;)
        pause();
}

/* A program that closes all descriptors, as daemons do, takes those of the library with them. */
static void closed_owner(struct side *s)
{
    unsigned char *at;
    unsigned peer;
    rnl_window *w = window(s, ID, 0, &at);
    await(s, 1);
    UNTIL(s, rnl_window_importers(w, &peer, 1) == 0 || at[8] == 8);
    say(s, 2);
    TEST_MUST(rnl_window_free(w) == 0);
    await(s, 3);
}

static void closed_importer(struct side *s)
{
    const uint64_t word = 8;
    rnl_import *m = import(s);
    for (int fd = 3; fd < 1024; fd++)
        close(fd);
    say(s, 1);
    int status = rnl_put(m, 8, &word, 8, 0);
    TEST_MUST(status == 0 || status == RNL_ERR_PEER_DEAD);
    uint64_t end = test_now_ns() + (uint64_t)BOUND_NS;
    while (atomic_load(&s->shared->step) < 2) {
        TEST_MUST(rnl_extract(s->ep, SIZE_MAX) != INT64_MIN); /* whatever it says, it returns */
        TEST_MUST(test_now_ns() < end);
    }
    say(s, 3);
    _exit(0); /* a close has nobody to talk to */
}

/* ---- fork ---- */

static void fork_owner(struct side *s)
{
    unsigned char *at;
    int status;
    rnl_window *w = window(s, ID, 0, &at);
    at[0] = 1;
    await(s, 1);
    pid_t child = fork();
    TEST_MUST(child >= 0);
    if (child == 0) {
        TEST_MUST(at[0] == 1 && at[8] == 8);
        at[0] = 2;
        TEST_MUST(rnl_window_free(w) == RNL_ERR_FORKED);
        _exit(0);
    }
    TEST_MUST(waitpid(child, &status, 0) == child && status == 0);
    TEST_MUST(at[0] == 1);
    say(s, 2);
    await(s, 3);
    TEST_MUST(at[16] == 16);
}

static void fork_importer(struct side *s)
{
    uint64_t word = 8;
    int status;
    rnl_import *m = import(s);
    TEST_MUST(rnl_put(m, 8, &word, 8, 0) == 0);
    say(s, 1);
    await(s, 2);
    pid_t child = fork();
    TEST_MUST(child >= 0);
    if (child == 0) {
        TEST_MUST(rnl_put(m, 8, &word, 8, 0) == RNL_ERR_FORKED && rnl_get(m, 8, &word, 8) == RNL_ERR_FORKED);
        TEST_MUST(rnl_import_state(m, NULL) == RNL_ERR_FORKED && rnl_import_drop(m) == RNL_ERR_FORKED);
        _exit(0);
    }
    TEST_MUST(waitpid(child, &status, 0) == child && status == 0);
    word = 16;
    TEST_MUST(rnl_put(m, 16, &word, 8, 0) == 0);
    say(s, 3);
}

/* ---- many ---- */

static unsigned char bytes_of_many[MANY];

static void many_owner(struct side *s)
{
    rnl_window **w = calloc(MANY, sizeof *w);
    TEST_MUST(w);
    for (uint32_t i = 0; i < MANY; i++) {
        const struct rnl_offer o = {.size = sizeof o, .id = i * 7 + 1};
        TEST_MUST(rnl_window_wrap(s->ep, &bytes_of_many[i], 1, &w[i]) == 0 && rnl_window_offer(w[i], &o) == 0);
    }
    const struct rnl_offer again = {.size = sizeof again, .id = 8};
    rnl_window *other;
    TEST_MUST(rnl_window_wrap(s->ep, bytes_of_many, 1, &other) == 0);
    TEST_MUST(rnl_window_offer(other, &again) == RNL_ERR_REFUSED);
    say(s, 1);
    await(s, 2);
    for (uint32_t i = 0; i < MANY; i++)
        TEST_MUST(bytes_of_many[i] == (unsigned char)(i % 251 + 1));
    for (uint32_t i = 0; i < MANY; i++)
        TEST_MUST(rnl_window_free(w[i]) == 0);
    free(w);
}

static void many_importer(struct side *s)
{
    rnl_import **m = calloc(MANY, sizeof *m);
    TEST_MUST(m);
    await(s, 1);
    for (uint32_t i = 0; i < MANY; i++)
        TEST_MUST(rnl_import_begin(s->ep, s->peer, i * 7 + 1, &m[i]) == 0);
    for (uint32_t i = 0; i < MANY; i++) {
        const unsigned char byte = (unsigned char)(i % 251 + 1);
        UNTIL(s, rnl_import_state(m[i], NULL) != 0);
        TEST_MUST(rnl_import_state(m[i], NULL) == 1 && !rnl_import_is_direct(m[i]));
        TEST_MUST(rnl_put(m[i], 0, &byte, 1, 0) == 0);
        TEST_MUST(rnl_put(m[i], 1, &byte, 1, 0) == RNL_ERR_PAST_END);
    }
    TEST_MUST(rnl_quiet(s->ep, s->peer, BOUND_NS) == 0);
    say(s, 2);
    free(m);
}

/* ---- forged ---- */

static void forged_owner(struct side *s)
{
    unsigned char *at, *beside;
    rnl_window *w = window(s, ID, RNL_OFFER_CARRIED, &at);
    rnl_window *other = window(s, ID + 1, RNL_OFFER_CARRIED, &beside);
    await(s, 1);
    for (size_t i = 0; i < BYTES; i++)
        TEST_MUST(at[i] == 0 && beside[i] == 0);
    TEST_MUST(rnl_window_free(w) == 0 && rnl_window_free(other) == 0);
    say(s, 2);
    await(s, 3);
}

static void forge(struct side *s, unsigned kind, const void *head, size_t n, size_t more, size_t answer)
{
    static const unsigned char junk[70000] = {0x99, 0x99, 0x99};
    const struct rnl_message b = {
        .peer = s->peer, .handler = RNL_LIBRARY_ID + kind, .bound = n + more, .answer = answer};
    rnl_stream *out;
    TEST_MUST(rnl_begin(s->ep, &b, &out) == 0);
    TEST_MUST(rnl_piece(out, head, n) == 0 && rnl_piece(out, junk, more) == 0 && rnl_end(out) == 0);
}

/* Everything that is not true of each message, sent past the library. */
static void forged_importer(struct side *s)
{
    static const struct window_put puts[] = {
        {.grant = 1, .n = 8},
        {.grant = 0, .generation = 1, .n = 8},
        {.grant = UINT32_MAX, .n = 8},
        {.grant = 0, .offset = BYTES - 7, .n = 8},
        {.grant = 0, .offset = BYTES, .n = 8},
        {.grant = 0, .offset = UINT64_MAX - 3, .n = 8},
        {.grant = 0, .offset = 8, .n = UINT64_MAX - 7},
        {.grant = 0, .offset = 0, .n = UINT64_MAX},
    };
    struct window_atomic change = {.grant = 0, .bytes = 8, .op = 99};
    rnl_import *m = import(s);
    (void)m;
    for (size_t i = 0; i < sizeof puts / sizeof puts[0]; i++) {
        forge(s, WINDOW_PUT, &puts[i], sizeof puts[i], 8, 0);
        forge(s, WINDOW_PUT, &puts[i], sizeof puts[i], 60000, 0);
        forge(s, WINDOW_PUT_NOTIFY, &puts[i], sizeof puts[i], 8, 0);
        forge(s, WINDOW_NOTIFY, &puts[i], sizeof puts[i], 0, 0);
        forge(s, WINDOW_DROP, &puts[i], sizeof(struct window_drop), 0, 0);
    }
    for (unsigned bytes = 0; bytes < 256; bytes++) {
        change.bytes = (uint8_t)bytes;
        change.op = bytes == 8 || bytes == 4 ? 200 : 0;
        forge(s, WINDOW_CHANGE, &change, sizeof change, 0, 0);
    }
    change = (struct window_atomic){.grant = 0, .bytes = 8, .op = 0, .offset = BYTES - 4, .operand = 1};
    forge(s, WINDOW_CHANGE, &change, sizeof change, 0, 0);
    change.offset = 3;
    forge(s, WINDOW_CHANGE, &change, sizeof change, 0, 0);
    for (unsigned kind = 0; kind < WINDOW_KINDS + 3; kind++) /* too short, and of unknown kinds */
        if (kind < WINDOW_KINDS)
            forge(s, kind, &change, 3, 0, 64);
    say(s, 1);
    while (atomic_load(&s->shared->step) < 2)
        progress(s);
    say(s, 3);
}

int main(void)
{
    play("memory is adopted and given back", adopt_owner, adopt_importer);
    play("an importer that keeps writing after a revoke does not reach the memory", fire_owner, fire_importer);
    play("puts end at a revoke", polite_owner, polite_importer);
    stranger = geteuid() == 0 ? 65534 : 0;
    if (stranger)
        play("what another user's importer keeps is not the memory after a revoke", stranger_owner, stranger_importer);
    else
        printf("another user's importer is not played: it takes root to be one\n");
    stranger = 0;
    play("a killed importer is forgotten", killed_importer_owner, killed_importer);
    play("puts to a killed owner say so", killed_owner_importer, killed_owner);
    play("an owner that computes forgets a killed importer", served_survivor_owner, served_victim_importer);
    play("an owner killed while its thread serves is dead for importers", served_survivor_importer,
         served_victim_owner);
    play("descriptors that a thief holds reach no window, and keep no dead importer", stolen_owner, stolen_importer);
    play("an importer without its descriptors holds nobody up", closed_owner, closed_importer);
    play("a forked child has copies, and no imports", fork_owner, fork_importer);
    play("ten thousand windows are offered and imported", many_owner, many_importer);
    play("forged messages reach nothing", forged_owner, forged_importer);
    return 0;
}
