/* SPDX-License-Identifier: BSD-3-Clause
 *
 * proto.h - the messages by which processes are introduced, over unix SOCK_SEQPACKET sockets: between an endpoint
 * alone and the daemon, and between two endpoints over the socket of their pair. Layouts and a codec of pure functions:
 * one packet is one message, in the byte order of the host, and whoever reads one trusts no byte of it.
 *
 *   0      2      4             8
 *   +------+------+-------------+-----------------+
 *   | kind | 0    | bytes, all  | body, by kind   |
 *   +------+------+-------------+-----------------+
 *   endpoint to endpoint, each with the credentials of the sender (SCM_CREDENTIALS)
 *   HELLO   | magic 4 | version 4 | channel bytes 8 | offers 4 | pair 4 | token 16 | own 16 |
 *                                                     of the side that offers: with the segment of the pair
 *   DENIED  | magic 4 | version 4 | why 4 | 0 4 |     instead of HELLO; why is enum rnl_denied
 *   BROKE                                             the receiver of this broke the protocol
 *   LEAVE                                             the sender ends the connection, and reads nothing more
 *   GIVE    | tag 4 | 0 4 |                           with a descriptor that the receiver expects, by that tag
 *   (one byte)                                        wakes the receiver, or makes its descriptor readable
 *   endpoint to daemon
 *   GREET   | magic 4 | version 4 |
 *   SERVE   | id 4 | flags 4 | uids 4 | gids 4 | name 64 | uid 4 x 32 | gid 4 x 32 |        struct rnl_admit
 *   UNSERVE | id 4 | 0 4 |                            the id of SERVE
 *   REACH   | id 4 | uid 4 | name 64 |                with one end of a pair of sockets, in which HELLO waits already
 *   CANCEL  | id 4 | 0 4 |                            the id of REACH
 *   LIST    | cursor 4 | 0 4 |                        asks for the next service; 0 for the first
 *   CALL    | id 4 | uid 4 | flags 4 | port 4 | place 24 | ip 16 | token 16 | name 64 |       REACH on another host
 *   REPLY   | call 4 | status 4 | place 24 |          of CALLED: 0, and where the sender is; or why it is refused
 *   PART    | call 4 | 0 4 |                          the sender leaves that peer
 *   daemon to endpoint
 *   RESULT  | id 4 | status 4 |                       of SERVE: 0, or why not; of REACH: why not
 *   REQUEST | id 4 | uid 4 | gid 4 | pid 4 |          of SERVE; who sent REACH, with the socket that came with it
 *   LISTED  | cursor 4 | uid 4 | pid 4 | 0 4 | name 64 |  one that the caller may reach; no name: no more
 *   CALLED  | id 4 | call 4 | uid 4 | gid 4 | place 24 | ip 16 | token 16 | key 32 |       of SERVE: who sent CALL
 *   MET     | id 4 | call 4 | uid 4 | gid 4 | place 24 | ip 16 | key 32 |                  of CALL: the peer's REPLY
 *   GONE    | call 4 | why 4 |                        that peer is: enum rnl_death_reason, EXIT or LEFT; or NONE: the
 *                                                     daemon there has ended, and nobody would tell
 *
 * Between hosts: call is a number of the daemon's for the pair; key is the pair's (secure_stream.h); place is where an
 * endpoint is found and what it calls the other one: | port of its UDP socket 4 | rank 4 | own 16 |; port of CALL is
 * the daemon's, 0 = that of the key; ip is the other host's.
 *
 * id: of the request, a number that the endpoint drew at random. pair: a number of the pair, which the side that offers
 * chose; it is 2 pair to both sides, and the other 2 pair + 1. token: of an address (rnl_address), else 0; own: the
 * name of the sender's own address, by which endpoints that insert each other are seen to be one peer. Names end with a
 * 0 and are filled up with zeros. The headers, magic and version of HELLO, DENIED and GREET never change. */
#ifndef RNL_MEET_PROTO_H
#define RNL_MEET_PROTO_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    RNL_MEET_MAGIC = 0x4d4c4e52, /* "RNLM" */
    RNL_MEET_VERSION = 3,
    RNL_MEET_NAME_BYTES = 64,
    RNL_MEET_IDS = 32,
    RNL_MEET_TOKEN_BYTES = 16,
    RNL_MEET_KEY_BYTES = 32,
    RNL_MEET_IP_BYTES = 16,
    RNL_MEET_OWN_USER = 1, /* of CALL: the service is of the user that asks, who may have another number there */
    RNL_MEET_PAIR_MOST = 0x3fffffff,
    RNL_MEET_RANK_MOST = 1023,
    RNL_MEET_BYTES_MAX = 344
};

enum rnl_meet_kind {
    RNL_MEET_HELLO = 1,
    RNL_MEET_DENIED,
    RNL_MEET_BROKE,
    RNL_MEET_LEAVE,
    RNL_MEET_GIVE,
    RNL_MEET_GREET = 16,
    RNL_MEET_SERVE,
    RNL_MEET_UNSERVE,
    RNL_MEET_REACH,
    RNL_MEET_CANCEL,
    RNL_MEET_LIST,
    RNL_MEET_CALL,
    RNL_MEET_REPLY,
    RNL_MEET_PART,
    RNL_MEET_RESULT = 32,
    RNL_MEET_REQUEST,
    RNL_MEET_LISTED,
    RNL_MEET_CALLED,
    RNL_MEET_MET,
    RNL_MEET_GONE
};
enum rnl_meet_from { RNL_MEET_FROM_PEER = 0, RNL_MEET_FROM_RANK = 16, RNL_MEET_FROM_DAEMON = 32 };
enum rnl_denied {
    RNL_DENIED_VERSION = 1,
    RNL_DENIED_ADMIT,
    RNL_DENIED_NO_ROOM,
    RNL_DENIED_TWICE /* the receiver is, or is becoming, a peer */
};

