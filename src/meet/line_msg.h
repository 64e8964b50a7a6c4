/* SPDX-License-Identifier: BSD-3-Clause
 *
 * line_msg.h - what the daemons of two hosts say to each other over a line (line.h) about one pair of processes. The
 * codec has no state, and trusts no byte of what it decodes. Numbers are little-endian, as in packets.
 *
 *   client: the daemon of who reaches       server: the daemon of who serves
 *   REQUEST | kind 4 | flags 4 | uid 4 | service's uid 4 | place 24 | token 16 | groups 4 | name 64 | gid 4 x 32 |
 *   ANSWER  | kind 4 | status 4 | uid 4 | gid 4 | place 24 |
 *   GONE    | kind 4 | why 4 |               either side
 *   place   | port 4 | rank 4 | own 16 |     of an endpoint: struct rnl_meet_place */
#ifndef RNL_MEET_LINE_MSG_H
#define RNL_MEET_LINE_MSG_H

#include "meet/line.h"
#include "meet/proto.h"

#include <assert.h>

enum rnl_line_kind { RNL_LINE_REQUEST = 1, RNL_LINE_ANSWER, RNL_LINE_GONE };
enum {
    RNL_LINE_GROUPS = 32, /* that are told to the other host */
    RNL_LINE_PLACE = 24,
    RNL_LINE_REQUEST_BYTES = 16 + RNL_LINE_PLACE + 16 + 4 + 64 + 4 * RNL_LINE_GROUPS,
    RNL_LINE_ANSWER_BYTES = 16 + RNL_LINE_PLACE,
    RNL_LINE_GONE_BYTES = 8
};
static_assert((int)RNL_LINE_REQUEST_BYTES <= (int)RNL_LINE_BYTES, "a message of a line is no longer");

struct rnl_line_msg {
    enum rnl_line_kind kind;
    /* REQUEST: who reaches. ANSWER: who serves, with one group. */
    uint32_t uid, groups, group[RNL_LINE_GROUPS];
    struct rnl_meet_call ask;    /* REQUEST; neither ip nor ticket nor port of the daemon */
    struct rnl_meet_place place; /* ANSWER with status 0 */
    int32_t status;              /* ANSWER */
    uint32_t why;                /* GONE */
};

/* Writes a message and returns its length. Groups beyond RNL_LINE_GROUPS are left out. */
size_t rnl_line_msg_encode(const struct rnl_line_msg *, unsigned char out[RNL_LINE_BYTES]);
/* Reads a message. False: it is none. The other fields than those of its kind are 0. */
bool rnl_line_msg_decode(const unsigned char *at, size_t n, struct rnl_line_msg *out);

#endif
