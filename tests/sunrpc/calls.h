/* SPDX-License-Identifier: BSD-3-Clause
 *
 * calls.h - the program that the tests of SunRPC call: what it takes and gives, with XDR routines as rpcgen writes
 * them. */
#ifndef TEST_SUNRPC_CALLS_H
#define TEST_SUNRPC_CALLS_H

#include <rpc/rpc.h>

enum { CALLS_PROGRAM = 0x20000642, CALLS_OTHER = 0x20000643, CALLS_VERSION = 1, CALLS_VERSION_2 = 3 };
enum { CALLS_BYTES_MAX = 16 << 20, CALLS_STRING_MAX = 1024 };
enum calls_procedure {
    CALLS_NULL,
    CALLS_ADD,    /* pair -> int */
    CALLS_STRING, /* string -> string */
    CALLS_BYTES,  /* opaque<> -> opaque<> */
    CALLS_INTS,   /* int<> -> int<> */
    CALLS_HYPERS, /* hyper<> -> hyper<> */
    CALLS_SHAPE,  /* union -> union */
    CALLS_LIST,   /* list -> list */
    CALLS_WHO,    /* who the server takes the caller for -> who */
    CALLS_SLEEP,  /* milliseconds -> the same */
    CALLS_COUNT,  /* int, batched: adds it, no reply */
    CALLS_TOTAL,  /* void -> int: the sum, which becomes zero */
    CALLS_REFUSE, /* enum auth_stat, 0 = weakauth, 100 = systemerr -> that error */
    CALLS_SIZE,   /* how many bytes -> so many */
    CALLS_EXIT,   /* void -> the server ends without an answer */
    CALLS_VECTOR, /* int[5] and double[3] -> the same */
    CALLS_PID,    /* void -> pid of the server */
    CALLS_HANG,   /* pid of a server -> that server answers after half a minute, any other at once */
    CALLS_FORK,   /* opaque<> -> the same, by a forked child, after as many milliseconds as the first byte says */
    CALLS_FORKED  /* int, batched: a forked child adds it, no reply */
};

struct calls_pair {
    int a, b;
};
struct calls_bytes {
    u_int count;
    char *at;
};
struct calls_ints {
    u_int count;
    int *at;
};
struct calls_hypers {
    u_int count;
    int64_t *at;
};
struct calls_shape {
    int kind; /* 0 = nothing, 1 = number, 2 = text, else bytes */
    int number;
    char *text;
    struct calls_bytes bytes;
};
struct calls_list {
    int value;
    struct calls_list *next;
};
struct calls_who {
    int flavor, uid, gid, gids;
    char *netid;
    int family;
    int addrlen;
};
struct calls_vector {
    u_long number; /* 32 bits of it travel */
    int ints[5];
    double doubles[3];
};

bool_t xdr_calls_pair(XDR *, struct calls_pair *);
bool_t xdr_calls_string(XDR *, char **);
bool_t xdr_calls_bytes(XDR *, struct calls_bytes *);
bool_t xdr_calls_ints(XDR *, struct calls_ints *);
bool_t xdr_calls_hypers(XDR *, struct calls_hypers *);
bool_t xdr_calls_shape(XDR *, struct calls_shape *);
bool_t xdr_calls_list(XDR *, struct calls_list **);
bool_t xdr_calls_who(XDR *, struct calls_who *);
bool_t xdr_calls_vector(XDR *, struct calls_vector *);

#endif
