/* SPDX-License-Identifier: BSD-3-Clause
 *
 * sort_exchange.c - the sort example's use of Fast Messages 2.x: small notes, the agreement on splitters, and the
 * exchange of lines, whose handler scatters each message straight to where its lines stay. */
#include "sort.h"

#include <runnel/fm.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum {
    HANDLE_NOTE = 1,
    HANDLE_LINES,
    HANDLE_OUTPUT,
    BLOCK_BYTES = 64 << 10, /* lines of one message; a longer line has a message of its own */
    AREA_BYTES = 64 << 20,  /* the receive area grows by this much, of which only what is used takes memory */
    PIECES = 128,           /* a large share is looked at in this many places for samples... */
    PIECE_BYTES = 8 << 10,  /* ... of this size */
    SAMPLES = 2048,         /* aim, per rank */
    SAMPLE_TEXT = 1 << 20,  /* bytes of samples that are always allowed */
    LINE_COST = 64,         /* what a line costs besides its bytes, in bytes: memory and time for its record */
};

static unsigned ranks;

/* --- notes --- */

struct note_header {
    uint64_t note, head_bytes, body_bytes;
};
static struct heard *inbox; /* [note * ranks + sender] */

static int on_note(FM_stream *stream, unsigned sender)
{
    struct note_header header;
    FM_receive(&header, stream, sizeof header);
    size_t bytes = header.head_bytes + header.body_bytes;
    unsigned char *place = allocate(bytes + SORT_SLACK);
    FM_receive(place, stream, bytes); /* comes back when all of it is here; other messages are handled meanwhile */
    memset(place + bytes, 0, SORT_SLACK);
    inbox[header.note * ranks + sender] =
        (struct heard){place, place + header.head_bytes, header.head_bytes, header.body_bytes};
    return FM_CONTINUE;
}

void tell(unsigned rank, enum note note, const void *head, size_t head_bytes, const void *body, size_t body_bytes)
{
    struct note_header header = {note, head_bytes, body_bytes};
    FM_stream *stream = FM_begin_message(rank, sizeof header + head_bytes + body_bytes, HANDLE_NOTE);
    FM_send_piece(stream, &header, sizeof header);
    if (head_bytes > 0)
        FM_send_piece(stream, head, head_bytes);
    if (body_bytes > 0)
        FM_send_piece(stream, body, body_bytes);
    FM_end_message(stream);
}

struct heard hear(enum note note, unsigned rank)
{
    struct heard *slot = &inbox[note * ranks + rank];
    while (!slot->head)
        FM_wait(-1);
    struct heard heard = *slot;
    slot->head = NULL;
    return heard;
}

/* --- output of ranks of other hosts --- */

struct output_header {
    uint64_t offset, bytes;
};

static int on_output(FM_stream *stream, unsigned sender)
{
    struct output_header header;
    (void)sender;
    FM_receive(&header, stream, sizeof header);
    unsigned char *place = allocate(header.bytes); /* of this message: those of other ranks come meanwhile */
    FM_receive(place, stream, header.bytes);
    output_write(place, header.bytes, header.offset);
    free(place);
    return FM_CONTINUE;
}

void pass_to_writer(const void *bytes, size_t size, uint64_t offset)
{
    for (const unsigned char *p = bytes; size > 0;) {
        struct output_header header = {offset, size < BLOCK_BYTES ? size : BLOCK_BYTES};
        FM_stream *stream = FM_begin_message(0, sizeof header + header.bytes, HANDLE_OUTPUT);
        FM_send_piece(stream, &header, sizeof header);
        FM_send_piece(stream, p, header.bytes);
        FM_end_message(stream);
        p += header.bytes;
        offset += header.bytes;
        size -= header.bytes;
    }
}

/* --- samples and splitters --- */

struct sample {
    uint64_t position, weight; /* weight: the cost of the lines it stands for */
    size_t line, size;         /* text[line .. line + size) */
};
struct samples {
    struct sample *at;
    unsigned char *text;
    size_t n, capacity, text_bytes, text_capacity, text_limit;
    uint64_t step;
};

