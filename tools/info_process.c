/* SPDX-License-Identifier: BSD-3-Clause
 *
 * info_process.c - what `runnel info` reads from other processes: who has an endpoint, and its counters. The process
 * need not be in a call, nor run at all. What it wrote is shown as base/counters.c hands it over, checked. */
#include "base/counters.h"
#include "base/error.h"
#include "base/notes.h"
#include "info.h"
#include "job/proto.h"
#include "machine.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    ENDPOINTS_MAX = RNL_JOB_RANKS_MAX, /* of one process */
    ANCESTORS_MAX = 64
};

int info_read_line(const char *dir, const char *name, char *text, unsigned room)
{
    char path[PATH_MAX];
    if ((size_t)snprintf(path, sizeof path, "%s/%s", dir, name) >= sizeof path)
        return 0;
    FILE *f = fopen(path, "re");
    if (!f)
        return 0;
    size_t n = fread(text, 1, room - 1, f);
    fclose(f);
    text[n] = '\0';
    text[strcspn(text, "\n")] = '\0';
    return n > 0;
}

static void make_printable(char *c)
{
    for (; *c; c++)
        if (*c < ' ' || *c > '~')
            *c = '?';
}

static void command_of(int pid, char *name, size_t room)
{
    char dir[32];
    snprintf(dir, sizeof dir, "/proc/%d", pid);
    if (!info_read_line(dir, "comm", name, room))
        snprintf(name, room, "?");
    make_printable(name);
}

static const char *program_of(const struct rnl_counters *c, const char *command)
{
    return c->program[0] ? c->program : command;
}

void info_program(const struct rnl_counters *c, int pid, char *name, unsigned room)
{
    char command[64];
    command_of(pid, command, sizeof command);
    snprintf(name, room, "%s", program_of(c, command));
}

int info_stat_of(int pid, struct info_stat *out)
{
    char path[32], text[1024];
    unsigned long long user = 0, kernel = 0;
    snprintf(path, sizeof path, "/proc/%d/stat", pid);
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    const ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof text - 1); /* "PID (COMMAND) S PARENT ..." */
    if (fd >= 0)
        close(fd);
    text[n > 0 ? n : 0] = '\0';
    const char *command = strchr(text, '('), *after = strrchr(text, ')');
    *out = (struct info_stat){.parent = 0};
    if (!command || !after || after < command ||
        sscanf(after, ") %c %d %*d %*d %*d %*d %*u %*u %*u %*u %*u %llu %llu", &out->state, &out->parent, &user,
               &kernel) < 2)
        return 0;
    out->ticks = user + kernel;
    snprintf(out->command, sizeof out->command, "%.*s", (int)(after - command - 1), command + 1);
    make_printable(out->command);
    return 1;
}

/* The launcher of a process: its nearest ancestor of that name; 0 = none. A wrapper may stand between the two. */
int info_launcher_of(int pid)
{
    struct info_stat stat;
    for (int steps = 0; steps < ANCESTORS_MAX && info_stat_of(pid, &stat) && stat.parent > 0; steps++) {
        pid = stat.parent;
        if (info_stat_of(pid, &stat) && strcmp(stat.command, "runnel") == 0)
            return pid;
    }
    return 0;
}

void info_running(struct info_page *p)
{
    struct rnl_counters_page page;
    const struct rnl_counters *c = &page.core;
    const struct dirent *e;
    int found = 0;
    char command[64], rank[48], what[160];
    info_section(p, "running");
    DIR *proc = opendir("/proc");
    while (proc && (e = readdir(proc)) != NULL) {
        int pid = atoi(e->d_name);
        if (pid <= 0 || pid == getpid() || rnl_counters_read(pid, &page, 1) <= 0)
            continue;
        command_of(pid, command, sizeof command);
        snprintf(rank, sizeof rank, "rank %u of %u", c->rank, c->size);
        int job = info_launcher_of(pid);
        if (p->json) {
            info_key(p, e->d_name);
            printf("{\"program\":");
            info_put_json(program_of(c, command));
            printf(",\"rank\":%u,\"size\":%u,\"job\":", c->rank, c->size);
            printf(job ? "%d}" : "null}", job);
        } else {
            snprintf(what, sizeof what, job ? "%s, job %d" : "%s", program_of(c, command), job);
            info_row(p, e->d_name, rank, what);
        }
        found = 1;
    }
    if (proc)
        closedir(proc);
    if (!found && !p->json)
        puts("  no process that you may look into has an endpoint open");
}

