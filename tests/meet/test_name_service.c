/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The daemon that keeps names, in the test's own process, against callers that the test plays; and how it is
 * started. */
#include "meet/played.h"

#include <sys/stat.h>

static int teardown(void **state)
{
    (void)state;
    for (unsigned i = 0; i < WORLD_MOST; i++)
        world_close(i);
    rnl_daemon_free(world_daemon);
    world_daemon = NULL;
    return 0;
}

static void start(void)
{
    static char name[32];
    snprintf(name, sizeof name, "k%d", (int)getpid());
    setenv("RUNNEL_DAEMON", name, 1);
    const struct rnl_daemon_options opt = {.name = name};
    TEST_MUST(rnl_daemon_new(&opt, &world_daemon) == 0);
}

static struct rnl_daemon_state now(void)
{
    struct rnl_daemon_state s;
    rnl_daemon_step(world_daemon, test_now_ns());
    rnl_daemon_state(world_daemon, &s);
    return s;
}

static int caller(void)
{
    const struct rnl_meet_msg greet = {.kind = RNL_MEET_GREET};
    int sock = rnl_daemon_connect(geteuid(), rnl_daemon_named());
    TEST_MUST(sock >= 0);
    played_say(sock, &greet, -1);
    (void)now();
    return sock;
}

static void offer(int sock, const char *name, uint32_t request_id)
{
    struct rnl_meet_msg serve = {.kind = RNL_MEET_SERVE, .u.serve = {.request_id = request_id}};
    snprintf(serve.u.serve.name, sizeof serve.u.serve.name, "%s", name);
    played_say(sock, &serve, -1);
    (void)now();
    TEST_MUST(played_hear(sock, RNL_MEET_FROM_DAEMON, RNL_MEET_RESULT, NULL).u.result.status == 0);
}

/* A server that reads nothing is tried again when it reads, and costs nothing until then. */
static void a_daemon_rests_while_a_server_does_not_read(void **state)
{
    (void)state;
    struct rnl_meet_msg reach = {.kind = RNL_MEET_REACH, .u.reach = {.uid = geteuid(), .name = "kv"}};
    start();
    int server = caller(), client = caller();
    uint32_t asked = 0, requests = 0;
    offer(server, "kv", 5);
    while (now().waiting == 0) {
        int pair[2];
        TEST_MUST(asked++ < 900 && rnl_seqpacket_pair(pair) == 0);
        played_say(client, &reach, pair[1]);
        close(pair[0]);
        close(pair[1]);
    }
    assert_true(rnl_daemon_deadline_ns(world_daemon) > test_now_ns() + (uint64_t)1000000000u); /* of greetings */
    struct pollfd rest = {.fd = rnl_daemon_fd(world_daemon), .events = POLLIN};
    assert_int_equal(poll(&rest, 1, 0), 0);
    while (requests < asked) {
        int fd = -1;
        (void)played_hear(server, RNL_MEET_FROM_DAEMON, RNL_MEET_REQUEST, &fd);
        close(fd);
        requests++;
        (void)now();
    }
    assert_int_equal(now().waiting, 0);
    assert_int_equal(poll(&rest, 1, 0), 0);
    close(server);
    close(client);
}

static void services_are_listed_one_by_one(void **state)
{
    (void)state;
    enum { SERVICES = 3000 };
    static bool seen[SERVICES];
    struct rnl_meet_msg list = {.kind = RNL_MEET_LIST}, one;
    unsigned n = 0, i;
    start();
    int server = caller(), client = caller();
    for (i = 0; i < SERVICES; i++) {
        char name[32];
        snprintf(name, sizeof name, "s-%u", i);
        offer(server, name, i + 1);
    }
    for (;;) {
        played_say(client, &list, -1);
        (void)now();
        one = played_hear(client, RNL_MEET_FROM_DAEMON, RNL_MEET_LISTED, NULL);
        if (one.u.listed.name[0] == '\0')
            break;
        assert_int_equal(sscanf(one.u.listed.name, "s-%u", &i), 1);
        assert_true(i < SERVICES && !seen[i]);
        assert_int_equal(one.u.listed.pid, getpid());
        assert_int_equal(one.u.listed.uid, geteuid());
        seen[i] = true;
        n++;
        list.u.request_id.request_id = one.u.listed.cursor;
    }
    assert_int_equal(n, SERVICES);
    list.u.request_id.request_id = UINT32_MAX;
    played_say(client, &list, -1);
    (void)now();
    one = played_hear(client, RNL_MEET_FROM_DAEMON, RNL_MEET_LISTED, NULL);
    assert_int_equal(one.u.listed.name[0], 0);
    close(server);
    close(client);
}

