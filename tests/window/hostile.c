/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Importers that keep no rule, each a process: they write on after a revoke, keep what they mapped, give their
 * descriptors away, and forge what they say. Nothing of that reaches memory of the owner's. */
#include "window/pair.h"
#include "window/wire.h"

#include <pthread.h>
#include <sys/stat.h>

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

/* ---- descriptors that a thief holds ---- */

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
    play("an importer that keeps writing after a revoke does not reach the memory", fire_owner, fire_importer);
    play("puts end at a revoke", polite_owner, polite_importer);
    stranger = geteuid() == 0 ? 65534 : 0;
    if (stranger)
        play("what another user's importer keeps is not the memory after a revoke", stranger_owner, stranger_importer);
    else
        printf("another user's importer is not played: it takes root to be one\n");
    stranger = 0;
    play("descriptors that a thief holds reach no window, and keep no dead importer", stolen_owner, stolen_importer);
    play("forged messages reach nothing", forged_owner, forged_importer);
    return 0;
}
