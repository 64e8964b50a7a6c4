/* SPDX-License-Identifier: BSD-3-Clause
 *
 * util.c - memory that lives until the end, texts, source files, and how errors are shown. */
#include "lang/orca/orca.h"
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCK = 1 << 18, SOURCE_MAX = 1 << 24 };

static struct block {
    struct block *next;
    size_t used, room;
    max_align_t data[];
} * blocks;

struct source **sources;
int sources_count;
int errors_count;

void fatal(const char *format, ...)
{
    va_list ap;
    va_start(ap, format);
    fputs("orcac: ", stderr);
    vfprintf(stderr, format, ap);
    fputc('\n', stderr);
    va_end(ap);
    exit(1);
}

void give_up(void)
{
    fprintf(stderr, "orcac: %d error%s\n", errors_count, errors_count == 1 ? "" : "s");
    exit(1);
}

void *alloc(size_t n)
{
    n = (n + 15) & ~(size_t)15;
    if (!blocks || blocks->room - blocks->used < n) {
        size_t room = n > BLOCK ? n : BLOCK;
        struct block *b = calloc(1, sizeof *b + room);
        if (!b)
            fatal("there is no memory left for %zu bytes", room);
        b->room = room;
        b->next = blocks;
        blocks = b;
    }
    void *p = (char *)blocks->data + blocks->used;
    blocks->used += n;
    return p;
}

char *copy_text(const char *s, size_t n)
{
    char *p = alloc(n + 1);
    memcpy(p, s, n);
    return p;
}

__attribute__((format(printf, 1, 0))) static char *vform(const char *format, va_list ap)
{
    va_list again;
    va_copy(again, ap);
    int n = vsnprintf(NULL, 0, format, again);
    va_end(again);
    char *p = alloc((size_t)n + 1);
    vsnprintf(p, (size_t)n + 1, format, ap);
    return p;
}

char *form(const char *format, ...)
{
    va_list ap;
    va_start(ap, format);
    char *p = vform(format, ap);
    va_end(ap);
    return p;
}

void add_bytes(struct text *t, const char *s, size_t n)
{
    if (t->room < t->n + n + 1) {
        size_t room = 2 * (t->n + n) + 1024;
        char *p = alloc(room);
        if (t->n)
            memcpy(p, t->s, t->n);
        t->s = p;
        t->room = room;
    }
    memcpy(t->s + t->n, s, n);
    t->n += n;
    t->s[t->n] = 0;
}

void add(struct text *t, const char *format, ...)
{
    va_list ap;
    va_start(ap, format);
    const char *p = vform(format, ap);
    va_end(ap);
    add_bytes(t, p, strlen(p));
}

struct source *read_source(const char *path)
{
    FILE *f = fopen(path, "rb");
    if (!f)
        return NULL;
    struct text t = {0};
    char part[4096];
    size_t n;
    add_bytes(&t, "", 0);
    while ((n = fread(part, 1, sizeof part, f)) > 0 && t.n < SOURCE_MAX)
        add_bytes(&t, part, n);
    bool bad = ferror(f) || t.n >= SOURCE_MAX;
    fclose(f);
    if (bad)
        fatal("%s cannot be read, or is longer than %d bytes", path, SOURCE_MAX);
    struct source *s = alloc(sizeof *s);
    *s = (struct source){.path = copy_text(path, strlen(path)), .text = t.s, .n = t.n, .index = sources_count};
    struct source **all = alloc(((size_t)sources_count + 1) * sizeof *all);
    if (sources_count)
        memcpy(all, sources, (size_t)sources_count * sizeof *all);
    all[sources_count++] = s;
    sources = all;
    return s;
}

static void show_place(struct place at, const char *grade, const char *message)
{
    if (!at.src) {
        fprintf(stderr, "orcac: %s: %s\n", grade, message);
        return;
    }
    fprintf(stderr, "%s:%d:%d: %s: %s\n", at.src->path, at.line, at.col, grade, message);
    const char *p = at.src->text, *end = p + at.src->n;
    for (int line = 1; line < at.line && p < end; p++)
        line += *p == '\n';
    int n = 0;
    while (p + n < end && p[n] != '\n')
        n++;
    fprintf(stderr, "    ");
    for (int i = 0; i < n; i++) /* what is not printable could harm the terminal */
        fputc((unsigned char)p[i] >= ' ' && (unsigned char)p[i] < 127 ? p[i] : p[i] == '\t' ? '\t' : '?', stderr);
    fprintf(stderr, "\n    ");
    for (int i = 0; i < at.col - 1 && i < n; i++)
        fputc(p[i] == '\t' ? '\t' : ' ', stderr);
    fprintf(stderr, "^\n");
}

static bool is_same_file(const struct source *a, const struct source *b)
{
    return a == b || (a && b && strcmp(a->path, b->path) == 0);
}

/* Text that is looked at twice has the same errors twice; one is told. */
void error_at(struct place at, const char *format, ...)
{
    static struct {
        struct place at;
        const char *message;
    } told[ERRORS_MAX];
    va_list ap;
    va_start(ap, format);
    const char *message = vform(format, ap);
    va_end(ap);
    for (int i = 0; i < errors_count; i++)
        if (told[i].at.line == at.line && told[i].at.col == at.col && is_same_file(told[i].at.src, at.src) &&
            strcmp(told[i].message, message) == 0)
            return;
    told[errors_count].at = at;
    told[errors_count].message = message;
    show_place(at, "error", message);
    if (++errors_count >= ERRORS_MAX)
        give_up();
}

void warn_at(struct place at, const char *format, ...)
{
    va_list ap;
    va_start(ap, format);
    show_place(at, "warning", vform(format, ap));
    va_end(ap);
}
