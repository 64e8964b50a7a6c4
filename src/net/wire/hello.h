/* SPDX-License-Identifier: BSD-3-Clause
 *
 * hello.h - the two datagrams that need no connection, and their codec: HELLO makes a connection, and UNKNOWN replies
 * to a packet whose connection does not exist. Both end with a tag that only members of the job can make, a keyed hash,
 * which needs no nonce. net/flow/handshake.h says how they are used.
 *
 *     0                   1                   2                   3
 *     0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
 *    +-------+-------+-+-+-+---------+-------------------------------+
 *  0 |  ver  | HELLO |W|U|S|    0    |  128                          |  W  the sender wants a connection
 *    +-------+-------+-+-+-+---------+-------------------------------+  U  it has one, made of these two nonces
 *  4 |  0                                                            |  S  it knows that the receiver has it, too
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
 * All HELLOs have the same length, so that no answer is longer than what caused it. The first four bytes, W, both
 * ranks, and the place and making of the tag are the same in every version.
 *
 * UNKNOWN has 40 bytes: a header with the connection and the packet number (space bit included) of the packet that it
 * answers, the incarnation of the sender (64), and the tag over these and the sender's rank. */
#ifndef RNL_NET_WIRE_HELLO_H
#define RNL_NET_WIRE_HELLO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "net/wire/key.h"

enum { RNL_HELLO_BYTES = 128, RNL_HELLO_MOST = 1200 /* bytes, in another version */, RNL_UNKNOWN_BYTES = 40 };
enum { RNL_HELLO_WANTS_REPLY = 1, RNL_HELLO_UP = 2, RNL_HELLO_SURE = 4, RNL_HELLO_FLAGS = 7 };

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
    RNL_HELLO_NONE,    /* the datagram is no HELLO */
    RNL_HELLO_FORGED,  /* its tag is not of this job, or it was damaged */
    RNL_HELLO_VERSION, /* it is of this job and of another version: src, dst, version and WANT are set */
    RNL_HELLO_BAD,     /* it is of this job and this version, but its fields contradict each other */
};

/* Reads which rank claims to have sent it, and to which rank, before its tag is checked. Returns false if it is no
 * HELLO. */
bool rnl_hello_peek(const unsigned char *at, size_t bytes, uint32_t *src, uint32_t *dst);
enum rnl_hello_verdict rnl_hello_decode(const unsigned char *at, size_t bytes, const struct rnl_job_keys *job,
                                        struct rnl_hello *h);
/* Returns RNL_HELLO_BYTES, or 0 if there is less room. */
uint32_t rnl_hello_encode(unsigned char *at, size_t room, const struct rnl_job_keys *job, const struct rnl_hello *h);

struct rnl_unknown {
    uint32_t connection; /* these three are those of the packet that is answered */
    uint64_t number;
    uint8_t control;
    uint64_t incarnation; /* of the sender of UNKNOWN */
};
/* Returns RNL_UNKNOWN_BYTES, or 0 if there is less room. `src` is our rank. */
uint32_t rnl_unknown_encode(unsigned char *at, size_t room, const struct rnl_job_keys *job, uint32_t src,
                            const struct rnl_unknown *u);
/* true = it is an UNKNOWN whose tag was made by rank `src` of this job. */
bool rnl_unknown_decode(const unsigned char *at, size_t bytes, const struct rnl_job_keys *job, uint32_t src,
                        struct rnl_unknown *u);

#endif
