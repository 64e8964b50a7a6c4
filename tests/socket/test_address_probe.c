/* SPDX-License-Identifier: BSD-3-Clause
 *
 * test_address_probe.c - how hosts find each other, over a network in memory: what is known of their alternate
 * addresses, that attestations go to all that work, and that nothing counts which comes from elsewhere or under another
 * key. Time is the test's. */
#include "net/probe/address_probe.h"

#include "job/proto.h"
#include "net/wire/key.h"

#include <stdio.h>

#include "support/unit.h"

#define MS ((uint64_t)1000 * 1000)
enum { HOSTS = 2, WAYS = 4, PORT = 700, QUEUE = 256, BYTES_MOST = 2048 };

/* What goes to the k-th address of a host comes from the sender's k-th: each interface is on a network of its own. */
struct net;
struct host {
    struct rnl_socket socket;
    struct net *net;
    struct datagram {
        struct rnl_socket_addr from;
        uint32_t bytes;
        unsigned char at[BYTES_MOST];
    } queue[QUEUE];
    unsigned first, count;
    unsigned came[WAYS]; /* datagrams, by the address that they went to */
    struct rnl_host_probe *probe;
};
struct net {
    struct host host[HOSTS];
    struct rnl_host_info info[HOSTS];
    uint8_t deaf[HOSTS][WAYS]; /* nothing arrives there */
    uint8_t narrow[WAYS];      /* nothing long arrives there */
    uint64_t now_ns;
    uint32_t moved; /* datagrams of this kind seem to come from a stranger: 0 = none do */
};

static void ip_of(unsigned host, unsigned way, uint8_t ip[16])
{
    const uint8_t out[16] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, (uint8_t)way, 0, (uint8_t)(host + 1)};
    memcpy(ip, out, sizeof out);
}

static int send_them(struct rnl_socket *s, const struct rnl_socket_out *out, int n, struct rnl_socket_result *result)
{
    struct host *h = (struct host *)s;
    struct net *net = h->net;
    (void)result;
    for (int i = 0; i < n; i++) {
        unsigned way = out[i].to.ip[13], to = out[i].to.ip[15] - 1u;
        assert_true(way < WAYS && to < HOSTS && out[i].bytes <= BYTES_MOST && out[i].to.port == PORT);
        struct host *t = &net->host[to];
        t->came[way]++;
        if (net->deaf[to][way] || (net->narrow[way] && out[i].bytes > RNL_HOST_PROBE_SHORT_BYTES))
            continue;
        assert_true(t->count < QUEUE);
        struct datagram *d = &t->queue[(t->first + t->count++) % QUEUE];
        d->from = (struct rnl_socket_addr){.port = PORT};
        ip_of((unsigned)(h - net->host), way, d->from.ip);
        if (net->moved != 0 && ((const unsigned char *)out[i].at)[4] == net->moved)
            d->from.ip[15] = 99;
        d->bytes = out[i].bytes;
        memcpy(d->at, out[i].at, out[i].bytes);
    }
    return n;
}

static int receive_them(struct rnl_socket *s, struct rnl_socket_in *in, int n)
{
    struct host *h = (struct host *)s;
    int i = 0;
    for (; i < n && h->count > 0; i++, h->count--, h->first = (h->first + 1) % QUEUE) {
        const struct datagram *d = &h->queue[h->first];
        memcpy(in[i].at, d->at, d->bytes);
        in[i].bytes = d->bytes;
        in[i].from = d->from;
    }
    return i;
}

static int no_error(struct rnl_socket *s, struct rnl_socket_error *e)
{
    (void)s, (void)e;
    return 0;
}

static int arm(struct rnl_socket *s)
{
    return ((struct host *)s)->count > 0;
}

static void leave(struct rnl_socket *s)
{
    (void)s;
}

static const struct rnl_socket_ops ops = {
    .size = sizeof ops, .send = send_them, .recv = receive_them, .error = no_error, .arm = arm, .close = leave};

/* Two hosts of so many addresses, all on interfaces of their own. */
static struct net *new_net(unsigned ways)
{
    struct net *net = calloc(1, sizeof *net);
    assert_non_null(net);
    net->now_ns = 1000 * MS;
    for (unsigned h = 0; h < HOSTS; h++) {
        net->host[h].net = net;
        net->host[h].socket.ops = &ops;
        net->info[h] = (struct rnl_host_info){.host = h, .addresses = ways, .ranks = 1, .probe_port = PORT};
        for (unsigned k = 0; k < ways; k++) {
            ip_of(h, k, net->info[h].address[k].ip);
            snprintf(net->info[h].address[k].interface, sizeof net->info[h].address[k].interface, "eth%u", k);
        }
    }
    return net;
}

