/* SPDX-License-Identifier: BSD-3-Clause
 *
 * arena.h - what the C library would keep for a program, in the program's own memory, so that a crash drops it with
 * everything else. A program that overwrites it
 * harms itself, as it would. */
#ifndef RNL_CLUSTER_ARENA_H
#define RNL_CLUSTER_ARENA_H

#include "sim/cluster/guest.h"

enum { RNL_ARENA_BINS = 31, RNL_EXITS_A_BLOCK = 32, RNL_FILE_BUFFER = 4096, RNL_ARENA_SIGNALS = 65 };

/* A FILE of the program's. glibc's macros look into the first fields: zeros there send them to the functions. */
struct rnl_guest_file {
    int glibc_flags;
    unsigned char glibc[220];
    int fd;
    uint8_t open, at_end, failed, writes, lines, given_back; /* lines: flushed after each */
    int back;                                                /* the character that was given back */
    size_t at, have;                                         /* in the buffer: next to read, end (or bytes to write) */
    char *buffer;
    struct rnl_guest_file *next; /* all that are open */
};

struct rnl_exits { /* functions to call at exit */
    struct rnl_exits *before;
    unsigned n;
    struct {
        void (*fn)(void *);
        void *arg;
    } exit[RNL_EXITS_A_BLOCK];
};

struct rnl_arena {
    unsigned char *next, *top; /* the heap ends there, and mapped memory begins */
    void *bin[RNL_ARENA_BINS];
    struct rnl_guest_file file[3], *files;
    struct rnl_guest_file *in, *out, *err; /* its variables stdin, stdout, stderr */
    char *arg;                             /* ... optarg, optind, opterr, optopt */
    int index, tell, letter;
    int in_word;            /* getopt's place in a word of short options; */
    int passed, passed_end; /* and the arguments that it has passed and not moved yet */
    char **environment;
    char *no_environment[1];
    char *name; /* program_invocation_name */
    unsigned char *tls;
    struct rnl_exits exits_first, *exits;
    void (*signal[RNL_ARENA_SIGNALS])(int);
    char text[256]; /* what strerror and the like return */
};

static inline struct rnl_arena *rnl_arena_of(const struct rnl_guest *g)
{
    return (struct rnl_arena *)(void *)g->arena;
}
static inline struct rnl_arena *rnl_arena_now(void)
{
    return rnl_arena_of(rnl_guest_now);
}

/* A new life's. */
void rnl_arena_init(struct rnl_guest *);
void *rnl_arena_alloc(size_t n, size_t align); /* zero-filled or not; NULL: errno is set */
void rnl_arena_free(void *);                   /* NULL is fine */
char *rnl_arena_text(const char *text);        /* a copy */

#endif
