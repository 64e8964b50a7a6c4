/* SPDX-License-Identifier: BSD-3-Clause
 *
 * test_exchange.c - jobs whose processes learn of each other by an exchange of their own (struct rnl_exchange): here
 * by files in a folder. They share memory, or are told that they are on different hosts and send datagrams; one opens
 * several such jobs; one dies; an exchange fails in one rank. */
#include "runnel/adapter.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "support/must.h"
#include "support/unit.h"

enum { RANKS = 3, NUMBER = 1, LONG = 2, WATCH_S = 40, BYTES = 300000, FAILED = 42 };

struct files { /* an exchange by files: FOLDER/RANK.KEY, and FOLDER/fence.N.RANK */
    char folder[64];
    uint32_t rank, ranks;
    unsigned fences, fails_at; /* fails_at: the number of the fence that fails; 0 = none */
    bool forever;              /* a fence does not give up */
};

static void name_value(const struct files *f, uint32_t rank, const char *key, char out[160])
{
    snprintf(out, 160, "%s/%u.%s", f->folder, rank, key);
}

static int put(void *arg, const char *key, const void *value, size_t bytes)
{
    const struct files *f = arg;
    char name[160], new[170];
    name_value(f, f->rank, key, name);
    snprintf(new, sizeof new, "%s.new", name);
    int fd = open(new, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    bool good = fd >= 0 && write(fd, value, bytes) == (ssize_t)bytes;
    if (fd >= 0)
        close(fd);
    return good && rename(new, name) == 0 ? 0 : -1;
}

static int get(void *arg, uint32_t rank, const char *key, void *value, size_t bytes)
{
    char name[160];
    name_value(arg, rank, key, name);
    int fd = open(name, O_RDONLY | O_CLOEXEC);
    bool good = fd >= 0 && read(fd, value, bytes) == (ssize_t)bytes;
    if (fd >= 0)
        close(fd);
    return good ? 0 : -1;
}

static int fence(void *arg)
{
    struct files *f = arg;
    const struct timespec pause = {.tv_nsec = 1000000};
    char key[32];
    snprintf(key, sizeof key, "fence.%u", ++f->fences);
    if (put(f, key, "x", 1) < 0)
        return -1;
    for (uint32_t rank = 0; rank < f->ranks; rank++) {
        char is;
        for (int ms = 0; get(f, rank, key, &is, 1) < 0; ms++) {
            if (ms > WATCH_S * 1000 && !f->forever)
                return -1;
            nanosleep(&pause, NULL);
        }
    }
    return f->fences == f->fails_at ? FAILED : 0;
}

static struct rnl_exchange exchange_of(struct files *f)
{
    return (struct rnl_exchange){.size = sizeof(struct rnl_exchange),
                                 .rank = f->rank,
                                 .ranks = f->ranks,
                                 .arg = f,
                                 .put = put,
                                 .get = get,
                                 .fence = fence};
}

/* ---- processes ---- */

struct seen {
    unsigned numbers, sum, longs;
};

static int on_number(const void *at, size_t n, unsigned peer, void *ctx)
{
    struct seen *s = ctx;
    unsigned number;
    TEST_MUST(n == sizeof number);
    memcpy(&number, at, n);
    TEST_MUST(number == 100 + peer);
    s->numbers++;
    s->sum += number;
    return RNL_DONE;
}

static int on_long(const void *at, size_t n, unsigned peer, void *ctx)
{
    const unsigned char *bytes = at;
    TEST_MUST(n == BYTES && bytes[0] == peer && bytes[BYTES - 1] == peer);
    ((struct seen *)ctx)->longs++;
    return RNL_DONE;
}

static rnl_endpoint *join(struct files *f, struct seen *s, bool apart)
{
    struct rnl_exchange x = exchange_of(f);
    rnl_endpoint *ep;
    if (apart) {
        x.here = 1;
        x.on_host = &f->rank;
    }
    TEST_MUST(rnl_open_exchange(&ep, NULL, &x) == 0);
    TEST_MUST(rnl_rank(ep) == f->rank && rnl_size(ep) == f->ranks);
    TEST_MUST(rnl_handler_whole(ep, NUMBER, on_number, s, 0) >= 0 && rnl_handler_whole(ep, LONG, on_long, s, 0) >= 0);
    return ep;
}

/* Each sends to each; the close waits until all has come. */
static void talk(struct files *f, bool apart)
{
    static unsigned char bytes[BYTES];
    struct seen s = {0};
    rnl_endpoint *ep = join(f, &s, apart);
    const unsigned number = 100 + f->rank;
    memset(bytes, (int)f->rank, sizeof bytes);
    for (unsigned peer = 0; peer < f->ranks; peer++) {
        struct rnl_place place = {.size = sizeof place};
        TEST_MUST(rnl_send(ep, peer, NUMBER, &number, sizeof number) == 0);
        const struct rnl_message b = {.peer = peer, .handler = LONG, .bound = sizeof bytes};
        rnl_stream *m;
        TEST_MUST(rnl_begin(ep, &b, &m) == 0 && rnl_piece(m, bytes, sizeof bytes) == 0 && rnl_end(m) == 0);
        TEST_MUST(rnl_peer_place(ep, peer, &place) == 0);
        TEST_MUST(place.where == (peer == f->rank ? RNL_IN_PROCESS : apart ? RNL_ON_OTHER_HOST : RNL_ON_HOST));
    }
    TEST_MUST(rnl_close(ep) == 0);
    TEST_MUST(s.numbers == f->ranks && s.longs == f->ranks && s.sum == 100 * f->ranks + f->ranks * (f->ranks - 1) / 2);
}

/* Runs body(rank) in that many processes. Returns how many ended otherwise than with status `wanted`. */
static unsigned run(struct files *f, int wanted, void (*body)(struct files *))
{
    pid_t pid[RANKS];
    unsigned others = 0;
    for (uint32_t rank = 0; rank < f->ranks; rank++) {
        fflush(NULL);
        pid[rank] = fork();
        assert_true(pid[rank] >= 0);
        if (pid[rank] == 0) {
            alarm(2 * WATCH_S);
            f->rank = rank;
            body(f);
            _exit(0);
        }
    }
    for (uint32_t rank = 0; rank < f->ranks; rank++) {
        int status;
        assert_int_equal(waitpid(pid[rank], &status, 0), pid[rank]);
        others += status != wanted;
    }
    return others;
}

static void clear(const char *folder)
{
    DIR *d = opendir(folder);
    for (struct dirent *e; d && (e = readdir(d));)
        unlinkat(dirfd(d), e->d_name, 0);
    if (d)
        closedir(d);
}

static int make_folder(void **state)
{
    struct files *f = calloc(1, sizeof *f);
    const char *tmp = getenv("TMPDIR");
    snprintf(f->folder, sizeof f->folder, "%.32s/runnel-exchange-XXXXXX", tmp && *tmp ? tmp : "/tmp");
    f->ranks = RANKS;
    *state = f;
    return mkdtemp(f->folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
    struct files *f = *state;
    clear(f->folder);
    rmdir(f->folder);
    free(f);
    return 0;
}

/* ---- cases ---- */

static void talk_by_memory(struct files *f)
{
    talk(f, false);
}

static void talk_by_datagrams(struct files *f)
{
    talk(f, true);
}

static void ranks_of_one_host_share_memory(void **state)
{
    assert_int_equal(run(*state, 0, talk_by_memory), 0);
}

static void ranks_of_several_hosts_send_datagrams(void **state)
{
    assert_int_equal(run(*state, 0, talk_by_datagrams), 0);
}

static void talk_twice(struct files *f)
{
    char folder[sizeof f->folder];
    talk(f, false);
    /* another exchange, and so another job, while the values of the first are still there */
    memcpy(folder, f->folder, sizeof folder);
    snprintf(f->folder, sizeof f->folder, "%.50s/again", folder);
    (void)mkdir(f->folder, 0700);
    f->fences = 0;
    talk(f, false);
}

static void a_process_opens_one_job_after_another(void **state)
{
    struct files *f = *state, again = *f;
    assert_int_equal(run(f, 0, talk_twice), 0);
    snprintf(again.folder, sizeof again.folder, "%.50s/again", f->folder);
    clear(again.folder);
    rmdir(again.folder);
}

static void lose_a_rank(struct files *f)
{
    struct seen s = {0};
    f->forever = true; /* so it is the library that finds out */
    rnl_endpoint *ep = join(f, &s, false);
    if (f->rank == 1)
        (void)kill(getpid(), SIGKILL);
    TEST_MUST(rnl_close(ep) == RNL_ERR_JOB);
}

static void a_death_ends_the_job(void **state)
{
    assert_int_equal(run(*state, 0, lose_a_rank), 1);
}

static void fail_in_one(struct files *f)
{
    struct rnl_exchange x = exchange_of(f);
    rnl_endpoint *ep;
    f->fails_at = 2;
    TEST_MUST(rnl_open_exchange(&ep, NULL, &x) == RNL_ERR_JOB);
    TEST_MUST(strstr(rnl_last_error()->text, "let its ranks meet: it returned 42"));
}

static void a_fence_that_fails_fails_the_open(void **state)
{
    assert_int_equal(run(*state, 0, fail_in_one), 0);
}

static void what_makes_no_sense_is_refused(void **state)
{
    struct files *f = *state;
    const uint32_t others[] = {1, 2}, falling[] = {2, 0};
    struct rnl_exchange x[6];
    for (size_t i = 0; i < 6; i++)
        x[i] = exchange_of(f);
    x[0].rank = RANKS;
    x[1].ranks = 1025;
    x[2].fence = NULL;
    x[3].here = 2, x[3].on_host = others;
    x[4].here = 2, x[4].on_host = falling;
    x[5].size = 8;
    for (size_t i = 0; i < 6; i++) {
        rnl_endpoint *ep;
        assert_int_equal(rnl_open_exchange(&ep, NULL, &x[i]), RNL_ERR_ARG);
    }
    struct rnl_exchange sound = exchange_of(f);
    const struct rnl_options alone = {.size = sizeof alone, .flags = RNL_ALONE};
    rnl_endpoint *ep;
    assert_int_equal(rnl_open_exchange(&ep, &alone, &sound), RNL_ERR_ARG);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, make_folder, remove_folder)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(ranks_of_one_host_share_memory),        CASE(ranks_of_several_hosts_send_datagrams),
        CASE(a_process_opens_one_job_after_another), CASE(a_death_ends_the_job),
        CASE(a_fence_that_fails_fails_the_open),     CASE(what_makes_no_sense_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
