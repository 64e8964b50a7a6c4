/* SPDX-License-Identifier: BSD-3-Clause
 *
 * heat_block.c - the rows of one rank in the heat example, and what the ranks exchange in each iteration.
 *
 * A step computes all cells from those of the step before. Only the first and the last row of a block need a row of
 * another rank: those come in while the rows between are computed, and a row that a neighbour needs is sent as soon as
 * it is there. A neighbour may be one step ahead, but not two, since for that it needs a row of this step of ours; so
 * two rows of room for each neighbour, for even and odd steps, are enough, and handlers receive straight into them. */
#include "heat.h"

#include <math.h>
#include <runnel/fm.h>
#include <stdlib.h>
#include <string.h>

enum { ABOVE, BELOW };
enum {
    HANDLE_HALO = 10,
    HANDLE_LARGEST,
    HANDLE_VERDICT,
    CHECK_EVERY = 16,        /* steps, between two looks at how much still changes */
    CELLS_A_POLL = 32 << 10, /* computed between two looks for messages */
};

/* The cells of a row that are computed; those between keep the temperature that they have. */
struct span {
    uint32_t begin, end;
};

static struct {
    uint64_t width, first, rows, put, last_step;
    const bool *held;
    double *grid[2];   /* of even and odd steps; each row has a cell more at both ends, a copy of its neighbour */
    size_t *row_spans; /* spans[row_spans[r] .. row_spans[r + 1]) are those of row r */
    struct span *spans;
    size_t span_room;
    uint64_t free_cells;
    bool has[2];              /* a neighbour ABOVE, BELOW */
    double *halo[2][2];       /* of the neighbour, of even and odd steps */
    uint64_t halo_next[2][2]; /* step + 1 of what is there; 0 = nothing yet */
    double waited;
} block;

static struct {
    unsigned parent, child[2], children, heard;
    double largest;
    bool verdict;
} tree;

static double *row_of(uint64_t step, uint64_t row)
{
    return block.grid[step % 2] + row * (block.width + 2) + 1;
}

static void mirror_ends(double *row)
{
    row[-1] = row[0];
    row[block.width] = row[block.width - 1];
}

/* --- the rows before the first step --- */

unsigned block_owners(const struct shape *shape)
{
    return shape->height < FM_numnodes ? (unsigned)shape->height : (unsigned)FM_numnodes;
}

uint64_t block_first_row(const struct shape *shape, unsigned rank)
{
    return shape->height * rank / block_owners(shape);
}

static int on_halo(FM_stream *stream, unsigned sender)
{
    uint64_t step;
    int side = sender < FM_nodeid ? ABOVE : BELOW;
    FM_receive(&step, stream, sizeof step);
    FM_receive(block.halo[side][step % 2], stream, block.width * sizeof(double));
    block.halo_next[side][step % 2] = step + 1;
    return FM_CONTINUE;
}

static int on_largest(FM_stream *stream, unsigned sender)
{
    double largest;
    (void)sender;
    FM_receive(&largest, stream, sizeof largest);
    tree.largest = largest > tree.largest ? largest : tree.largest;
    tree.heard++;
    return FM_CONTINUE;
}

static int on_verdict(FM_stream *stream, unsigned sender)
{
    (void)sender;
    FM_receive(&tree.largest, stream, sizeof tree.largest);
    tree.verdict = true;
    return FM_CONTINUE;
}

