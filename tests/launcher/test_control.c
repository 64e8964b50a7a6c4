/* SPDX-License-Identifier: BSD-3-Clause
 *
 * test_control.c - jobs on several hosts, without processes: how ranks are dealt, the control protocol's codec and its
 * stream, and how hosts find each other, over loopback. What comes in is cut, bent and made up. */
#include "job/agent.h"
#include "job/net.h"
#include "launcher/control.h"
#include "launcher/hosts.h"
#include "net/probe/address_probe.h"

#include "base/env.h"
#include "base/error.h"
#include "net/socket/kernel.h"
#include "net/wire/packet.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "support/unit.h"

/* ---- hosts ---- */

static uint32_t dealt(const char *list, uint32_t size, struct rnl_job_host out[8])
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
    struct rnl_job_host at[8];
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
    struct rnl_job_host at[2] = {{.name = "a", .count = 3}, {.name = "b", .first = 3, .count = 2}};
    char *argv[] = {(char[]){"p"}, (char[]){""}, (char[]){"x y"}, NULL}, *environment[] = {(char[]){"A=1\n2"}, NULL};
    struct rnl_job_spec b = {.size = 5,
                             .host = 1,
                             .hosts = 2,
                             .flags = RNL_JOB_KEEP_GOING,
                             .at = at,
                             .folder = (char[]){"/"},
                             .argv = argv,
                             .environment = environment,
                             .stopped_after_ns = 77,
                             .silence_ms = 78,
                             .key = {1, 2, 3},
                             .agents = {4, 5}},
                        back;
    struct rnl_pack p = {.at = NULL};
    (void)state;
    rnl_job_spec_pack(&p, &b);
    assert_false(p.failed);
    assert_int_equal(rnl_job_spec_unpack(p.at, p.bytes, &back), 0);
    assert_int_equal(back.at[1].first, 3);
    assert_string_equal(back.argv[2], "x y");
    assert_null(back.argv[3]);
    assert_string_equal(back.environment[0], "A=1\n2");
    assert_memory_equal(back.key, b.key, sizeof b.key);
    assert_memory_equal(back.agents, b.agents, sizeof b.agents);
    assert_true(back.stopped_after_ns == b.stopped_after_ns);
    assert_true(back.silence_ms == b.silence_ms);
    rnl_job_spec_free(&back);
    for (size_t n = 0; n < p.bytes; n++)
        assert_true(rnl_job_spec_unpack(p.at, n, &back) < 0); /* cut: its memory is freed */
    for (int i = 0; i < 20000; i++) {
        size_t where = draw() % p.bytes;
        unsigned char was = p.at[where];
        p.at[where] = (unsigned char)draw();
        if (rnl_job_spec_unpack(p.at, p.bytes, &back) == 0) {
            uint32_t sum = 0;
            for (uint32_t h = 0; h < back.hosts; h++)
                sum += back.at[h].count;
            assert_int_equal(sum, back.size);
            assert_true(back.host < back.hosts && back.argv[0] != NULL);
            rnl_job_spec_free(&back);
        }
        p.at[where] = was;
    }
    rnl_pack_free(&p);
}

static void addresses_and_failures_survive(void **state)
{
    const struct rnl_job_host at[2] = {{.count = 1}, {.first = 1, .count = 2}};
    struct rnl_host_info h = {.host = 1,
                              .addresses = 1,
                              .ranks = 2,
                              .probe_port = 9,
                              .kernel = 0x123456789abcdef,
                              .port = {5, 65535}},
                         back;
    struct rnl_probe_failure v = {.other = 1, .asked = 1, .addresses = 1}, failure;
    struct rnl_pack p = {.at = NULL};
    (void)state;
    strcpy(h.address[0].interface, "eth0");
    rnl_host_info_pack(&p, &h);
    struct rnl_unpack u = {.at = p.at, .left = p.bytes};
    assert_int_equal(rnl_host_info_unpack(&u, 2, at, &back), 0);
    assert_int_equal(u.left, 0);
    assert_int_equal(back.port[1], 65535);
    assert_true(back.kernel == h.kernel);
    assert_string_equal(back.address[0].interface, "eth0");
    for (size_t n = 0; n < p.bytes; n++) {
        u = (struct rnl_unpack){.at = p.at, .left = n};
        assert_true(rnl_host_info_unpack(&u, 2, at, &back) < 0);
    }
    u = (struct rnl_unpack){.at = p.at, .left = p.bytes};
    assert_true(rnl_host_info_unpack(&u, 1, at, &back) < 0); /* there is no such host */
    p.bytes = 0;
    v.address[0] = (struct rnl_probe_attempt){.port = 7, .other_source = true, .sys_errno = 111};
    rnl_probe_failure_pack(&p, &v);
    u = (struct rnl_unpack){.at = p.at, .left = p.bytes};
    assert_int_equal(rnl_probe_failure_unpack(&u, 2, &failure), 0);
    assert_int_equal(failure.address[0].sys_errno, 111);
    assert_int_equal(failure.address[0].other_source, 1);
    assert_int_equal(failure.address[0].only_short, 0);
    rnl_pack_free(&p);
}

