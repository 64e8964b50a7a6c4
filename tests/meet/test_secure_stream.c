/* SPDX-License-Identifier: BSD-3-Clause
 *
 * test_secure_stream.c - the stream between daemons (job/secure_stream.h) over a pair of sockets, and the file of its
 * key (meet/node_key.h).
 */
#include "job/secure_stream.h"
#include "meet/node_key.h"
#include "runnel/runnel.h"
#include "support/must.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

enum { SERVER_HEARS = 32 + 32 + 24 };
static const unsigned char key[RNL_SECURE_STREAM_KEY] = {1, 2, 3}, other_key[RNL_SECURE_STREAM_KEY] = {1, 2, 4};
static struct rnl_secure_stream *a, *b; /* client and server */
static unsigned char msg[RNL_SECURE_STREAM_BYTES];
static size_t bytes;

static void open_pair(const unsigned char *of_client, uint32_t kind)
{
    int s[2];
    TEST_MUST(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, s) == 0);
    a = rnl_secure_stream_new(s[0], false, of_client, kind, sizeof msg);
    b = rnl_secure_stream_new(s[1], true, key, 1, sizeof msg);
    TEST_MUST(a && b);
}

static void close_pair(void)
{
    rnl_secure_stream_free(a);
    rnl_secure_stream_free(b);
}

/* Returns what the server says of it. */
static int shake(void)
{
    TEST_MUST(rnl_secure_stream_receive(a, msg, &bytes) == 0);
    int got = rnl_secure_stream_receive(b, msg, &bytes);
    if (got == 0)
        got = rnl_secure_stream_receive(a, msg, &bytes);
    return got;
}

static void messages_go_both_ways_and_both_have_the_key_of_the_pair(void **state)
{
    unsigned char one[RNL_SECURE_STREAM_KEY], two[RNL_SECURE_STREAM_KEY], long_one[RNL_SECURE_STREAM_BYTES] = {7};
    (void)state;
    open_pair(key, 1);
    assert_true(rnl_secure_stream_send(a, "early", 5) < 0);
    assert_int_equal(shake(), 0);
    assert_true(rnl_secure_stream_is_up(a) && rnl_secure_stream_is_up(b));
    rnl_secure_stream_pair_key(a, one);
    rnl_secure_stream_pair_key(b, two);
    assert_memory_equal(one, two, sizeof one);
    assert_int_equal(rnl_secure_stream_send(a, "ask", 3), 0);
    assert_int_equal(rnl_secure_stream_send(a, long_one, sizeof long_one), 0);
    assert_int_equal(rnl_secure_stream_send(b, "answer", 6), 0);
    assert_int_equal(rnl_secure_stream_receive(b, msg, &bytes), 1);
    assert_true(bytes == 3 && memcmp(msg, "ask", 3) == 0);
    assert_int_equal(rnl_secure_stream_receive(b, msg, &bytes), 1);
    assert_int_equal(bytes, sizeof long_one);
    assert_int_equal(rnl_secure_stream_receive(b, msg, &bytes), 0);
    assert_int_equal(rnl_secure_stream_receive(a, msg, &bytes), 1);
    assert_int_equal(bytes, 6);
    assert_true(rnl_secure_stream_send(a, long_one, sizeof long_one + 1) < 0);
    close_pair();
    open_pair(key, 1);
    assert_int_equal(shake(), 0);
    rnl_secure_stream_pair_key(a, two);
    assert_memory_not_equal(one, two, sizeof one);
    close_pair();
}

static void another_key_or_kind_proves_nothing(void **state)
{
    (void)state;
    open_pair(other_key, 1);
    assert_int_equal(shake(), RNL_ERR_UNREACHABLE);
    assert_false(rnl_secure_stream_is_up(b));
    close_pair();
    open_pair(key, 2);
    assert_int_equal(shake(), RNL_ERR_UNREACHABLE);
    close_pair();
}

