/* SPDX-License-Identifier: BSD-3-Clause
 *
 * layout.h - VMMC's tables in the card's SRAM (paper 002, sections 4.4 and 4.5).
 *
 *  send queue      8 entries per process: { bytes | proxy address | virtual address | kind | 32 words of data }
 *                  the host writes `bytes` last; the card clears it
 *  outgoing table  per process, one word for each of 2,048 proxy pages:
 *                  the address of the page there, and in its low bits 9 VALID | 7..0 node
 *  TLB             per process, two ways of 1,024 sets: virtual page, physical address
 *  incoming table  one byte for each frame of this host: MAY_WRITE, NOTIFY
 *  packet          { bytes | physical address | second physical address or 0 | data } */
#ifndef MYRI_VMMC_LAYOUT_H
#define MYRI_VMMC_LAYOUT_H

#include <stdint.h>

enum {
    VMMC_PROCESSES = 4,
    VMMC_QUEUE = 8,
    VMMC_SHORT = 128,
    VMMC_PAGE_MOST = 16384, /* the host says how large its pages are, 1 KB at least */
    VMMC_PAGES = 2048,
    VMMC_SETS = 1024,
    VMMC_FRAMES = 16384,
    VMMC_NODES = 64, /* no more than 256 */
    VMMC_HEADER = 12,
    VMMC_MISSES = 32 /* translations that one interrupt supplies */
};
enum { VMMC_IS_SHORT = 1, VMMC_IS_LONG = 2 };
enum { VMMC_MAY_WRITE = 1, VMMC_NOTIFY = 2 };
enum { VMMC_INTERRUPT_MISS = 1, VMMC_INTERRUPT_NOTIFY = 2 };
#define VMMC_VALID 0x200u
#define VMMC_LOW   0x3ffu /* of an entry of the outgoing table: what is not the address */

struct vmmc_request {
    uint32_t bytes, proxy, address, kind, data[VMMC_SHORT / 4];
};
struct vmmc_process {
    struct vmmc_request queue[VMMC_QUEUE];
    uint32_t outgoing[VMMC_PAGES];
    uint32_t tag[VMMC_SETS][2], physical[VMMC_SETS][2];
    uint32_t status_at; /* host address where `done` is reported */
    uint32_t done;      /* long sends whose data have left the host */
};
struct vmmc_card {
    uint32_t processes;  /* that are attached */
    uint32_t page_shift; /* pages have 1 << this bytes */
    uint32_t missed, missing_process;
    uint32_t notified; /* frame of the last message with a notification */
    uint32_t errors, refused, misses;
    uint32_t route[VMMC_NODES];
    uint8_t incoming[VMMC_FRAMES];
    struct vmmc_process process[VMMC_PROCESSES];
    uint32_t out[2][(VMMC_HEADER + VMMC_PAGE_MOST) / 4], in[2][(VMMC_HEADER + VMMC_PAGE_MOST) / 4];
};

#endif
