/* SPDX-License-Identifier: BSD-3-Clause
 *
 * test_several.c - jobs on several hosts, without processes: how ranks are dealt, what launcher and agents say, and how
 * hosts find each other, over loopback. What comes in is cut, bent and made up. */
#include "job/agent.h"
#include "job/brief.h"
#include "job/hosts.h"
#include "job/net.h"
#include "job/search.h"
#include "job/tree.h"
#include "job/trunk.h"

#include "base/env.h"
#include "base/error.h"
#include "transport/udp/kernel.h"
#include "wire/packet.h"

#include <netinet/in.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

/* ---- hosts ---- */

static uint32_t dealt(const char *list, uint32_t size, struct rnl_host out[8])
{
    static struct rnl_hosts h;
    char sentence[300];
    h.n = 0;
    assert_int_equal(rnl_hosts_read(&h, list, sentence, sizeof sentence), 0);
    memset(out, 0, 8 * sizeof *out);
    return rnl_hosts_deal(&h, size, out);
}

static void ranks_are_dealt_in_blocks(void **state)
{
    struct rnl_host at[8];
    (void)state;
    assert_int_equal(dealt("a,b:4", 5, at), 2);
    assert_string_equal(at[0].name, "a");
    assert_int_equal(at[0].count, 1);
    assert_int_equal(at[1].first, 1);
    assert_int_equal(at[1].count, 4);
    assert_int_equal(dealt("a:2,b:4,c", 3, at), 2); /* the last gets none */
    assert_string_equal(at[0].name, "a");
    assert_int_equal(at[0].count, 2);
    assert_int_equal(at[1].count, 1);
    assert_int_equal(dealt("a,b", 16, at), 2); /* more than slots: in proportion */
    assert_int_equal(at[0].count, 8);
    assert_int_equal(at[1].count, 8);
    assert_int_equal(dealt("a,b:2", 7, at), 2);
    assert_int_equal(at[0].count + at[1].count, 7);
    assert_int_equal(dealt("a,b,a", 3, at), 2); /* one host, named twice */
    assert_int_equal(at[0].count, 2);
    assert_int_equal(dealt("[fd77::1]:3,fd77::2", 4, at), 2);
    assert_string_equal(at[0].name, "fd77::1");
    assert_string_equal(at[1].name, "fd77::2");
    assert_int_equal(at[0].count, 3);
}

static void names_that_are_none_are_refused(void **state)
{
    static const char *const wrong[] = {
        "",    "a,",    ",a",  "a:0", "a:-1",         "a:",   "a:2x", "a:1000000", "-o",   "a b",      "../x",
        "a/b", "$(id)", "a;b", "'a'", "a:9999999999", "a\nb", "a,,b", "[fd::1",    "[]:3", "[fd::1]3", "a:2:3:x:y z"};
    char sentence[300];
    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        static struct rnl_hosts h;
        h.n = 0;
        sentence[0] = '\0';
        if (rnl_hosts_read(&h, wrong[i], sentence, sizeof sentence) == 0)
            fail_msg("'%s' is taken", wrong[i]);
        assert_true(sentence[0] != '\0');
    }
}

/* ---- who starts whom ---- */

static void every_host_is_started_once_and_by_one_who_knows_it(void **state)
{
    (void)state;
    for (uint32_t hosts = 1; hosts <= 70; hosts++) {
        for (uint32_t fan = 1; fan <= 20; fan++) {
            uint32_t children[71] = {0}, depth[70], deepest = 0, reach = 0;
            for (uint32_t h = 0; h < hosts; h++) {
                uint32_t parent, end = rnl_tree_end(hosts, fan, h, &parent), grand;
                assert_true(end > h && end <= hosts);
                if (parent != UINT32_MAX) { /* and is behind it, with all that is behind itself */
                    assert_true(parent < h);
                    assert_true(end <= rnl_tree_end(hosts, fan, parent, &grand));
                }
                depth[h] = parent == UINT32_MAX ? 0 : depth[parent] + 1;
                deepest = depth[h] > deepest ? depth[h] : deepest;
                children[parent == UINT32_MAX ? hosts : parent]++;
                uint32_t found = 0, host, block_end; /* its parent's blocks say the same */
                uint32_t first = parent == UINT32_MAX ? 0 : parent + 1;
                uint32_t last = parent == UINT32_MAX ? hosts : rnl_tree_end(hosts, fan, parent, &grand);
                for (uint32_t k = 0; k < rnl_tree_branches(first, last, fan); k++) {
                    rnl_tree_block(first, last, fan, k, &host, &block_end);
                    found += host == h && block_end == end;
                }
                assert_int_equal(found, 1);
            }
            for (uint32_t h = 0; h <= hosts; h++)
                assert_true(children[h] <= fan);
            for (uint64_t level = fan, d = 0; d <= deepest; d++, level *= fan) /* no deeper than it must be */
                if (d < deepest)
                    reach += (uint32_t)level;
            assert_true(deepest == 0 || reach < hosts);
        }
    }
}

