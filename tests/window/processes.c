/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Windows between processes that were introduced: memory that was adopted, fork, a kill of either side, descriptors
 * that are lost, thousands of offers. */
#include "window/pair.h"

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

/* What waits for an offer when the owner dies, and what asks before and after the death is known. */
static void late_importer(struct side *s)
{
    rnl_import *m = import(s), *waits, *late;
    size_t bytes;
    TEST_MUST(rnl_import_begin(s->ep, s->peer, ID + 1, &waits) == 0);
    for (unsigned i = 0; i < 20; i++)
        progress(s); /* the owner has it in its list */
    TEST_MUST(rnl_import_state(waits, NULL) == 0 && kill(s->other, SIGKILL) == 0);
    TEST_MUST(rnl_window_import(s->ep, s->peer, ID + 1, BOUND_NS, &late, &bytes) == RNL_ERR_PEER_DEAD);
    TEST_MUST(strstr(rnl_last_error()->text, "gone") || strstr(rnl_last_error()->text, "dead"));
    UNTIL(s, rnl_import_state(waits, NULL) != 0);
    TEST_MUST(rnl_import_state(waits, NULL) == RNL_ERR_PEER_DEAD && rnl_import_state(m, NULL) == RNL_ERR_PEER_DEAD);
    TEST_MUST(rnl_window_import(s->ep, s->peer, ID, BOUND_NS, &late, &bytes) == RNL_ERR_PEER_DEAD);
    TEST_MUST(rnl_window_import(s->ep, s->peer, ID, 0, &late, &bytes) == RNL_ERR_PEER_DEAD);
    int status = rnl_import_begin(s->ep, s->peer, ID, &late);
    TEST_MUST(status == RNL_ERR_PEER_DEAD || (status == 0 && rnl_import_state(late, NULL) == RNL_ERR_PEER_DEAD));
    TEST_MUST(rnl_import_drop(waits) == 0 && rnl_import_drop(m) == 0);
    TEST_MUST(status < 0 || rnl_import_drop(late) == 0);
}

/* The thread of each side works when its process is killed: the owner of the carried window, or its importer. */
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

/* ---- descriptors ---- */

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

enum { MANY = 10000 };
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

int main(void)
{
    play("memory is adopted and given back", adopt_owner, adopt_importer);
    play("a killed importer is forgotten", killed_importer_owner, killed_importer);
    play("puts to a killed owner say so", killed_owner_importer, killed_owner);
    play("who imports from a killed owner is told, before and after its death is known", late_importer, killed_owner);
    play("an owner that computes forgets a killed importer", served_survivor_owner, served_victim_importer);
    play("an owner killed while its thread serves is dead for importers", served_survivor_importer,
         served_victim_owner);
    play("an importer without its descriptors holds nobody up", closed_owner, closed_importer);
    play("a forked child has copies, and no imports", fork_owner, fork_importer);
    play("ten thousand windows are offered and imported", many_owner, many_importer);
    return 0;
}
