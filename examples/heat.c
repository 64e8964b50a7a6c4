/* SPDX-License-Identifier: BSD-3-Clause
 *
 * heat - how heat spreads over a picture, computed by all ranks of a job.
 *
 *     heat --make 960x640 start.pgm
 *     runnel run -n 4 heat start.pgm -o end.pgm --colour end.ppm
 *
 * Grey is temperature. In each iteration a cell becomes the mean of its four neighbours (Jacobi's way to solve the heat
 * equation); black and white cells keep what they have, and no heat leaves at the edges. The rows are cut into a block
 * for each rank. Rank 0 alone reads and writes files, a row at a time, so no rank holds more than its own rows. The
 * result is the same to the bit for any number of ranks. */
#include "heat.h"

#include <ctype.h>
#include <getopt.h>
#include <math.h>
#include <runnel/fm.h>
#include <runnel/runnel.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { MOST_DRAWN = 65536 };

static const char usage[] =
    "usage: runnel run -n RANKS heat INPUT.pgm -o OUTPUT.pgm [--colour OUTPUT.ppm] [OPTION...]\n"
    "       heat --make WIDTHxHEIGHT FILE.pgm\n"
    "Lets heat spread over a picture. INPUT is a PGM file (P2 or P5), or - for standard input; grey is temperature.\n"
    "  -o, --output=FILE    what became of it, with the greys of the input; replaced when all is done\n"
    "  -c, --colour=FILE    the same in colour, as a PPM file\n"
    "  -n, --iterations=N   at most N iterations (default 10000)\n"
    "  -e, --epsilon=E      end when no cell changes by more than E greys in an iteration (default 0.001)\n"
    "  -k, --keep=LIST      greys that keep their temperature: numbers, black and white, with commas between; or none\n"
    "                       (default black,white)\n"
    "  -m, --make=WxH       draw a picture to begin with, of W times H cells\n"
    "  -h, --help           shows this\n";

static const char letters[] = ":o:c:n:e:k:m:h";
struct wish wish = {.keep = "black,white", .iterations = 10000, .epsilon = 0.001};

/* --- telling the user --- */

static bool progress_shown;

void clear_progress(void)
{
    if (progress_shown)
        fprintf(stderr, "\r%*s\r", 40, "");
    progress_shown = false;
}

void show_progress(const char *phase, uint64_t done, uint64_t total)
{
    static int wanted = -1, last_percent;
    static const char *last_phase;
    if (wanted < 0) {
        const char *terminal = getenv("RUNNEL_TERMINAL"); /* set by the launcher, through which our output goes */
        wanted = FM_nodeid == 0 && (isatty(STDERR_FILENO) || (terminal != NULL && strcmp(terminal, "1") == 0));
    }
    int percent = total > 0 ? (int)((double)done / (double)total * 100) : 0;
    if (!wanted || (phase == last_phase && percent == last_percent))
        return;
    last_phase = phase;
    last_percent = percent;
    fprintf(stderr, "\rheat: %-10s %3d %%", phase, percent);
    fflush(stderr);
    progress_shown = true;
}

void die(const char *format, ...)
{
    char sentence[6000]; /* a path may be long */
    va_list arguments;
    clear_progress();
    va_start(arguments, format);
    vsnprintf(sentence, sizeof sentence, format, arguments);
    va_end(arguments);
    fprintf(stderr, "heat: %s\n", sentence); /* at once: another rank may be ending the job */
    exit(1);
}

void *allocate(uint64_t things, uint64_t bytes_each)
{
    uint64_t bytes;
    void *p = NULL;
    if (!__builtin_mul_overflow(things, bytes_each, &bytes) && bytes <= SIZE_MAX)
        p = malloc(bytes > 0 ? bytes : 1);
    if (!p)
        die("no memory for %llu times %llu bytes: use more ranks where there is more memory, or a smaller picture",
            (unsigned long long)things, (unsigned long long)bytes_each);
    return p;
}

double now_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* What Fast Messages cannot return. A rank that gives up has said why, and one that is killed is told of by the
 * launcher. */
static void on_fm_error(int status, unsigned long peer, const char *sentence)
{
    (void)peer;
    clear_progress();
    if (status != RNL_ERR_PEER_DEAD)
        fprintf(stderr, "heat: %s\n", sentence);
    exit(70);
}

/* --- what the user wishes --- */

static bool read_count(const char **text, uint64_t *count)
{
    const char *p = *text;
    *count = 0;
    for (; isdigit((unsigned char)*p); p++)
        if (__builtin_mul_overflow(*count, 10, count) || __builtin_add_overflow(*count, (uint64_t)(*p - '0'), count))
            return false;
    bool found = p > *text;
    *text = p;
    return found;
}

static struct shape drawn; /* with --make */

static bool read_size(const char *text)
{
    bool read = read_count(&text, &drawn.width) && *text++ == 'x' && read_count(&text, &drawn.height) && *text == '\0';
    drawn.maxval = 255;
    return read && drawn.width > 0 && drawn.height > 0 && drawn.width <= MOST_DRAWN && drawn.height <= MOST_DRAWN;
}

