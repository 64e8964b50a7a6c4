/* SPDX-License-Identifier: BSD-3-Clause
 *
 * sort - sorts the lines of text files with all ranks of a job, in the order of `LC_ALL=C sort`.
 *
 *     runnel run -n 4 sort INPUT... -o OUTPUT
 *
 * A sample sort. Each rank samples its share of the input; from all samples rank 0 picks splitters, which cut the
 * output into as many parts of about the same cost as there are ranks. Then each rank reads its share and sends every
 * line to the rank whose part it belongs to, sorts what it received, and writes it to its place in the output. The
 * lines must fit in the memory of all ranks together, with 16 bytes for each. On several hosts all must see the INPUT
 * files under their names; what the ranks of other hosts have sorted goes through rank 0 into the output. */
#include "sort.h"

#include <errno.h>
#include <getopt.h>
#include <runnel/fm.h>
#include <runnel/runnel.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { WRITE_BYTES = 256 << 10, AHEAD = 12, HOST_BYTES = 72 };

static const char usage[] =
    "usage: runnel run -n RANKS sort [--verbose] INPUT... -o OUTPUT\n"
    "Sorts the lines of the INPUT files, in the order of `LC_ALL=C sort`, into OUTPUT.\n"
    "  -o, --output=OUTPUT  a regular file, replaced when all is done; it may be one of the inputs\n"
    "  -v, --verbose        tells how long each phase took, and how evenly the lines were spread\n"
    "  -h, --help           shows this\n"
    "An INPUT of - is standard input.\n";

/* --- telling the user --- */

static bool progress_shown;

static void clear_progress(void)
{
    if (progress_shown)
        fprintf(stderr, "\r%*s\r", 40, "");
    progress_shown = false;
}

void show_progress(const char *phase, uint64_t done, uint64_t total)
{
    static int wanted = -1, last_percent;
    static const char *last_phase;
    int percent = total == 0 ? 0 : done < total ? (int)(done * 100 / total) : 100;
    if (wanted < 0) {
        const char *terminal = getenv("RUNNEL_TERMINAL"); /* set by the launcher, through which our output goes */
        wanted = FM_nodeid == 0 && (isatty(STDERR_FILENO) || (terminal != NULL && strcmp(terminal, "1") == 0));
    }
    if (!wanted || (phase == last_phase && percent == last_percent))
        return;
    last_phase = phase;
    last_percent = percent;
    if (total > 0)
        fprintf(stderr, "\rsort: %-10s %3d %%", phase, percent);
    else
        fprintf(stderr, "\rsort: %-10s      ", phase);
    fflush(stderr);
    progress_shown = true;
}

void die(const char *format, ...)
{
    char sentence[1024];
    va_list arguments;
    clear_progress();
    va_start(arguments, format);
    vsnprintf(sentence, sizeof sentence, format, arguments);
    va_end(arguments);
    fprintf(stderr, "sort: %s\n", sentence); /* one write: the job may end in the middle of two */
    exit(1);
}

void *allocate(size_t bytes)
{
    void *p = malloc(bytes > 0 ? bytes : 1);
    if (!p)
        die("no memory for %zu more bytes: sort with more ranks where there is more memory, or a smaller input", bytes);
    return p;
}

/* What Fast Messages cannot return. A rank that gives up has said why, and one that is killed is told of by the
 * launcher. */
static void on_fm_error(int status, unsigned long peer, const char *sentence)
{
    (void)peer;
    clear_progress();
    if (status != RNL_ERR_PEER_DEAD)
        fprintf(stderr, "sort: %s\n", sentence);
    exit(70);
}

/* --- the phases --- */

enum phase { PHASE_START, PHASE_SAMPLE, PHASE_EXCHANGE, PHASE_SORT, PHASE_WRITE, N_PHASES };
static const char *const phase_names[N_PHASES] = {"start", "sample", "exchange", "sort", "write"};

struct report {
    double seconds[N_PHASES];
    uint64_t lines, bytes;
};

static void end_phase(struct report *report, enum phase phase)
{
    static struct timespec last;
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    if (last.tv_sec != 0)
        report->seconds[phase] = (double)(now.tv_sec - last.tv_sec) + 1e-9 * (double)(now.tv_nsec - last.tv_nsec);
    last = now;
}

