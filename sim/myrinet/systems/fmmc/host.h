/* SPDX-License-Identifier: BSD-3-Clause
 *
 * host.h - FM/MC, the Fast Messages that Orca runs on (paper 003, sections 4 and 5.1.1): FM 1.1 with fragments of 256
 * bytes, message objects that a program keeps and frees, locks, interrupts that it can turn off, multicasts that the
 * cards forward, and numbers and credits for them from one card. Names are those of Panda's port, without FM_.
 *
 * A multicast is handed over in the order of its number, at its sender, too. Handlers may not send. */
#ifndef MYRI_FMMC_HOST_H
#define MYRI_FMMC_HOST_H

#include "sim/myrinet/systems/fmmc/layout.h"
#include "sim/myrinet/systems/system.h"

#define FMMC_ON_CRC "FM/MC takes links to be reliable (Bal et al. 1997, section 4.2)"

struct fmmc;
/* A message: its program's until it is freed. `link` and `word` are free for the program's queues. */
struct fmmc_message {
    uint32_t at, bytes, from, handler, number;
    uint32_t filled, word;
    struct fmmc_message *link;
};
/* The message is the handler's, who frees it, then or later. */
typedef void fmmc_handler(struct fmmc *, struct fmmc_message *);
enum { FMMC_HANDLERS = 255, FMMC_MESSAGES = 256 };

struct fmmc {
    struct myri_side *side;
    void *owner;
    uint32_t card, ring, next, answer; /* SRAM; host addresses; place of the ring that comes next */
    uint32_t posted, known_sent, frame, data;
    uint32_t credit[MYRI_HW_NODES], owed[MYRI_HW_NODES], share; /* fragments of single messages */
    uint32_t freed, told;                                /* multicast fragments that are done with; the card knows of */
    uint32_t number;                                     /* of the multicast that is handed over next */
    struct fmmc_message message[FMMC_MESSAGES], *unused; /* objects */
    struct fmmc_message *partial[MYRI_HW_NODES], *many[MYRI_HW_NODES]; /* that come: single ones, multicasts */
    struct fmmc_message *early;                                        /* multicasts whose turn has not come */
    fmmc_handler *handler[FMMC_HANDLERS];
    uint32_t handled;
    int no_locks, no_objects, no_interrupt;
};

/* `frame`: bytes of a fragment, its header included. */
int fmmc_initialize(struct fmmc *, struct myri_side *, uint32_t frame);
void fmmc_send_buf(struct fmmc *, uint32_t to, uint32_t handler, uint32_t from, uint32_t bytes);
/* The next number, and credits for so many bytes at once (further ones while it is sent). */
uint32_t fmmc_next_seqno_and_credits(struct fmmc *, uint32_t bytes);
/* To all others, and in its turn to this one. */
void fmmc_broadcast(struct fmmc *, uint32_t number, uint32_t handler, uint32_t from, uint32_t bytes);
/* Runs the handlers of all messages that are here; how many there were. */
uint32_t fmmc_extract(struct fmmc *);
void fmmc_free_buf(struct fmmc *, struct fmmc_message *);
void fmmc_enable_intr(struct fmmc *);
void fmmc_disable_intr(struct fmmc *);

#endif