void block_create(const struct shape *shape, const bool *held)
{
    unsigned me = (unsigned)FM_nodeid, owners = block_owners(shape);
    block.width = shape->width;
    block.first = block_first_row(shape, me);
    block.rows = block_first_row(shape, me + 1) - block.first;
    block.held = held;
    block.has[ABOVE] = me > 0;
    block.has[BELOW] = me + 1 < owners;
    block.row_spans = allocate(block.rows + 1, sizeof *block.row_spans);
    block.row_spans[0] = 0;
    for (int parity = 0; parity < 2; parity++) {
        block.grid[parity] = allocate(block.rows, (block.width + 2) * sizeof(double));
        for (int side = ABOVE; side <= BELOW; side++)
            if (block.has[side])
                block.halo[side][parity] = allocate(block.width, sizeof(double));
    }
    tree.parent = (me - 1) / 2;
    for (unsigned child = 2 * me + 1; child <= 2 * me + 2 && child < owners; child++)
        tree.child[tree.children++] = child;
    /* A neighbour may have begun already: its messages wait until their handlers are here. */
    FM_register_handler(HANDLE_HALO, on_halo);
    FM_register_handler(HANDLE_LARGEST, on_largest);
    FM_register_handler(HANDLE_VERDICT, on_verdict);
}

static void add_span(uint64_t begin, uint64_t end, size_t *n)
{
    if (*n == block.span_room) {
        block.span_room = 2 * block.span_room + 64;
        block.spans = realloc(block.spans, block.span_room * sizeof *block.spans);
        if (!block.spans)
            die("no memory for the cells to compute: use more ranks where there is more memory, or a smaller picture");
    }
    block.spans[(*n)++] = (struct span){(uint32_t)begin, (uint32_t)end};
    block.free_cells += end - begin;
}

void block_put(const uint16_t *greys)
{
    double *even = row_of(0, block.put), *odd = row_of(1, block.put);
    size_t n = block.row_spans[block.put];
    for (uint64_t x = 0; x < block.width; x++)
        even[x] = odd[x] = greys[x];
    mirror_ends(even);
    mirror_ends(odd);
    for (uint64_t end, begin = 0; begin < block.width; begin = end + 1) {
        for (end = begin; end < block.width && !block.held[greys[end]];)
            end++;
        if (end > begin)
            add_span(begin, end, &n);
    }
    block.row_spans[++block.put] = n;
}

bool block_is_full(void)
{
    return block.put == block.rows;
}

/* --- a step --- */

static void wait_for_messages(void)
{
    double begin = now_seconds();
    FM_wait(-1);
    block.waited += now_seconds() - begin;
}

static bool is_here(int side, uint64_t step)
{
    return !block.has[side] || block.halo_next[side][step % 2] == step + 1;
}

static void send_row(int side, uint64_t step, const double *row)
{
    if (!block.has[side])
        return;
    size_t bytes = block.width * sizeof *row;
    FM_stream *stream =
        FM_begin_message(side == ABOVE ? FM_nodeid - 1 : FM_nodeid + 1, sizeof step + bytes, HANDLE_HALO);
    FM_send_piece(stream, &step, sizeof step);
    FM_send_piece(stream, row, bytes);
    FM_end_message(stream);
}

/* What lies beyond the edge of the picture has the temperature of the edge: no heat passes there. */
static const double *neighbour_row(int side, uint64_t step, uint64_t row)
{
    bool inside = side == ABOVE ? row > 0 : row + 1 < block.rows;
    if (inside)
        return row_of(step, side == ABOVE ? row - 1 : row + 1);
    return block.has[side] ? block.halo[side][step % 2] : row_of(step, row);
}

/* Computes a row of step + 1. The sum is the same for each cell, so the result does not depend on who computes it. */
static void update_row(uint64_t step, uint64_t row)
{
    const double *above = neighbour_row(ABOVE, step, row), *below = neighbour_row(BELOW, step, row);
    const double *here = row_of(step, row);
    double *restrict next = row_of(step + 1, row);
    for (size_t i = block.row_spans[row]; i < block.row_spans[row + 1]; i++)
        for (uint64_t x = block.spans[i].begin, end = block.spans[i].end; x < end; x++)
            next[x] = 0.25 * ((above[x] + below[x]) + (here[x - 1] + here[x + 1]));
    mirror_ends(next);
}

