/* SPDX-License-Identifier: BSD-3-Clause
 *
 * daemon_msg.h - what the daemons of two hosts say to each other over a stream (secure_stream.h) about one pair of
 * processes. The codec has no state, and trusts no byte of what it decodes. Numbers are little-endian, as in packets.
 *
 *   client: the daemon of who reaches       server: the daemon of who serves
 *   REQUEST | kind 4 | flags 4 | uid 4 | service's uid 4 | place 24 | token 16 | groups 4 | name 64 | gid 4 x 32 |
 *   REPLY   | kind 4 | status 4 | uid 4 | gid 4 | place 24 |
 *   GONE    | kind 4 | why 4 |               either side
 *   place   | port 4 | rank 4 | own 16 |     of an endpoint: struct rnl_meet_place */
#ifndef RNL_MEET_DAEMON_MSG_H
#define RNL_MEET_DAEMON_MSG_H

#include "job/secure_stream.h"
#include "meet/proto.h"

#include <assert.h>

enum rnl_daemon_msg_kind { RNL_DAEMON_MSG_REQUEST = 1, RNL_DAEMON_MSG_REPLY, RNL_DAEMON_MSG_GONE };
enum {
    RNL_DAEMON_MSG_GROUPS = 32, /* that are told to the other host */
    RNL_DAEMON_MSG_PLACE = 24,
    RNL_DAEMON_MSG_REQUEST_BYTES = 16 + RNL_DAEMON_MSG_PLACE + 16 + 4 + 64 + 4 * RNL_DAEMON_MSG_GROUPS,
    RNL_DAEMON_MSG_REPLY_BYTES = 16 + RNL_DAEMON_MSG_PLACE,
    RNL_DAEMON_MSG_GONE_BYTES = 8
};
static_assert((int)RNL_DAEMON_MSG_REQUEST_BYTES <= (int)RNL_SECURE_STREAM_BYTES, "a message of a stream is no longer");

struct rnl_daemon_msg {
    enum rnl_daemon_msg_kind kind;
    /* REQUEST: who reaches. REPLY: who serves, with one group. */
    uint32_t uid, groups, group[RNL_DAEMON_MSG_GROUPS];
    struct rnl_meet_call request; /* REQUEST; neither ip nor request_id nor port of the daemon */
    struct rnl_meet_place place;  /* REPLY with status 0 */
    int32_t status;               /* REPLY */
    uint32_t why;                 /* GONE */
};

/* Writes a message and returns its length. Groups beyond RNL_DAEMON_MSG_GROUPS are left out. */
size_t rnl_daemon_msg_encode(const struct rnl_daemon_msg *, unsigned char out[RNL_SECURE_STREAM_BYTES]);
/* Reads a message. False: it is none. The other fields than those of its kind are 0. */
bool rnl_daemon_msg_decode(const unsigned char *at, size_t n, struct rnl_daemon_msg *out);

#endif