static void who_waits_survives_and_a_lie_is_refused(void **state)
{
    static struct rnl_arrivals a = {.host = {1, 2}, .name = "node", .count = 3, .wanted = {-1, 7, -1}}, back;
    struct rnl_pack p = {.at = NULL};
    (void)state;
    rnl_arrivals_pack(&p, &a);
    struct rnl_unpack u = {.at = p.at, .left = p.bytes};
    assert_int_equal(rnl_arrivals_unpack(&u, &back), 0);
    assert_memory_equal(&a, &back, sizeof a);
    for (size_t n = 0; n < p.bytes; n++) {
        u = (struct rnl_unpack){.at = p.at, .left = n};
        assert_true(rnl_arrivals_unpack(&u, &back) < 0);
    }
    p.bytes = 0;
    a.count = RNL_JOB_RANKS_MAX + 1;
    rnl_pack_bytes(&p, &a, sizeof a);
    u = (struct rnl_unpack){.at = p.at, .left = p.bytes};
    assert_true(rnl_arrivals_unpack(&u, &back) < 0);
    rnl_pack_free(&p);
}

static void who_wants_a_rank_gets_it_and_the_others_what_is_left(void **state)
{
    static struct rnl_arrivals a = {.count = 4, .wanted = {-1, 12, -1, 10}};
    uint32_t rank[RNL_JOB_RANKS_MAX];
    (void)state;
    assert_int_equal(rnl_hosts_deal_ranks(&a, 10, rank), 4);
    const uint32_t dealt[] = {11, 12, 13, 10};
    assert_memory_equal(rank, dealt, sizeof dealt);
    a.wanted[2] = 12; /* two want one */
    assert_int_equal(rnl_hosts_deal_ranks(&a, 10, rank), 2);
    a.wanted[2] = 14; /* this host has 10 to 13 */
    assert_int_equal(rnl_hosts_deal_ranks(&a, 10, rank), 2);
    a.wanted[2] = 9;
    assert_int_equal(rnl_hosts_deal_ranks(&a, 10, rank), 2);
}

/* ---- the stream ---- */

static void add(struct rnl_reader *r, const void *at, size_t n)
{
    unsigned char *space = rnl_reader_space(r, n);
    assert_non_null(space);
    memcpy(space, at, n);
    rnl_reader_add(r, n);
}

/* Both ends of a stream, in one loop. */
struct ends {
    uv_loop_t loop;
    struct rnl_control c[2];
};

static void on_came(void *arg)
{
    (void)arg;
}

static void open_pair(struct ends *e)
{
    int s[2];
    assert_int_equal(uv_loop_init(&e->loop), 0);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, s), 0);
    for (int i = 0; i < 2; i++)
        assert_int_equal(rnl_control_open(&e->c[i], &e->loop, s[i], s[i], on_came, NULL), 0);
}

static void close_pair(struct ends *e)
{
    rnl_control_close(&e->c[0]);
    rnl_control_close(&e->c[1]);
    assert_int_equal(uv_run(&e->loop, UV_RUN_DEFAULT), 0);
    assert_int_equal(uv_loop_close(&e->loop), 0);
}

static void frames_survive_in_pieces(void **state)
{
    static struct ends e;
    static unsigned char big[1 << 20];
    struct rnl_control_frame f = {.kind = 0};
    int heard = 0;
    (void)state;
    open_pair(&e);
    for (size_t i = 0; i < sizeof big; i++)
        big[i] = (unsigned char)(i % 251);
    rnl_control_send(&e.c[0], RNL_CONTROL_REPORT, "abc", 3);
    rnl_control_send(&e.c[0], RNL_CONTROL_END, NULL, 0);
    rnl_control_send(&e.c[0], RNL_CONTROL_JOB, big, sizeof big); /* more than the socket takes */
    assert_true(e.c[0].writes > 0);
    while (!rnl_reader_next(&e.c[1].reader, &f))
        uv_run(&e.loop, UV_RUN_ONCE);
    assert_int_equal(f.kind, RNL_CONTROL_REPORT);
    assert_memory_equal(f.body, "abc", 3);
    assert_int_equal(rnl_reader_next(&e.c[1].reader, &f), 1);
    assert_int_equal(f.kind, RNL_CONTROL_END);
    assert_int_equal(f.bytes, 0);
    while (!(heard = rnl_reader_next(&e.c[1].reader, &f)))
        uv_run(&e.loop, UV_RUN_ONCE);
    assert_int_equal(f.bytes, sizeof big);
    assert_memory_equal(f.body, big, sizeof big);
    rnl_control_close(&e.c[0]);
    while (!e.c[1].ended)
        uv_run(&e.loop, UV_RUN_ONCE);
    assert_int_equal(e.c[1].reader.error, 0);
    close_pair(&e);
}

