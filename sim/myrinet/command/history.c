/* SPDX-License-Identifier: BSD-3-Clause
 *
 * history.c - see history.h. Both texts are built in, so that the command says what the tree says that it is of. */
#include "sim/myrinet/command/history.h"

#include "sim/myrinet/data.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *text_of(const char *name)
{
    const struct myri_data *d = myri_data_find(name);
    return d ? (const char *)d->bytes : "";
}

void myri_history_of(const char *row, struct myri_history *out)
{
    size_t length = strlen(row);
    memset(out, 0, sizeof *out);
    for (const char *line = text_of("doc/results/history.csv"); *line;
         line += strcspn(line, "\n"), line += *line != 0) {
        if (strncmp(line, row, length) != 0 || line[length] != ',')
            continue;
        const char *first = line + length + 1, *log = first + strcspn(first, ",\n");
        snprintf(out->first, sizeof out->first, "%.*s", (int)(log - first), first);
        for (log += *log == ','; *log >= '0' && *log <= '9' && out->n < MYRI_HISTORY_ENTRIES; log += *log == ' ') {
            char *end;
            out->entry[out->n++] = (int)strtol(log, &end, 10);
            log = end;
        }
        return;
    }
}

/* Lines that begin with blanks belong to the entry above them. */
const char *myri_history_entry(int number, size_t *bytes)
{
    char head[16];
    size_t length = (size_t)snprintf(head, sizeof head, "%d. ", number);
    for (const char *line = text_of("doc/results/log.md"); *line; line += strcspn(line, "\n"), line += *line != 0) {
        if (strncmp(line, head, length) != 0)
            continue;
        const char *end = line + strcspn(line, "\n");
        while (end[0] == '\n' && end[1] == ' ')
            end += 1 + strcspn(end + 1, "\n");
        *bytes = (size_t)(end - line);
        return line;
    }
    return NULL;
}
