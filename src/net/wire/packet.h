/* SPDX-License-Identifier: BSD-3-Clause
 *
 * packet.h - a datagram's header and acknowledgement block, and their codec: pure functions of bytes. frame.h has the
 * frames behind them, seal.h the tag, hello.h the bodies of HELLO and UNKNOWN.
 *
 * All numbers are little-endian; bit 0 is the lowest bit of a byte.
 *
 *     0                   1                   2                   3
 *     0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
 *    +-------+-------+-+-+-+---+-+---+-------------------------------+
 *  0 |  ver  | type  |A|R|E| K |C| F |  bytes of this datagram       |
 *    +-------+-------+-+-+-+---+-+---+-------------------------------+
 *  4 |  connection: a number that the receiver chose                 |
 *    +---------------------------------------------------------------+
 *  8 |  packet number (63 bits)                                      |
 *    +                                                             +-+
 * 12 |                                                             |S|
 *    +=============================================================+=+ 16: only if A
 * 16 |  largest packet number received in the data space (63 bits)   |
 *    +                                                             +-+
 * 20 |                                                             |0|
 *    +-------------------------------+-----------------------------+-+
 * 24 |  hold, units of 1024 ns       |  run: next lower ones, too    |
 *    +---------------+---------------+-------------------------------+
 * 28 |  ranges (<=32)|  window, units of 64 bytes                    |
 *    +---------------+-----------------------------------------------+    only if C
 * 32 |  datagrams that came marked "congestion experienced"          |
 *    +---------------------------------------------------------------+
 * 36 |  datagrams that came marked "ECN-capable"                     |
 *    +-------------------------------+-------------------------------+ 32 or 40: `ranges` of them, downwards
 *    |  gap: numbers missing (>= 1)  |  length: then received (>= 1) |
 *    +===============================+===============================+
 *    |  body: frames (DATA), see below for the other types           |
 *    +===============================================================+
 *    |  tag, 16 bytes, over everything above                         |
 *    +---------------------------------------------------------------+
 *
 *   A  an acknowledgement block follows     R  acknowledge this packet now
 *   E  the body is encrypted                K  the phase of the key it is sealed with, modulo 4
 *   C  the block has ECN counts             S  control space: packets that are not acknowledged by a block
 *   F  the flow of the connection: 0 = the one that every connection has; further ones have keys and numbers of their
 *      own (remote/stripe.c), and DATA and PROBE only
 *
 * Header and block are authenticated and never encrypted. A packet number is used once in its space, whatever the key.
 * The block acknowledges packets of the data space only. Its hold is how long the receiver had kept `largest` when it
 * sent the block, at most 67 ms; its window is how many bytes of our datagrams the receiver's socket buffer can still
 * take; its ECN counts are the low halves of counts that never fall.
 *
 * The body of DATA is frames. The others have these fields, with their bytes, and are in the control space:
 *    PROBE  kind 1 (0 = request: do datagrams of this size pass? 1 = reply: this size passed), 0 1, size 2, 0 4; a
 *           request is padded with zeros to the size that it probes
 *    CLOSE  reason 4, 0 4
 *    PATH   kind 1 (0 = challenge, 1 = response with the same value), 0 7, value 8; both are padded with zeros to the
 *           size of the smallest data packets
 *
 * The first four bytes are the same in every version, and so is the tag of a HELLO, which only members of the job can
 * make (hello.h): so processes of two versions can find out why they cannot talk. */
#ifndef RNL_NET_WIRE_PACKET_H
#define RNL_NET_WIRE_PACKET_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "net/wire/bytes.h"

enum {
    RNL_WIRE_VERSION = 6, /* raised when two builds would misread each other; runnel-wire(7) lists the changes */
    RNL_WIRE_VERSIONS = 16,
    RNL_PACKET_HEAD = 16, /* bytes */
    RNL_PACKET_TAG = 16,
    RNL_PACKET_MIN = RNL_PACKET_HEAD + RNL_PACKET_TAG,
    RNL_PACKET_MAX = 65507, /* what UDP over IPv4 carries */
    RNL_ACK_FIXED = 16,
    RNL_ACK_ECN = 8,
    RNL_ACK_RANGE = 4,
    RNL_ACK_RANGES_MAX = 32,
    RNL_ACK_MAX = RNL_ACK_FIXED + RNL_ACK_ECN + RNL_ACK_RANGES_MAX * RNL_ACK_RANGE,
    RNL_ACK_HOLD_UNIT_NS = 1024,
    RNL_ACK_WINDOW_UNIT = 64,
    RNL_PROBE_BODY = 8,
    RNL_CLOSE_BODY = 8,
    RNL_PATH_BODY = 16
};
#define RNL_PACKET_NUMBER_MAX (~(uint64_t)0 >> 1)
#define RNL_ACK_WINDOW_MAX    ((uint32_t)0xffffff * RNL_ACK_WINDOW_UNIT)
#define RNL_ACK_HOLD_MAX_NS   ((uint32_t)0xffff * RNL_ACK_HOLD_UNIT_NS)