static void update_inner_rows(uint64_t step)
{
    uint64_t cells = 0;
    for (uint64_t row = 1; row + 1 < block.rows; row++) {
        update_row(step, row);
        cells += block.width;
        if (cells >= CELLS_A_POLL && !(is_here(ABOVE, step) && is_here(BELOW, step))) {
            FM_extract(~0ul); /* a neighbour that sends a long row needs us to take it in */
            cells = 0;
        }
    }
}

/* The first and the last row, in the order in which what they need comes in. */
static void update_outer_rows(uint64_t step, bool last)
{
    bool done[2] = {false, block.rows == 1};
    while (!done[ABOVE] || !done[BELOW]) {
        bool waits = true;
        for (int side = ABOVE; side <= BELOW; side++) {
            if (done[side] || !is_here(side, step) || (block.rows == 1 && !is_here(BELOW, step)))
                continue;
            uint64_t row = side == ABOVE ? 0 : block.rows - 1;
            update_row(step, row);
            if (!last)
                send_row(side, step + 1, row_of(step + 1, row));
            if (!last && block.rows == 1)
                send_row(BELOW, step + 1, row_of(step + 1, row));
            done[side] = true;
            waits = false;
        }
        if (waits)
            wait_for_messages();
    }
}

/* The most that a cell of this rank has changed from step - 1 to step. */
static double largest_change(uint64_t step)
{
    double largest = 0;
    for (uint64_t row = 0; row < block.rows; row++) {
        const double *old = row_of(step - 1, row), *new = row_of(step, row);
        for (uint64_t x = 0; x < block.width; x++) {
            double change = fabs(new[x] - old[x]);
            largest = change > largest ? change : largest;
        }
    }
    return largest;
}

static void send_number(unsigned rank, unsigned long handler, double number)
{
    FM_stream *stream = FM_begin_message(rank, sizeof number, handler);
    FM_send_piece(stream, &number, sizeof number);
    FM_end_message(stream);
}

/* The largest of all ranks: up a tree to rank 0 and down again. No rank begins the next one before its parent has ended
 * this one, so there is nothing to tell them apart by. */
static double largest_of_all(double mine)
{
    while (tree.heard < tree.children)
        wait_for_messages();
    double largest = mine > tree.largest ? mine : tree.largest;
    tree.heard = 0;
    tree.largest = 0;
    if (FM_nodeid > 0) {
        send_number(tree.parent, HANDLE_LARGEST, largest);
        while (!tree.verdict)
            wait_for_messages();
        largest = tree.largest;
        tree.verdict = false;
        tree.largest = 0;
    }
    for (unsigned i = 0; i < tree.children; i++)
        send_number(tree.child[i], HANDLE_VERDICT, largest);
    return largest;
}

void block_iterate(uint64_t iterations, double epsilon, struct outcome *outcome)
{
    uint64_t step = 0;
    bool at_rest = false;
    largest_of_all(0); /* all begin together: who got its rows early does not count as waiting */
    block.waited = 0;
    double begin = now_seconds();
    *outcome = (struct outcome){.free_cells = block.free_cells};
    if (iterations > 0)
        for (int side = ABOVE; side <= BELOW; side++)
            send_row(side, 0, row_of(0, side == ABOVE ? 0 : block.rows - 1));
    while (step < iterations && !at_rest) {
        update_inner_rows(step);
        update_outer_rows(step, step + 1 == iterations);
        step++;
        if (step % CHECK_EVERY == 0 || step == iterations) {
            outcome->residual = largest_of_all(largest_change(step));
            at_rest = outcome->residual <= epsilon;
        }
        show_progress("iteration", step, iterations);
    }
    outcome->iterations = step;
    outcome->seconds = now_seconds() - begin;
    outcome->waiting = block.waited;
    block.last_step = step;
}

const double *block_row(uint64_t row)
{
    return row_of(block.last_step, row - block.first);
}
