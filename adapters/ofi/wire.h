/* SPDX-License-Identifier: BSD-3-Clause
 *
 * wire.h - what processes on this provider say to each other: a handler for each kind of message, in the byte order of
 * the host. All go on lane 0 of a connection, so they arrive in the order in which they were sent.
 *
 *   0        8      12   13     14     16        20  24       32
 *   +--------+------+----+------+-------+------------------------
 *   | tag    | data | to | from | flags | bytes                    MESSAGE, without RNL_OFI_ACKED
 *   | tag    | data | to | from | flags | request | 0 | bytes      MESSAGE with RNL_OFI_ACKED
 *   | tag    | data | to | from | flags | request | 0 | length |   ANNOUNCE: the bytes follow when they are asked for
 *   +--------+------+----+------+-------+------------------------
 *   | length | receive     | request |                           ASK: answers ANNOUNCE; length = bytes that are wanted
 *   | receive| 0           | bytes                               DATA: answers ASK
 *   | request| status      |                                     ACK: the message was matched, or came, or was dropped
 *   | name, 64                                                   GREETING: the first message to each peer
 *
 *   0      8         16       24     28   29     30      32        36    37   38  40
 *   +------+---------+--------+------+----+------+-------+---------+------+----+---+--------------
 *   | key  | address | length | data | to | from | flags | request | type | op | 0 | bytes    PUT: `length` of them
 *   | key  | address | length | data | to | from | flags | request | type | op | 0 |          GET
 *   | key  | address | length | data | to | from | flags | request | type | op | 0 | operands | compared   ATOMIC
 *   +------+---------+--------+------+----+------+-------+---------+------+----+---+--------------
 *   | request | status | bytes                                   RESULT: the reply to these three, on lane 1; what GET
 *                                                                reads, or what was there before an ATOMIC
 *
 * PUT, GET and ATOMIC name registered memory of the receiver by its key, and the offset in it (or its address, if the
 * receiver's fi_info said so). An ATOMIC that only reads has no operands; those that compare have `length` bytes more.
 *
 * to, from: numbers of the endpoints in their domains. request, receive: numbers that their owner chose, and gets
 * back. */
#ifndef RNL_OFI_WIRE_H
#define RNL_OFI_WIRE_H

#include <assert.h>
#include <stdint.h>

enum rnl_ofi_kind {
    RNL_OFI_MESSAGE = 1,
    RNL_OFI_ANNOUNCE,
    RNL_OFI_ASK,
    RNL_OFI_DATA,
    RNL_OFI_ACK,
    RNL_OFI_GREETING,
    RNL_OFI_PUT,
    RNL_OFI_GET,
    RNL_OFI_ATOMIC,
    RNL_OFI_RESULT, /* a reply, on lane 1 */
    RNL_OFI_KINDS
};

enum rnl_ofi_flags {
    RNL_OFI_TAGGED = 1,   /* else it is for receives without tags */
    RNL_OFI_HAS_DATA = 2, /* `data` is for the completion of the receiver */
    RNL_OFI_ACKED = 4,    /* the sender awaits ACK, when the bytes have come */
    RNL_OFI_MATCHED = 8,  /* with ACKED: when a receive has taken the message */
    RNL_OFI_FETCHES = 16  /* ATOMIC: what was there before is wanted */
};

struct rnl_ofi_head {
    uint64_t tag;
    uint32_t data;
    uint8_t to, from;
    uint16_t flags;
};
static_assert(sizeof(struct rnl_ofi_head) == 16, "drawn above");

struct rnl_ofi_long_head {
    struct rnl_ofi_head head;
    uint32_t request, zero;
    uint64_t length; /* ANNOUNCE only */
};
static_assert(sizeof(struct rnl_ofi_long_head) == 32, "drawn above");
enum { RNL_OFI_ACKED_HEAD = 24 };

struct rnl_ofi_ask {
    uint64_t length;
    uint32_t receive, request;
};
struct rnl_ofi_data {
    uint32_t receive, zero;
};
struct rnl_ofi_ack {
    uint32_t request;
    int32_t status; /* 0, or a negative fi_errno */
};

enum {
    RNL_OFI_GET_BYTES = 32 << 10,  /* that one GET asks for */
    RNL_OFI_ATOMIC_BYTES = 2 << 10 /* of the operands of one ATOMIC */
};
struct rnl_ofi_rma_head {
    uint64_t key, address, length;
    uint32_t data;
    uint8_t to, from;
    uint16_t flags;
    uint32_t request;
    uint8_t type, op; /* enum fi_datatype, enum fi_op */
    uint16_t zero;
};
static_assert(sizeof(struct rnl_ofi_rma_head) == 40, "drawn above");

enum { RNL_OFI_NAME_BYTES = 64, RNL_OFI_PACKED_BYTES = 60 };
/* The name of an endpoint, which fi_getname gives and fi_av_insert takes: 64 bytes, as many as MPI has room for.
 *
 *   0    2    3      4      8      16     32      48   64
 *   +----+----+------+------+------+------+-------+----+
 *   | RN | ep | kind | user | host | name | token | ip |
 *   +----+----+------+------+------+------+-------+----+
 *
 * From `user` on it is the address of the domain, which rnl_address prints as text. ip is 0 if it names no
 * address by which other hosts reach it. */
struct rnl_ofi_name {
    unsigned char magic[2];
    uint8_t ep, kind; /* enum rnl_ofi_name_kind */
    unsigned char packed[RNL_OFI_PACKED_BYTES];
};
/* NOT_YET is what fi_info has for a source: no address is known before the domain is opened, and nothing goes there. */
enum rnl_ofi_name_kind { RNL_OFI_NAME_NOT_YET, RNL_OFI_NAME_HERE, RNL_OFI_NAME_ANYWHERE };
static_assert(sizeof(struct rnl_ofi_name) == RNL_OFI_NAME_BYTES, "drawn above");

/* Packs the address (rnl_address) into the name. Returns false if it does not fit, or has something else in it. */
_Bool rnl_ofi_name_pack(struct rnl_ofi_name *, const char *address, unsigned ep);
/* Unpacks it into text of RNL_ADDRESS_BYTES. Returns false if that is no name. */
_Bool rnl_ofi_name_unpack(const struct rnl_ofi_name *, char *text);

#endif
