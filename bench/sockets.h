/* SPDX-License-Identifier: BSD-3-Clause
 *
 * sockets.h - a pair's bare sockets, connected to each other: UDP as fast as it goes without a protocol, and TCP. Bytes
 * in order, non-blocking; the rest (what a message is) is api_sockets.c.
 *
 * Datagrams carry payload and nothing else. Those in flight are held to a window that the receiver's buffer has room
 * for, by counts that come back on a second socket: so over loopback and virtual Ethernet none is lost, and one that is
 * nevertheless ends the measurement. */
#ifndef RNL_BENCH_SOCKETS_H
#define RNL_BENCH_SOCKETS_H

#include "net.h"
#include "process.h"

enum { SOCKETS_RUN = 65504 }; /* the most bytes that one call sends: a run of datagrams, cut by the kernel */

struct sockets {
    bool tcp;
    int bulk;             /* runs of datagrams, or the TCP connection */
    int single;           /* UDP: single datagrams, and counts of bytes taken in */
    uint32_t segment;     /* payload of a full datagram, a multiple of 8 */
    uint32_t run;         /* bytes of a full run */
    uint64_t window;      /* bytes in flight, at most */
    uint64_t sent, heard; /* bulk bytes; how many of them the peer has said that it took */
    uint64_t taken, told; /* the same of the other direction */
    uint64_t since_ns;    /* waiting for room */
};

/* Both ranks; meets. 0, or bench_process_fail. */
int sockets_open(struct bench_process *, struct sockets *, bool tcp);
void sockets_close(struct sockets *);
/* Before an order, between two meetings: forgets what is left of the last one. */
int sockets_reset(struct bench_process *, struct sockets *, uint64_t window);

/* One UDP socket: bound to an address of the rank, of this thread's namespace; its port, as the kernel keeps it. A
 * descriptor, or -1 after bench_process_fail. And it is connected to a port of the other process. */
int sockets_bind(struct bench_process *, unsigned rank, uint16_t *port);
int sockets_join(struct bench_process *, int fd, unsigned other, uint16_t port);

/* As many of n bytes as may go now, in one call: how many, perhaps 0, or -1 after bench_process_fail. */
ssize_t sockets_send(struct bench_process *, struct sockets *, const void *from, size_t n);
/* What is there, in one call. UDP: `room` has to hold the whole run. */
ssize_t sockets_receive(struct bench_process *, struct sockets *, void *to, size_t room);

/* A single datagram, or 8 bytes and more of a TCP stream, whole; `asleep` waits in the kernel instead of polling. */
int sockets_give(struct bench_process *, struct sockets *, const void *from, size_t n);
int sockets_take(struct bench_process *, struct sockets *, void *to, size_t n, bool asleep);

#endif
