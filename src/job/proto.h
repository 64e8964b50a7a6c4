/* SPDX-License-Identifier: BSD-3-Clause
 *
 * proto.h - the messages between a rank and its host's agent over unix SOCK_SEQPACKET sockets: layouts, a codec of pure
 * functions, and rnl_msg_send. One packet is one message, in the byte order of the host, which it never leaves. Neither
 * side trusts the other's bytes: the decoder takes any bytes, checks every field and reads nothing outside them.
 *
 * RUNNEL_FD names the bootstrap socket, which a rank inherits and its children inherit too. A rank makes a
 * pair of sockets, sends one end over the bootstrap socket with HELLO, and gets WELCOME or REJECTED on the other end,
 * its connection from then on. So two processes that use one bootstrap socket cannot read each other's replies.
 *
 *   0      2      4             8
 *   +------+------+-------------+-----------------+
 *   | kind | 0    | bytes, all  | body, by kind   |
 *   +------+------+-------------+-----------------+
 *   rank to agent
 *   HELLO      | magic 4 | version 4 |               with the rank's socket
 *   SEGMENT    | rank 4 | 0 4 | bytes 8 |            the reply is REPLY; may be repeated until HAVE is sent
 *   HAVE       | rank 4 | 0 4 |                      the segment with rank is mapped and not needed again
 *   DISCONNECT | rank 4 | 0 4 |                      rank broke the protocol; it gets the event that the sender died
 *   REPORT     | wave 8 | activity 8 |
 *   LEAVE
 *   OVERRAN    | handler 4 | stack bytes 4 |        that handler has overrun its stack; the process ends by SIGSEGV
 *   agent to rank
 *   WELCOME    | magic 4 | version 4 | rank 4 | size 4 | incarnation 8 | flags 4 | cards 4 | key 32 | host 64 |
 *                                                    with status page and doorbells; with NETWORK also a UDP socket;
 *                                                    with RINGS also an AF_XDP socket and the memory of its queue;
 *                                                    or of each card its device, registers, line and memory
 *   REJECTED   | magic 4 | version 4 | why 4 | 0 4 |
 *   REPLY      | rank 4 | result 4 | errno 4 | 0 4 | with the memory file of the segment if its result is FOUND
 *   EVENT      | kind 4 | rank 4 | incarnation 8 | wave 8 | why 4 | detail 4 |
 *
 * The header, magic and version of HELLO and REJECTED never change, so that two releases with different versions
 * understand why they cannot work together. */
#ifndef RNL_JOB_PROTO_H
#define RNL_JOB_PROTO_H

#include "job/membership.h"

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

enum {
    RNL_PROTO_MAGIC = 0x4a4c4e52, /* "RNLJ" */
    RNL_PROTO_VERSION = 11,

    RNL_JOB_KEY_BYTES = 32,
    RNL_JOB_HOST_BYTES = 64,
    RNL_JOB_CARDS_MAX = 4, /* that a rank drives (net/socket/i8255x/grant.h) */
    RNL_JOB_CARD_FDS = 4,
    RNL_MSG_BYTES_MAX = 136
};

enum rnl_msg_kind {
    RNL_MSG_HELLO = 1,
    RNL_MSG_SEGMENT,
    RNL_MSG_HAVE,
    RNL_MSG_DISCONNECT,
    RNL_MSG_REPORT,
    RNL_MSG_LEAVE,
    RNL_MSG_OVERRAN,
    RNL_MSG_WELCOME = 16,
    RNL_MSG_REJECTED,
    RNL_MSG_REPLY,
    RNL_MSG_EVENT,
    RNL_MSG_KINDS
};

enum rnl_welcome_flags {
    RNL_WELCOME_KEEP_GOING = 1,
    RNL_WELCOME_NETWORK = 2, /* some ranks can be reached by datagrams only: job/status.h has their addresses */
    RNL_WELCOME_RINGS = 4    /* with NETWORK: those of that UDP socket may go by AF_XDP (net/socket/xdp/xdp.h) */
};
enum rnl_rejected { RNL_REJECTED_VERSION = 1, RNL_REJECTED_TWICE, RNL_REJECTED_DEAD, RNL_REJECTED_NO_ROOM };

struct rnl_msg_hello {
    uint32_t magic, version;
};
struct rnl_msg_peer { /* HAVE, DISCONNECT */
    uint32_t rank, zero;
};
struct rnl_msg_segment {
    uint32_t rank, zero;
    uint64_t bytes;
};
struct rnl_msg_report {
    uint64_t wave, activity;
};
struct rnl_msg_overran {
    uint32_t handler, stack_bytes;
};
struct rnl_msg_welcome {
    uint32_t magic, version;
    uint32_t rank, size;
    uint64_t incarnation;
    uint32_t flags, cards; /* cards: with NETWORK and without RINGS */
    unsigned char key[RNL_JOB_KEY_BYTES];
    char host[RNL_JOB_HOST_BYTES]; /* terminated and filled up with zeros */
};
struct rnl_msg_rejected {
    uint32_t magic, version;
    uint32_t why, zero;
};
struct rnl_msg_reply {
    uint32_t rank, result; /* enum rnl_segment_verdict: FOUND, or the reason why there is no segment */
    int32_t sys_errno;     /* with NONE: the agent's error when it made the segment */
    uint32_t zero;
};

struct rnl_msg {
    uint32_t kind;
    union {
        struct rnl_msg_hello hello;
        struct rnl_msg_segment segment;
        struct rnl_msg_peer peer;
        struct rnl_msg_report report;
        struct rnl_msg_overran overran;
        struct rnl_msg_welcome welcome;
        struct rnl_msg_rejected rejected;
        struct rnl_msg_reply reply;
        struct rnl_event event;
    } u;
};

enum rnl_msg_from { RNL_FROM_RANK, RNL_FROM_AGENT };
enum rnl_msg_verdict {
    RNL_MSG_GOOD = 0,
    RNL_MSG_BAD,          /* not a message of this protocol */
    RNL_MSG_OTHER_VERSION /* HELLO or REJECTED of another version: only out->kind and the version are set */
};

/* Returns the number of bytes written to `out`. Sets magic and version; the caller has set all other fields. */
size_t rnl_msg_encode(const struct rnl_msg *msg, unsigned char out[RNL_MSG_BYTES_MAX]);
/* Decodes n bytes. Every rank in the message must be below `ranks` (in WELCOME: below its own size). Sets *out unless
 * it returns BAD. */
enum rnl_msg_verdict rnl_msg_decode(enum rnl_msg_from from, const void *bytes, size_t n, uint32_t ranks,
                                    struct rnl_msg *out);
/* Returns how many descriptors travel with that message. */
unsigned rnl_msg_fds(const struct rnl_msg *msg);
/* Encodes a message and sends it with as many of `fds` as belong to it; rnl_seqpacket_send (fds.h) says what it
 * returns. */
int rnl_msg_send(int sock, const struct rnl_msg *msg, const int *fds, int wait);

#endif
