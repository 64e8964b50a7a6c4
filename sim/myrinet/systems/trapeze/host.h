/* SPDX-License-Identifier: BSD-3-Clause
 *
 * host.h - Trapeze's host library, which is the kernel's: messages of a control part and, if there is one, a payload in
 * a page frame. Names are those that programs of its time call, where they are known; what they take is ours. Nothing
 * is sent again, and what comes while no frame is attached is lost. */
#ifndef MYRI_TRAPEZE_HOST_H
#define MYRI_TRAPEZE_HOST_H

#include "sim/myrinet/systems/system.h"
#include "sim/myrinet/systems/trapeze/layout.h"

struct tpz_sendmsg {
    uint32_t control[TPZ_CONTROL / 4];
    uint32_t frame, bytes; /* of the payload */
};
struct tpz_rcvmsg {
    uint32_t from, control, control_bytes; /* control: host address, until it is released */
    uint32_t frame, bytes;                 /* bytes of the payload, in the frame that is attached */
    uint32_t place;
};
struct tpz {
    struct myri_side *side;
    uint32_t card, records;
    uint32_t sent, known_sent; /* messages, ever; of which this many are known to have left */
    uint32_t taken;
    uint32_t frame[TPZ_RING];
    struct tpz_sendmsg out;
};

/* A message to send, once there is a place for it on the card. One at a time. */
struct tpz_sendmsg *tpz_get_sendmsg_spinwait(struct tpz *);
/* The message's control part, which the caller writes. */
uint32_t *tpz_mtod(struct tpz_sendmsg *);
/* Gives the message a payload, which lies in a pinned frame: whole words, TPZ_FRAME at most. */
void tpz_attach_sendmsg(struct tpz *, struct tpz_sendmsg *, uint32_t frame);
void tpz_set_payload_len(struct tpz_sendmsg *, uint32_t bytes);
/* Sends the message. Returns how many have been sent, this one included. */
uint32_t tpz_release_sendmsg(struct tpz *, struct tpz_sendmsg *, uint32_t to, uint32_t control_bytes);
/* Until that many have their payload on the card: frames may be written again. */
void tpz_await_fetched(struct tpz *, uint32_t number);
/* The next message, if it has come by the tick: 1, else 0. */
int tpz_get_rcvmsg(struct tpz *, struct tpz_rcvmsg *, uint64_t until);
/* Gives the message's frame to the caller, who attaches another one. */
uint32_t tpz_detach_rcvmsg(struct tpz *, struct tpz_rcvmsg *);
void tpz_attach_rcvmsg(struct tpz *, struct tpz_rcvmsg *, uint32_t frame);
/* Gives the message's place in the ring back to the card. */
void tpz_release_rcvmsg(struct tpz *, struct tpz_rcvmsg *);

#endif
