/* SPDX-License-Identifier: BSD-3-Clause
 *
 * host.h - U-Net and U-Net/MM (papers 000, section 5, and 004): endpoints, channels, free buffers. Nothing is sent
 * again, and what finds no free buffer is lost. All addresses are of the process's space. */
#ifndef MYRI_UNET_HOST_H
#define MYRI_UNET_HOST_H

#include "sim/myrinet/systems/system.h"
#include "sim/myrinet/systems/unet/layout.h"

struct unet;
struct unet_kernel { /* what the kernel of a node knows */
    struct unet *of[UNET_ENDPOINTS];
};
struct unet {
    struct myri_hw *hw;
    struct myri_host *host;
    struct myri_card *card_of;
    struct myri_space *space;
    struct myri_task *task;                             /* set when it runs */
    uint32_t endpoint, card, records, area, area_bytes; /* area: what stays pinned; 0 bytes: any page will do (MM) */
    uint32_t sent, freed, received, pins, releases;
    struct unet_kernel kernel; /* of the node's first endpoint, which lives as long as the machine: used */
};

/* The kernel makes an endpoint. With an area, whose pages it pins and translates for good, messages and buffers lie in
 * that; without one anywhere. 0, or -1 with a fault. */
int unet_ep_create(struct unet *, struct myri_hw *, uint32_t node, uint32_t endpoint, struct myri_space *,
                   uint32_t area_bytes, int notify);
/* A channel between two endpoints; its numbers at each. */
int unet_chan_open(struct unet *, struct unet *other, uint32_t *mine, uint32_t *its);
/* The kernel wants the page's memory: 0, or -1 as the card moves it just now, or it is out. */
int unet_page_out(struct unet *, uint32_t at);

/* From a task. The memory may be used again when unet_sent says so of the number that send returns. */
uint32_t unet_send(struct unet *, uint32_t channel, uint32_t at, uint32_t bytes);
void unet_sent(struct unet *, uint32_t number);
void unet_free_push(struct unet *, uint32_t at); /* a buffer of UNET_DATA bytes */
/* The next message: its bytes, or 0 when none has come by the tick. */
uint32_t unet_recv_poll(struct unet *, uint32_t *channel, uint32_t *at, uint64_t until);

#endif