static void step_both(struct net *net)
{
    for (unsigned h = 0; h < HOSTS; h++)
        rnl_host_probe_step(net->host[h].probe, net->now_ns);
    net->now_ns += MS;
}

/* They look for each other, until both have found, or have given up. */
static void find(struct net *net)
{
    static const unsigned char key[RNL_JOB_KEY_BYTES] = {7};
    for (unsigned h = 0; h < HOSTS; h++) {
        struct host *at = &net->host[h];
        assert_int_equal(rnl_host_probe_new(h, HOSTS, net->info, key, 11 + h, &at->socket, net->now_ns, &at->probe), 0);
    }
    for (unsigned n = 0; !rnl_host_probe_done(net->host[0].probe) || !rnl_host_probe_done(net->host[1].probe); n++) {
        assert_true(n < 10000);
        step_both(net);
    }
    for (unsigned n = 0; n < 5; n++) /* what was on its way */
        step_both(net);
}

static void end(struct net *net)
{
    for (unsigned h = 0; h < HOSTS; h++)
        rnl_host_probe_free(net->host[h].probe);
    free(net);
}

/* The way that a host uses to the other. */
static unsigned chosen(struct net *net, unsigned host)
{
    uint8_t ip[16];
    assert_int_equal(rnl_host_probe_address(net->host[host].probe, !host, ip), 1);
    return ip[13];
}

/* The further ones, as digits. */
static const char *further(struct net *net, unsigned host, unsigned most)
{
    static char text[WAYS + 1];
    uint8_t ip[WAYS][16];
    unsigned n = rnl_host_probe_alternates(net->host[host].probe, !host, ip, most);
    for (unsigned i = 0; i < n; i++) {
        assert_int_equal(ip[i][15], !host + 1);
        text[i] = (char)('0' + ip[i][13]);
    }
    text[n] = '\0';
    return text;
}

static void all_other_addresses_are_further_ones(void **state)
{
    (void)state;
    struct net *net = new_net(4);
    find(net);
    for (unsigned h = 0; h < HOSTS; h++) {
        assert_int_equal(chosen(net, h), 0);
        assert_string_equal(further(net, h, 3), "123");
        assert_string_equal(further(net, h, 2), "12");
        assert_string_equal(further(net, h, 0), "");
    }
    end(net);
}

/* Those that answered come first, on both sides: who is asked sees where the questions come from. */
static void those_that_work_come_first(void **state)
{
    (void)state;
    struct net *net = new_net(4);
    net->deaf[0][1] = net->deaf[1][1] = 1;
    net->narrow[2] = 1; /* what is long does not pass: it is no way */
    find(net);
    for (unsigned h = 0; h < HOSTS; h++) {
        assert_int_equal(chosen(net, h), 0);
        assert_string_equal(further(net, h, 3), "312");
        assert_string_equal(further(net, h, 1), "3");
    }
    end(net);
}

/* An interface that is used already is worth another address only if that works. */
static void one_address_of_each_interface_if_it_is_not_known_to_work(void **state)
{
    (void)state;
    struct net *net = new_net(4);
    for (unsigned h = 0; h < HOSTS; h++) {
        strcpy(net->info[h].address[1].interface, "eth0");
        strcpy(net->info[h].address[2].interface, "eth0");
        net->deaf[h][2] = net->deaf[h][3] = 1;
    }
    find(net);
    for (unsigned h = 0; h < HOSTS; h++)
        assert_string_equal(further(net, h, 3), "13");
    end(net);
}

/* Hosts whose containers are all numbered alike. */
static void an_address_that_both_have_is_none(void **state)
{
    (void)state;
    struct net *net = new_net(3);
    memcpy(net->info[1].address[1].ip, net->info[0].address[1].ip, 16);
    find(net);
    assert_string_equal(further(net, 0, 3), "2");
    assert_string_equal(further(net, 1, 3), "2");
    end(net);
}

static void nobody_has_further_addresses_who_was_not_found(void **state)
{
    (void)state;
    struct net *net = new_net(3);
    memset(net->deaf[1], 1, sizeof net->deaf[1]);
    find(net);
    uint8_t ip[16];
    assert_int_equal(rnl_host_probe_address(net->host[0].probe, 1, ip), 0);
    assert_string_equal(further(net, 0, 3), "");
    assert_string_equal(further(net, 1, 3), "");
    end(net);
}