/* ---- bodies ---- */

static uint64_t seed = 42;
static uint64_t draw(void)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    return seed ^= seed << 17;
}

static void a_job_survives_and_a_bent_one_is_refused_or_sound(void **state)
{
    struct rnl_host at[2] = {{.name = "a", .count = 3}, {.name = "b", .first = 3, .count = 2}};
    char *argv[] = {(char[]){"p"}, (char[]){""}, (char[]){"x y"}, NULL}, *environment[] = {(char[]){"A=1\n2"}, NULL};
    struct rnl_brief b = {.size = 5,
                          .host = 1,
                          .hosts = 2,
                          .flags = RNL_BRIEF_TAG,
                          .at = at,
                          .fan = 1,
                          .folder = (char[]){"/"},
                          .ssh = (char[]){"ssh"},
                          .agent = (char[]){"/a"},
                          .argv = argv,
                          .environment = environment,
                          .key = {1, 2, 3}},
                     back;
    struct rnl_pack p = {.at = NULL};
    (void)state;
    rnl_brief_pack(&p, &b);
    assert_false(p.failed);
    assert_int_equal(rnl_brief_unpack(p.at, p.bytes, &back), 0);
    assert_int_equal(back.at[1].first, 3);
    assert_string_equal(back.argv[2], "x y");
    assert_null(back.argv[3]);
    assert_string_equal(back.environment[0], "A=1\n2");
    assert_memory_equal(back.key, b.key, sizeof b.key);
    rnl_brief_free(&back);
    for (size_t n = 0; n < p.bytes; n++)
        assert_true(rnl_brief_unpack(p.at, n, &back) < 0); /* cut: its memory is freed */
    for (int i = 0; i < 20000; i++) {
        size_t where = draw() % p.bytes;
        unsigned char was = p.at[where];
        p.at[where] = (unsigned char)draw();
        if (rnl_brief_unpack(p.at, p.bytes, &back) == 0) {
            uint32_t sum = 0;
            for (uint32_t h = 0; h < back.hosts; h++)
                sum += back.at[h].count;
            assert_int_equal(sum, back.size);
            assert_true(back.host < back.hosts && back.argv[0] != NULL);
            rnl_brief_free(&back);
        }
        p.at[where] = was;
    }
    rnl_pack_free(&p);
}

static void addresses_and_failures_survive(void **state)
{
    const struct rnl_host at[2] = {{.count = 1}, {.first = 1, .count = 2}};
    uint16_t ports[2] = {5, 65535};
    struct rnl_here h = {.host = 1, .ways = 1, .ranks = 2, .probe_port = 9, .kernel = 0x123456789abcdef, .port = ports},
                    back;
    struct rnl_vain v = {.other = 1, .asked = 1, .ways = 1}, vain;
    struct rnl_pack p = {.at = NULL};
    (void)state;
    strcpy(h.way[0].interface, "eth0");
    rnl_here_pack(&p, &h);
    struct rnl_unpack u = {.at = p.at, .left = p.bytes};
    assert_int_equal(rnl_here_unpack(&u, 2, at, &back), 0);
    assert_int_equal(u.left, 0);
    assert_int_equal(back.port[1], 65535);
    assert_true(back.kernel == h.kernel && rnl_here_together(&h, &back));
    assert_string_equal(back.way[0].interface, "eth0");
    rnl_here_free(&back);
    for (size_t n = 0; n < p.bytes; n++) {
        u = (struct rnl_unpack){.at = p.at, .left = n};
        assert_true(rnl_here_unpack(&u, 2, at, &back) < 0);
    }
    u = (struct rnl_unpack){.at = p.at, .left = p.bytes};
    assert_true(rnl_here_unpack(&u, 1, at, &back) < 0); /* there is no such host */
    p.bytes = 0;
    v.way[0] = (struct rnl_vain_way){.port = 7, .crooked = 1, .sys_errno = 111};
    rnl_vain_pack(&p, &v);
    u = (struct rnl_unpack){.at = p.at, .left = p.bytes};
    assert_int_equal(rnl_vain_unpack(&u, 2, &vain), 0);
    assert_int_equal(vain.way[0].sys_errno, 111);
    assert_int_equal(vain.way[0].crooked, 1);
    assert_int_equal(vain.way[0].small, 0);
    rnl_pack_free(&p);
}

