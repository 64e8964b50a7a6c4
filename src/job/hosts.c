/* SPDX-License-Identifier: BSD-3-Clause
 *
 * hosts.c - see hosts.h. */
#include "job/hosts.h"

#include "base/text.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Names go to ssh and into paths: an option or a path is none. */
static int is_name(const char *name, size_t n)
{
    if (n == 0 || n >= RNL_JOB_HOST_BYTES || name[0] == '-' || name[0] == '.')
        return 0;
    for (size_t i = 0; i < n; i++)
        if (name[i] <= ' ' || name[i] == 127 || strchr("/\\'\"`$;&|<>(){}[]*?!", name[i]) != NULL)
            return 0;
    return 1;
}

static int add(struct rnl_hosts *h, const char *name, size_t n, const char *slots, size_t digits, char *sentence,
               size_t room)
{
    unsigned long count = 1;
    uint32_t i = 0;
    if (!is_name(name, n)) {
        snprintf(sentence, room, "'%.*s' is not the name of a host", (int)(n < 80 ? n : 80), name);
        return -1;
    }
    if (slots != NULL) {
        char text[8] = "", *end = text;
        if (digits > 0 && digits < sizeof text) {
            memcpy(text, slots, digits);
            count = strtoul(text, &end, 10);
        }
        if (end == text || *end != '\0' || text[0] < '0' || text[0] > '9' || count < 1 || count > RNL_JOB_RANKS_MAX) {
            snprintf(sentence, room, "host %.*s: '%.*s' is not a number of processes from 1 to %d", (int)n, name,
                     (int)(digits < 40 ? digits : 40), slots, RNL_JOB_RANKS_MAX);
            return -1;
        }
    }
    while (i < h->n && (strlen(h->at[i].name) != n || memcmp(h->at[i].name, name, n) != 0))
        i++;
    if (i == RNL_HOSTS_MAX) {
        snprintf(sentence, room, "a job has at most %d hosts", RNL_HOSTS_MAX);
        return -1;
    }
    if (i == h->n) {
        h->n++;
        memset(&h->at[i], 0, sizeof h->at[i]);
        memcpy(h->at[i].name, name, n);
    }
    h->at[i].slots += (uint32_t)count;
    return 0;
}

/* NAME or NAME:SLOTS, where an IPv6 address has brackets around it. */
static int add_item(struct rnl_hosts *h, const char *item, size_t n, char *sentence, size_t room)
{
    const char *last = memrchr(item, ':', n), *close = memrchr(item, ']', n);
    int many = last != NULL && memchr(item, ':', (size_t)(last - item)) != NULL; /* an address without brackets */
    if (item[0] == '[' && close != NULL) {
        size_t inner = (size_t)(close - item) - 1, rest = n - inner - 2;
        if (rest > 0 && close[1] != ':') {
            snprintf(sentence, room, "'%.*s' is not the name of a host", (int)(n < 80 ? n : 80), item);
            return -1;
        }
        return add(h, item + 1, inner, rest > 0 ? close + 2 : NULL, rest > 0 ? rest - 1 : 0, sentence, room);
    }
    if (last == NULL || many)
        return add(h, item, n, NULL, 0, sentence, room);
    size_t name = (size_t)(last - item);
    return add(h, item, name, last + 1, n - name - 1, sentence, room);
}

int rnl_hosts_read(struct rnl_hosts *h, const char *list, char *sentence, size_t room)
{
    for (;;) {
        size_t n = strcspn(list, ",");
        if (add_item(h, list, n, sentence, room) < 0)
            return -1;
        if (list[n] == '\0')
            return 0;
        list += n + 1;
    }
}

static int add_line(struct rnl_hosts *h, char *line, char *sentence, size_t room)
{
    static const char blanks[] = " \t\r\n";
    char *save = NULL, *name = strtok_r(line, blanks, &save), *more = name ? strtok_r(NULL, blanks, &save) : NULL;
    if (name == NULL)
        return 0;
    if (more == NULL)
        return add_item(h, name, strlen(name), sentence, room);
    if (strncmp(more, "slots=", 6) != 0 || strtok_r(NULL, blanks, &save) != NULL) {
        snprintf(sentence, room,
                 "'%.80s' behind '%.80s' is not understood: a line is NAME, NAME:SLOTS or NAME slots=SLOTS", more,
                 name);
        return -1;
    }
    return add(h, name, strlen(name), more + 6, strlen(more + 6), sentence, room);
}

/* What is said of it goes to a terminal, which might obey. */
static int is_text(const char *line, size_t n, char *sentence, size_t room)
{
    const char *comment = memchr(line, '#', n);
    size_t bytes = comment ? (size_t)(comment - line) : n, good = rnl_text(line, bytes);
    if (good == bytes)
        return 0;
    snprintf(sentence, room, "byte %zu is 0x%02x: this is no text (UTF-8)", good + 1, (unsigned char)line[good]);
    return -1;
}

int rnl_hosts_file(struct rnl_hosts *h, const char *path, char *sentence, size_t room)
{
    char *line = NULL, why[300];
    size_t space = 0, number = 0;
    FILE *f = fopen(path, "re");
    int r = 0;
    if (f == NULL) {
        snprintf(sentence, room, "cannot read '%.200s': %s", path, strerror(errno));
        return -1;
    }
    for (ssize_t n; r == 0 && (errno = 0, n = getline(&line, &space, f)) >= 0;) {
        number++;
        r = is_text(line, (size_t)n, why, sizeof why);
        line[strcspn(line, "#")] = '\0';
        if (r == 0)
            r = add_line(h, line, why, sizeof why);
        if (r < 0)
            snprintf(sentence, room, "%.200s, line %zu: %s", path, number, why);
    }
    if (r == 0 && ferror(f)) {
        snprintf(sentence, room, "cannot read '%.200s': %s", path, strerror(errno));
        r = -1;
    }
    if (r == 0 && h->n == 0) {
        snprintf(sentence, room, "'%.200s' names no host", path);
        r = -1;
    }
    free(line);
    fclose(f);
    return r;
}

uint32_t rnl_hosts_slots(const struct rnl_hosts *h)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < h->n; i++)
        n += h->at[i].slots;
    return n;
}

uint32_t rnl_hosts_deal(const struct rnl_hosts *h, uint32_t size, struct rnl_host *out)
{
    uint32_t slots = rnl_hosts_slots(h), before = 0, next = 0, n = 0;
    for (uint32_t i = 0; i < h->n && next < size; i++) {
        before += h->at[i].slots;
        uint32_t end = size <= slots ? before : (uint32_t)((uint64_t)size * before / slots);
        if (end > size)
            end = size;
        if (end == next)
            continue;
        memcpy(out[n].name, h->at[i].name, sizeof out[n].name);
        out[n].first = next;
        out[n++].count = end - next;
        next = end;
    }
    return n;
}
