/* SPDX-License-Identifier: BSD-3-Clause
 *
 * wire.h - the messages of windows. Each is a message of the core to a handler of the library, whose number is the
 * link's base plus its kind; answers are replies. Their order on a lane is the order of windows.
 *
 *   0        4        8        12       16       20       24              32              40
 *   +--------+--------+--------+--------+--------+--------+---------------+---------------+
 *   lane 0
 *   MEET     | address, text 128 | key 16 | at     | port   |   answered by MET: the same
 *   APART    (nothing)                                     the sender cannot reach the address: use this endpoint
 *   BIND     | key 16          |                           the first on a window endpoint: who the sender is
 *   IMPORT   | tag    | id     | how    |                  answered by IMPORTED
 *   UNASK    | id     |                                    forget that this id is waited for
 *   OFFERED  | id     |                                    ask again
 *   PUT      | grant  |gen|0   | offset          | n               |   and n bytes; PUT_NOTIFY: the same
 *   NOTIFY   | grant  |gen|0   | offset          | n               |   n bytes have landed by themselves
 *   GET      | tag    | grant  |gen|0   | n      | offset          |   answered by GOT
 *   CHANGE   | tag    | grant  |gen|sz|op| 0     | offset          | operand | expected |
 *   ATOMIC   the same, answered by CHANGED
 *   QUIET    | tag    |                                    answered by QUIETED
 *   REVOKED  | tag    | grant  |gen|0   |                  answered by UNMAPPED
 *   DROP     | grant  |gen|0   |
 *   lane 1
 *   IMPORTED | tag    | status | grant  |gen|dir | bytes           |
 *   GOT      | tag    | status |                           and the bytes
 *   CHANGED  | tag    | status | before          |
 *   QUIETED, UNMAPPED | tag | status |
 *
 * tag: chosen by who asks, and quoted in the answer. grant, gen: an importer's entry in the table that the owner has
 * for this peer, and how often it was used before; so nobody can name what was not granted to it. how:
 * WINDOW_IMPORT_...; dir: 1 = a descriptor with this tag has been sent through the sockets of the pair
 * (meet/proto.h). Words are in the order of the hosts, as in cells. Whoever reads one trusts no byte of it. */
#ifndef RNL_WINDOW_WIRE_H
#define RNL_WINDOW_WIRE_H

#include "runnel/meet.h"

#include <assert.h>
#include <stdint.h>

enum window_kind {
    WINDOW_MEET,
    WINDOW_APART,
    WINDOW_BIND,
    WINDOW_IMPORT,
    WINDOW_UNASK,
    WINDOW_OFFERED,
    WINDOW_PUT,
    WINDOW_PUT_NOTIFY,
    WINDOW_NOTIFY,
    WINDOW_GET,
    WINDOW_CHANGE,
    WINDOW_ATOMIC,
    WINDOW_QUIET,
    WINDOW_REVOKED,
    WINDOW_DROP,
    WINDOW_MET,
    WINDOW_IMPORTED,
    WINDOW_GOT,
    WINDOW_CHANGED,
    WINDOW_QUIETED,
    WINDOW_UNMAPPED,
    WINDOW_KINDS
};

enum { WINDOW_KEY_BYTES = 16, WINDOW_GET_BYTES = 60 << 10 /* of one answer */ };

struct window_meet {
    char address[RNL_ADDRESS_BYTES]; /* of the sender's window endpoint; empty = it has none */
    unsigned char key[WINDOW_KEY_BYTES];
    uint32_t at, port; /* by which number the receiver is to be a peer there, and where; port 0 = not so */
};
struct window_bind {
    unsigned char key[WINDOW_KEY_BYTES]; /* of the receiver */
};
enum { WINDOW_IMPORT_WAITS = 1, WINDOW_IMPORT_MAPS = 2 };
struct window_import {
    uint32_t tag, id, how;
};
struct window_id {
    uint32_t id;
};
struct window_put {
    uint32_t grant;
    uint16_t generation, zero;
    uint64_t offset, n;
};
struct window_get {
    uint32_t tag, grant;
    uint16_t generation, zero;
    uint32_t n;
    uint64_t offset;
};
struct window_atomic {
    uint32_t tag, grant;
    uint16_t generation;
    uint8_t bytes, op;
    uint32_t zero;
    uint64_t offset, operand, expected;
};
struct window_tag {
    uint32_t tag;
};
struct window_revoked {
    uint32_t tag, grant;
    uint16_t generation, zero;
};
struct window_drop {
    uint32_t grant;
    uint16_t generation, zero;
};
struct window_answer { /* all answers begin with it */
    uint32_t tag;
    int32_t status;
};
struct window_imported {
    struct window_answer a;
    uint32_t grant;
    uint16_t generation, direct;
    uint64_t bytes;
};
struct window_changed {
    struct window_answer a;
    uint64_t before;
};
static_assert(sizeof(struct window_meet) == 152 && sizeof(struct window_put) == 24 && sizeof(struct window_get) == 24 &&
                  sizeof(struct window_atomic) == 40 && sizeof(struct window_revoked) == 12 &&
                  sizeof(struct window_imported) == 24,
              "layouts drawn above");

#endif