/* ---- the stream ---- */

static void open_pair(struct rnl_trunk t[2])
{
    int s[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, s), 0);
    assert_int_equal(rnl_trunk_open(&t[0], s[0], s[0]), 0);
    assert_int_equal(rnl_trunk_open(&t[1], s[1], s[1]), 0);
}

static void frames_survive_in_pieces(void **state)
{
    struct rnl_trunk t[2];
    struct rnl_frame f;
    char release[64], noise[64] = "";
    static unsigned char big[1 << 20];
    size_t heard = 0;
    (void)state;
    open_pair(t);
    assert_int_equal(write(t[0].out, "mail!\nno end runnel-agent", 25), 25);
    rnl_trunk_read(&t[1]);
    assert_int_equal(rnl_trunk_greeting(&t[1], release, sizeof release, noise, sizeof noise), 0);
    assert_int_equal(write(t[0].out, "\n", 1), 1);
    rnl_trunk_greet(&t[0]);
    for (size_t i = 0; i < sizeof big; i++)
        big[i] = (unsigned char)(i % 251);
    rnl_trunk_send(&t[0], RNL_FRAME_SAY, "abc", 3);
    rnl_trunk_send(&t[0], RNL_FRAME_END, NULL, 0);
    rnl_trunk_send(&t[0], RNL_FRAME_JOB, big, sizeof big); /* more than the socket takes */
    assert_true(rnl_trunk_waits(&t[0]));
    rnl_trunk_read(&t[1]);
    assert_int_equal(rnl_trunk_greeting(&t[1], release, sizeof release, noise, sizeof noise), 1);
    assert_string_equal(noise, "no end runnel-agent");
    assert_int_equal(rnl_trunk_next(&t[1], &f), 1);
    assert_int_equal(f.kind, RNL_FRAME_SAY);
    assert_memory_equal(f.body, "abc", 3);
    assert_int_equal(rnl_trunk_next(&t[1], &f), 1);
    assert_int_equal(f.bytes, 0);
    for (int i = 0; i < 1000 && heard == 0; i++) {
        rnl_trunk_flush(&t[0]);
        rnl_trunk_read(&t[1]);
        heard = (size_t)rnl_trunk_next(&t[1], &f);
    }
    assert_int_equal(f.bytes, sizeof big);
    assert_memory_equal(f.body, big, sizeof big);
    rnl_trunk_close(&t[0]);
    rnl_trunk_read(&t[1]);
    rnl_trunk_read(&t[1]);
    assert_true(t[1].ended);
    assert_int_equal(t[1].error, 0);
    rnl_trunk_close(&t[1]);
}

static void noise_and_garbage_end_a_stream(void **state)
{
    struct rnl_trunk t[2];
    struct rnl_frame f;
    char release[64] = "", noise[64] = "";
    static const unsigned char huge[8] = {1, 0, 0, 0, 1, 0, 0, 2};
    (void)state;
    open_pair(t);
    for (int i = 0; i < 4000 && !t[1].ended; i++) { /* lines without end */
        (void)!write(t[0].out, "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\n", 31);
        rnl_trunk_read(&t[1]);
        assert_int_equal(rnl_trunk_greeting(&t[1], release, sizeof release, noise, sizeof noise), 0);
    }
    assert_true(t[1].ended);
    rnl_trunk_close(&t[0]);
    rnl_trunk_close(&t[1]);
    open_pair(t);
    assert_int_equal(write(t[0].out, huge, sizeof huge), sizeof huge); /* 32 MiB and a byte are to come */
    rnl_trunk_read(&t[1]);
    assert_int_equal(rnl_trunk_next(&t[1], &f), 0);
    assert_true(t[1].ended);
    assert_int_equal(rnl_trunk_greeting(&t[1], release, sizeof release, noise, sizeof noise), 0);
    rnl_trunk_close(&t[0]);
    rnl_trunk_close(&t[1]);
    open_pair(t);
    assert_int_equal(write(t[0].out, "runnel-agent 99 1.2.3\n", 22), 22);
    rnl_trunk_read(&t[1]);
    assert_int_equal(rnl_trunk_greeting(&t[1], release, sizeof release, noise, sizeof noise), -1);
    assert_string_equal(release, "99 1.2.3");
    rnl_trunk_close(&t[0]);
    rnl_trunk_close(&t[1]);
    for (int off = -1; off <= 1; off++) { /* one release, and what ranks say to each other is another version of it */
        char line[80];
        int n = snprintf(line, sizeof line, "runnel-agent %d.%d %s\n", RNL_TRUNK_VERSION, RNL_WIRE_VERSION + off,
                         RNL_VERSION);
        open_pair(t);
        assert_int_equal(write(t[0].out, line, (size_t)n), n);
        rnl_trunk_read(&t[1]);
        assert_int_equal(rnl_trunk_greeting(&t[1], release, sizeof release, noise, sizeof noise), off == 0 ? 1 : -1);
        rnl_trunk_close(&t[0]);
        rnl_trunk_close(&t[1]);
    }
}

