/* SPDX-License-Identifier: BSD-3-Clause
 *
 * info.h - the parts of `runnel info`: how facts are shown (info_page.c), what the network is (info_net.c), and what
 * is read from other processes (info_process.c). */
#ifndef RNL_TOOLS_INFO_H
#define RNL_TOOLS_INFO_H

#include <stdint.h>

/* Lines for people, or one object for programs: sections of rows. The name of a row is that of a JSON field, with
 * blanks for underscores; remarks are for people only. */
struct info_page {
    int json;
    unsigned sections, rows;
};
#define INFO_NO_LIMIT UINT64_MAX /* null in JSON */

void info_section(struct info_page *p, const char *name);
/* Any text; !remark: it needs the rest of the line. */
void info_row(struct info_page *p, const char *name, const char *value, const char *remark);
void info_flag(struct info_page *p, const char *name, int yes, const char *remark);
void info_number(struct info_page *p, const char *name, uint64_t value, const char *remark);
void info_setting(struct info_page *p, const char *name, const char *value, int from_environment, const char *what);
/* A row whose JSON value the caller prints. */
void info_key(struct info_page *p, const char *name);
void info_end(struct info_page *p);

/* A quoted JSON string; bytes beyond ASCII as \u00XX, so it is valid whatever they are. */
void info_put_json(const char *s);

/* One line of a file in a folder; 0 = there is none. */
int info_read_line(const char *dir, const char *name, char *text, unsigned room);

struct rnl_counters;
/* The name of a program: what its endpoint says, else what the system says. */
void info_program(const struct rnl_counters *, int pid, char *name, unsigned room);

/* The nearest `runnel` among the processes above that one; 0 = none. */
int info_launcher_of(int pid);
/* What /proc/PID/stat says of a process. */
struct info_stat {
    int parent;
    char state;       /* 'R', 'S', 'T' ... */
    uint64_t ticks;   /* processor time so far */
    char command[64]; /* without what lies in it that is not printable */
};
int info_stat_of(int pid, struct info_stat *out); /* 0 = there is no such process, or no /proc */
/* The word for such a state: "running", "sleeping", "stopped" and so on. */
const char *info_state_word(char state);
const char *info_state_of(int pid); /* the state of a process in words; "" = there is none */

/* The section of the network (info_net.c). */
void info_network(struct info_page *p);
/* A section of the processes that have an endpoint. */
void info_running(struct info_page *p);
/* A section of the services that processes of this user may reach, and the peers of a process that were introduced, as
 * lines or, between the brackets of an array, as objects (info_meet.c). */
void info_services(struct info_page *p);
void info_peers(int pid, int json);
/* The counters of one process. The exit status. */
int info_process(int pid, int json);

#endif
