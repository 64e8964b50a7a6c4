/* SPDX-License-Identifier: BSD-3-Clause
 *
 * hello.c - the codec of HELLO and UNKNOWN. */
#include "net/wire/hello.h"
#include "base/bug.h"

#include <assert.h>
#include <sodium.h>
#include <string.h>

#include "net/wire/bytes.h"

enum { /* offsets of the fields that hello.h draws, bytes */
       AT_FLAGS = 1,
       AT_BYTES = 2,
       AT_ZERO = 4,
       AT_SRC = 16,
       AT_DST = 20,
       AT_SRC_INCARNATION = 24,
       AT_DST_INCARNATION = 32,
       AT_NONCE = 40,
       AT_ECHO = 56,
       AT_CONNECTION = 72,
       AT_PROTECT = 76,
       AT_CIPHERS = 77,
       AT_MTU = 78,
       AT_WINDOW = 80,
       AT_ACK_DELAY = 84,
       AT_PADDING = 88,
       AT_TAG = 112,
       AT_UNKNOWN_INCARNATION = 16,
       AT_UNKNOWN_TAG = 24
};
static_assert(AT_SRC == (int)RNL_PACKET_HEAD && AT_ECHO == AT_NONCE + (int)RNL_NONCE_BYTES &&
                  AT_CONNECTION == AT_ECHO + (int)RNL_NONCE_BYTES,
              "HELLO");
static_assert(AT_TAG + (int)RNL_PACKET_TAG == RNL_HELLO_BYTES &&
                  AT_UNKNOWN_TAG + (int)RNL_PACKET_TAG == RNL_UNKNOWN_BYTES,
              "tags");
static_assert(RNL_CIPHERS <= 8, "ciphers");

#define HELLO_LABEL   "runnel hello"
#define UNKNOWN_LABEL "runnel unknown"

bool rnl_hello_peek(const unsigned char *at, size_t bytes, uint32_t *src, uint32_t *dst)
{
    if (bytes < AT_DST + 4 + RNL_PACKET_TAG || at[0] >> 4 != RNL_PACKET_HELLO)
        return false;
    *src = rnl_get32(at + AT_SRC);
    *dst = rnl_get32(at + AT_DST);
    return true;
}

static int all_zero(const unsigned char *at, size_t bytes)
{
    return at[0] == 0 && memcmp(at, at + 1, bytes - 1) == 0;
}

enum rnl_hello_verdict rnl_hello_decode(const unsigned char *at, size_t bytes, const struct rnl_job_keys *job,
                                        struct rnl_hello *h)
{
    unsigned char tag[RNL_PACKET_TAG];
    memset(h, 0, sizeof *h);
    if (!rnl_hello_peek(at, bytes, &h->src, &h->dst) || bytes > RNL_HELLO_MOST || rnl_get16(at + AT_BYTES) != bytes)
        return RNL_HELLO_NONE;
    rnl_keyed_hash(tag, job->hello, HELLO_LABEL, at, bytes - RNL_PACKET_TAG);
    if (sodium_memcmp(tag, at + bytes - RNL_PACKET_TAG, RNL_PACKET_TAG) != 0 && !RNL_BUG(wire_hello_tag_unchecked))
        return RNL_HELLO_FORGED;
    h->version = (uint8_t)rnl_packet_version(at, bytes);
    h->flags = at[AT_FLAGS];
    if (h->version != RNL_WIRE_VERSION) {
        h->flags &= RNL_HELLO_WANTS_REPLY;
        return RNL_HELLO_VERSION;
    }
    if (bytes != RNL_HELLO_BYTES || (h->flags & ~RNL_HELLO_FLAGS) != 0 || !all_zero(at + AT_ZERO, AT_SRC - AT_ZERO) ||
        !all_zero(at + AT_PADDING, AT_TAG - AT_PADDING))
        return RNL_HELLO_BAD;
    h->src_incarnation = rnl_get64(at + AT_SRC_INCARNATION);
    h->dst_incarnation = rnl_get64(at + AT_DST_INCARNATION);
    memcpy(h->nonce, at + AT_NONCE, RNL_NONCE_BYTES);
    memcpy(h->echo, at + AT_ECHO, RNL_NONCE_BYTES);
    h->connection = rnl_get32(at + AT_CONNECTION);
    h->protect = at[AT_PROTECT];
    h->ciphers = at[AT_CIPHERS];
    h->mtu_bytes = rnl_get16(at + AT_MTU);
    h->window_bytes = rnl_get32(at + AT_WINDOW);
    h->ack_delay_ns = rnl_get32(at + AT_ACK_DELAY);
    int paired = (h->flags & RNL_HELLO_UP) != 0, sure = (h->flags & RNL_HELLO_SURE) != 0;
    if (h->src_incarnation == 0 || h->connection == 0 || all_zero(h->nonce, RNL_NONCE_BYTES) ||
        (paired && all_zero(h->echo, RNL_NONCE_BYTES)) || (sure && !paired) ||
        (paired && (h->flags & RNL_HELLO_WANTS_REPLY)) || h->mtu_bytes < RNL_HELLO_BYTES)
        return RNL_HELLO_BAD;
    return RNL_HELLO_GOOD;
}

