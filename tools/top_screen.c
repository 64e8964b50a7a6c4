/* SPDX-License-Identifier: BSD-3-Clause
 *
 * top_screen.c - the live screen of `runnel top` (top.h). It writes ANSI sequences that every terminal of today
 * knows: the other screen, the cursor's place, the rest of a line; so it needs no library that knows terminals, and
 * works in tmux, on the console and over ssh. The terminal is as it was when this ends, also by a signal, and while
 * it is suspended. */
#include "top.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sysexits.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

enum { COLUMNS = 80, LINES = 24, COLUMNS_MAX = 250, LINES_LEAST = TOP_HEAD_LINES + 2 };

struct screen {
    struct termios saved;
    unsigned columns, lines, first; /* first: of the rows that are shown */
    enum top_sort by;
    bool reverse, paused, over;
};

static volatile sig_atomic_t resized, asked_to_end, asked_to_stop;

static void on_signal(int signal)
{
    if (signal == SIGWINCH)
        resized = 1;
    else if (signal == SIGTSTP)
        asked_to_stop = 1;
    else
        asked_to_end = signal;
}

/* ---- the terminal ---- */

static void enter(struct screen *s)
{
    struct termios raw = s->saved;
    raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
    raw.c_cc[VMIN] = 0;
    raw.c_cc[VTIME] = 0;
    (void)tcsetattr(STDIN_FILENO, TCSAFLUSH, &raw);
    fputs("\033[?1049h\033[?25l\033[2J", stdout);
}

static void leave(const struct screen *s)
{
    fputs("\033[?25h\033[?1049l", stdout);
    fflush(stdout);
    (void)tcsetattr(STDIN_FILENO, TCSAFLUSH, &s->saved);
}

static void measure(struct screen *s)
{
    struct winsize w;
    const bool known = ioctl(STDOUT_FILENO, TIOCGWINSZ, &w) == 0 && w.ws_col > 0 && w.ws_row > 0;
    s->columns = known ? w.ws_col : COLUMNS;
    s->lines = known ? w.ws_row : LINES;
    if (s->columns > COLUMNS_MAX)
        s->columns = COLUMNS_MAX;
    resized = 0;
}

/* Stops as Ctrl-Z asks, with the terminal given back meanwhile. */
static void suspend(struct screen *s)
{
    asked_to_stop = 0;
    leave(s);
    raise(SIGSTOP);
    enter(s);
    measure(s);
}

/* ---- a frame ---- */

static void put_line(const char *text, bool inverse)
{
    printf("%s%s%s\033[K\r\n", inverse ? "\033[7m" : "", text, inverse ? "\033[0m" : "");
}

static void draw(struct screen *s, const struct top_table *t)
{
    static const char keys[] = "q quit  s next sort  r reverse  p pause  j/k or arrows: scroll  g start";
    char line[COLUMNS_MAX + 8];
    const unsigned room = s->lines >= LINES_LEAST ? s->lines - TOP_HEAD_LINES - 1 : 1;
    if (s->first + room > t->size)
        s->first = t->size > room ? t->size - room : 0;
    fputs("\033[H", stdout);
    for (unsigned i = 0; i < TOP_HEAD_LINES && i + 2 < s->lines; i++) {
        top_put_head(t, s->by, i, s->columns, line, sizeof line);
        put_line(line, i + 1 == TOP_HEAD_LINES);
    }
    for (unsigned i = s->first; i < t->size && i < s->first + room; i++) {
        top_put_row(t, &t->row[i], s->columns, line, sizeof line);
        put_line(line, false);
    }
    snprintf(line, sizeof line, "%.*s", (int)s->columns - 1, keys);
    printf("\033[J\033[%u;1H\033[2m%s%s\033[0m\033[K", s->lines, s->paused ? "PAUSED  " : "", line);
    fflush(stdout);
}

/* ---- keys ---- */

static void scroll(struct screen *s, int lines)
{
    if (lines < 0 && s->first < (unsigned)-lines)
        s->first = 0;
    else
        s->first += (unsigned)lines;
}