const char *info_state_of(int pid)
{
    struct info_stat stat;
    return info_stat_of(pid, &stat) ? info_state_word(stat.state) : "";
}

const char *info_state_word(char state)
{
    switch (state) {
    case 'R':
        return "running";
    case 'S':
    case 'I':
        return "sleeping";
    case 'D':
        return "waiting for a device";
    case 'T':
        return "stopped";
    case 't':
        return "stopped by a debugger";
    case 'Z':
    case 'X':
        return "ended";
    default:
        return "?";
    }
}

static int complain(int pid, int status)
{
    char dir[32], command[64];
    struct stat st;
    const char *state = info_state_of(pid);
    int e = status < 0 ? rnl_last_error()->sys_errno : 0;
    snprintf(dir, sizeof dir, "/proc/%d", pid);
    command_of(pid, command, sizeof command);
    fputs("runnel info: ", stderr);
    if (access("/proc/self", F_OK) != 0)
        fputs("there is no /proc here, through which counters are read: mount it\n", stderr);
    else if (state[0] == '\0')
        fprintf(stderr, "there is no process %d: runnel info without --pid lists those that have an endpoint\n", pid);
    else if (strcmp(state, "ended") == 0)
        fprintf(stderr, "process %d (%s) has ended, and its counters with it\n", pid, command);
    else if (e != EACCES && e != EPERM && status < 0)
        fprintf(stderr, "%s%s\n", rnl_last_error()->text,
                status == RNL_ERR_UNSUPPORTED ? ": use the runnel command of the release the program is linked with"
                                              : "");
    else if (status == 0)
        fprintf(stderr,
                "process %d (%s) has no endpoint: it has not opened one yet, has closed it, or does not use runnel; "
                "runnel info without --pid lists those that have one\n",
                pid, command);
    else if (stat(dir, &st) == 0 && st.st_uid != geteuid() && geteuid() != 0)
        fprintf(stderr,
                "you may not look into process %d (%s), which belongs to user %u: try as that user or as root\n", pid,
                command, (unsigned)st.st_uid);
    else
        fprintf(stderr, "you may not look into process %d (%s): %s\n", pid, command,
                geteuid() == 0 ? "root needs the capability CAP_SYS_PTRACE for it here"
                               : "it has privileges of its own; try as root");
    return 1;
}

/* What it waits for, in words. */
static void show_waits(const struct rnl_counters *c, uint64_t now)
{
    if (c->waiting_for_rank) {
        printf("  waiting for room at rank %llu", (unsigned long long)c->waiting_for_rank - 1);
        if (c->waiting_since_ns && c->waiting_since_ns <= now)
            printf(", for %.1f s now", (double)(now - c->waiting_since_ns) / 1e9);
        putchar('\n');
    }
    if (c->missing_handler)
        printf("  waiting for handler %llu from rank %llu: its message stays until that number is registered\n",
               (unsigned long long)c->missing_handler - 1, (unsigned long long)c->missing_handler_rank - 1);
}

/* What a call of a window awaits of a peer, in words: src/window/window_internal.h has the numbers. */
static void show_window_wait(const struct rnl_counters_page *page, uint64_t now)
{
    static const char *const words[] = {NULL,
                                        "to take in a put",
                                        "to answer a get",
                                        "to answer an atomic",
                                        "to take in what was put there (quiet)",
                                        "to let an import in or refuse it",
                                        "to give a revoked window back"};
    const char *name, *text;
    uint64_t value, what = 0, at = 0, since = 0;
    for (unsigned i = 0; rnl_counters_item(page, i, &name, &text, &value); i++) {
        what = strcmp(name, "window.waits_for") == 0 ? value : what;
        at = strcmp(name, "window.waits_at") == 0 ? value : at;
        since = strcmp(name, "window.waits_since_ns") == 0 ? value : since;
    }
    if (what == 0 || what >= sizeof words / sizeof *words || at == 0)
        return;
    printf("  waiting for rank %llu %s", (unsigned long long)at - 1, words[what]);
    if (since && since <= now)
        printf(", for %.1f s now", (double)(now - since) / 1e9);
    putchar('\n');
}