static void *grow(void *p, size_t *capacity, size_t needed, size_t bytes_each)
{
    if (needed <= *capacity)
        return p;
    *capacity += needed;
    p = realloc(p, *capacity * bytes_each);
    if (!p)
        die("out of memory: sort with more ranks where there is more memory, or a smaller input");
    return p;
}

static void add_sample(struct samples *s, const unsigned char *line, size_t size, uint64_t position, uint64_t weight)
{
    s->at = grow(s->at, &s->capacity, s->n + 1, sizeof *s->at);
    s->text = grow(s->text, &s->text_capacity, s->text_bytes + size, 1);
    s->at[s->n++] = (struct sample){position, weight, s->text_bytes, size};
    memcpy(s->text + s->text_bytes, line, size);
    s->text_bytes += size;
}

/* Keeps every second sample, and takes half as many from now on. */
static void thin_out(struct samples *s)
{
    struct samples all = *s;
    s->n = s->text_bytes = 0;
    s->step *= 2;
    for (size_t i = 0; i < all.n; i += 2) {
        struct sample *a = &all.at[i], kept = *a;
        kept.weight += i + 1 < all.n ? a[1].weight : 0;
        kept.line = s->text_bytes;
        memmove(s->text + kept.line, s->text + a->line, a->size);
        s->text_bytes += kept.size;
        s->at[s->n++] = kept;
    }
}

/* Takes a line each time the lines since the last one have cost a step. */
static void sample_piece(const struct input *input, uint64_t begin, uint64_t end, struct samples *s)
{
    struct reader reader;
    struct lines lines;
    uint64_t cost = 0;
    reader_open(&reader, input, begin, end);
    while (reader_next(&reader, &lines)) {
        const unsigned char *after = lines.bytes + lines.size, *next;
        for (const unsigned char *line = lines.bytes; line < after; line = next) {
            next = (const unsigned char *)memchr(line, '\n', (size_t)(after - line)) + 1;
            cost += (size_t)(next - line) + LINE_COST;
            if (cost < s->step)
                continue;
            add_sample(s, line, (size_t)(next - line), lines.position + (uint64_t)(line - lines.bytes), cost);
            cost = 0;
            while (s->n > 1 && (s->text_bytes > s->text_limit || s->n > 2 * SAMPLES))
                thin_out(s);
        }
    }
    reader_close(&reader);
}

static void sample_share(const struct input *input, uint64_t begin, uint64_t end, struct samples *s)
{
    uint64_t share = end - begin, looked_at = PIECES * PIECE_BYTES;
    *s = (struct samples){.text_limit = share / 16 + SAMPLE_TEXT};
    if (looked_at < share) {
        s->step = looked_at / SAMPLES;
        for (uint64_t i = 0; i < PIECES; i++) {
            uint64_t at = begin + (share - PIECE_BYTES) / (PIECES - 1) * i;
            sample_piece(input, at, at + PIECE_BYTES, s);
        }
    }
    if (s->n < SAMPLES / 4) { /* a small share, or long lines that the pieces miss: look at all of it */
        looked_at = share;
        s->n = s->text_bytes = 0;
        s->step = share / SAMPLES + 1;
        sample_piece(input, begin, end, s);
    }
    for (size_t i = 0; i < s->n; i++)
        s->at[i].weight = (uint64_t)((double)s->at[i].weight * (double)share / (double)looked_at) + 1;
}

struct candidate {
    struct splitter line;
    const struct sample *sample;
};

static int compare_candidates(const void *a, const void *b)
{
    const struct splitter *x = &((const struct candidate *)a)->line, *y = &((const struct candidate *)b)->line;
    int order = x->key != y->key ? (x->key < y->key ? -1 : 1) : sort_compare(x->line, y->line);
    return order != 0 ? order : x->position < y->position ? -1 : x->position > y->position;
}