/* Passes what the client says on to the server, byte for byte, with one of them changed. Returns what the server makes
 * of it: the worst status. `said` is kept for saying it again. */
static int between(size_t changed, unsigned char *said, size_t *n, const unsigned char *again, size_t again_bytes)
{
    int left[2], right[2], worst = 0;
    unsigned char nonce[64];
    TEST_MUST(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, left) == 0);
    TEST_MUST(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, right) == 0);
    a = rnl_secure_stream_new(left[0], false, key, 1, sizeof msg);
    b = rnl_secure_stream_new(right[1], true, key, 1, sizeof msg);
    *n = 0;
    for (int round = 0; round < 4; round++) {
        const ssize_t down = recv(right[0], nonce, sizeof nonce, 0);
        if (down > 0)
            TEST_MUST(send(left[1], nonce, (size_t)down, 0) == down);
        (void)rnl_secure_stream_receive(a, msg, &bytes);
        if (rnl_secure_stream_is_up(a) && round == 2)
            (void)rnl_secure_stream_send(a, "secret", 6);
        const ssize_t up = recv(left[1], said + *n, 512 - *n, 0);
        for (ssize_t i = 0; i < up; i++) {
            unsigned char c = again && *n < again_bytes ? again[*n] : said[*n];
            c ^= *n == changed;
            (void)send(right[0], &c, 1, MSG_NOSIGNAL);
            ++*n;
        }
        const int got = rnl_secure_stream_receive(b, msg, &bytes);
        worst = got < worst ? got : worst;
        if (got == 1)
            assert_true(bytes == 6 && memcmp(msg, "secret", 6) == 0);
    }
    close_pair();
    close(left[1]);
    close(right[0]);
    return worst;
}

static void each_byte_counts_and_none_counts_twice(void **state)
{
    unsigned char first[512], said[512];
    size_t n, again;
    (void)state;
    assert_int_equal(between(SIZE_MAX, first, &n, NULL, 0), 0);
    assert_true(n > SERVER_HEARS + 6);
    for (size_t i = 0; i < n; i++)
        if (i != SERVER_HEARS) /* a lower length only waits; the next bytes show it */
            assert_true(between(i, said, &again, NULL, 0) < 0 || i == SERVER_HEARS + 1);
    assert_true(between(SIZE_MAX, said, &again, first, n) < 0);
}

/* Begins a process that shakes hands over s[server] and carries what comes between it and end[server]. Without the key
 * it ends. */
static void relay(const int s[2], int server, const unsigned char *with, int end[2])
{
    int own[2];
    bool answered;
    TEST_MUST(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, own) == 0);
    if (fork() == 0) {
        close(s[!server]);
        close(own[0]);
        if (server)
            close(end[0]); /* the test's alone */
        struct rnl_secure_stream *l = rnl_secure_stream_open(s[server], server, with, &answered);
        if (l)
            rnl_secure_stream_relay(l, own[1], own[1]);
        _exit(answered ? 0 : 1);
    }
    close(own[1]);
    end[server] = own[0];
}

static void a_relay_carries_all_of_it_both_ways(void **state)
{
    static unsigned char part[50000];
    int s[2], end[2], status;
    (void)state;
    for (unsigned good = 0; good < 2; good++) {
        TEST_MUST(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, s) == 0);
        relay(s, 0, good ? key : other_key, end);
        relay(s, 1, key, end);
        close(s[0]);
        close(s[1]);
        size_t sent = 0, got = 0;
        for (int i = 0; good && i < 200; i++) { /* as much as there is room for between the two */
            for (size_t k = 0; k < sizeof part; k++)
                part[k] = (unsigned char)((sent + k) % 251);
            const ssize_t n = send(end[0], part, sizeof part, MSG_DONTWAIT);
            sent += n > 0 ? (size_t)n : 0;
            if (n < 0)
                test_sleep_ms(1);
        }
        for (ssize_t n; got < sent && (n = recv(end[1], part, sizeof part, 0)) > 0; got += (size_t)n)
            for (size_t k = 0; k < (size_t)n; k++)
                assert_int_equal(part[k], (got + k) % 251);
        assert_int_equal(got, sent);
        if (good) {
            assert_int_equal(send(end[1], "back", 4, 0), 4);
            assert_int_equal(recv(end[0], part, 4, MSG_WAITALL), 4);
            assert_memory_equal(part, "back", 4);
        }
        if (good)
            close(end[0]); /* the end of one side is that of the other */
        assert_int_equal(recv(end[1], part, 1, 0), 0);
        close(end[1]);
        if (!good)
            close(end[0]);
        for (int i = 0; i < 2; i++) { /* whoever lacks the key was answered all the same */
            TEST_MUST(wait(&status) > 0);
            assert_int_equal(status, 0);
        }
    }
}