/* What rank 0 finds out for all: head of NOTE_PLAN, followed by the size of each file; the body is their names. */
struct plan {
    pid_t pid;
    int output;
    char host[HOST_BYTES];
    uint64_t files;
};

static void name_host(char name[HOST_BYTES])
{
    memset(name, 0, HOST_BYTES);
    if (gethostname(name, HOST_BYTES - 1) != 0)
        die("this host has no name: %s", strerror(errno));
}

static void make_plan(struct input *input, const char *output_path)
{
    size_t names = 0, head_bytes = sizeof(struct plan) + input->n * sizeof(uint64_t);
    input_measure(input);
    output_create(output_path);

    struct plan *plan = allocate(head_bytes);
    *plan = (struct plan){.pid = getpid(), .output = output_descriptor(), .files = input->n};
    name_host(plan->host);
    uint64_t *sizes = (uint64_t *)(plan + 1);
    for (size_t i = 0; i < input->n; i++) {
        sizes[i] = input->files[i].bytes;
        names += strlen(input->files[i].path) + 1;
    }
    char *text = allocate(names), *p = text;
    for (size_t i = 0; i < input->n; i++)
        p = stpcpy(p, input->files[i].path) + 1;
    for (unsigned r = 1; r < FM_numnodes; r++)
        tell(r, NOTE_PLAN, plan, head_bytes, text, names);
    free(text);
    free(plan);
}

static void follow_plan(struct input *input)
{
    struct heard heard = hear(NOTE_PLAN, 0);
    const struct plan *plan = heard.head;
    const uint64_t *sizes = (const uint64_t *)(plan + 1);
    const char *name = (const char *)heard.body;
    char host[HOST_BYTES];
    for (uint64_t i = 0; i < plan->files; i++, name += strlen(name) + 1)
        input_add(input, name, sizes[i]);
    name_host(host);
    if (memcmp(host, plan->host, HOST_BYTES) == 0)
        output_open(plan->pid, plan->output);
    free(heard.head);
}

/* Where this rank's part of the output starts: after those of the ranks before it. */
static uint64_t agree_on_offset(uint64_t bytes)
{
    uint64_t offset = 0;
    for (unsigned r = 0; r < FM_numnodes; r++)
        tell(r, NOTE_RECEIVED, &bytes, sizeof bytes, NULL, 0);
    for (unsigned r = 0; r < FM_numnodes; r++) {
        struct heard heard = hear(NOTE_RECEIVED, r);
        offset += r < FM_nodeid ? *(const uint64_t *)heard.head : 0;
        free(heard.head);
    }
    return offset;
}

static void write_lines(const struct received *received, uint64_t offset)
{
    unsigned char *buffer = allocate(WRITE_BYTES);
    size_t used = 0;
    for (uint64_t i = 0; i < received->n; i++) {
        if (i + AHEAD < received->n) { /* lines lie anywhere in memory: ask for them early */
            __builtin_prefetch(received->records[i + AHEAD].line);
            __builtin_prefetch(received->records[i + AHEAD].line + 64);
        }
        const unsigned char *line = received->records[i].line;
        size_t size = (size_t)((const unsigned char *)rawmemchr(line, '\n') - line) + 1;
        if (used + size > WRITE_BYTES) {
            output_write(buffer, used, offset);
            offset += used;
            used = 0;
            show_progress("writing", i, received->n);
        }
        if (size > WRITE_BYTES) {
            output_write(line, size, offset);
            offset += size;
            continue;
        }
        memcpy(buffer + used, line, size);
        used += size;
    }
    output_write(buffer, used, offset);
    free(buffer);
}