/* Rank 0: cuts the samples of all ranks, in order, into parts of equal weight. */
static void choose_splitters(struct samples *chosen)
{
    struct heard *heard = allocate(ranks * sizeof *heard);
    struct candidate *all = NULL;
    size_t n = 0, capacity = 0;
    double total = 0, sum = 0;
    for (unsigned r = 0; r < ranks; r++) {
        heard[r] = hear(NOTE_SAMPLES, r);
        const struct sample *samples = heard[r].head;
        for (size_t i = 0; i < heard[r].head_bytes / sizeof *samples; i++) {
            const unsigned char *line = heard[r].body + samples[i].line;
            all = grow(all, &capacity, n + 1, sizeof *all);
            all[n++] = (struct candidate){{sort_key(line), samples[i].position, line}, &samples[i]};
            total += (double)samples[i].weight;
        }
    }
    if (n > 0)
        qsort(all, n, sizeof *all, compare_candidates);
    for (size_t i = 0; i < n; i++) {
        const struct sample *s = all[i].sample;
        while (chosen->n + 1 < ranks && sum >= total / ranks * (double)(chosen->n + 1))
            add_sample(chosen, all[i].line.line, s->size, s->position, 0);
        sum += (double)s->weight;
    }
    for (unsigned r = 0; r < ranks; r++)
        free(heard[r].head);
    free(heard);
    free(all);
}

void agree_on_splitters(const struct input *input, uint64_t begin, uint64_t end, struct splitters *splitters)
{
    struct samples samples, chosen = {0};
    sample_share(input, begin, end, &samples);
    tell(0, NOTE_SAMPLES, samples.at, samples.n * sizeof *samples.at, samples.text, samples.text_bytes);
    free(samples.at);
    free(samples.text);
    if (FM_nodeid == 0) {
        choose_splitters(&chosen);
        for (unsigned r = 0; r < ranks; r++)
            tell(r, NOTE_SPLITTERS, chosen.at, chosen.n * sizeof *chosen.at, chosen.text, chosen.text_bytes);
        free(chosen.at);
        free(chosen.text);
    }
    struct heard heard = hear(NOTE_SPLITTERS, 0);
    const struct sample *at = heard.head;
    splitters->memory = heard.head;
    splitters->n = heard.head_bytes / sizeof *at;
    splitters->at = allocate(splitters->n * sizeof *splitters->at);
    for (size_t i = 0; i < splitters->n; i++) {
        const unsigned char *line = heard.body + at[i].line;
        splitters->at[i] = (struct splitter){sort_key(line), at[i].position, line};
    }
}

/* The number of splitters that are not after this line. */
static unsigned find_rank(const struct splitters *s, const unsigned char *line, uint64_t position)
{
    uint64_t key = sort_key(line);
    size_t low = 0, high = s->n;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (s->at[middle].key < key)
            low = middle + 1;
        else
            high = middle;
    }
    for (; low < s->n && s->at[low].key == key; low++) {
        int order = sort_compare(s->at[low].line, line);
        if (order > 0 || (order == 0 && s->at[low].position > position))
            break;
    }
    return (unsigned)low;
}

/* --- the exchange --- */

struct lines_header {
    uint64_t bytes, lines;
};
static struct {
    unsigned char *free;
    size_t left, capacity; /* capacity: of received.records */
    struct received received;
} area;