/* At the address that is used first, and at all others that work, but at no dead one. */
static void attestations_go_to_all_addresses_that_work(void **state)
{
    (void)state;
    for (unsigned h = 0; h < HOSTS; h++) {
        struct net *net = new_net(4);
        net->deaf[0][0] = net->deaf[1][0] = 1;
        net->deaf[0][2] = net->deaf[1][2] = 1;
        find(net);
        assert_int_equal(chosen(net, h), 1);
        unsigned *came = net->host[!h].came;
        unsigned char bits = 5, heard[RNL_JOB_RANKS_MAX / 8] = {0};
        memset(came, 0, WAYS * sizeof *came);
        rnl_host_probe_attest(net->host[h].probe, &bits, 1, net->now_ns);
        assert_int_equal(came[0] + came[2], 0);
        assert_true(came[1] == 1 && came[3] == 1);
        net->deaf[!h][1] = 1; /* it dies, and they arrive all the same */
        uint32_t from;
        uint64_t when;
        for (unsigned n = 0; n < 3; n++) { /* who attests must have heard the other lately */
            rnl_host_probe_attest(net->host[h].probe, &bits, 1, net->now_ns);
            rnl_host_probe_attest(net->host[!h].probe, &bits, 1, net->now_ns);
            step_both(net);
        }
        assert_true(rnl_host_probe_attested(net->host[!h].probe, &from, heard, 1, &when));
        assert_true(from == h && heard[0] == bits);
        end(net);
    }
}

static void put32(unsigned char *at, uint32_t v)
{
    for (unsigned i = 0; i < 4; i++)
        at[i] = (unsigned char)(v >> 8 * i);
}

/* Ranks hold the key of the job. With it, nothing can be attested; and what was made with it outdates nothing. */
static void nothing_counts_under_another_key(void **state)
{
    static const unsigned char job_key[RNL_JOB_SECRET] = {8};
    unsigned char tag[16], bits = 1, heard[RNL_JOB_RANKS_MAX / 8];
    uint32_t from;
    uint64_t when;
    (void)state;
    struct net *net = new_net(1);
    find(net);
    struct host *victim = &net->host[1];
    struct datagram *d = &victim->queue[(victim->first + victim->count++) % QUEUE];
    memset(d, 0, sizeof *d);
    d->bytes = RNL_HOST_PROBE_SHORT_BYTES;
    d->from.port = PORT;
    ip_of(0, 0, d->from.ip);
    memcpy(d->at, "RNLQ", 4);
    put32(d->at + 4, 5); /* ALIVE */
    put32(d->at + 12, 1);
    put32(d->at + 16, 1);
    put32(d->at + 28, 1); /* a count that none of the true ones reaches */
    d->at[48] = 1;
    rnl_keyed_hash(tag, job_key, "probe", d->at, d->bytes);
    memcpy(d->at + 32, tag, sizeof tag);
    step_both(net);
    assert_false(rnl_host_probe_attested(victim->probe, &from, heard, 1, &when));
    for (unsigned n = 0; n < 2; n++) {
        rnl_host_probe_attest(net->host[0].probe, &bits, 1, net->now_ns);
        rnl_host_probe_attest(net->host[1].probe, &bits, 1, net->now_ns);
        step_both(net);
    }
    assert_true(rnl_host_probe_attested(victim->probe, &from, heard, 1, &when));
    end(net);
}

/* The tag of a datagram proves who wrote it; anybody on its path can send it again, from elsewhere. */
static void chosen_counts_only_from_an_address_that_is_listed(void **state)
{
    uint8_t ip[16];
    (void)state;
    struct net *net = new_net(2);
    net->moved = 3; /* CHOSEN */
    find(net);
    assert_false(rnl_host_probe_address(net->host[1].probe, 0, ip));
    end(net);
}

static void agreed_counts_only_from_the_address_that_was_chosen(void **state)
{
    struct rnl_probe_failure failure;
    (void)state;
    struct net *net = new_net(2);
    net->moved = 4; /* AGREED */
    find(net);
    assert_true(rnl_host_probe_failed(net->host[0].probe, 1, &failure));
    end(net);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_other_addresses_are_further_ones),
        cmocka_unit_test(those_that_work_come_first),
        cmocka_unit_test(one_address_of_each_interface_if_it_is_not_known_to_work),
        cmocka_unit_test(an_address_that_both_have_is_none),
        cmocka_unit_test(nobody_has_further_addresses_who_was_not_found),
        cmocka_unit_test(attestations_go_to_all_addresses_that_work),
        cmocka_unit_test(nothing_counts_under_another_key),
        cmocka_unit_test(chosen_counts_only_from_an_address_that_is_listed),
        cmocka_unit_test(agreed_counts_only_from_the_address_that_was_chosen),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
