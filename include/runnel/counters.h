/* SPDX-License-Identifier: BSD-3-Clause
 *
 * counters.h - the always-on counters of an endpoint: one page of shared memory that another process can read while the
 * program hangs
 * (`runnel info --pid PID`). Written by the owner only, with plain stores: a reader may see counters of slightly
 * different moments. */
#ifndef RNL_COUNTERS_H
#define RNL_COUNTERS_H

#include <stdint.h>

enum { RNL_COUNTERS_MAGIC = 0x4e525543, RNL_COUNTERS_VERSION = 1, RNL_COUNTERS_BYTES = 4096 };

/* Name, and what it counts. The order is the layout: fields are only added at the end. */
#define RNL_COUNTERS(X)                                                            \
    X(messages_sent, "messages begun to peers, all lanes")                         \
    X(messages_received, "messages whose handler returned")                        \
    X(bytes_sent, "payload bytes composed")                                        \
    X(bytes_received, "payload bytes taken in")                                    \
    X(extents_sent, "extents opened in bulk areas")                                \
    X(extents_received, "extents taken in from bulk areas")                        \
    X(replies_sent, "answers on lane 1")                                           \
    X(replies_received, "answers taken in")                                        \
    X(refused_sent, "messages this endpoint refused")                              \
    X(refused_received, "messages that came back refused")                         \
    X(posts_queued, "posted messages that had to be queued")                       \
    X(no_room, "times a send found no room")                                       \
    X(no_room_wait_ns, "time spent waiting for room, ns")                          \
    X(handlers_suspended, "handlers suspended for bytes not yet here")             \
    X(handlers_resumed, "suspended handlers resumed")                              \
    X(no_stack, "messages that had to wait for a handler stack")                   \
    X(no_handler, "messages that had to wait for their handler to be registered")  \
    X(dropped_no_handler, "messages dropped at close: no handler")                 \
    X(rings_grown, "small rings replaced by big ones")                             \
    X(yields, "times the processor was given away while waiting")                  \
    X(sleeps, "times this endpoint went to sleep")                                 \
    X(bells_rung, "sleeping or cold peers woken")                                  \
    X(connects, "peers connected")                                                 \
    X(deaths, "peers that died")                                                   \
    X(broken, "peers that broke the protocol")                                     \
    X(kept_bytes, "bytes of kept messages, now")                                   \
    X(receive_budget_bytes, "receive budget, bytes")                               \
    X(stacks_in_use, "handler stacks in use, now")                                 \
    X(waiting_for_rank, "1 + rank a blocked call waits for, now; 0 = none")        \
    X(connects_failed, "connections put off: no memory or no descriptor")          \
    X(aborted_sent, "messages given up before they were complete")                 \
    X(aborted_received, "messages dropped because their sender gave them up")      \
    X(no_memory, "messages that had to wait for memory of this process")           \
    X(waiting_since_ns, "when that wait began, CLOCK_MONOTONIC; 0 = no wait")      \
    X(missing_handler, "1 + handler number a message waits for, now; 0 = none")    \
    X(missing_handler_rank, "1 + rank that sent this message; 0 = none")           \
    X(cooled, "times a connection ceased to be polled, since nothing came")        \
    X(warmed, "times such a connection was polled again")                          \
    X(protection, "packets to hosts: 1 authenticated, 2 encrypted, 3 NOT; 0 none") \
    X(readmitted, "dead peers taken back")                                         \
    X(peers_moved, "times packets to a peer went on to another of its addresses")  \
    X(packets_sent, "packets with data sent to other hosts, again or not")         \
    X(packet_bytes_sent, "bytes of all datagrams of connections")                  \
    X(packets_received, "the same that came, each once")                           \
    X(packet_bytes_received, "their bytes")                                        \
    X(acks_sent, "packets that said nothing but what had come")                    \
    X(packets_lost, "packets taken for lost; what they carried is sent again")     \
    X(packets_not_lost, "packets taken for lost that had come")                    \
    X(probe_timeouts, "times a peer was asked for a sign since none came")         \
    X(packets_again, "packets that had come before, or are too old to tell")       \
    X(packets_refused, "packets cut, changed, forged, or of a key long gone")      \
    X(mtu_raised, "paths found to take larger datagrams")                          \
    X(mtu_fell, "paths found not to take them any more")                           \
    X(cuts_undone, "windows restored: no packet was lost")                         \
    X(strays, "datagrams that belong to no connection")

struct rnl_counters {
    uint32_t magic, version;
    uint32_t bytes; /* of the fields in use */
    uint32_t pid;
    uint32_t rank, size;
    uint64_t start_ns; /* CLOCK_MONOTONIC at open */
    char program[64];
#define RNL_COUNTERS_FIELD(name, text) uint64_t name;
    RNL_COUNTERS(RNL_COUNTERS_FIELD)
#undef RNL_COUNTERS_FIELD
};

#endif