bool read_keep(const char *list, unsigned maxval, bool *held)
{
    memset(held, 0, (MOST_GREY + 1) * sizeof *held);
    if (strcmp(list, "none") == 0)
        return true;
    for (const char *p = list;; p++) {
        unsigned long grey = 0;
        char *end = NULL;
        if (strncmp(p, "black", 5) == 0) {
            p += 5;
        } else if (strncmp(p, "white", 5) == 0) {
            grey = maxval;
            p += 5;
        } else {
            grey = isdigit((unsigned char)*p) ? strtoul(p, &end, 10) : MOST_GREY + 1ul;
            p = end;
        }
        if (grey > MOST_GREY || (*p != ',' && *p != '\0'))
            return false;
        held[grey] = true;
        if (*p == '\0')
            return true;
    }
}

static const char *read_option(int option, const char *text)
{
    static bool held[MOST_GREY + 1];
    char *end;
    switch (option) {
    case 'o':
        wish.output = text;
        return NULL;
    case 'c':
        wish.colour = text;
        return NULL;
    case 'n':
        return read_count(&text, &wish.iterations) && *text == '\0' ? NULL : "-n wants a whole number of iterations";
    case 'e':
        wish.epsilon = strtod(text, &end);
        return end > text && *end == '\0' && isfinite(wish.epsilon) && wish.epsilon >= 0
                   ? NULL
                   : "-e wants a number of greys, such as 0.01";
    case 'k':
        wish.keep = text;
        return read_keep(text, MOST_GREY, held) ? NULL : "--keep wants greys from 0 to 65535, black or white; or none";
    case 'm':
        wish.make = text;
        return read_size(text) ? NULL : "--make wants a size such as 960x640, at most 65536x65536";
    }
    return NULL;
}

/* Of what getopt_long has refused last: the word, or the letter in it. getopt_long says by ':' that there is no value.
 */
static const char *refuse_option(int why, const char *word)
{
    static char sentence[300];
    /* A letter is unknown within a word that is still being read; --help=3 is refused with the letter of --help. */
    bool is_word = why == ':' ? strncmp(word, "--", 2) == 0 : optopt == 0 || strchr(letters, optopt) != NULL;
    const char letter[] = {'-', (char)optopt, '\0'}, *name = is_word ? word : letter;
    if (why == ':')
        snprintf(sentence, sizeof sentence, "the value of %.200s is missing", name);
    else
        snprintf(sentence, sizeof sentence, "there is no such option as %.200s", name);
    return sentence;
}

static const char *check_wishes(int operands)
{
    if (operands == 0 && wish.make != NULL)
        return "no file to draw: name it, as in heat --make 960x640 start.pgm";
    if (operands == 0)
        return "no input: name a PGM picture, or draw one with --make 960x640 start.pgm";
    if (operands > 1)
        return "more than one input: name one picture, and the output with -o OUTPUT.pgm";
    if (!wish.make && !wish.output && !wish.colour)
        return "no output: name it with -o OUTPUT.pgm or --colour OUTPUT.ppm";
    return NULL;
}

/* --- the program --- */

static void make_picture(void)
{
    struct output *output = output_create(wish.input);
    unsigned char *row = allocate(drawn.width, 1);
    char header[64];
    output_write(output, header, picture_header(header, sizeof header, '5', &drawn));
    for (uint64_t y = 0; y < drawn.height; y++) {
        draw_row(y, &drawn, row);
        output_write(output, row, drawn.width);
        show_progress("drawing", y, drawn.height);
    }
    outputs_publish();
    clear_progress();
    free(row);
}

int main(int argc, char **argv)
{
    static const struct option options[] = {{"output", required_argument, NULL, 'o'},
                                            {"colour", required_argument, NULL, 'c'},
                                            {"iterations", required_argument, NULL, 'n'},
                                            {"epsilon", required_argument, NULL, 'e'},
                                            {"keep", required_argument, NULL, 'k'},
                                            {"make", required_argument, NULL, 'm'},
                                            {"help", no_argument, NULL, 'h'},
                                            {0}};
    const char *problem = NULL;
    bool help = false;

    FM_set_parameter(FM_ERROR_HANDLER, on_fm_error);
    FM_initialize();
    opterr = 0; /* every rank reads the same arguments, and one complains */
    for (int option; !help && (option = getopt_long(argc, argv, letters, options, NULL)) != -1;) {
        help = option == 'h';
        if (!problem && !help)
            problem =
                option == '?' || option == ':' ? refuse_option(option, argv[optind - 1]) : read_option(option, optarg);
    }
    problem = help ? NULL : problem != NULL ? problem : check_wishes(argc - optind);
    wish.input = argv[optind];

    if (help && FM_nodeid == 0)
        fputs(usage, stdout);
    else if (problem != NULL && FM_nodeid == 0)
        fprintf(stderr, "heat: %s. Try --help\n", problem);
    else if (!help && !problem && !wish.make)
        spread_heat();
    else if (!help && !problem && FM_nodeid == 0)
        make_picture();
    FM_finalize(); /* waits for the other ranks, too: none ends the job before rank 0 has spoken */
    return problem != NULL ? 2 : 0;
}
