/* SPDX-License-Identifier: BSD-3-Clause
 *
 * arena.h - what the C library would keep for a program, in the program's own memory, so that a crash drops it with
 * everything else. A program that overwrites it
 * harms itself, as it would. */
#ifndef VC_ARENA_H
#define VC_ARENA_H

#include "sim/cluster/process.h"

#include <stdarg.h>
#include <sys/types.h>

enum { VC_ARENA_BINS = 31, VC_EXITS_A_BLOCK = 32, VC_FILE_BUFFER = 4096, VC_ARENA_SIGNALS = 65 };

/* A FILE of the program's. glibc's macros look into the first fields: zeros there send them to the functions. */
struct vc_process_file {
    int glibc_flags;
    unsigned char glibc[220];
    int fd;
    uint8_t open, at_end, failed, writes, lines, given_back; /* lines: flushed after each */
    int back;                                                /* the character that was given back */
    size_t at, have;                                         /* in the buffer: next to read, end (or bytes to write) */
    char *buffer;
    struct vc_process_file *next; /* all that are open */
};

struct vc_exits { /* functions to call at exit */
    struct vc_exits *before;
    unsigned n;
    struct {
        void (*fn)(void *);
        void *arg;
    } exit[VC_EXITS_A_BLOCK];
};

struct vc_arena {
    unsigned char *next, *top; /* the heap ends there, and mapped memory begins */
    void *bin[VC_ARENA_BINS];
    struct vc_process_file file[3], *files;
    struct vc_process_file *in, *out, *err; /* its variables stdin, stdout, stderr */
    char *arg;                              /* getopt's optarg, optind, opterr, optopt */
    int index, tell, letter;
    int in_word;            /* getopt's place in a word of short options; */
    int passed, passed_end; /* and the arguments that it has passed and not moved yet */
    char **environment;
    char *no_environment[1];
    char *name; /* program_invocation_name */
    unsigned char *tls;
    struct vc_exits exits_first, *exits;
    void (*signal[VC_ARENA_SIGNALS])(int);
    char text[256]; /* what strerror and the like return */
};

static inline struct vc_arena *vc_arena_of(const struct vc_process *vp)
{
    return (struct vc_arena *)(void *)vp->arena;
}
static inline struct vc_arena *vc_arena_now(void)
{
    return vc_arena_of(vc_process_now);
}

/* A new life's. */
void vc_arena_init(struct vc_process *);
void *vc_arena_alloc(size_t n, size_t align); /* zero-filled or not; NULL: errno is set */
void vc_arena_free(void *);                   /* NULL is fine */
char *vc_arena_text(const char *text);        /* a copy */

/* ---- what the shims for files and for streams share ---- */

int vc_fd_open(const char *path, int flags, mode_t mode); /* or -1: errno */
int vc_fd_close(int fd);
ssize_t vc_fd_read(int fd, void *to, size_t n);
ssize_t vc_fd_write(int fd, const void *from, size_t n);
off_t vc_fd_seek(int fd, off_t offset, int whence);

/* Bytes into a stream's buffer, or on: 0, -1. */
int vc_file_put(struct vc_process_file *, const char *bytes, size_t n);
int vc_file_vprint(struct vc_process_file *, const char *format, va_list args);
/* All of the process's, at exit. */
void vc_files_flush(void);

#endif
