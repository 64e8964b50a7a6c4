/* SPDX-License-Identifier: BSD-3-Clause
 *
 * heat.h - what the parts of the heat example offer each other. Read heat.c first: it is the program, from the picture
 * that goes in to the one that comes out.
 *   heat_rows.c      rows from the file to the ranks and back   heat_block.c   the rows of one rank, step by step
 *   heat_picture.c   rows from pictures, and pictures of rows   heat_output.c  files that appear when complete
 * Alone it builds with: cc -O2 -D_GNU_SOURCE heat*.c -o heat $(pkg-config --cflags --libs runnel) -lm */
#ifndef HEAT_H
#define HEAT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum { MOST_GREY = 65535 };

/* heat.c */
struct wish {
    const char *input, *output, *colour, *make, *keep; /* NULL = not wished */
    uint64_t iterations;
    double epsilon;
};
extern struct wish wish;
/* Marks the greys that keep their temperature; false if there is something else in the list. */
bool read_keep(const char *list, unsigned maxval, bool *held);
/* Ends this process, and with it the job: outputs then keep their old contents. */
_Noreturn void die(const char *format, ...) __attribute__((format(printf, 1, 2)));
void *allocate(uint64_t things, uint64_t bytes_each); /* or die */
double now_seconds(void);
/* On a terminal, rank 0 keeps one line with the phase and how much of it is done. */
void show_progress(const char *phase, uint64_t done, uint64_t total);
void clear_progress(void);

/* heat_rows.c: all that is done with a picture. */
void spread_heat(void);

/* heat_picture.c */
struct shape {
    uint64_t width, height;
    unsigned maxval; /* the grey that is white; black is 0 */
};
struct picture {
    struct shape shape;
    const char *path;
    FILE *file;
    bool plain; /* numbers in ASCII */
    uint64_t rows_read;
};
void picture_open(struct picture *, const char *path); /* "-" is standard input */
void picture_read_row(struct picture *, uint16_t *greys);
void picture_close(struct picture *);
/* What stands before the rows: '5' is grey, '6' colour. */
size_t picture_header(char *text, size_t room, char kind, const struct shape *);
size_t grey_row_bytes(const struct shape *);
size_t colour_row_bytes(const struct shape *);
void encode_grey(const double *row, const struct shape *, unsigned char *bytes);
void encode_colour(const double *row, const struct shape *, unsigned char *bytes);
/* A picture to begin with. */
void draw_row(uint64_t row, const struct shape *, unsigned char *greys);

/* heat_output.c. Until outputs_publish nothing has a name; then all outputs get theirs, or replace what had it. */
struct output;
struct output *output_create(const char *path);
void output_write(struct output *, const void *bytes, size_t size);
void outputs_publish(void);

/* heat_block.c. The first ranks, as many as there are rows or ranks, have a block of rows each. */
unsigned block_owners(const struct shape *);
uint64_t block_first_row(const struct shape *, unsigned rank); /* of rank + 1: where the block of rank ends */
/* Room for this rank's rows, which block_put fills in order. A grey g keeps its temperature if held[g]. */
void block_create(const struct shape *, const bool *held);
void block_put(const uint16_t *greys);
bool block_is_full(void);
const double *block_row(uint64_t row); /* after the last step; row: in the whole grid */
struct outcome {
    uint64_t iterations, free_cells;
    double residual, seconds, waiting; /* waiting: seconds, of this rank */
};
/* Until no cell changes by more than epsilon, as looked at now and then, but at most this many iterations. */
void block_iterate(uint64_t iterations, double epsilon, struct outcome *);

#endif
