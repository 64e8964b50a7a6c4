/* SPDX-License-Identifier: BSD-3-Clause
 *
 * counters.h - the counters of an endpoint, which are always on: one page of shared memory that another process can
 * read while the program hangs (`runnel info --pid PID`). Only the owner writes the page, with plain stores, so a
 * reader may see counters of slightly different moments. */
#ifndef RNL_COUNTERS_H
#define RNL_COUNTERS_H

#include <stdint.h>

enum { RNL_COUNTERS_MAGIC = 0x4e525543, RNL_COUNTERS_VERSION = 1, RNL_COUNTERS_BYTES = 4096 };

/* The name of each counter, and what it counts. The order is the layout: counters are only added at the end. */
#define RNL_COUNTERS(X)                                                              \
    X(messages_sent, "messages begun to peers, replies not counted")                 \
    X(messages_received, "messages whose handler returned")                          \
    X(bytes_sent, "payload bytes composed")                                          \
    X(bytes_received, "payload bytes taken in")                                      \
    X(extents_sent, "extents opened in bulk areas")                                  \
    X(extents_received, "extents taken in from bulk areas")                          \
    X(replies_sent, "replies on lane 1")                                             \
    X(replies_received, "replies taken in")                                          \
    X(refused_sent, "messages this endpoint rejected")                               \
    X(refused_received, "messages that came back rejected")                          \
    X(posts_queued, "posted messages that had to be queued")                         \
    X(no_room, "times a send found no room")                                         \
    X(no_room_wait_ns, "time spent waiting for room, ns")                            \
    X(handlers_suspended, "handlers suspended for bytes that had not arrived")       \
    X(handlers_resumed, "suspended handlers resumed")                                \
    X(no_stack, "messages that had to wait for a handler stack")                     \
    X(no_handler, "messages that had to wait for their handler to be registered")    \
    X(dropped_no_handler, "messages dropped at close: no handler was registered")    \
    X(rings_grown, "small rings replaced by big ones")                               \
    X(yields, "times the processor was given away while waiting")                    \
    X(sleeps, "times this endpoint went to sleep")                                   \
    X(bells_rung, "peers woken that slept or did not poll this connection")          \
    X(connects, "peers connected")                                                   \
    X(deaths, "peers that died")                                                     \
    X(broken, "peers that broke the protocol")                                       \
    X(kept_bytes, "bytes of kept messages, now")                                     \
    X(receive_budget_bytes, "receive budget, bytes")                                 \
    X(stacks_in_use, "handler stacks in use, now")                                   \
    X(waiting_for_rank, "1 + rank a blocked call waits for, now; 0 = none")          \
    X(connects_failed, "connections put off: no memory or no descriptor")            \
    X(aborted_sent, "messages given up before they were complete")                   \
    X(aborted_received, "messages dropped because their sender gave them up")        \
    X(no_memory, "messages that had to wait for memory of this process")             \
    X(waiting_since_ns, "start of that wait for room, CLOCK_MONOTONIC; 0 = no wait") \
    X(missing_handler, "1 + handler number a message waits for, now; 0 = none")      \
    X(missing_handler_rank, "1 + rank that sent this message; 0 = none")             \
    X(cooled, "times a connection was no longer polled, since nothing came")         \
    X(warmed, "times such a connection was polled again")                            \
    X(protection, "packets to hosts: 1 authenticated, 2 encrypted, 3 NOT; 0 none")   \
    X(readmitted, "dead peers taken back")                                           \
    X(peers_moved, "times packets to a peer moved to another of its addresses")      \
    X(packets_sent, "packets with data sent to other hosts, retransmissions too")    \
    X(packet_bytes_sent, "bytes of all datagrams of connections")                    \
    X(packets_received, "packets with data received from other hosts, each once")    \
    X(packet_bytes_received, "bytes of the datagrams of connections that were new")  \
    X(acks_sent, "packets that carried only acknowledgements")                       \
    X(packets_lost, "packets declared lost; their content was sent again")           \
    X(packets_not_lost, "packets declared lost that had arrived")                    \
    X(probe_timeouts, "probe timeouts: times a silent peer was probed")              \
    X(packets_again, "packets that repeat others, or are too old to tell")           \
    X(packets_refused, "packets cut, changed, forged, or under a discarded key")     \
    X(mtu_raised, "times a path was found to take larger datagrams")                 \
    X(mtu_fell, "times a path was found not to take them any more")                  \
    X(cuts_undone, "congestion windows restored: no packet was lost")                \
    X(strays, "datagrams that belong to no connection")                              \
    X(wait_for, "enum rnl_waits: what a call that sleeps waits for, now; 0 = none")  \
    X(wait_since_ns, "start of the last such wait, CLOCK_MONOTONIC")                 \
    X(suspended_rank, "1 + sender of the message whose handler was suspended last")  \
    X(frames_sent, "frames with datagrams sent past the kernel")                     \
    X(frames_received, "frames with datagrams received past the kernel")             \
    X(frames_refused, "frames that were none of a whole datagram for this rank")     \
    X(bulk_sent, "posted messages sent on the bulk lane")                            \
    X(bulk_received, "messages taken in from the bulk lane")

enum rnl_waits {
    RNL_WAITS_NOT = 0,
    RNL_WAITS_MESSAGE,
    RNL_WAITS_ROOM, /* at waiting_for_rank */
    RNL_WAITS_CLOSE,
    RNL_WAITS_OPERATION, /* a put, get or quiet, or what was queued before */
    RNL_WAITS_TIME       /* a message, for a limited time */
};

struct rnl_counters {
    uint32_t magic, version;
    uint32_t bytes; /* bytes of this struct that are in use */
    uint32_t pid;
    uint32_t rank, size;
    uint64_t start_ns; /* CLOCK_MONOTONIC when the endpoint was opened */
    char program[64];
#define RNL_COUNTERS_FIELD(name, text) uint64_t name;
    RNL_COUNTERS(RNL_COUNTERS_FIELD)
#undef RNL_COUNTERS_FIELD
};

#endif
