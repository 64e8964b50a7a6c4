/* SPDX-License-Identifier: BSD-3-Clause
 *
 * fuzz_hello.c - HELLOs and UNKNOWNs that a member of the job might send: the input is sealed with the job's key, with
 * what it quotes of us filled in where it asks for it, and given to a process in each state of the handshake. */
#include <stdlib.h>
#include <string.h>

#include "net/flow/handshake.h"
#include "net/wire/bytes.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { ADDRESS = 4, BYTES = 1400 };
static const unsigned char address[ADDRESS] = {10, 0, 0, 1};

static struct rnl_job_keys job;
static struct rnl_handshake hs;

static void begin(void)
{
    static const unsigned char key[RNL_JOB_SECRET] = "a key";
    struct rnl_hs_config c = {.rank = 0,
                              .ranks = 4,
                              .incarnation = 77,
                              .job = &job,
                              .ciphers = 3,
                              .mtu_bytes = 1472,
                              .first_ns = 1000,
                              .most_ns = 10000,
                              .give_up_ns = 100000};
    rnl_job_keys_derive(&job, key);
    if (rnl_hs_init(&hs, &c) != 0)
        abort();
}

/* How many bytes the answer has. */
static uint32_t give(struct rnl_hs_peer *peer, const unsigned char *at, size_t bytes, unsigned char *out)
{
    struct rnl_hs_step step;
    unsigned state = peer ? peer->state : 0;
    rnl_hs_input(&hs, peer, at, bytes, address, ADDRESS, 5000, out, BYTES, &step);
    if (step.bytes > bytes || (!peer && (step.events & ~(unsigned)RNL_HS_NEEDS_PEER) != 0))
        abort();
    if (peer && (peer->state > RNL_HS_UP || ((step.events & RNL_HS_CONNECTED) && peer->state < RNL_HS_MADE) ||
                 ((step.events & RNL_HS_GONE) && state < RNL_HS_MADE)))
        abort();
    return step.bytes;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static unsigned char at[BYTES], out[BYTES];
    struct rnl_hs_peer peer;
    struct rnl_hello h;
    struct rnl_packet p;
    uint64_t number;
    unsigned control;
    if (size < 2)
        return 0;
    begin();
    unsigned state = data[0] % 5, what = data[1];
    size_t bytes = size - 2 > BYTES ? BYTES : size - 2;
    (void)rnl_hello_decode(data + 2, size - 2, &job, &h); /* as it is */
    (void)rnl_hs_claimed_rank(&hs, data + 2, size - 2);
    memcpy(at, data + 2, bytes);
    if (bytes && !(at[0] & 8)) /* one of our version, so that the corpus outlives a new one */
        at[0] = (unsigned char)((at[0] & 0xf0) | RNL_WIRE_VERSION);
    rnl_hs_peer_init(&hs, &peer, 1, what & 8 ? 5 : 0);
    if (state == 1 && rnl_hs_open(&hs, &peer, address, ADDRESS, 1000) != 0)
        abort();
    if (state >= 2) { /* our nonce, as a peer hears it, echoed: MADE, or UP */
        struct rnl_hello first = {.src = 1,
                                  .src_incarnation = 5,
                                  .nonce = {1},
                                  .connection = 9,
                                  .flags = RNL_HELLO_WANTS_REPLY,
                                  .ciphers = 3,
                                  .mtu_bytes = 1000};
        rnl_hello_encode(out, sizeof out, &job, &first);
        unsigned char answer[BYTES];
        if (give(&peer, out, RNL_HELLO_BYTES, answer) != RNL_HELLO_BYTES ||
            rnl_hello_decode(answer, RNL_HELLO_BYTES, &job, &h) != RNL_HELLO_GOOD)
            abort();
        memcpy(first.echo, h.nonce, RNL_NONCE_BYTES);
        first.dst_incarnation = h.src_incarnation;
        first.flags = state == 2 ? RNL_HELLO_WANTS_REPLY : RNL_HELLO_UP;
        rnl_hello_encode(out, sizeof out, &job, &first);
        give(&peer, out, RNL_HELLO_BYTES, answer);
        if (peer.state != (state == 2 ? RNL_HS_MADE : RNL_HS_UP))
            abort();
        if ((what & 1) && bytes >= RNL_HELLO_BYTES)
            memcpy(at + 56, peer.mine, RNL_NONCE_BYTES);
        if ((what & 2) && bytes >= RNL_HELLO_BYTES)
            memcpy(at + 40, peer.theirs, RNL_NONCE_BYTES);
    }
    if ((what & 4) && bytes >= RNL_HELLO_BYTES) { /* what an answer to us would echo now */
        struct rnl_hello ask = {.src = 1,
                                .src_incarnation = 5,
                                .nonce = {3},
                                .connection = 9,
                                .flags = RNL_HELLO_WANTS_REPLY,
                                .ciphers = 3,
                                .mtu_bytes = 1000};
        rnl_hello_encode(out, sizeof out, &job, &ask);
        unsigned char answer[BYTES];
        struct rnl_hs_peer copy = peer;
        if (give(&copy, out, RNL_HELLO_BYTES, answer) && rnl_hello_decode(answer, RNL_HELLO_BYTES, &job, &h) == 0)
            memcpy(at + 56, h.nonce, RNL_NONCE_BYTES);
    }
    if (what & 16 && bytes >= 4) {
        rnl_put16(at + 2, (uint16_t)bytes);
        at[0] = (unsigned char)((at[0] & 15) | RNL_PACKET_HELLO << 4);
    }
    if (what & 32 && bytes >= 24) {
        rnl_put32(at + 16, 1);
        rnl_put32(at + 20, 0);
    }
    if (bytes >= 16)
        rnl_keyed_hash(at + bytes - 16, job.hello, "runnel hello", at, bytes - 16);
    give(what & 64 ? NULL : &peer, at, bytes, out);
    (void)rnl_hs_unknown_said(&hs, &peer, 9, at, bytes, 6000, &number, &control);
    if (rnl_packet_decode(at, bytes, &p) == RNL_PACKET_GOOD && rnl_hs_unknown(&hs, &p, 7000, out, sizeof out) > bytes)
        abort();
    return 0;
}
