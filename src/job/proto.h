/* SPDX-License-Identifier: BSD-3-Clause
 *
 * proto.h - what a rank and its host's agent say to each other over unix SOCK_SEQPACKET sockets: the layouts and their
 * codec, pure functions. One packet is one message, in the byte order of the host: it never leaves it. Each side treats
 * the other's bytes as hostile: the decoder takes any bytes, checks every field and reads nothing outside them.
 *
 * A rank finds the door, a socket it inherits with its siblings and children, in RUNNEL_FD. It makes a pair of sockets,
 * sends one through the door with HELLO and hears WELCOME or REFUSED on the other, which is its own from then on. So
 * two that knock at one door can never read each other's answers.
 *
 *   0      2      4             8                   descriptors travel with: HELLO (its socket),
 *   +------+------+-------------+--- body, by kind   WELCOME (status, bells; with NETWORK also places and a UDP
 * socket), | kind | 0    | bytes, all  |                    GIVE (if its result is OK)
 *   +------+------+-------------+
 *   rank to agent
 *   HELLO   | magic 4 | version 4 |
 *   SEGMENT | ticket 4 | rank 4 | bytes 8 |             answered by GIVE, as often as it is asked before HAVE
 *   HAVE    | rank 4 | 0 4 |                            the segment with rank is mapped: no more is wanted of it
 *   FD      | ticket 4 | rank 4 |                       answered by GIVE
 *   PART    | rank 4 | why 4 |                          BROKEN: rank hears of our death (PARTED); SILENT: base/env.h
 *   REPORT  | wave 8 | activity 8 |
 *   LEAVE
 *   agent to rank
 *   WELCOME | magic 4 | version 4 | rank 4 | size 4 | incarnation 8 | flags 4 | 0 4 | key 32 | host 64 |
 *   REFUSED | magic 4 | version 4 | why 4 | 0 4 |
 *   GIVE    | ticket 4 | result 4 | errno 4 | 0 4 |
 *   EVENT   | kind 4 | rank 4 | incarnation 8 | wave 8 | why 4 | detail 4 |
 *
 * Of HELLO and REFUSED the head, magic and version stay as they are for ever, so that any two versions understand why
 * they part. */
#ifndef RNL_JOB_PROTO_H
#define RNL_JOB_PROTO_H

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

enum {
    RNL_PROTO_MAGIC = 0x4a4c4e52, /* "RNLJ" */
    RNL_PROTO_VERSION = 5,
    RNL_JOB_RANKS_MAX = 1024,
    RNL_JOB_KEY_BYTES = 32,
    RNL_JOB_HOST_BYTES = 64,
    RNL_MSG_BYTES_MAX = 136
};

enum rnl_msg_kind {
    RNL_MSG_HELLO = 1,
    RNL_MSG_SEGMENT,
    RNL_MSG_FD,
    RNL_MSG_REPORT,
    RNL_MSG_LEAVE,
    RNL_MSG_HAVE,
    RNL_MSG_PART,
    RNL_MSG_WELCOME = 16,
    RNL_MSG_REFUSED,
    RNL_MSG_GIVE,
    RNL_MSG_EVENT
};

enum rnl_welcome_flags {
    RNL_WELCOME_KEEP_GOING = 1,
    RNL_WELCOME_NETWORK = 2 /* there are ranks that only datagrams reach: job/places.h */
};
enum rnl_refused { RNL_REFUSED_VERSION = 1, RNL_REFUSED_TWICE, RNL_REFUSED_DEAD, RNL_REFUSED_NO_ROOM };
enum rnl_give {
    RNL_GIVE_OK = 0,
    RNL_GIVE_DEAD,    /* the other side is gone and left nothing */
    RNL_GIVE_TWICE,   /* this side has it: it said so */
    RNL_GIVE_BYTES,   /* the other side asked for another size, or the size is out of range */
    RNL_GIVE_NO_ROOM, /* out of descriptors or memory, see errno */
};

struct rnl_msg_hello {
    uint32_t magic, version;
};
struct rnl_msg_segment {
    uint32_t ticket, rank;
    uint64_t bytes;
};
struct rnl_msg_fd {
    uint32_t ticket, rank;
};
struct rnl_msg_peer {   /* HAVE, PART */
    uint32_t rank, why; /* why: of PART */
};
struct rnl_msg_report {
    uint64_t wave, activity;
};
struct rnl_msg_welcome {
    uint32_t magic, version;
    uint32_t rank, size;
    uint64_t incarnation;
    uint32_t flags, zero;
    unsigned char key[RNL_JOB_KEY_BYTES];
    char host[RNL_JOB_HOST_BYTES]; /* ends with 0, zeros behind */
};
struct rnl_msg_refused {
    uint32_t magic, version;
    uint32_t why, zero;
};
struct rnl_msg_give {
    uint32_t ticket, result;
    int32_t sys_errno;
    uint32_t zero;
};
struct rnl_msg_event { /* struct rnl_event, base/env.h */
    uint32_t kind, rank;
    uint64_t incarnation, wave;
    int32_t why, detail;
};

struct rnl_msg {
    uint32_t kind;
    union {
        struct rnl_msg_hello hello;
        struct rnl_msg_segment segment;
        struct rnl_msg_fd fd;
        struct rnl_msg_peer peer;
        struct rnl_msg_report report;
        struct rnl_msg_welcome welcome;
        struct rnl_msg_refused refused;
        struct rnl_msg_give give;
        struct rnl_msg_event event;
    } u;
};

enum rnl_msg_from { RNL_FROM_RANK, RNL_FROM_AGENT };
enum rnl_msg_verdict {
    RNL_MSG_GOOD = 0,
    RNL_MSG_BAD,          /* not a message of this protocol */
    RNL_MSG_OTHER_VERSION /* HELLO or REFUSED of another version: only out->kind and the version are set */
};

/* Bytes written to `out`. The caller filled the fields that the decoder demands; magic and version are set here. */
size_t rnl_msg_encode(const struct rnl_msg *msg, unsigned char out[RNL_MSG_BYTES_MAX]);
/* `ranks`: every rank in it must be smaller (WELCOME is held against its own size). *out is set only if the answer is
 * not BAD. */
enum rnl_msg_verdict rnl_msg_decode(enum rnl_msg_from from, const void *bytes, size_t n, uint32_t ranks,
                                    struct rnl_msg *out);
/* Descriptors that travel with it. */
unsigned rnl_msg_fds(const struct rnl_msg *msg);

#endif
