/* SPDX-License-Identifier: BSD-3-Clause
 *
 * link.h - the seam between RPC and what carries it: a link takes records, which are bytes without a bound on their
 * number, to one peer and brings records from it, in order. The XDR streams (stream.h), the CLIENT and SVCXPRT tables
 * and the interposed waits know links only through this table. pair.h is the link between two processes of one host.
 *
 * A link may be used by a process and its forked children in turn, as a socket may, so its state lies in memory that
 * they share. Nobody may use it at the same time as somebody else, but for writing records to a link that is shared
 * and claimed. */
#ifndef RNL_RPC_LINK_H
#define RNL_RPC_LINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct rnl_rpc_link;

enum rnl_rpc_arming {
    RNL_RPC_ARM_NONE = 0, /* the owner looks by itself: no byte is wanted at the descriptor */
    RNL_RPC_ARM_ONCE,     /* one byte, for whatever comes first */
    RNL_RPC_ARM_ALWAYS    /* a byte for each record */
};

struct rnl_rpc_link_ops {
    /* -- the record that is being written: it begins with the first byte after the last record -- */
    /* Hands over what was written up to out_at and makes room for at least one more byte; may block for room. */
    bool (*room)(struct rnl_rpc_link *);
    bool (*end)(struct rnl_rpc_link *); /* the record is complete, and the peer is notified */
    /* Takes the record back. Returns false if a part of it is on its way already. */
    bool (*drop)(struct rnl_rpc_link *);

    /* -- the record that is being read -- */
    bool (*here)(struct rnl_rpc_link *); /* a record, or the next part of one, is there; neither blocks nor takes it */
    /* Looks at the first `n` bytes of the record that is there and has not been begun, without taking them. */
    bool (*peek)(struct rnl_rpc_link *, void *to, size_t n);
    /* Brings the next part of the record to in_at; blocks for it. Returns false at the record's end. */
    bool (*next)(struct rnl_rpc_link *);
    bool (*leave)(struct rnl_rpc_link *); /* skips what is left of the record; blocks for it */

    /* -- waiting -- */
    /* Blocks until a record is here. Returns false if deadline_ns passed or the link is broken. */
    bool (*wait)(struct rnl_rpc_link *, uint64_t deadline_ns);
    /* Sets when the descriptor becomes readable. Before the owner relies on it, it calls rnl_rpc_fence (host.h) once
     * for all its links, and looks once more with `here`. */
    void (*arm)(struct rnl_rpc_link *, enum rnl_rpc_arming);
    void (*drain)(struct rnl_rpc_link *); /* takes the bytes off the descriptor; finds out whether the peer is gone */
    /* -- forking, by the thread that serves a call -- */
    /* From here on a forked child may write records while this process does: each claims the link for a whole one. */
    void (*share)(struct rnl_rpc_link *);
    bool (*claim)(struct rnl_rpc_link *); /* returns false if the link is broken */
    void (*release)(struct rnl_rpc_link *);
    void (*close)(struct rnl_rpc_link *); /* frees the link; its descriptor belongs to the caller */
};

struct rnl_rpc_link {
    const struct rnl_rpc_link_ops *ops;
    unsigned char *out_at, *out_end;     /* room for what is written next: the stream moves out_at */
    const unsigned char *in_at, *in_end; /* what is read next: the stream moves in_at */
    uint64_t out_bytes;                  /* of the record, in parts that were handed over */
    uint32_t out_room;                   /* bytes between the begin of the open part and out_end */
    uint64_t deadline_ns;                /* for waits inside a record */
    /* Called now and then while `room` blocks; it may take in records. NULL = nothing is to be done. */
    void (*blocked)(struct rnl_rpc_link *);
    void *owner;       /* of `blocked` */
    uint32_t peer_cpu; /* 1 + the processor that the peer last wrote on; 0 = not known */
    int fd;            /* readable when armed and a record came, and when the peer is gone */
    bool remote;       /* to another host: a look takes system calls */
    bool in_private;   /* what lies at in_at is a copy that the peer cannot change */
    bool in_open;      /* a record has been begun and not been left */
    bool in_last;      /* its last part has been brought */
    bool shared;       /* see `share` */
    bool broken;       /* the peer is gone, or wrote what cannot be true; what came before may still be read */
    uint8_t armed;     /* enum rnl_rpc_arming */
    uint8_t distance;  /* the state of base/sense.h: bit 0 = enum rnl_distance */
};

#endif