struct rnl_meet_hello {
    uint32_t magic, version;
    uint64_t channel_bytes;
    uint32_t offers, pair;
    unsigned char token[RNL_MEET_TOKEN_BYTES], own[RNL_MEET_TOKEN_BYTES];
};
struct rnl_meet_denied {
    uint32_t magic, version, why, zero;
};
struct rnl_meet_greet {
    uint32_t magic, version;
};
struct rnl_meet_admit { /* struct rnl_admit, copied */
    uint32_t flags, uids, gids;
    uint32_t uid[RNL_MEET_IDS], gid[RNL_MEET_IDS];
};
struct rnl_meet_serve {
    uint32_t request_id, flags, uids, gids;
    char name[RNL_MEET_NAME_BYTES];
    uint32_t uid[RNL_MEET_IDS], gid[RNL_MEET_IDS];
};
struct rnl_meet_request_id { /* UNSERVE, CANCEL; of LIST it is the cursor, of PART the call */
    uint32_t request_id, zero;
};
struct rnl_meet_give {
    uint32_t tag, zero;
};
struct rnl_meet_reach {
    uint32_t request_id, uid;
    char name[RNL_MEET_NAME_BYTES];
};
struct rnl_meet_result {
    uint32_t request_id;
    int32_t status;
};
struct rnl_meet_request {
    uint32_t request_id, uid, gid, pid;
};
struct rnl_meet_listed {
    uint32_t cursor, uid, pid, zero;
    char name[RNL_MEET_NAME_BYTES];
};
struct rnl_meet_place { /* of an endpoint that is to have a peer on another host */
    uint32_t port, rank;
    unsigned char own[RNL_MEET_TOKEN_BYTES];
};
struct rnl_meet_call {
    uint32_t request_id, uid, flags, port;
    struct rnl_meet_place place;
    unsigned char ip[RNL_MEET_IP_BYTES], token[RNL_MEET_TOKEN_BYTES];
    char name[RNL_MEET_NAME_BYTES];
};
struct rnl_meet_reply {
    uint32_t call;
    int32_t status;
    struct rnl_meet_place place;
};
struct rnl_meet_called {
    uint32_t request_id, call, uid, gid;
    struct rnl_meet_place place;
    unsigned char ip[RNL_MEET_IP_BYTES], token[RNL_MEET_TOKEN_BYTES], key[RNL_MEET_KEY_BYTES];
};
struct rnl_meet_met {
    uint32_t request_id, call, uid, gid;
    struct rnl_meet_place place;
    unsigned char ip[RNL_MEET_IP_BYTES], key[RNL_MEET_KEY_BYTES];
};
struct rnl_meet_gone {
    uint32_t call, why;
};
struct rnl_meet_msg {
    uint32_t kind; /* enum rnl_meet_kind */
    union {
        struct rnl_meet_hello hello;
        struct rnl_meet_denied denied;
        struct rnl_meet_greet greet;
        struct rnl_meet_serve serve;
        struct rnl_meet_request_id request_id;
        struct rnl_meet_give give;
        struct rnl_meet_reach reach;
        struct rnl_meet_result result;
        struct rnl_meet_request request;
        struct rnl_meet_listed listed;
        struct rnl_meet_call call;
        struct rnl_meet_reply reply;
        struct rnl_meet_called called;
        struct rnl_meet_met met;
        struct rnl_meet_gone gone;
    } u;
};

/* Returns the length of the message in out, 0 = there is no such kind. Sets magic and version. */
size_t rnl_meet_encode(const struct rnl_meet_msg *msg, unsigned char out[RNL_MEET_BYTES_MAX]);
enum rnl_meet_verdict { RNL_MEET_GOOD = 0, RNL_MEET_BAD, RNL_MEET_OTHER_VERSION /* of HELLO, DENIED or GREET */ };
/* Decodes a packet of n bytes, for a reader that hears `from` only. *out is set unless it is BAD. */
enum rnl_meet_verdict rnl_meet_decode(enum rnl_meet_from from, const void *bytes, size_t n, struct rnl_meet_msg *out);
/* Returns how many descriptors come with the message. */
unsigned rnl_meet_fds(const struct rnl_meet_msg *msg);

/* Begins the name of the service that an address is, for other hosts; the address's name follows in hexadecimal digits.
 */
#define RNL_MEET_AT "at."
/* Copies a name of a service, filled up with zeros. False: it is empty, too long, or has characters that names do not
 * have. */
bool rnl_meet_name(const char *text, char out[RNL_MEET_NAME_BYTES]);

/* Whether a process of this user, in these groups, is admitted. The user that serves is, and so is root. */
bool rnl_meet_admits(const struct rnl_meet_admit *who, uint32_t own_uid, uint32_t uid, const uint32_t *groups,
                     unsigned count);

#endif