/* The place where the lines of a message stay until they are written to the output. */
static unsigned char *take_area(size_t bytes)
{
    if (bytes + SORT_SLACK > area.left) {
        area.left = bytes + SORT_SLACK > AREA_BYTES ? bytes + SORT_SLACK : AREA_BYTES;
        area.free = mmap(NULL, area.left, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (area.free == MAP_FAILED)
            die("no memory for %zu more bytes: sort with more ranks where there is more memory, or a smaller input",
                bytes);
        madvise(area.free, area.left, MADV_HUGEPAGE); /* a wish: fewer page faults */
    }
    unsigned char *place = area.free;
    area.free += bytes;
    area.left -= bytes;
    return place;
}

static int on_lines(FM_stream *stream, unsigned sender)
{
    struct lines_header header;
    (void)sender;
    FM_receive(&header, stream, sizeof header);
    unsigned char *line = take_area(header.bytes), *after = line + header.bytes;
    FM_receive(line, stream, header.bytes); /* from the packets straight to where the lines stay */

    /* They are in the cache now, so make their records now. */
    struct received *r = &area.received;
    r->records = grow(r->records, &area.capacity, r->n + header.lines, sizeof *r->records);
    r->bytes += header.bytes;
    for (; line < after; line = (unsigned char *)memchr(line, '\n', (size_t)(after - line)) + 1)
        r->records[r->n++] = (struct sort_record){sort_key(line), line};
    return FM_CONTINUE;
}

struct outbox {
    struct lines_header header;
    unsigned char *bytes; /* room for BLOCK_BYTES */
};

static void send_lines(unsigned rank, const struct lines_header *header, const unsigned char *bytes)
{
    FM_stream *stream = FM_begin_message(rank, sizeof *header + header->bytes, HANDLE_LINES);
    FM_send_piece(stream, header, sizeof *header);
    FM_send_piece(stream, bytes, header->bytes);
    FM_end_message(stream);
}

static void flush(unsigned rank, struct outbox *box)
{
    if (box->header.bytes > 0)
        send_lines(rank, &box->header, box->bytes);
    box->header = (struct lines_header){0, 0};
}

static void post_line(unsigned rank, struct outbox *box, const unsigned char *line, size_t size)
{
    if (box->header.bytes + size > BLOCK_BYTES)
        flush(rank, box);
    if (size > BLOCK_BYTES) {
        send_lines(rank, &(struct lines_header){size, 1}, line);
        return;
    }
    memcpy(box->bytes + box->header.bytes, line, size);
    box->header.bytes += size;
    box->header.lines++;
}

void exchange_lines(const struct input *input, uint64_t begin, uint64_t end, const struct splitters *splitters,
                    struct received *received)
{
    struct outbox *boxes = allocate(ranks * sizeof *boxes);
    for (unsigned r = 0; r < ranks; r++)
        boxes[r] = (struct outbox){.bytes = allocate(BLOCK_BYTES)};

    struct reader reader;
    struct lines lines;
    reader_open(&reader, input, begin, end);
    while (reader_next(&reader, &lines)) {
        const unsigned char *after = lines.bytes + lines.size, *next;
        for (const unsigned char *line = lines.bytes; line < after; line = next) {
            next = (const unsigned char *)memchr(line, '\n', (size_t)(after - line)) + 1;
            unsigned rank = find_rank(splitters, line, lines.position + (uint64_t)(line - lines.bytes));
            post_line(rank, &boxes[rank], line, (size_t)(next - line));
        }
        FM_extract(~0ul); /* take in what the others have sent meanwhile */
        show_progress("exchanging", lines.position + lines.size - begin, end - begin);
    }
    reader_close(&reader);

    /* Messages from one rank are handled in the order they were sent: when its last note is here, so are all its lines.
     */
    for (unsigned r = 0; r < ranks; r++) {
        flush(r, &boxes[r]);
        free(boxes[r].bytes);
        tell(r, NOTE_SENT, NULL, 0, NULL, 0);
    }
    free(boxes);
    for (unsigned r = 0; r < ranks; r++)
        free(hear(NOTE_SENT, r).head);
    *received = area.received;
}

void exchange_start(void)
{
    ranks = (unsigned)FM_numnodes;
    inbox = allocate(N_NOTES * ranks * sizeof *inbox);
    memset(inbox, 0, N_NOTES * ranks * sizeof *inbox);
    FM_register_handler(HANDLE_NOTE, on_note);
    FM_register_handler(HANDLE_LINES, on_lines);
    FM_register_handler(HANDLE_OUTPUT, on_output);
}