enum rnl_packet_type {
    RNL_PACKET_DATA = 0,
    RNL_PACKET_HELLO,
    RNL_PACKET_UNKNOWN,
    RNL_PACKET_PROBE,
    RNL_PACKET_CLOSE,
    RNL_PACKET_PATH,
    RNL_PACKET_TYPES
};
struct rnl_room { /* where one packet is to be composed, in the memory of whoever sends it */
    void *at;     /* a multiple of 8 */
    uint32_t bytes;
    uint32_t token; /* belongs to the sender */
};
/* The flags of the header; rnl_keys_seal sets ENC and the phase. */
enum {
    RNL_PACKET_ACK = 1,
    RNL_PACKET_ACK_WANTED = 2, /* R */
    RNL_PACKET_ENC = 4,
    RNL_PACKET_PHASE = 8 + 16,
    RNL_PACKET_PHASE_SHIFT = 3,
    RNL_PACKET_ECN = 32,
    RNL_PACKET_FLAGS = 63,
    RNL_PACKET_FLOW = 64 + 128, /* only of DATA and PROBE */
    RNL_PACKET_FLOW_SHIFT = 6
};

struct rnl_ack_range {
    uint16_t gap, length;
};
struct rnl_ack {
    uint64_t largest;
    uint32_t hold_ns;      /* at most RNL_ACK_HOLD_MAX_NS; rounded down to whole units on the wire */
    uint32_t window_bytes; /* at most RNL_ACK_WINDOW_MAX; rounded down likewise */
    uint32_t ce, ect;      /* ECN counts, only with RNL_PACKET_ECN */
    uint16_t run;          /* largest - 1 .. largest - run were received, too */
    uint16_t ranges;       /* used ones of range[]: each has `gap` numbers missing, then `length` received, downwards */
    struct rnl_ack_range range[RNL_ACK_RANGES_MAX];
};

struct rnl_packet {
    uint8_t type, flags;
    uint8_t control; /* 1 = its number is of the control space */
    uint16_t bytes;  /* of the whole datagram */
    uint32_t connection;
    uint64_t number;
    uint32_t body, body_bytes; /* offset of the body, and its length; the tag follows */
    struct rnl_ack ack;        /* valid with RNL_PACKET_ACK */
};

/* Why bytes are no packet. */
enum rnl_packet_verdict {
    RNL_PACKET_GOOD = 0,
    RNL_PACKET_SHORT,   /* it is shorter than a header and a tag */
    RNL_PACKET_VERSION, /* its header is of another version; type, flags and length are where every version has them */
    RNL_PACKET_LENGTH,  /* it is not as long as it says, or its block does not fit */
    RNL_PACKET_HEADER,  /* its type, its flags or their combination does not exist */
    RNL_PACKET_ACK_BAD, /* its block names numbers below 0, or empty ranges */
    RNL_PACKET_VERDICTS
};
const char *rnl_packet_verdict_text(enum rnl_packet_verdict verdict); /* a phrase for messages */

/* Checks everything of one datagram but its tag, and is the only place that parses these bytes. Nothing in `p` may be
 * trusted before rnl_keys_open has returned 1. On RNL_PACKET_VERSION only type, flags and bytes of `p` are set. */
enum rnl_packet_verdict rnl_packet_decode(const unsigned char *at, size_t bytes, struct rnl_packet *p);
/* The fast path of rnl_packet_decode, for the usual packet: DATA with a block that has neither gaps nor ECN counts. 1 =
 * it is one, and `p` is set as rnl_packet_decode does it. false = it is not, and `p` is undefined. */
RNL_INLINE bool rnl_packet_usual(const unsigned char *at, size_t bytes, struct rnl_packet *p)
{
    const uint32_t may = RNL_PACKET_ACK_WANTED | RNL_PACKET_PHASE | RNL_PACKET_ENC;
    if (bytes < RNL_PACKET_HEAD + RNL_ACK_FIXED + RNL_PACKET_TAG || bytes > RNL_PACKET_MAX)
        return false;
    uint64_t first = rnl_get64(at), number = rnl_get64(at + 8), largest = rnl_get64(at + 16), last = rnl_get64(at + 24);
    if ((first & (0xff | (uint64_t)(uint8_t)~may << 8)) !=
            (RNL_WIRE_VERSION | (uint64_t)RNL_PACKET_DATA << 4 | (uint64_t)RNL_PACKET_ACK << 8) ||
        (uint16_t)(first >> 16) != bytes || (number | largest) >> 63 || (last >> 32 & 0xff) ||
        (last >> 16 & 0xffff) > largest)
        return false;
    p->type = RNL_PACKET_DATA;
    p->flags = (uint8_t)(first >> 8);
    p->control = 0;
    p->bytes = (uint16_t)bytes;
    p->connection = (uint32_t)(first >> 32);
    p->number = number;
    p->body = RNL_PACKET_HEAD + RNL_ACK_FIXED;
    p->body_bytes = (uint32_t)bytes - RNL_PACKET_TAG - p->body;
    p->ack.largest = largest;
    p->ack.hold_ns = (uint32_t)(last & 0xffff) * RNL_ACK_HOLD_UNIT_NS;
    p->ack.run = (uint16_t)(last >> 16);
    p->ack.window_bytes = (uint32_t)(last >> 40) * RNL_ACK_WINDOW_UNIT;
    p->ack.ce = p->ack.ect = 0;
    p->ack.ranges = 0;
    return true;
}
/* Writes header and block of a usual packet of `bytes`, whose body begins at RNL_PACKET_HEAD + RNL_ACK_FIXED. Hold and
 * window have to be within their bounds (struct rnl_ack), since higher bits are cut off. */
