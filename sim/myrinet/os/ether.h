/* SPDX-License-Identifier: BSD-3-Clause
 *
 * ether.h - datagrams that kernels exchange over one Ethernet cable, to one host or to all others (paper 003, 3.2: the
 * Ethernet is reached by calls of Amoeba's kernel, and its protocol is FLIP). Who sends pays a system call, a copy into
 * the kernel, and the kernel's way for each frame; the cable carries one frame at a time; each frame interrupts its
 * receivers, whose kernels take the same way. A datagram can be taken when its last frame has been served.
 *
 * Nothing is lost, so there are no timers and acknowledgments. A datagram has the cable until its last frame has left,
 * and collisions take no time. Kernels have a bounded number of places for what nobody has taken. */
#ifndef MYRI_ETHER_H
#define MYRI_ETHER_H

#include "sim/myrinet/hw/hw.h"

/* A frame, in bytes, by IEEE 802.3: preamble, addresses with type and check sequence, data from least to most, and the
 * gap behind it; 10 Mb/s are 1.25 bytes a us. In each frame's data, FLIP's header of 40 bytes and fragment's of 2. */
enum { MYRI_ETHER_PREAMBLE = 8, MYRI_ETHER_FRAME = 18, MYRI_ETHER_LEAST = 46, MYRI_ETHER_MOST = 1500 };
enum { MYRI_ETHER_GAP = 12, MYRI_ETHER_BYTE_PS = 800000, MYRI_FLIP_HEADER = 42 };
enum { MYRI_ETHER_PLACES = 160, MYRI_ETHER_ALL = MYRI_HW_NODES };

/* A host's kernel: hw->ether has those that are on the cable. */
struct myri_ether_port {
    struct myri_host *host;
    uint32_t most;         /* bytes of a datagram */
    uint32_t flag;         /* host address: how many can be taken, as a task may watch it */
    uint64_t left_ps;      /* its last datagram has left the host by then */
    uint64_t interrupt_ps; /* until then it serves interrupts */
    uint64_t came;         /* ever */
    struct myri_ether_place {
        struct rnl_sim_event event; /* first */
        struct myri_ether_port *port;
        uint32_t at, from, bytes;
        int used;
        uint64_t order; /* of what can be taken, from 1 */
    } place[MYRI_ETHER_PLACES];
};

/* The time in ps that a datagram of `bytes` occupies the cable, until its last byte has arrived. */
uint64_t myri_ether_ps(uint32_t bytes);
/* Connects a host to the cable under the host's own number. Returns -1 after a fault. */
int myri_ether_open(struct myri_ether_port *, struct myri_host *, uint32_t most);
/* Sends, inside a task of the host, to another host or to all others (MYRI_ETHER_ALL). The memory may be used again
 * afterwards. The host's previous datagram must have left. A receiver without a free buffer ends the run in a fault. */
void myri_ether_send(struct myri_ether_port *, struct myri_task *, uint32_t to, uint32_t at, uint32_t bytes);
/* Copies, inside a task of the host, the oldest datagram that has arrived to `to`; returns its bytes, or 0. */
uint32_t myri_ether_take(struct myri_ether_port *, struct myri_task *, uint32_t to, uint32_t *from);

#endif
