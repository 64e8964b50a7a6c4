/* SPDX-License-Identifier: BSD-3-Clause
 *
 * stream.h - streams of bytes between virtual hosts, for their daemons: what TCP is on real ones, without its speed.
 * One end of a stream is a descriptor of this process, which the daemon reads and writes as it does a connection; what
 * goes through it crosses the virtual network in datagrams, which are repeated until they are acknowledged. So
 * losses delay it, a partition holds it up, and one that nobody answers for a minute and a half ends.
 *
 *   0      1   4         8      12     16
 *   +------+---+---------+------+------+----------------+
 *   | kind | 0 | to      | from | seq  | bytes, to 1024 |    to, from: numbers of the stream at its two ends,
 *   +------+---+---------+------+------+----------------+    to 0 = none yet. seq of KIND_ACK: that awaited next */
#ifndef VC_STREAM_H
#define VC_STREAM_H

#include "meet/daemon.h"
#include "sim/cluster/cluster_internal.h"

struct vc_streams;
struct vc_stream;

/* What its descriptors can do shows in `epoll`: an event points to a struct vc_stream, which begins with the number 3.
 * look: something was written to one of them. 0, RNL_ERR_NO_MEMORY, RNL_ERR_ARG. */
int vc_streams_new(struct vc_cluster *, int epoll, void (*look)(struct vc_cluster *), struct vc_streams **out);
void vc_streams_free(struct vc_streams *);                                          /* NULL is fine */
void vc_stream_net(struct vc_streams *, uint32_t host, struct rnl_daemon_net *out); /* but for its key */
/* The daemon of that host is gone: who calls is refused. */
void vc_stream_unlisten(struct vc_streams *, uint32_t host);
void vc_stream_readable(struct vc_stream *);
void vc_stream_ip(uint32_t host, unsigned char ip[16]);

#endif
