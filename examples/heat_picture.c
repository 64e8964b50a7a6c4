/* SPDX-License-Identifier: BSD-3-Clause
 *
 * heat_picture.c - pictures of the heat example, a row at a time: PGM files come in (P2 and P5, one or two bytes a
 * cell), grey and colour rows go out, and one picture is drawn. What is wrong with a file is said with its place. */
#include "heat.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { MOST_SIDE = 1 << 30, COLOURS = 9, DISCS = 8 };
static const uint64_t most_cells = 1ull << 40;

/* --- input --- */

static _Noreturn void die_reading(const struct picture *p)
{
    if (ferror(p->file))
        die("cannot read %s: %s. Name a PGM picture, or draw one with --make", p->path, strerror(errno));
    if (p->shape.height == 0)
        die("%s ends within its header: make the picture again, or draw one with --make", p->path);
    die("%s is truncated: it ends in row %llu of %llu. Copy or make the picture again", p->path,
        (unsigned long long)p->rows_read + 1, (unsigned long long)p->shape.height);
}

static int next_byte(struct picture *p)
{
    int c = getc_unlocked(p->file);
    if (c == '#') /* a comment counts as the end of its line */
        while (c != '\n' && c != EOF)
            c = getc_unlocked(p->file);
    return c;
}

/* A number, what stands before it, and the one blank after it. */
static uint64_t read_number(struct picture *p, const char *what, uint64_t most)
{
    uint64_t number = 0;
    int c = next_byte(p);
    while (c != EOF && isspace(c))
        c = next_byte(p);
    if (c == EOF)
        die_reading(p);
    if (!isdigit(c))
        die("%s is no PGM picture: where %s should be, it has byte %d. Convert or make the picture again", p->path,
            what, c);
    for (; c != EOF && isdigit(c); c = next_byte(p)) {
        number = number * 10 + (uint64_t)(c - '0');
        if (number > most)
            die("%s is not usable: %s is more than %llu. Scale the picture, or make it again", p->path, what,
                (unsigned long long)most);
    }
    if (c != EOF && !isspace(c))
        die("%s is no PGM picture: byte %d follows %s. Convert or make the picture again", p->path, c, what);
    return number;
}

static void check_magic(struct picture *p)
{
    char magic[2];
    if (fread(magic, 1, 2, p->file) != 2 && ferror(p->file))
        die_reading(p);
    if (memcmp(magic, "P3", 2) == 0 || memcmp(magic, "P6", 2) == 0)
        die("%s is a picture in colour (PPM): make it grey, for example with ppmtopgm(1)", p->path);
    if (memcmp(magic, "P1", 2) == 0 || memcmp(magic, "P4", 2) == 0)
        die("%s is a bitmap (PBM): make it grey, for example with pbmtopgm(1)", p->path);
    if (memcmp(magic, "P2", 2) != 0 && memcmp(magic, "P5", 2) != 0)
        die("%s is no PGM picture, which begins with P2 or P5: convert it, or draw one with --make", p->path);
    p->plain = magic[1] == '2';
}

/* Before anybody makes room for what will never come. */
static void check_size(const struct picture *p)
{
    const struct shape *s = &p->shape;
    struct stat status;
    uint64_t cells = s->width * s->height; /* sides are below 2^31 */
    if (cells > most_cells)
        die("%s is not usable: %llu x %llu cells are more than %llu. Scale the picture, or make it again", p->path,
            (unsigned long long)s->width, (unsigned long long)s->height, (unsigned long long)most_cells);
    if (fstat(fileno(p->file), &status) != 0 || !S_ISREG(status.st_mode))
        return;
    uint64_t needed = p->plain ? 2 * cells - 1 : cells * (s->maxval > 255 ? 2 : 1);
    off_t here = ftello(p->file);
    uint64_t have = here >= 0 && here < status.st_size ? (uint64_t)(status.st_size - here) : 0;
    if (have < needed)
        die("%s is truncated: %llu x %llu cells need %llu bytes, and it has %llu. Copy or make the picture again",
            p->path, (unsigned long long)s->width, (unsigned long long)s->height, (unsigned long long)needed,
            (unsigned long long)have);
}

void picture_open(struct picture *p, const char *path)
{
    bool standard = strcmp(path, "-") == 0;
    *p = (struct picture){.path = standard ? "standard input" : path, .file = standard ? stdin : fopen(path, "rb")};
    if (!p->file)
        die("cannot read %s: %s. Name a PGM picture, or draw one with --make", path, strerror(errno));
    check_magic(p);
    uint64_t width = read_number(p, "the width", MOST_SIDE), height = read_number(p, "the height", MOST_SIDE);
    if (width == 0 || height == 0)
        die("%s has no cells (%llu x %llu): make the picture again", p->path, (unsigned long long)width,
            (unsigned long long)height);
    unsigned maxval = (unsigned)read_number(p, "the largest grey", MOST_GREY);
    if (maxval == 0)
        die("%s is not usable: its largest grey is 0. Make the picture again", p->path);
    p->shape = (struct shape){width, height, maxval};
    check_size(p);
}