RNL_INLINE void rnl_packet_put_usual(unsigned char *at, uint32_t bytes, const struct rnl_packet *p)
{
    uint64_t hold = p->ack.hold_ns / RNL_ACK_HOLD_UNIT_NS & 0xffff, window = p->ack.window_bytes / RNL_ACK_WINDOW_UNIT;
    rnl_put64(at, (RNL_WIRE_VERSION | (uint64_t)RNL_PACKET_DATA << 4) | (uint64_t)p->flags << 8 |
                      (uint64_t)bytes << 16 | (uint64_t)p->connection << 32);
    rnl_put64(at + 8, p->number);
    rnl_put64(at + 16, p->ack.largest);
    rnl_put64(at + 24, hold | (uint64_t)p->ack.run << 16 | window << 40);
}

/* Returns the connection that a datagram claims to be for, before anything is checked, to find its flow; 0 if it is too
 * short to have one. */
uint32_t rnl_packet_connection(const unsigned char *at, size_t bytes);
/* Returns the flow of its connection that a datagram claims to be of, before anything is checked. */
RNL_INLINE unsigned rnl_packet_flow(const unsigned char *at)
{
    return at[1] >> RNL_PACKET_FLOW_SHIFT;
}
/* 1 = the datagram, which rnl_packet_decode has accepted, is of the control space. */
int rnl_packet_is_control(const unsigned char *at);
/* Returns the version that a datagram claims, or RNL_WIRE_VERSIONS if it is empty. */
unsigned rnl_packet_version(const unsigned char *at, size_t bytes);

/* Writes header and block (type, flags, control, connection, number, ack); the length is filled in by
 * rnl_packet_finish. Returns where the body begins, or 0 if that or the tag would not fit into `room`. */
uint32_t rnl_packet_encode(unsigned char *at, size_t room, const struct rnl_packet *p);
/* Writes the length of a datagram whose body ends at `end` into its header and returns it; it includes the
 * RNL_PACKET_TAG bytes that the caller left behind the body and that rnl_keys_seal fills. */
uint32_t rnl_packet_finish(unsigned char *at, uint32_t end);
/* Returns the bytes that rnl_packet_encode needs for this acknowledgement. */
uint32_t rnl_ack_bytes(const struct rnl_ack *ack, int ecn);

/* ---- bodies of the control packets ---- */

/* The encoders return the bytes they wrote, or 0 if there is less room. The decoders return 1 if `p` is such a packet
 * with a valid body, otherwise 0. */
enum rnl_probe_kind { RNL_PROBE_REQUEST = 0, RNL_PROBE_REPLY };
struct rnl_probe {
    uint8_t kind;
    uint16_t bytes; /* of the datagram that is probed */
};
/* A request is padded with zeros, so that the whole datagram has probe->bytes; `room` counts from `body` on, without
 * the tag. */
uint32_t rnl_probe_encode(unsigned char *at, uint32_t body, uint32_t room, const struct rnl_probe *probe);
bool rnl_probe_decode(const unsigned char *at, const struct rnl_packet *p, struct rnl_probe *probe);
/* A challenge is sent to an address of the peer that is not proved yet, and its response comes back from there. Both
 * are datagrams of `bytes`, as long as data, so that they prove the path for data. */
enum rnl_path_kind { RNL_PATH_CHALLENGE = 0, RNL_PATH_RESPONSE };
struct rnl_path_word {
    uint8_t kind;
    uint64_t value; /* not 0 */
};
uint32_t rnl_path_encode(unsigned char *at, uint32_t body, uint32_t room, uint32_t bytes,
                         const struct rnl_path_word *word);
bool rnl_path_decode(const unsigned char *at, const struct rnl_packet *p, struct rnl_path_word *word);
uint32_t rnl_close_encode(unsigned char *at, uint32_t body, uint32_t room, uint32_t reason);
bool rnl_close_decode(const unsigned char *at, const struct rnl_packet *p, uint32_t *reason);

#endif