/* Rank 0: when all have written, the output gets its name. */
static void finish(const struct report *mine, bool verbose)
{
    struct report worst = {0};
    uint64_t lines = 0, bytes = 0;
    tell(0, NOTE_REPORT, mine, sizeof *mine, NULL, 0);
    if (FM_nodeid != 0)
        return;
    for (unsigned r = 0; r < FM_numnodes; r++) {
        struct heard heard = hear(NOTE_REPORT, r);
        const struct report *report = heard.head;
        for (int p = 0; p < N_PHASES; p++)
            worst.seconds[p] = report->seconds[p] > worst.seconds[p] ? report->seconds[p] : worst.seconds[p];
        worst.lines = report->lines > worst.lines ? report->lines : worst.lines;
        worst.bytes = report->bytes > worst.bytes ? report->bytes : worst.bytes;
        lines += report->lines;
        bytes += report->bytes;
        free(heard.head);
    }
    output_publish();
    clear_progress();
    if (!verbose)
        return;
    fprintf(stderr,
            "sort: %llu lines, %llu bytes, %lu ranks; the fullest has %.2f of the lines and %.2f of the bytes of an "
            "even part\n",
            (unsigned long long)lines, (unsigned long long)bytes, FM_numnodes,
            lines > 0 ? (double)worst.lines * (double)FM_numnodes / (double)lines : 1.0,
            bytes > 0 ? (double)worst.bytes * (double)FM_numnodes / (double)bytes : 1.0);
    fputs("sort: slowest rank:", stderr);
    for (int p = 0; p < N_PHASES; p++)
        fprintf(stderr, " %s %.3f s%s", phase_names[p], worst.seconds[p], p + 1 < N_PHASES ? "," : "\n");
}

/* --- the program --- */

static void sort_files(char **paths, const char *output_path, bool verbose)
{
    struct report report = {0};
    struct input input = {0};
    struct splitters splitters;
    struct received received;

    end_phase(&report, PHASE_START);
    exchange_start();
    if (FM_nodeid == 0) {
        for (; *paths != NULL; paths++)
            input_add(&input, *paths, 0);
        make_plan(&input, output_path);
    } else {
        follow_plan(&input);
    }
    uint64_t begin = input.bytes / FM_numnodes * FM_nodeid, end = begin + input.bytes / FM_numnodes;
    if (FM_nodeid + 1 == FM_numnodes)
        end = input.bytes;
    end_phase(&report, PHASE_START);

    show_progress("sampling", 0, 0);
    agree_on_splitters(&input, begin, end, &splitters);
    end_phase(&report, PHASE_SAMPLE);

    exchange_lines(&input, begin, end, &splitters, &received);
    uint64_t offset = agree_on_offset(received.bytes);
    report.lines = received.n;
    report.bytes = received.bytes;
    end_phase(&report, PHASE_EXCHANGE);

    show_progress("sorting", 0, 0);
    sort_records(received.records, received.n);
    end_phase(&report, PHASE_SORT);

    write_lines(&received, offset);
    end_phase(&report, PHASE_WRITE);
    finish(&report, verbose);

    free(received.records);
    free(splitters.at);
    free(splitters.memory);
    input_free(&input);
}

int main(int argc, char **argv)
{
    static const struct option options[] = {{"output", required_argument, NULL, 'o'},
                                            {"verbose", no_argument, NULL, 'v'},
                                            {"help", no_argument, NULL, 'h'},
                                            {0}};
    const char *output_path = NULL, *problem = NULL;
    bool verbose = false, help = false;

    FM_set_parameter(FM_ERROR_HANDLER, on_fm_error);
    FM_initialize();
    opterr = FM_nodeid == 0; /* every rank reads the same arguments: one complains */
    for (int option; (option = getopt_long(argc, argv, "o:vh", options, NULL)) != -1;) {
        output_path = option == 'o' ? optarg : output_path;
        verbose = verbose || option == 'v';
        help = help || option == 'h';
        problem = option == '?' ? "an option is wrong" : problem;
    }
    if (help)
        problem = NULL;
    else if (!problem && optind == argc)
        problem = "no input: name the files to sort, or - for standard input";
    else if (!problem && !output_path)
        problem = "no output: name it with -o OUTPUT (the ranks write it together, so it cannot be a pipe)";

    if (help && FM_nodeid == 0)
        fputs(usage, stdout);
    else if (problem != NULL && FM_nodeid == 0)
        fprintf(stderr, "sort: %s\nTry --help.\n", problem);
    else if (!help && !problem)
        sort_files(argv + optind, output_path, verbose);
    FM_finalize(); /* waits for the other ranks, too: none ends the job before rank 0 has spoken */
    return problem != NULL ? 2 : 0;
}
