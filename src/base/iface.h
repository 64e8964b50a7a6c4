/* SPDX-License-Identifier: BSD-3-Clause
 *
 * iface.h - what an interface (FM, AM) declares about itself, so that nothing outside its folder knows it by name. Each
 * interface defines one constant `struct rnl_iface`; the build collects their addresses in rnl_ifaces from the list of
 * interface folders in src/meson.build. Nothing is registered while a program runs, so no order of constructors
 * matters, and a program that links the archive gets only the interfaces that it calls.
 *
 * The core gets an interface's constants from the interface itself, as arguments. Only programs that serve all
 * interfaces walk rnl_ifaces: the simulator, which runs many processes in one, and `runnel info`. The library does
 * neither, and does not contain the list. */
#ifndef RNL_BASE_IFACE_H
#define RNL_BASE_IFACE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/counters.h"

struct rnl_endpoint;

/* A row of the interface's section in `runnel info`. */
struct rnl_iface_row {
    const char *name; /* lower case, words separated by spaces; NULL ends a table */
    const char *text; /* value of the row; NULL = the value is `number` */
    uint64_t number;
    const char *remark; /* "" = none */
};

struct rnl_iface {
    const char *name; /* as users write it: "FM". Its counters are called NAME.counter */

    /* The process-wide state: all the mutable memory of the interface that hangs from no endpoint. A process starts
     * with a copy of `initial`, or with zeros. No pointer into the state itself may be kept in it or anywhere else: the
     * simulator copies the state in and out when it switches processes. NULL and 0: the interface has none. */
    void *state;
    size_t state_bytes;
    const void *initial;

    /* What happens to a suspended handler when the sender of its message dies: true = it is dropped with its stack;
     * false = it is resumed and gets RNL_ERR_PEER_DEAD. */
    bool death_drops_handlers;

    /* Frees what the interface keeps for this endpoint, silently: the process that owned both was killed and the memory
     * outlives it, which happens in the simulator only. The state is that of the killed process. NULL = the interface
     * keeps nothing that rnl_ep_free does not free. */
    void (*abandon)(struct rnl_endpoint *);

    const struct rnl_counter_text *counters; /* shown by `runnel info --pid`; NULL = none */
    const struct rnl_iface_row *info;        /* its section in `runnel info`; NULL = none */
};

extern const struct rnl_iface *const rnl_ifaces[]; /* NULL-terminated */

/* Gets the counters of an interface, in the page of its endpoint: (*out)[i] counts what row i of the interface's table
 * says. A second call for the same endpoint returns the same counters. Returns 0; RNL_ERR_NO_MEMORY: the page has no
 * room for them. */
int rnl_iface_counters(const struct rnl_iface *iface, struct rnl_counters *c, uint64_t **out);

/* How an interface whose functions cannot return an error writes a line and ends the program. NULL = to standard error,
 * and by exit(). The simulator, whose processes share one real process, replaces both. */
struct rnl_iface_host {
    void (*say)(const char *line);
    void (*exit)(int status); /* does not return */
};
extern const struct rnl_iface_host *rnl_iface_host;

#endif