uint32_t rnl_hello_encode(unsigned char *at, size_t room, const struct rnl_job_keys *job, const struct rnl_hello *h)
{
    if (room < RNL_HELLO_BYTES)
        return 0;
    memset(at, 0, RNL_HELLO_BYTES);
    at[0] = RNL_WIRE_VERSION | RNL_PACKET_HELLO << 4;
    at[AT_FLAGS] = h->flags;
    rnl_put16(at + AT_BYTES, RNL_HELLO_BYTES);
    rnl_put32(at + AT_SRC, h->src);
    rnl_put32(at + AT_DST, h->dst);
    rnl_put64(at + AT_SRC_INCARNATION, h->src_incarnation);
    rnl_put64(at + AT_DST_INCARNATION, h->dst_incarnation);
    memcpy(at + AT_NONCE, h->nonce, RNL_NONCE_BYTES);
    memcpy(at + AT_ECHO, h->echo, RNL_NONCE_BYTES);
    rnl_put32(at + AT_CONNECTION, h->connection);
    at[AT_PROTECT] = h->protect;
    at[AT_CIPHERS] = h->ciphers;
    rnl_put16(at + AT_MTU, h->mtu_bytes);
    rnl_put32(at + AT_WINDOW, h->window_bytes);
    rnl_put32(at + AT_ACK_DELAY, h->ack_delay_ns);
    rnl_keyed_hash(at + AT_TAG, job->hello, HELLO_LABEL, at, AT_TAG);
    return RNL_HELLO_BYTES;
}

static void unknown_tag(unsigned char tag[RNL_PACKET_TAG], const unsigned char *at, const struct rnl_job_keys *job,
                        uint32_t src)
{
    unsigned char in[AT_UNKNOWN_TAG + 4];
    memcpy(in, at, AT_UNKNOWN_TAG);
    rnl_put32(in + AT_UNKNOWN_TAG, src);
    rnl_keyed_hash(tag, job->hello, UNKNOWN_LABEL, in, sizeof in);
}

uint32_t rnl_unknown_encode(unsigned char *at, size_t room, const struct rnl_job_keys *job, uint32_t src,
                            const struct rnl_unknown *u)
{
    struct rnl_packet p = {
        .type = RNL_PACKET_UNKNOWN, .connection = u->connection, .number = u->number, .control = u->control};
    if (room < RNL_UNKNOWN_BYTES || rnl_packet_encode(at, room, &p) == 0)
        return 0;
    rnl_put64(at + AT_UNKNOWN_INCARNATION, u->incarnation);
    rnl_packet_finish(at, AT_UNKNOWN_TAG);
    unknown_tag(at + AT_UNKNOWN_TAG, at, job, src);
    return RNL_UNKNOWN_BYTES;
}

bool rnl_unknown_decode(const unsigned char *at, size_t bytes, const struct rnl_job_keys *job, uint32_t src,
                        struct rnl_unknown *u)
{
    struct rnl_packet p;
    unsigned char tag[RNL_PACKET_TAG];
    if (bytes != RNL_UNKNOWN_BYTES || rnl_packet_decode(at, bytes, &p) != RNL_PACKET_GOOD ||
        p.type != RNL_PACKET_UNKNOWN)
        return false;
    unknown_tag(tag, at, job, src);
    if (sodium_memcmp(tag, at + AT_UNKNOWN_TAG, RNL_PACKET_TAG) != 0)
        return false;
    *u = (struct rnl_unknown){p.connection, p.number, p.control, rnl_get64(at + AT_UNKNOWN_INCARNATION)};
    return true;
}