static void show_counters(const struct rnl_counters_page *page, int pid, const char *command, const char *state)
{
    const struct rnl_counters *c = &page->core;
    const char *name, *text;
    uint64_t value, now = bench_now_ns();
    size_t width = 0, digits = 0;
    char number[24];
    for (unsigned i = 0; rnl_counters_item(page, i, &name, &text, &value); i++) {
        size_t n = strlen(name), d = (size_t)snprintf(number, sizeof number, "%llu", (unsigned long long)value);
        width = n > width ? n : width;
        digits = d > digits ? d : digits;
    }
    printf("%s: rank %u of %u, process %d, %s", program_of(c, command), c->rank, c->size, pid, state);
    if (c->start_ns && c->start_ns <= now)
        printf(", open for %.1f s", (double)(now - c->start_ns) / 1e9);
    putchar('\n');
    show_waits(c, now);
    show_window_wait(page, now);
    for (unsigned i = 0; rnl_counters_item(page, i, &name, &text, &value); i++)
        printf("  %-*s %*llu  %s\n", (int)width, name, (int)digits, (unsigned long long)value, text);
}

static void counters_json(const struct rnl_counters_page *page, const char *command)
{
    const struct rnl_counters *c = &page->core;
    const char *name, *text;
    uint64_t value, now = bench_now_ns();
    fputs("{\"program\":", stdout);
    info_put_json(program_of(c, command));
    printf(",\"rank\":%u,\"size\":%u,\"open_ns\":%llu,\"counters\":{", c->rank, c->size,
           (unsigned long long)(c->start_ns && c->start_ns <= now ? now - c->start_ns : 0));
    for (unsigned i = 0; rnl_counters_item(page, i, &name, &text, &value); i++)
        printf("%s\"%s\":%llu", i ? "," : "", name, (unsigned long long)value);
    fputs("}}", stdout);
}

/* What the process says of itself, and what its launcher says of the ranks that it started (base/notes.h). */
static void show_notes(int pid, int json)
{
    char *text = malloc(2 * (RNL_NOTES_TEXT_MAX + 1)), *save = NULL;
    const int launcher = info_launcher_of(pid);
    if (!text)
        return;
    size_t used = rnl_notes_read(pid, text);
    text[used] = '\0';
    if (launcher)
        (void)rnl_notes_read(launcher, text + used);
    if (json)
        fputs(",\"notes\":[", stdout);
    const char *separator = "";
    for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
        if (!json) {
            printf("  %s\n", line);
            continue;
        }
        fputs(separator, stdout);
        info_put_json(line);
        separator = ",";
    }
    if (json)
        putchar(']');
    free(text);
}

int info_process(int pid, int json)
{
    struct rnl_counters_page *page = calloc(ENDPOINTS_MAX, sizeof *page);
    char command[64];
    int n = page ? rnl_counters_read(pid, page, ENDPOINTS_MAX)
                 : rnl_fail(RNL_ERR_NO_MEMORY, "no memory for the counters of %d endpoints", ENDPOINTS_MAX);
    const char *state = info_state_of(pid);
    if (n <= 0) {
        free(page);
        return complain(pid, n);
    }
    command_of(pid, command, sizeof command);
    if (json)
        printf("{\"pid\":%d,\"state\":\"%s\",\"endpoints\":[", pid, state);
    for (int i = 0; i < n; i++) {
        if (i)
            putchar(json ? ',' : '\n');
        if (json)
            counters_json(&page[i], command);
        else
            show_counters(&page[i], pid, command, state);
    }
    if (json)
        fputs("],\"introduced\":[", stdout);
    info_peers(pid, json);
    if (json)
        putchar(']');
    show_notes(pid, json);
    if (json)
        puts("}");
    free(page);
    return 0;
}