static void a_greeting_is_found_behind_noise(void **state)
{
    struct rnl_reader r = {.at = NULL};
    char release[RNL_CONTROL_RELEASE_BYTES], noise[64] = "", own[RNL_CONTROL_RELEASE_BYTES], line[80];
    (void)state;
    add(&r, "mail!\nno end runnel-agent", 25);
    assert_int_equal(rnl_reader_greeting(&r, release, noise, sizeof noise), 0);
    add(&r, "\n", 1);
    const int n = snprintf(line, sizeof line, "runnel-agent %s\n", rnl_control_release(own));
    add(&r, line, (size_t)n - 1);
    assert_int_equal(rnl_reader_greeting(&r, release, noise, sizeof noise), 0);
    add(&r, "\n", 1);
    assert_int_equal(rnl_reader_greeting(&r, release, noise, sizeof noise), 1);
    assert_string_equal(noise, "no end runnel-agent");
    rnl_reader_free(&r);
}

static void noise_and_garbage_end_a_stream(void **state)
{
    struct rnl_reader r = {.at = NULL};
    struct rnl_control_frame f;
    char release[RNL_CONTROL_RELEASE_BYTES] = "", noise[64] = "";
    static const unsigned char huge[8] = {1, 0, 0, 0, 1, 0, 0, 2};
    (void)state;
    for (int i = 0; i < 4000 && r.error == 0; i++) { /* lines without end */
        add(&r, "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\n", 31);
        assert_int_equal(rnl_reader_greeting(&r, release, noise, sizeof noise), 0);
    }
    assert_int_equal(r.error, EPROTO);
    assert_null(rnl_reader_space(&r, 1));
    rnl_reader_free(&r);
    add(&r, huge, sizeof huge); /* 32 MiB and a byte are to come */
    assert_int_equal(rnl_reader_next(&r, &f), 0);
    assert_int_equal(r.error, EPROTO);
    assert_int_equal(rnl_reader_greeting(&r, release, noise, sizeof noise), 0);
    rnl_reader_free(&r);
    add(&r, "runnel-agent 99 1.2.3\n", 22);
    assert_int_equal(rnl_reader_greeting(&r, release, noise, sizeof noise), -1);
    assert_string_equal(release, "99 1.2.3");
    rnl_reader_free(&r);
    for (int off = -1; off <= 1; off++) { /* one release, and what ranks say to each other is another version of it */
        char line[80];
        const int n = snprintf(line, sizeof line, "runnel-agent %d.%d %s\n", RNL_CONTROL_VERSION,
                               RNL_WIRE_VERSION + off, RNL_VERSION);
        add(&r, line, (size_t)n);
        assert_int_equal(rnl_reader_greeting(&r, release, noise, sizeof noise), off == 0 ? 1 : -1);
        rnl_reader_free(&r);
    }
}

/* ---- how hosts find each other ---- */

enum { HOSTS = 3 };
struct net {
    struct rnl_host_info here[HOSTS];
    struct rnl_host_probe *search[HOSTS];
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
        struct rnl_host_info *h = &n->here[i];
        h->host = i;
        n->fd[i] = fd[i];
        h->probe_port = at[i].port;
        if (bogus) /* an address of documentation: it leads nowhere, or is refused at once */
            memcpy(h->address[h->addresses++].ip, (const uint8_t[16]){[10] = 0xff, [11] = 0xff, [12] = 192, 0, 2, 1},
                   16);
        memcpy(h->address[h->addresses++].ip, at[i].ip, 16);
    }
    for (uint32_t i = 0; i < HOSTS; i++) {
        const unsigned char secret[RNL_JOB_KEY_BYTES] = {key[i]};
        struct rnl_socket *socket;
        assert_int_equal(rnl_host_probe_adopt(fd[i], &socket), 0);
        assert_int_equal(rnl_host_probe_new(i, HOSTS, n->here, secret, 100 + i, socket, n->now, &n->search[i]), 0);
    }
}

