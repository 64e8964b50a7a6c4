/* SPDX-License-Identifier: BSD-3-Clause
 *
 * hello.h - the two datagrams that need no connection, and their codec: HELLO, which makes one, and UNKNOWN, the answer
 * to a packet of a connection that is not there. Both end with a tag that the members of the job can make (a keyed
 * hash: it needs no nonce). How they are used is in reliable/handshake.h.
 *
 *     0                   1                   2                   3
 *     0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
 *    +-------+-------+-+-+-+---------+-------------------------------+
 *  0 |  ver  | HELLO |W|U|S|    0    |  128                          |  W  I want a connection
 *    +-------+-------+-+-+-+---------+-------------------------------+  U  I have one, of these two nonces
 *  4 |  0                                                            |  S  and I am sure that you have it
 *  8 |  0                                                            |
 *    +---------------------------------------------------------------+
 * 16 |  rank of the sender                                           |
 *    +---------------------------------------------------------------+
 * 20 |  rank of the receiver                                         |
 *    +---------------------------------------------------------------+
 * 24 |  incarnation of the sender (64)                               |
 * 32 |  incarnation of the receiver (64), 0 = not known              |
 *    +---------------------------------------------------------------+
 * 40 |  nonce of the sender (128)                                    |
 * 56 |  nonce of the receiver, as last heard (128), 0 = none         |
 *    +---------------------------------------------------------------+
 * 72 |  connection: the number for packets to the sender             |
 *    +---------------+---------------+-------------------------------+
 * 76 |  protection   |  ciphers      |  longest datagram it takes    |
 *    +---------------+---------------+-------------------------------+
 * 80 |  window: bytes of datagrams that its socket holds             |
 *    +---------------------------------------------------------------+
 * 84 |  how long it may keep an acknowledgement, ns                  |
 *    +---------------------------------------------------------------+
 * 88 |  0 up to 112, then the tag: 16 bytes over everything above    |
 *    +---------------------------------------------------------------+
 *
 * All HELLOs have the same length, so that no answer is longer than what caused it. In every version: the first four
 * bytes, W, both ranks, and where and how the tag is made.
 *
 * UNKNOWN, 40 bytes: a header with the connection and the packet number (space bit included) of the packet that it
 * answers, then the incarnation of the sender (64), then the tag over these and the sender's rank. */
#ifndef RNL_WIRE_HELLO_H
#define RNL_WIRE_HELLO_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "wire/key.h"

enum { RNL_HELLO_BYTES = 128, RNL_HELLO_MOST = 1200 /* of another version */, RNL_UNKNOWN_BYTES = 40 };
enum { RNL_HELLO_WANT = 1, RNL_HELLO_UP = 2, RNL_HELLO_SURE = 4, RNL_HELLO_FLAGS = 7 };

struct rnl_hello {
    uint32_t src, dst;
    uint64_t src_incarnation, dst_incarnation;
    unsigned char nonce[RNL_NONCE_BYTES], echo[RNL_NONCE_BYTES];
    uint32_t connection, window_bytes, ack_delay_ns;
    uint16_t mtu_bytes;
    uint8_t flags, protect, ciphers;
    uint8_t version;
};

enum rnl_hello_verdict {
    RNL_HELLO_GOOD = 0,
    RNL_HELLO_NONE,    /* no HELLO at all */
    RNL_HELLO_FORGED,  /* its tag is not of this job, or it was damaged */
    RNL_HELLO_VERSION, /* of this job, of another version: src, dst, version and WANT are set */
    RNL_HELLO_BAD,     /* of this job and this version, but it says what cannot be */
};

/* Who claims to send it, and to whom, before anything is believed. 1, or 0: no HELLO. */
int rnl_hello_peek(const unsigned char *at, size_t bytes, uint32_t *src, uint32_t *dst);
enum rnl_hello_verdict rnl_hello_decode(const unsigned char *at, size_t bytes, const struct rnl_job_keys *job,
                                        struct rnl_hello *h);
/* RNL_HELLO_BYTES, or 0 if there is no room. */
uint32_t rnl_hello_encode(unsigned char *at, size_t room, const struct rnl_job_keys *job, const struct rnl_hello *h);

struct rnl_unknown {
    uint32_t connection; /* the two that the packet had */
    uint64_t number;
    uint8_t control;
    uint64_t incarnation; /* of whoever says so */
};
/* RNL_UNKNOWN_BYTES, or 0 if there is no room. `src`: our rank. */
uint32_t rnl_unknown_encode(unsigned char *at, size_t room, const struct rnl_job_keys *job, uint32_t src,
                            const struct rnl_unknown *u);
/* 1 if rank `src` of this job said so. */
int rnl_unknown_decode(const unsigned char *at, size_t bytes, const struct rnl_job_keys *job, uint32_t src,
                       struct rnl_unknown *u);

#endif