/* ---- how hosts find each other ---- */

enum { HOSTS = 3 };
struct net {
    struct rnl_here here[HOSTS];
    struct rnl_search *search[HOSTS];
    int fd[HOSTS];
    uint64_t now;
};

static void open_net(struct net *n, const unsigned char key[HOSTS], int bogus)
{
    int fd[HOSTS];
    struct rnl_socket_addr at[HOSTS];
    memset(n, 0, sizeof *n);
    assert_int_equal(rnl_net_open(RNL_NET_LOOPBACK, HOSTS, fd, at), 0);
    for (uint32_t i = 0; i < HOSTS; i++) {
        struct rnl_here *h = &n->here[i];
        h->host = i;
        n->fd[i] = fd[i];
        h->probe_port = at[i].port;
        if (bogus) /* an address of documentation: it leads nowhere, or is refused at once */
            memcpy(h->way[h->ways++].ip, (const uint8_t[16]){[10] = 0xff, [11] = 0xff, [12] = 192, 0, 2, 1}, 16);
        memcpy(h->way[h->ways++].ip, at[i].ip, 16);
    }
    for (uint32_t i = 0; i < HOSTS; i++) {
        const unsigned char secret[RNL_JOB_KEY_BYTES] = {key[i]};
        struct rnl_socket *socket;
        assert_int_equal(rnl_search_adopt(fd[i], &socket), 0);
        assert_int_equal(rnl_search_new(i, HOSTS, n->here, secret, 100 + i, socket, n->now, &n->search[i]), 0);
    }
}

static void step(struct net *n, uint64_t ns)
{
    n->now += ns;
    for (uint32_t i = 0; i < HOSTS; i++)
        rnl_search_step(n->search[i], n->now);
}

static int all_done(const struct net *n)
{
    int done = 1;
    for (uint32_t i = 0; i < HOSTS; i++)
        done &= rnl_search_done(n->search[i]);
    return done;
}

static void close_net(struct net *n)
{
    for (uint32_t i = 0; i < HOSTS; i++)
        rnl_search_free(n->search[i]);
}