static void step(struct net *n, uint64_t ns)
{
    n->now += ns;
    for (uint32_t i = 0; i < HOSTS; i++)
        rnl_host_probe_step(n->search[i], n->now);
}

static int all_done(const struct net *n)
{
    int done = 1;
    for (uint32_t i = 0; i < HOSTS; i++)
        done &= rnl_host_probe_done(n->search[i]);
    return done;
}

static void close_net(struct net *n)
{
    for (uint32_t i = 0; i < HOSTS; i++)
        rnl_host_probe_free(n->search[i]);
}

static void hosts_find_each_other_past_strangers(void **state)
{
    static struct net n;
    unsigned char garbage[RNL_HOST_PROBE_LONG_BYTES];
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
            (void)!sendto(stranger, garbage, i % 3 ? RNL_HOST_PROBE_SHORT_BYTES : sizeof garbage, 0,
                          (struct sockaddr *)&to, sizeof to);
        }
        step(&n, 1000000);
    }
    assert_true(all_done(&n));
    for (uint32_t i = 0; i < HOSTS; i++)
        for (uint32_t k = 0; k < HOSTS; k++) {
            struct rnl_probe_failure failure;
            uint8_t ip[16];
            assert_int_equal(rnl_host_probe_failed(n.search[i], k, &failure), 0);
            if (i != k) {
                assert_int_equal(rnl_host_probe_address(n.search[i], k, ip), 1);
                assert_memory_equal(ip, n.here[k].address[1].ip, 16);
            }
        }
    close(stranger);
    close_net(&n);
}

static void who_lives_is_told_when_both_ways_work(void **state)
{
    static struct net n;
    const unsigned char mine[1] = {5}, other[1] = {2};
    unsigned char bits[1] = {0};
    uint32_t host;
    uint64_t when;
    (void)state;
    open_net(&n, (const unsigned char[]){7, 7, 7}, 0);
    for (int i = 0; i < 400 && !all_done(&n); i++)
        step(&n, 1000000);
    rnl_host_probe_attest(n.search[0], mine, 1, n.now);
    step(&n, 1000000);
    assert_int_equal(rnl_host_probe_attested(n.search[1], &host, bits, 1, &when),
                     0); /* whether 0 hears us is not known yet */
    rnl_host_probe_attest(n.search[1], other, 1, n.now);
    step(&n, 1000000);
    assert_int_equal(rnl_host_probe_attested(n.search[0], &host, bits, 1, &when), 1);
    assert_int_equal(host, 1);
    assert_int_equal(bits[0], 2);
    rnl_host_probe_attest(n.search[0], mine, 1, n.now);
    step(&n, 1000000);
    assert_int_equal(rnl_host_probe_attested(n.search[1], &host, bits, 1, &when), 1);
    assert_int_equal(bits[0], 5);
    step(&n, UINT64_C(5000000000));
    rnl_host_probe_attest(n.search[0], mine, 1,
                          n.now); /* it heard the other 5 s ago, and whether it does now is open */
    step(&n, 1000000);
    assert_int_equal(rnl_host_probe_attested(n.search[1], &host, bits, 1, &when), 1);
    assert_in_range(n.now - when, UINT64_C(5000000000), UINT64_C(5100000000));
    step(&n, UINT64_C(60000000000));
    rnl_host_probe_attest(n.search[0], mine, 1, n.now); /* 1 was not heard for long: the way back may be broken */
    step(&n, 1000000);
    assert_int_equal(rnl_host_probe_attested(n.search[1], &host, bits, 1, &when), 0);
    close_net(&n);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ranks_are_dealt_in_blocks),
        cmocka_unit_test(names_that_are_none_are_refused),
        cmocka_unit_test(a_job_survives_and_a_bent_one_is_refused_or_sound),
        cmocka_unit_test(addresses_and_failures_survive),
        cmocka_unit_test(who_waits_survives_and_a_lie_is_refused),
        cmocka_unit_test(who_wants_a_rank_gets_it_and_the_others_what_is_left),
        cmocka_unit_test(frames_survive_in_pieces),
        cmocka_unit_test(a_greeting_is_found_behind_noise),
        cmocka_unit_test(noise_and_garbage_end_a_stream),
        cmocka_unit_test(hosts_find_each_other_past_strangers),
        cmocka_unit_test(who_lives_is_told_when_both_ways_work),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
