/* SPDX-License-Identifier: BSD-3-Clause
 *
 * sort.h - what the parts of the sort example offer each other. Read sort.c first: it is the program, phase by phase.
 *   sort_files.c     shares of the input, the output          sort_exchange.c  everything that uses Fast Messages
 *   sort_lines.c     the order of lines (sort_lines.h)
 * Alone it builds with: cc -O2 -D_GNU_SOURCE sort*.c -o sort $(pkg-config --cflags --libs runnel) */
#ifndef SORT_H
#define SORT_H

#include "sort_lines.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* sort.c. Ends this process, and with it the job: the output file then keeps its old contents. */
_Noreturn void die(const char *format, ...) __attribute__((format(printf, 1, 2)));
void *allocate(size_t bytes); /* or die */
/* On a terminal, rank 0 keeps one line with the phase and how much of it is done. */
void show_progress(const char *phase, uint64_t done, uint64_t total);

/* sort_files.c: input. All files one after another are one sequence of bytes, and a position counts from its start. */
struct input_file {
    char *path;
    uint64_t bytes;
};
struct input {
    struct input_file *files;
    size_t n;
    uint64_t bytes;
};
/* Fills in the sizes. What is no file (a pipe, "-" for standard input) is first read into memory, and the path becomes
 * that of the copy. */
void input_measure(struct input *);
void input_add(struct input *, const char *path, uint64_t bytes);
void input_free(struct input *);

/* Whole lines; valid until the next call, SORT_SLACK readable bytes after them. */
struct lines {
    const unsigned char *bytes;
    size_t size;
    uint64_t position; /* of the first one */
};
struct reader {
    const struct input *input;
    uint64_t begin, end; /* gives the lines that start at these positions */
    size_t file;         /* the one that is open, if fd >= 0, or else the next one */
    int fd;
    uint64_t file_begin; /* position of its first byte */
    uint64_t next;       /* offset in it of the next byte to read */
    uint64_t at;         /* offset in it of buffer[given] */
    bool in_line;        /* buffer[given] may be inside a line that is another rank's */
    unsigned char *buffer;
    size_t capacity, given, have; /* buffer[0..given) was given out, buffer[given..have) not yet */
};
void reader_open(struct reader *, const struct input *, uint64_t begin, uint64_t end);
bool reader_next(struct reader *, struct lines *); /* false = no more */
void reader_close(struct reader *);

/* sort_files.c: output. Rank 0 creates a file without a name beside the output, all ranks of its host open it and write
 * to it, those of other hosts have rank 0 write for them, and rank 0 gives it the name. */
void output_create(const char *path);
int output_descriptor(void);
void output_open(pid_t creator, int descriptor);
void output_write(const void *bytes, size_t size, uint64_t offset);
void output_publish(void);

/* sort_exchange.c: notes of two parts, one of each kind from each rank to each rank. hear() waits for it; then
 * free(heard.head). */
enum note { NOTE_PLAN, NOTE_SAMPLES, NOTE_SPLITTERS, NOTE_SENT, NOTE_RECEIVED, NOTE_REPORT, N_NOTES };
struct heard {
    void *head;
    unsigned char *body; /* SORT_SLACK readable bytes after it */
    size_t head_bytes, body_bytes;
};
void exchange_start(void); /* after FM_initialize */
void tell(unsigned rank, enum note, const void *head, size_t head_bytes, const void *body, size_t body_bytes);
struct heard hear(enum note, unsigned rank);
/* Rank 0 writes it into the output, at the latest when it hears the next note of this rank. */
void pass_to_writer(const void *bytes, size_t size, uint64_t offset);

/* sort_exchange.c: samples of this rank's share go to rank 0, which answers with the splitters: rank r is to get what
 * lies from splitters[r - 1] to splitters[r]. Lines that are equal are told apart by position, so that many of them are
 * spread over ranks too. */
struct splitter {
    uint64_t key; /* sort_key(line) */
    uint64_t position;
    const unsigned char *line;
};
struct splitters {
    struct splitter *at;
    size_t n;
    void *memory; /* of the lines */
};
void agree_on_splitters(const struct input *, uint64_t begin, uint64_t end, struct splitters *);

/* sort_exchange.c: every line of this rank's share goes to its rank, and those for this rank come in. */
struct received {
    struct sort_record *records;
    uint64_t n, bytes;
};
void exchange_lines(const struct input *, uint64_t begin, uint64_t end, const struct splitters *, struct received *);

#endif
