/* SPDX-License-Identifier: BSD-3-Clause
 *
 * heat_rows.c - the heat example from file to file: rank 0 reads the picture and hands out its rows, all ranks iterate,
 * and rank 0 asks one after another for what became of their rows. Each rank makes the bytes of its rows itself. */
#include "heat.h"

#include <runnel/fm.h>

enum { HANDLE_PLAN = 1, HANDLE_ROW, HANDLE_OUTCOME, HANDLE_TURN, HANDLE_RESULT };

static struct shape shape;
static bool planned, my_turn, held[MOST_GREY + 1];
static uint16_t *greys;     /* a row of the input */
static unsigned char *line; /* a row of the outputs: grey, then colour */
static struct output *grey_output, *colour_output;
static uint64_t rows_written;
static unsigned outcomes;
static struct outcome all; /* rank 0: sums over the ranks */

static void send_message(unsigned rank, unsigned long handler, const void *bytes, size_t size)
{
    FM_stream *stream = FM_begin_message(rank, size, handler);
    FM_send_piece(stream, bytes, size);
    FM_end_message(stream);
}

static int on_plan(FM_stream *stream, unsigned sender)
{
    (void)sender;
    FM_receive(&shape, stream, sizeof shape);
    planned = true;
    return FM_CONTINUE;
}

static int on_row(FM_stream *stream, unsigned sender)
{
    (void)sender;
    FM_receive(greys, stream, shape.width * sizeof *greys);
    block_put(greys);
    return FM_CONTINUE;
}

static size_t line_bytes(void)
{
    return (wish.output != NULL ? grey_row_bytes(&shape) : 0) + (wish.colour != NULL ? colour_row_bytes(&shape) : 0);
}

static void encode_line(uint64_t row)
{
    unsigned char *colour = line;
    if (wish.output != NULL) {
        encode_grey(block_row(row), &shape, line);
        colour += grey_row_bytes(&shape);
    }
    if (wish.colour != NULL)
        encode_colour(block_row(row), &shape, colour);
}

static void write_line(void)
{
    const unsigned char *colour = line;
    if (grey_output != NULL) {
        output_write(grey_output, line, grey_row_bytes(&shape));
        colour += grey_row_bytes(&shape);
    }
    if (colour_output != NULL)
        output_write(colour_output, colour, colour_row_bytes(&shape));
    show_progress("writing", ++rows_written, shape.height);
}

static int on_result(FM_stream *stream, unsigned sender)
{
    (void)sender;
    FM_receive(line, stream, line_bytes());
    write_line();
    return FM_CONTINUE;
}

static int on_turn(FM_stream *stream, unsigned sender)
{
    (void)stream;
    (void)sender;
    my_turn = true;
    return FM_CONTINUE;
}

static int on_outcome(FM_stream *stream, unsigned sender)
{
    struct outcome one;
    (void)sender;
    FM_receive(&one, stream, sizeof one);
    all.free_cells += one.free_cells;
    all.waiting += one.waiting;
    outcomes++;
    return FM_CONTINUE;
}

/* Rank 0: sends each rank the shape, and its rows as they are read. */
static void hand_out(struct picture *picture)
{
    for (unsigned r = 0; r < block_owners(&shape); r++)
        for (uint64_t row = block_first_row(&shape, r); row < block_first_row(&shape, r + 1); row++) {
            picture_read_row(picture, greys);
            if (r == 0)
                block_put(greys);
            else
                send_message(r, HANDLE_ROW, greys, shape.width * sizeof *greys);
            show_progress("reading", row, shape.height);
        }
    picture_close(picture);
}

static void begin_output(struct output *output, char kind)
{
    char header[64];
    output_write(output, header, picture_header(header, sizeof header, kind, &shape));
}

/* Rank 0: asks one rank after another for its rows, so that they come in order and none has to be kept. */
static void gather(void)
{
    if (grey_output != NULL)
        begin_output(grey_output, '5');
    if (colour_output != NULL)
        begin_output(colour_output, '6');
    for (uint64_t row = 0; row < block_first_row(&shape, 1); row++) {
        encode_line(row);
        write_line();
    }
    for (unsigned r = 1; r < block_owners(&shape); r++) {
        send_message(r, HANDLE_TURN, NULL, 0);
        while (rows_written < block_first_row(&shape, r + 1))
            FM_wait(-1);
    }
    outputs_publish();
}

static void answer(const struct outcome *mine)
{
    unsigned me = (unsigned)FM_nodeid;
    send_message(0, HANDLE_OUTCOME, mine, sizeof *mine);
    while (!my_turn)
        FM_wait(-1);
    for (uint64_t row = block_first_row(&shape, me); row < block_first_row(&shape, me + 1); row++) {
        encode_line(row);
        send_message(0, HANDLE_RESULT, line, line_bytes());
    }
}

static void report(const struct outcome *mine)
{
    double seconds = mine->seconds > 0 ? mine->seconds : 1e-9;
    clear_progress();
    printf("heat: %llu x %llu cells, %lu %s, %llu iterations, residual %.3g\n", (unsigned long long)shape.width,
           (unsigned long long)shape.height, FM_numnodes, FM_numnodes == 1 ? "rank" : "ranks",
           (unsigned long long)mine->iterations, mine->residual);
    printf("heat: %.3f s, %.1f million cell updates a second, %.1f %% of the time waiting\n", mine->seconds,
           (double)(all.free_cells + mine->free_cells) * (double)mine->iterations / seconds / 1e6,
           (all.waiting + mine->waiting) / seconds / block_owners(&shape) * 100);
    if (mine->residual > wish.epsilon)
        printf(
            "heat: not converged: in the last iteration a cell still changed by %.3g greys, more than %g. Allow more "
            "with -n, or a larger change with -e\n",
            mine->residual, wish.epsilon);
}

static void create_block(void)
{
    read_keep(wish.keep, shape.maxval, held);
    greys = allocate(shape.width, sizeof *greys);
    line = allocate(1, line_bytes());
    block_create(&shape, held);
    FM_register_handler(HANDLE_ROW, on_row);
    FM_register_handler(HANDLE_TURN, on_turn);
    FM_register_handler(HANDLE_RESULT, on_result);
    FM_register_handler(HANDLE_OUTCOME, on_outcome);
}

/* Rank 0: everything that can be wrong before there are rows is found before the other ranks hear of the picture. */
static void begin(struct picture *picture)
{
    picture_open(picture, wish.input);
    shape = picture->shape;
    grey_output = wish.output != NULL ? output_create(wish.output) : NULL;
    colour_output = wish.colour != NULL ? output_create(wish.colour) : NULL;
    create_block();
    for (unsigned r = 1; r < FM_numnodes; r++)
        send_message(r, HANDLE_PLAN, &shape, sizeof shape);
    hand_out(picture);
}

/* The other ranks; false if there are more ranks than rows. */
static bool follow(void)
{
    FM_register_handler(HANDLE_PLAN, on_plan);
    while (!planned)
        FM_wait(-1);
    if (FM_nodeid >= block_owners(&shape))
        return false;
    create_block();
    while (!block_is_full())
        FM_wait(-1);
    return true;
}

void spread_heat(void)
{
    struct picture picture;
    struct outcome outcome;
    if (FM_nodeid == 0)
        begin(&picture);
    else if (!follow())
        return;
    block_iterate(wish.iterations, wish.epsilon, &outcome);
    if (FM_nodeid != 0) {
        answer(&outcome);
        return;
    }
    while (outcomes + 1 < block_owners(&shape))
        FM_wait(-1);
    gather();
    report(&outcome);
}