/* ---- starting ---- */

static char folder[64];

/* In PATH there is a command that says with which environment it was started, and ends when it is told. */
static void play_command(void)
{
    char path[96];
    snprintf(folder, sizeof folder, "/tmp/runnel-names-%d", (int)getpid());
    TEST_MUST(mkdir(folder, 0700) == 0);
    snprintf(path, sizeof path, "%s/go", folder);
    TEST_MUST(mkfifo(path, 0600) == 0);
    snprintf(path, sizeof path, "%s/runnel", folder);
    FILE *f = fopen(path, "we");
    TEST_MUST(f);
    fprintf(f, "#!/bin/sh\nat=${0%%/*}\n/usr/bin/env >\"$at/e\"\n/bin/mv \"$at/e\" \"$at/environment\"\nread -r x "
               "<\"$at/go\"\n");
    TEST_MUST(fclose(f) == 0 && chmod(path, 0700) == 0);
}

static void remove_command(void)
{
    static const char *const names[] = {"go", "runnel", "environment", "e"};
    char path[96];
    for (unsigned i = 0; i < 4; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, names[i]);
        (void)unlink(path);
    }
    TEST_MUST(rmdir(folder) == 0);
}

static void starting_the_daemon_waits_for_nothing_and_gives_it_no_environment(void **state)
{
    (void)state;
    char *path = strdup(getenv("PATH")), file[96], line[4096];
    unsigned peer;
    play_command();
    setenv("PATH", folder, 1);
    setenv("RUNNEL_DAEMON", "never-there", 1);
    setenv("LD_PRELOAD", "", 1);
    setenv("RUNNEL_TEST_SECRET", "x", 1);
    world_open(0, 0);
    alarm(60);
    assert_int_equal(rnl_reach(world[0].ep, "x", 0, &peer), 0); /* the command does not end until it is told */
    snprintf(file, sizeof file, "%s/environment", folder);
    FILE *f = NULL;
    UNTIL((f = fopen(file, "re")) != NULL);
    unsigned named = 0;
    while (fgets(line, sizeof line, f)) {
        named += strcmp(line, "RUNNEL_DAEMON=never-there\n") == 0;
        assert_null(strstr(line, "LD_PRELOAD"));
        assert_null(strstr(line, "RUNNEL_TEST_SECRET"));
    }
    fclose(f);
    assert_int_equal(named, 1);
    snprintf(file, sizeof file, "%s/go", folder);
    int go = open(file, O_WRONLY | O_CLOEXEC);
    TEST_MUST(go >= 0);
    close(go);
    /* It is waited for, so that no ended child is left behind. */
    siginfo_t info;
    UNTIL(waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) < 0);
    alarm(0);
    setenv("PATH", path, 1);
    unsetenv("LD_PRELOAD");
    free(path);
    remove_command();
}

/* ---- descriptors of strangers ---- */

/* Returns how many descriptors of this process lead to the file. */
static unsigned holders(dev_t device, ino_t inode)
{
    unsigned n = 0;
    for (int fd = 0; fd < 256; fd++) {
        struct stat st;
        n += fstat(fd, &st) == 0 && st.st_dev == device && st.st_ino == inode;
    }
    return n;
}

/* Closing a file that its sender serves can wait for that sender for ever: so it is left open. */
static void a_file_that_comes_without_a_word_is_not_closed(void **state)
{
    (void)state;
    char bytes[16];
    struct rnl_seqpacket p;
    struct stat st;
    int pair[2], file = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    assert_int_equal(fstat(file, &st), 0);
    assert_int_equal(rnl_seqpacket_pair(pair), 0);
    assert_int_equal(rnl_seqpacket_send(pair[0], bytes, 0, &file, 1, 0), 0);
    unsigned before = holders(st.st_dev, st.st_ino);
    assert_int_equal(rnl_seqpacket_receive(pair[1], bytes, sizeof bytes, 1, &p, 0), RNL_ERR_JOB);
    assert_int_equal(p.nfds, 0);
    assert_int_equal(holders(st.st_dev, st.st_ino), before + 1);
    close(pair[0]);
    close(pair[1]);
    close(file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(a_daemon_rests_while_a_server_does_not_read, teardown),
        cmocka_unit_test_teardown(services_are_listed_one_by_one, teardown),
        cmocka_unit_test_teardown(starting_the_daemon_waits_for_nothing_and_gives_it_no_environment, teardown),
        cmocka_unit_test_teardown(a_file_that_comes_without_a_word_is_not_closed, teardown),
    };
    setvbuf(stdout, NULL, _IOLBF, 0);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