static char folder[64], file[96];

static void put(const char *text, mode_t mode)
{
    (void)unlink(file);
    const int fd = open(file, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    TEST_MUST(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text) && fchmod(fd, mode) == 0);
    close(fd);
}

static void a_key_is_read_from_a_file_of_ones_own_only(void **state)
{
    static const char good[] = "00112233445566778899aabbccddeeff00112233445566778899AABBCCDDEEFF\n";
    unsigned char got[RNL_NODE_KEY_BYTES], made[RNL_NODE_KEY_BYTES] = {5};
    char link[128], print[RNL_NODE_KEY_PRINT], text[96];
    (void)state;
    snprintf(folder, sizeof folder, "/tmp/runnel-stream-%d", (int)getpid());
    snprintf(file, sizeof file, "%s/key", folder);
    snprintf(link, sizeof link, "%s/link", folder);
    TEST_MUST(mkdir(folder, 0700) == 0);
    assert_int_equal(rnl_node_key_read(file, got), RNL_ERR_UNREACHABLE);
    put(good, 0600);
    assert_int_equal(rnl_node_key_read(file, got), 0);
    assert_int_equal(got[31], 0xff);
    for (unsigned mode = 0640; mode; mode = mode == 0640 ? 0604 : mode == 0604 ? 0620 : 0) {
        put(good, mode);
        assert_int_equal(rnl_node_key_read(file, got), RNL_ERR_REFUSED);
    }
    put(good, 0600);
    TEST_MUST(symlink(file, link) == 0);
    assert_int_equal(rnl_node_key_read(link, got), RNL_ERR_REFUSED);
    assert_int_equal(rnl_node_key_read(folder, got), RNL_ERR_REFUSED);
    for (unsigned i = 0; i < 3; i++) {
        snprintf(text, sizeof text, "%.*s%s", i == 0 ? 63 : 64, good, i == 1 ? "0\n" : i == 2 ? " x\n" : "\n");
        put(text, 0600);
        assert_int_equal(rnl_node_key_read(file, got), RNL_ERR_REFUSED);
    }
    assert_int_equal(rnl_node_key_write(file, made), RNL_ERR_REFUSED);
    TEST_MUST(unlink(file) == 0 && unlink(link) == 0);
    assert_int_equal(rnl_node_key_write(file, made), 0);
    assert_int_equal(rnl_node_key_read(file, got), 0);
    assert_memory_equal(got, made, sizeof got);
    rnl_node_key_print(made, print);
    assert_int_equal(strlen(print), RNL_NODE_KEY_PRINT - 1);
    assert_true(rnl_node_key_port(made, true) >= 20000 && rnl_node_key_port(made, false) < 30000);
    TEST_MUST(unlink(file) == 0 && rmdir(folder) == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(messages_go_both_ways_and_both_have_the_key_of_the_pair),
        cmocka_unit_test(another_key_or_kind_proves_nothing),
        cmocka_unit_test(each_byte_counts_and_none_counts_twice),
        cmocka_unit_test(a_relay_carries_all_of_it_both_ways),
        cmocka_unit_test(a_key_is_read_from_a_file_of_ones_own_only),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
