/* SPDX-License-Identifier: BSD-3-Clause
 *
 * layout.h - what U-Net's library, kernel and cards share, and its packets.
 *
 *  packet:  source 31..24 | bytes of data 15..0
 *           tag: the channel at the receiving node
 *           data, padded to words
 *
 * An endpoint has a queue of messages to send, one of free buffers, and one, in host memory, of what has come. Their
 * addresses
 * are of the process's space. The kernel writes channels, and translations. */
#ifndef MYRI_UNET_LAYOUT_H
#define MYRI_UNET_LAYOUT_H

#include <stdint.h>

enum {
    UNET_ENDPOINTS = 4,
    UNET_QUEUE = 8,
    UNET_FREE = 32,
    UNET_CHANNELS = 128, /* of a node */
    UNET_NODES = 32,
    UNET_TLB = 256,   /* translations on the card for an endpoint */
    UNET_DATA = 4096, /* of a message, and of a buffer */
    UNET_HEADER = 8,
    UNET_RECORDS = 32, /* places of the receive queue: no fewer than buffers */
    UNET_RECORD = 16   /* bytes: number + 1, address, bytes of data, channel */
};
#define UNET_VALID 0x80000000u

struct unet_message { /* the library writes `bytes` last, the card clears it */
    uint32_t bytes, channel, at, unused;
};
struct unet_endpoint {
    struct unet_message queue[UNET_QUEUE]; /* the process sees what is before `used`, and no more of the card */
    uint32_t free[UNET_FREE];
    uint32_t freed; /* buffers that have been put there, ever */
    uint32_t used;  /* by the card */
    uint32_t records_at, notify;
    uint32_t tag[UNET_TLB], physical[UNET_TLB]; /* tag: page + 1 */
};
struct unet_channel {
    uint32_t valid, node, tag, endpoint; /* valid: VALID; tag: its other end's number at that node */
};
struct unet_card {
    uint32_t endpoints, nodes, page_shift;
    uint32_t missing;                 /* endpoint + 1 whose page has no translation; the kernel clears it */
    uint32_t missed, refused_page;    /* that page, and whether the kernel knows none such */
    uint32_t moving, moving_endpoint; /* page + 1 that the engine moves, of that endpoint */
    uint32_t misses, dropped, errors; /* dropped: for want of a buffer */
    uint32_t route[UNET_NODES];
    uint32_t record[UNET_RECORD / 4];
    struct unet_channel channel[UNET_CHANNELS];
    struct unet_endpoint endpoint[UNET_ENDPOINTS];
    uint32_t out[2][(UNET_HEADER + UNET_DATA) / 4], in[2][(UNET_HEADER + UNET_DATA) / 4];
};

#endif