static void hosts_find_each_other_past_strangers(void **state)
{
    static struct net n;
    unsigned char garbage[RNL_SEARCH_LONG];
    int stranger;
    struct rnl_socket_addr unused;
    (void)state;
    open_net(&n, (const unsigned char[]){7, 7, 7}, 1);
    assert_int_equal(rnl_net_open(RNL_NET_LOOPBACK, 1, &stranger, &unused), 0);
    for (int i = 0; i < 400 && !all_done(&n); i++) {
        for (uint32_t h = 0; h < HOSTS;
             h++) { /* between what matters: anything, with the right beginning now and then */
            struct sockaddr_in to = {.sin_family = AF_INET,
                                     .sin_port = htons(n.here[h].probe_port),
                                     .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
            for (size_t k = 0; k < sizeof garbage; k++)
                garbage[k] = (unsigned char)draw();
            if (i % 2)
                memcpy(garbage, "RNLQ", 4);
            (void)!sendto(stranger, garbage, i % 3 ? RNL_SEARCH_SHORT : sizeof garbage, 0, (struct sockaddr *)&to,
                          sizeof to);
        }
        step(&n, 1000000);
    }
    assert_true(all_done(&n));
    for (uint32_t i = 0; i < HOSTS; i++)
        for (uint32_t k = 0; k < HOSTS; k++) {
            struct rnl_vain vain;
            uint8_t ip[16];
            assert_int_equal(rnl_search_vain(n.search[i], k, &vain), 0);
            if (i != k) {
                assert_int_equal(rnl_search_way(n.search[i], k, ip), 1);
                assert_memory_equal(ip, n.here[k].way[1].ip, 16);
            }
        }
    close(stranger);
    close_net(&n);
}

static void another_key_is_nobody(void **state)
{
    static struct net n;
    struct rnl_vain vain;
    (void)state;
    open_net(&n, (const unsigned char[]){7, 7, 8}, 0);
    for (int i = 0; i < 300 && !all_done(&n); i++)
        step(&n, 50000000);
    assert_true(all_done(&n)); /* it has given up */
    assert_int_equal(rnl_search_vain(n.search[0], 1, &vain), 0);
    assert_int_equal(rnl_search_vain(n.search[0], 2, &vain), 1);
    assert_int_equal(vain.asked, 1);
    assert_int_equal(vain.heard, 0);
    assert_int_equal(rnl_search_vain(n.search[2], 0, &vain), 1);
    assert_int_equal(vain.asked, 0);
    assert_int_equal(vain.heard, 0);
    close_net(&n);
}

static void who_lives_is_told_when_both_ways_work(void **state)
{
    static struct net n;
    const unsigned char mine[1] = {5}, other[1] = {2};
    unsigned char bits[1] = {0};
    uint32_t host;
    (void)state;
    open_net(&n, (const unsigned char[]){7, 7, 7}, 0);
    for (int i = 0; i < 400 && !all_done(&n); i++)
        step(&n, 1000000);
    rnl_search_alive(n.search[0], mine, 1, n.now);
    step(&n, 1000000);
    assert_int_equal(rnl_search_vouched(n.search[1], &host, bits, 1), 0); /* whether 0 hears us is not known yet */
    rnl_search_alive(n.search[1], other, 1, n.now);
    step(&n, 1000000);
    assert_int_equal(rnl_search_vouched(n.search[0], &host, bits, 1), 1);
    assert_int_equal(host, 1);
    assert_int_equal(bits[0], 2);
    rnl_search_alive(n.search[0], mine, 1, n.now);
    step(&n, 1000000);
    assert_int_equal(rnl_search_vouched(n.search[1], &host, bits, 1), 1);
    assert_int_equal(bits[0], 5);
    step(&n, UINT64_C(60000000000));
    rnl_search_alive(n.search[0], mine, 1, n.now); /* 1 was not heard for long: the way back may be broken */
    step(&n, 1000000);
    assert_int_equal(rnl_search_vouched(n.search[1], &host, bits, 1), 0);
    close_net(&n);
}

struct heard {
    unsigned times;
    unsigned char first, last;
};

static void hear_words(void *arg, uint32_t other, const unsigned char *at)
{
    struct heard *h = arg;
    assert_int_equal(other, 0);
    h->times++;
    h->first = at[0];
    h->last = at[RNL_SEARCH_WORDS - 1];
}

/* An agent sleeps at one descriptor for as long as the job runs. */
static void all_that_comes_wakes_who_waits_at_the_probe(void **state)
{
    static struct net n;
    unsigned char words[RNL_SEARCH_WORDS];
    struct heard heard = {.times = 0};
    const unsigned char bits[1] = {1};
    uint32_t host;
    unsigned char got[1];
    (void)state;
    open_net(&n, (const unsigned char[]){7, 7, 7}, 0);
    for (int i = 0; i < 400 && !all_done(&n); i++)
        step(&n, 1000000);
    rnl_search_on_words(n.search[1], hear_words, &heard);
    for (unsigned i = 0; i < 60; i++) {
        struct pollfd p[2] = {{.fd = n.fd[0], .events = POLLIN}, {.fd = n.fd[1], .events = POLLIN}};
        memset(words, (int)i, sizeof words);
        rnl_search_alive(n.search[1], bits, 1, n.now); /* as often the other way */
        rnl_search_say_words(n.search[0], 1, words, sizeof words);
        assert_int_equal(poll(&p[0], 1, 2000), 1);
        assert_int_equal(poll(&p[1], 1, 2000), 1);
        step(&n, 1000000);
        assert_int_equal(heard.times, i + 1);
        assert_int_equal(heard.first, i);
        assert_int_equal(heard.last, i);
        while (rnl_search_vouched(n.search[0], &host, got, 1))
            ;
    }
    assert_true(rnl_search_heard_ns(n.search[0], 1) == n.now);
    close_net(&n);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ranks_are_dealt_in_blocks),
        cmocka_unit_test(names_that_are_none_are_refused),
        cmocka_unit_test(every_host_is_started_once_and_by_one_who_knows_it),
        cmocka_unit_test(a_job_survives_and_a_bent_one_is_refused_or_sound),
        cmocka_unit_test(addresses_and_failures_survive),
        cmocka_unit_test(frames_survive_in_pieces),
        cmocka_unit_test(noise_and_garbage_end_a_stream),
        cmocka_unit_test(hosts_find_each_other_past_strangers),
        cmocka_unit_test(another_key_is_nobody),
        cmocka_unit_test(who_lives_is_told_when_both_ways_work),
        cmocka_unit_test(all_that_comes_wakes_who_waits_at_the_probe),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
