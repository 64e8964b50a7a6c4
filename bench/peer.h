/* SPDX-License-Identifier: BSD-3-Clause
 *
 * peer.h - other messaging libraries under the same measurement as Runnel: `runnel bench --peer`. Each peer is a pair
 * of processes like those of our own interfaces, which takes the same orders (area.h) in the same trials; its program
 * (bench/peers) is compiled when it is wanted, against the library of the peer.
 *
 * A supervisor, forked per peer, compiles, starts, watches and ends that peer's processes, whatever launchers and
 * daemons they bring, and removes its files. It outlives runnel bench by as long as that takes, also if that was
 * killed. What goes wrong becomes a sentence in the peer's pair: the run goes on without it.
 *
 * peer_table.c says what each peer needs and how it is started; peer.c does it. */
#ifndef RNL_BENCH_PEER_H
#define RNL_BENCH_PEER_H

#include <limits.h>
#include <sys/types.h>

#include "trials.h"

enum bench_peer_family {
    BENCH_PEER_OPENMPI,
    BENCH_PEER_MPICH,
    BENCH_PEER_UCX,
    BENCH_PEER_LIBFABRIC,
    BENCH_PEER_COROSYNC,
    BENCH_PEER_NAMED, /* so many can be asked for by name */
    BENCH_PEER_TIRPC = BENCH_PEER_NAMED,
    BENCH_PEER_FAMILIES
};

struct bench_peers {
    struct bench_area *area;
    char area_path[64];                      /* how the others find the area */
    char sources[PATH_MAX];                  /* the folder that holds bench/peers and what it includes */
    const char *prefix[BENCH_PEER_FAMILIES]; /* NULL: as Debian installs it */
    char provider[PATH_MAX];                 /* the folder of librnl-fi.so; empty: it was not built */
    pid_t supervisor[BENCH_APIS];            /* 0 = none */
    /* A program that several ways share is compiled by the supervisor of the first of them, which says where it is. */
    unsigned maker[BENCH_PEER_FAMILIES], sharers[BENCH_PEER_FAMILIES];
    int made[BENCH_PEER_FAMILIES][2]; /* the pipe on which it says so; -1 = nobody else waits for it */
};

/* Adds the interfaces that a comma-separated list of peers names to *apis. 0, or -EINVAL with a sentence in text. */
int bench_peers_parse(const char *list, unsigned *apis, char *text, size_t size);
/* NAME=DIR: that peer is the one installed under DIR. The string is kept. As above. */
int bench_peers_prefix(struct bench_peers *, const char *name_dir, char *text, size_t size);
/* Are compilers, headers and launchers of those there? 0, or -ENOENT with what is missing and how to get it. */
int bench_peers_present(struct bench_peers *, unsigned apis, char *text, size_t size);

/* The folder of this command, and the one that holds bench/peers: 0 or -ENOENT. */
int bench_find_self(char out[PATH_MAX]);
int bench_find_sources(char out[PATH_MAX]);
/* Starts supervisors; then bench_attached tells. 0, or negative with a sentence. */
int bench_peers_start(struct bench_peers *, struct bench_area *, int area_fd, unsigned apis, char *text, size_t size);
/* Ends one that failed; for bench_run. */
void bench_peers_drop(void *peers, unsigned api);
/* Ends all and waits until they are gone. failed: without asking. */
void bench_peers_end(struct bench_peers *, bool failed);

/* ---- peer_table.c, for peer.c ---- */

enum { BENCH_PEER_WORDS = 32, BENCH_PEER_TEXT = 4096 };

/* The words of a command line, in room of their own. */
struct bench_words {
    char *word[BENCH_PEER_WORDS + 1];
    unsigned n;
    char text[BENCH_PEER_TEXT];
    size_t used;
};
void bench_words_add(struct bench_words *, const char *format, ...) __attribute__((format(printf, 2, 3)));

enum bench_peer_family bench_peer_family(unsigned api);
const char *bench_peer_name(enum bench_peer_family);
const char *bench_peer_packages(enum bench_peer_family);
/* The programs or headers without which it cannot run: what[i], NULL at the end. Names with a slash are files. */
void bench_peer_needs(const struct bench_peers *, enum bench_peer_family, struct bench_words *what);
/* The command that makes `program`. */
void bench_peer_compile(const struct bench_peers *, unsigned api, const char *program, struct bench_words *);
/* Between namespaces: writes the script by which a launcher gets to the second. 0 or -1. */
int bench_peer_reach(const struct bench_net *, const char *path);
/* The command that starts it; once for both processes (returns 1) or once a process (returns 2). */
int bench_peer_command(const struct bench_peers *, unsigned api, unsigned rank, const char *program, const char *reach,
                       struct bench_words *);
/* In the process that will run it: its settings. work and shm are folders of its own, the latter in memory if that can
 * be. */
void bench_peer_environment(const struct bench_peers *, unsigned api, const char *work, const char *shm);

/* ---- peer_supervise.c: the supervisor of one peer ---- */

/* In a forked child: compiles and runs that peer until it is done, fails, or SIGTERM comes, which the end of `parent`
 * also brings. Then ends all that came of it and removes its files. Returns the exit status. */
int bench_peer_supervise(const struct bench_peers *, unsigned api, pid_t parent);

#endif