/* Takes in one key; arrows and pages are sequences that begin with an escape. Returns how many bytes it was. */
static size_t take_key(struct screen *s, const char *at, size_t n)
{
    const int page = s->lines > LINES_LEAST ? (int)(s->lines - TOP_HEAD_LINES - 1) : 1;
    if (n >= 3 && at[0] == '\033' && (at[1] == '[' || at[1] == 'O')) {
        if (at[2] == 'A' || at[2] == 'B')
            scroll(s, at[2] == 'A' ? -1 : 1);
        if (at[2] == '5' || at[2] == '6')
            scroll(s, at[2] == '5' ? -page : page);
        return at[2] >= '0' && at[2] <= '9' && n >= 4 ? 4 : 3;
    }
    switch (at[0]) {
    case 'q':
    case 'Q':
        s->over = true;
        break;
    case 's':
        s->by = (enum top_sort)((s->by + 1) % TOP_SORTS);
        break;
    case 'S':
        s->by = (enum top_sort)((s->by + TOP_SORTS - 1) % TOP_SORTS);
        break;
    case 'r':
        s->reverse = !s->reverse;
        break;
    case 'p':
        s->paused = !s->paused;
        break;
    case 'j':
        scroll(s, 1);
        break;
    case 'k':
        scroll(s, -1);
        break;
    case ' ':
        scroll(s, page);
        break;
    case 'g':
        s->first = 0;
        break;
    }
    return 1;
}

/* Waits for keys until that time. Returns whether something changed that is to be drawn at once. */
static bool wait_for_keys(struct screen *s, uint64_t ms)
{
    struct pollfd p = {.fd = STDIN_FILENO, .events = POLLIN};
    char keys[64];
    if (poll(&p, 1, (int)ms) != 1)
        return resized || asked_to_end || asked_to_stop;
    const ssize_t n = read(STDIN_FILENO, keys, sizeof keys);
    if (n == 0 || (n < 0 && errno != EINTR && errno != EAGAIN))
        s->over = true; /* the terminal is gone */
    for (ssize_t i = 0; i < n;)
        i += (ssize_t)take_key(s, keys + i, (size_t)(n - i));
    return true;
}

/* ---- the loop ---- */

static uint64_t now_ns(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* Looks again; ranks that came meanwhile are found, too. What was seen before goes to `before`. False: the job is
 * over. */
static bool look(struct job_look *l, struct job_rank **before, uint64_t *before_ns)
{
    const int job = l->job;
    free(*before);
    *before = NULL;
    if (l->rank && (*before = malloc(l->size * sizeof **before)))
        memcpy(*before, l->rank, l->size * sizeof **before);
    *before_ns = l->now_ns;
    const unsigned size = l->size;
    if (job_look_again(l) > 0 && l->found == l->size)
        return true;
    job_look_free(l);
    const int found = job_look_find(l, job);
    if (l->size != size) { /* another job has that number, or none */
        free(*before);
        *before = NULL;
    }
    return found > 0;
}

static void run(struct screen *s, struct job_look *l, double interval)
{
    struct job_rank *before = NULL;
    uint64_t before_ns = 0, next = now_ns() + (uint64_t)(interval * 1e9);
    struct top_table t;
    while (!s->over && !asked_to_end) {
        if (resized)
            measure(s);
        if (asked_to_stop)
            suspend(s);
        if (top_table_make(l, before, before_ns, s->by, s->reverse, &t) < 0)
            break;
        draw(s, &t);
        top_table_free(&t);
        for (bool again = false; !again && now_ns() < next;)
            again = wait_for_keys(s, (next - now_ns()) / 1000000 + 1);
        if (now_ns() < next)
            continue;
        next = now_ns() + (uint64_t)(interval * 1e9);
        if (!s->paused && !look(l, &before, &before_ns))
            break;
    }
    free(before);
}

int top_screen(struct job_look *l, double interval, enum top_sort by)
{
    static const int signals[] = {SIGWINCH, SIGTSTP, SIGINT, SIGTERM, SIGHUP, SIGQUIT};
    const struct sigaction act = {.sa_handler = on_signal};
    struct screen s = {.by = by};
    const int job = l->job;
    if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO) || tcgetattr(STDIN_FILENO, &s.saved) < 0) {
        fprintf(stderr,
                "runnel top: the live screen needs a terminal; --once prints the table once, --json for programs\n");
        return EX_USAGE;
    }
    for (unsigned i = 0; i < sizeof signals / sizeof *signals; i++)
        (void)sigaction(signals[i], &act, NULL);
    measure(&s);
    enter(&s);
    run(&s, l, interval);
    leave(&s);
    if (!s.over && !asked_to_end)
        printf("job %d has ended\n", job);
    return asked_to_end ? 128 + asked_to_end : 0;
}
