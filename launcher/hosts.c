/* SPDX-License-Identifier: BSD-3-Clause
 *
 * hosts.c - parses lists and files of hosts, and assigns ranks to them (hosts.h). */
#include "launcher/hosts.h"

#include "base/text.h"

#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What is wrong with the hosts. -1. */
static int refuse(char *sentence, size_t room, const char *format, ...) __attribute__((format(printf, 3, 4)));
static int refuse(char *sentence, size_t room, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(sentence, room, format, args);
    va_end(args);
    return -1;
}

/* Names go to ssh and into paths: an option or a path is none. */
static bool is_name(const char *name)
{
    for (const char *c = name; *c; c++)
        if (*c <= ' ' || *c == 127 || strchr("/\\'\"`$;&|<>(){}[]*?!", *c))
            return false;
    return name[0] != '\0' && name[0] != '-' && name[0] != '.' && strlen(name) < RNL_JOB_HOST_BYTES;
}

/* `slots` is NULL where none are given. */
static int add(struct rnl_hosts *h, const char *name, const char *slots, char *sentence, size_t room)
{
    char *end = NULL;
    uint32_t i = 0;
    const unsigned long count = slots ? strtoul(slots, &end, 10) : 1;
    if (!is_name(name))
        return refuse(sentence, room, "'%.80s' is not the name of a host", name);
    if (slots && (*slots < '0' || *slots > '9' || *end != '\0' || count < 1 || count > RNL_JOB_RANKS_MAX))
        return refuse(sentence, room, "host %s: '%.40s' is not a number of processes from 1 to %d", name, slots,
                      RNL_JOB_RANKS_MAX);
    while (i < h->n && strcmp(h->at[i].name, name) != 0)
        i++;
    if (i == RNL_HOSTS_MAX)
        return refuse(sentence, room, "a job has at most %d hosts", RNL_HOSTS_MAX);
    if (i == h->n) {
        h->at[h->n] = (struct rnl_hosts_one){.slots = 0};
        strcpy(h->at[h->n++].name, name);
    }
    h->at[i].slots += (uint32_t)count;
    return 0;
}

/* NAME or NAME:SLOTS, where an IPv6 address has brackets around it. Changes the text. */
static int add_item(struct rnl_hosts *h, char *item, char *sentence, size_t room)
{
    char *close = item[0] == '[' ? strrchr(item, ']') : NULL, *slots = close ? close + 1 : strrchr(item, ':');
    if (close && *slots != '\0' && *slots != ':')
        return refuse(sentence, room, "'%.80s' is not the name of a host", item);
    if (close)
        *close = '\0';
    else if (slots && strchr(item, ':') != slots) /* an address without brackets */
        slots = NULL;
    if (slots && *slots == ':')
        *slots++ = '\0';
    else
        slots = NULL;
    return add(h, close ? item + 1 : item, slots, sentence, room);
}

int rnl_hosts_read(struct rnl_hosts *h, const char *list, char *sentence, size_t room)
{
    char *copy = strdup(list), *rest = copy, *item;
    int r = copy ? 0 : refuse(sentence, room, "no memory for the list");
    while (r == 0 && (item = strsep(&rest, ",")))
        r = add_item(h, item, sentence, room);
    free(copy);
    return r;
}

static int add_line(struct rnl_hosts *h, char *line, char *sentence, size_t room)
{
    static const char blanks[] = " \t\r\n";
    char *save = NULL, *name = strtok_r(line, blanks, &save), *more = name ? strtok_r(NULL, blanks, &save) : NULL;
    if (!more)
        return name ? add_item(h, name, sentence, room) : 0;
    if (strncmp(more, "slots=", 6) != 0 || strtok_r(NULL, blanks, &save))
        return refuse(sentence, room,
                      "'%.80s' behind '%.80s' is not understood: a line is NAME, NAME:SLOTS or NAME slots=SLOTS", more,
                      name);
    return add(h, name, more + 6, sentence, room);
}

/* What is said of it goes to a terminal, which might obey. */
static int is_text(const char *line, size_t n, char *sentence, size_t room)
{
    const char *comment = memchr(line, '#', n);
    const size_t bytes = comment ? (size_t)(comment - line) : n, good = rnl_text(line, bytes);
    return good == bytes ? 0
                         : refuse(sentence, room, "byte %zu is 0x%02x: this is no text (UTF-8)", good + 1,
                                  (unsigned char)line[good]);
}

int rnl_hosts_file(struct rnl_hosts *h, const char *path, char *sentence, size_t room)
{
    char *line = NULL, why[300];
    size_t space = 0, number = 0;
    FILE *f = fopen(path, "re");
    int r = 0;
    if (!f)
        return refuse(sentence, room, "cannot read '%.200s': %s", path, strerror(errno));
    for (ssize_t n; r == 0 && (errno = 0, n = getline(&line, &space, f)) >= 0;) {
        number++;
        r = is_text(line, (size_t)n, why, sizeof why);
        line[strcspn(line, "#")] = '\0';
        if (r == 0)
            r = add_line(h, line, why, sizeof why);
        if (r < 0)
            snprintf(sentence, room, "%.200s, line %zu: %s", path, number, why);
    }
    if (r == 0 && ferror(f))
        r = refuse(sentence, room, "cannot read '%.200s': %s", path, strerror(errno));
    if (r == 0 && h->n == 0)
        r = refuse(sentence, room, "'%.200s' names no host", path);
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

uint32_t rnl_hosts_deal(const struct rnl_hosts *h, uint32_t size, struct rnl_job_host *out)
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

/* ---- processes that join ---- */

void rnl_hosts_own(struct rnl_arrivals *a)
{
    struct stat st;
    a->host[0] = rnl_host_kernel();
    a->host[1] = stat("/proc/self/ns/net", &st) == 0 ? st.st_ino : 0;
    if (gethostname(a->name, sizeof a->name - 1) < 0)
        strcpy(a->name, "host");
    a->name[sizeof a->name - 1] = '\0';
}

uint32_t rnl_hosts_deal_ranks(const struct rnl_arrivals *a, uint32_t first, uint32_t *rank)
{
    bool taken[RNL_JOB_RANKS_MAX] = {false};
    uint32_t next = 0;
    for (uint32_t i = 0; i < a->count; i++) {
        const uint32_t k = (uint32_t)a->wanted[i] - first;
        if (a->wanted[i] < 0)
            continue;
        if (k >= a->count || taken[k])
            return i;
        taken[k] = true;
        rank[i] = first + k;
    }
    for (uint32_t i = 0; i < a->count; i++) {
        while (a->wanted[i] < 0 && taken[next])
            next++;
        if (a->wanted[i] < 0)
            rank[i] = first + next++;
    }
    return a->count;
}