void picture_read_row(struct picture *p, uint16_t *greys)
{
    const struct shape *s = &p->shape;
    if (p->plain) {
        for (uint64_t x = 0; x < s->width; x++)
            greys[x] = (uint16_t)read_number(p, "a grey", s->maxval);
    } else if (s->maxval <= 255) {
        unsigned char *bytes = (unsigned char *)greys + s->width; /* each is read before its place is written */
        if (fread(bytes, 1, s->width, p->file) != s->width)
            die_reading(p);
        for (uint64_t x = 0; x < s->width; x++)
            greys[x] = bytes[x];
    } else {
        if (fread(greys, 2, s->width, p->file) != s->width)
            die_reading(p);
        for (uint64_t x = 0; x < s->width; x++)
            greys[x] = (uint16_t)(((unsigned char *)&greys[x])[0] << 8 | ((unsigned char *)&greys[x])[1]);
    }
    for (uint64_t x = 0; x < s->width; x++)
        if (greys[x] > s->maxval)
            die("%s is not usable: in row %llu a grey is %u, more than its largest, %u. Make the picture again",
                p->path, (unsigned long long)p->rows_read + 1, greys[x], s->maxval);
    p->rows_read++;
}

void picture_close(struct picture *p)
{
    if (p->file != stdin)
        fclose(p->file);
}

/* --- output --- */

size_t picture_header(char *text, size_t room, char kind, const struct shape *s)
{
    return (size_t)snprintf(text, room, "P%c\n%llu %llu\n%u\n", kind, (unsigned long long)s->width,
                            (unsigned long long)s->height, kind == '6' ? 255 : s->maxval);
}

size_t grey_row_bytes(const struct shape *s)
{
    return s->width * (s->maxval > 255 ? 2 : 1);
}

size_t colour_row_bytes(const struct shape *s)
{
    return s->width * 3;
}

void encode_grey(const double *row, const struct shape *s, unsigned char *bytes)
{
    for (uint64_t x = 0; x < s->width; x++) {
        unsigned grey = (unsigned)(row[x] + 0.5);
        if (s->maxval > 255)
            *bytes++ = (unsigned char)(grey >> 8);
        *bytes++ = (unsigned char)grey;
    }
}

/* From black through violet and orange to a pale yellow: darker is colder in a grey print, too. */
void encode_colour(const double *row, const struct shape *s, unsigned char *bytes)
{
    static const double colours[COLOURS][3] = {{0, 0, 4},      {31, 12, 72},   {85, 15, 109},
                                               {136, 34, 106}, {186, 54, 85},  {227, 89, 51},
                                               {249, 140, 10}, {249, 201, 50}, {252, 255, 164}};
    for (uint64_t x = 0; x < s->width; x++) {
        double place = row[x] / s->maxval * (COLOURS - 1);
        int low = place < COLOURS - 2 ? (int)place : COLOURS - 2;
        for (int c = 0; c < 3; c++)
            *bytes++ = (unsigned char)(colours[low][c] + (place - low) * (colours[low + 1][c] - colours[low][c]) + 0.5);
    }
}

/* --- drawing --- */

/* Two spirals, one hot and one cold, wound into each other; around them suns and stars. The unit is half the shorter
 * side, the origin is the middle. */
static int temperature_at(double u, double v)
{
    static const struct {
        double u, v, radius;
        int temperature;
    } discs[DISCS] = {{-1.22, -0.70, 0.13, 1}, {1.22, 0.70, 0.13, -1}, {-1.28, 0.66, 0.09, -1},
                      {1.28, -0.66, 0.09, 1},  {-1.30, 0.00, 0.06, 1}, {1.30, 0.00, 0.06, -1},
                      {-0.86, 0.86, 0.05, 1},  {0.86, -0.86, 0.05, -1}};
    const double pi = 3.14159265358979323846, pitch = 0.36, thickness = 0.11;
    for (int i = 0; i < DISCS; i++) {
        double du = u - discs[i].u, dv = v - discs[i].v;
        if (du * du + dv * dv < discs[i].radius * discs[i].radius)
            return discs[i].temperature;
    }
    double radius = sqrt(u * u + v * v), turn = radius / pitch - atan2(v, u) / (2 * pi);
    turn -= floor(turn);
    if (radius < 0.1 || radius > 0.86)
        return 0;
    return turn < thickness || turn > 1 - thickness ? 1 : fabs(turn - 0.5) < thickness ? -1 : 0;
}

void draw_row(uint64_t row, const struct shape *s, unsigned char *greys)
{
    double unit = (double)(s->width < s->height ? s->width : s->height) / 2;
    double v = ((double)row + 0.5 - (double)s->height / 2) / unit;
    for (uint64_t x = 0; x < s->width; x++) {
        int t = temperature_at(((double)x + 0.5 - (double)s->width / 2) / unit, v);
        greys[x] = t > 0 ? 255 : t < 0 ? 0 : 128;
    }
}
