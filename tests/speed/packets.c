/* SPDX-License-Identifier: BSD-3-Clause
 *
 * packets.c - what a packet costs besides its way: header and block written and read, sealed and opened, by cipher and
 * protection; and what a handshake costs. Prints nanoseconds, and how many times what copying the packet costs. Fails
 * only if a packet does not come back. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "net/flow/handshake.h"
#include "support/must.h"
#include "support/random.h"

enum { ROUNDS = 5, SLOTS = 4 };
static const uint32_t lengths[] = {64, 1400, 8900};

static struct rnl_ciphers ciphers;
static struct rnl_sealer sealer;
static unsigned char at[9216], copy[9216];

struct work {
    struct rnl_keys tx, rx;
    struct rnl_packet p;
    uint32_t bytes, body;
    uint64_t number;
};

/* The quickest of some rounds: what it costs when nobody interferes. */
static double quickest(void (*what)(struct work *), struct work *w, unsigned times)
{
    double best = 1e18;
    for (unsigned round = 0; round < ROUNDS; round++) {
        uint64_t began = test_now_ns();
        for (unsigned i = 0; i < times; i++)
            what(w);
        double each = (double)(test_now_ns() - began) / times;
        best = each < best ? each : best;
    }
    return best;
}

static void compose(struct work *w)
{
    w->p.number = w->number++;
    w->p.ack.largest = w->number;
    w->body = rnl_packet_encode(at, sizeof at, &w->p);
    w->bytes = rnl_packet_finish(at, w->bytes - RNL_PACKET_TAG);
}
static void read_back(struct work *w)
{
    struct rnl_packet p;
    TEST_MUST(rnl_packet_decode(at, w->bytes, &p) == RNL_PACKET_GOOD && p.body == w->body);
}
static void move(struct work *w)
{
    memcpy(copy, at, w->bytes);
    __asm__ volatile("" : : "r"(copy) : "memory");
}
static void there(struct work *w)
{
    compose(w);
    TEST_MUST(rnl_keys_seal(&w->tx, &sealer, at, w->bytes, w->body) == 0);
}
static void there_and_back(struct work *w)
{
    struct rnl_packet p;
    there(w);
    TEST_MUST(rnl_packet_decode(at, w->bytes, &p) == RNL_PACKET_GOOD &&
              rnl_keys_open(&w->rx, &sealer, at, &p, 0, 0) == 1);
}

static void each_suite(unsigned times)
{
    static const unsigned char a[RNL_KEY_BYTES] = {1}, b[RNL_KEY_BYTES] = {2};
    static const struct rnl_key_limits limits = {(uint64_t)1 << 40, (uint64_t)1 << 41, 1000};
    printf("%-20s %-14s %6s %9s %9s %9s %9s\n", "cipher", "protection", "bytes", "copy", "write", "read", "seal+open");
    for (unsigned cipher = 0; cipher < RNL_CIPHERS; cipher++)
        for (unsigned protect = 0; protect < 2; protect++)
            for (size_t l = 0; l < sizeof lengths / sizeof *lengths && ciphers.have >> cipher & 1; l++) {
                struct rnl_suite suite = {(uint8_t)cipher, (uint8_t)protect};
                struct work w = {.bytes = lengths[l]};
                w.p = (struct rnl_packet){.type = RNL_PACKET_DATA, .flags = RNL_PACKET_ACK, .connection = 1};
                rnl_keys_init(&w.tx, suite, a, b, &limits);
                rnl_keys_init(&w.rx, suite, b, a, &limits);
                double bare = quickest(move, &w, times), write = quickest(compose, &w, times),
                       read = quickest(read_back, &w, times), both = quickest(there_and_back, &w, times);
                printf("%-20s %-14s %6u %6.0f ns %6.0f ns %6.0f ns %6.0f ns = %.1f copies\n", rnl_cipher_text(cipher),
                       rnl_protect_text(protect), lengths[l], bare, write, read, both - write - read,
                       (both - write - read) / bare);
            }
}

static void handshake(unsigned times)
{
    static const unsigned char key[RNL_JOB_SECRET] = {3};
    struct rnl_job_keys job;
    struct rnl_handshake hs[2];
    struct rnl_hs_peer peer[2];
    struct rnl_hs_step step;
    unsigned char address[2] = {0, 1}, out[2][RNL_HELLO_BYTES];
    rnl_job_keys_derive(&job, key);
    for (unsigned i = 0; i < 2; i++) {
        struct rnl_hs_config c = {.rank = i,
                                  .ranks = 2,
                                  .incarnation = 1 + i,
                                  .secret = {(unsigned char)i},
                                  .job = &job,
                                  .ciphers = (uint8_t)ciphers.have,
                                  .mtu_bytes = 1400,
                                  .first_ns = 1,
                                  .most_ns = 1,
                                  .give_up_ns = 1000};
        TEST_MUST(rnl_hs_init(&hs[i], &c) == 0);
        rnl_hs_peer_init(&hs[i], &peer[i], !i, 0);
    }
    uint64_t began = test_now_ns();
    for (unsigned i = 0; i < times; i++) {
        TEST_MUST(rnl_hs_open(&hs[0], &peer[0], address + 1, 1, 0) == 0);
        rnl_hs_output(&hs[0], &peer[0], 0, out[0], RNL_HELLO_BYTES, &step);
        for (unsigned to = 1; step.bytes; to = !to)
            rnl_hs_input(&hs[to], &peer[to], out[!to], step.bytes, &address[!to], 1, 0, out[to], RNL_HELLO_BYTES,
                         &step);
        TEST_MUST(peer[0].state == RNL_HS_UP && peer[1].state == RNL_HS_UP);
        rnl_hs_end(&peer[0], 0);
        rnl_hs_end(&peer[1], 0);
    }
    printf("a handshake, both sides: %.1f us\n", (double)(test_now_ns() - began) / times / 1000);
}

int main(void)
{
    unsigned times = 20000 / test_slowness();
    uint64_t began = test_now_ns();
    TEST_MUST(rnl_ciphers_init(&ciphers, ~0u) == 0);
    printf("finding the ciphers, once: %.1f ms\n", (double)(test_now_ns() - began) / 1e6);
    void *memory = aligned_alloc(RNL_SEALER_ALIGN, rnl_sealer_bytes(SLOTS));
    TEST_MUST(memory && rnl_sealer_init(&sealer, &ciphers, memory, SLOTS) == 0);
    each_suite(times);
    handshake(times / 100);
    rnl_sealer_wipe(&sealer);
    free(memory);
    printf("ok - every packet came back\n");
    return 0;
}
