/* SPDX-License-Identifier: BSD-3-Clause
 *
 * machine.c - reads the files of machine.h, and turns their values into picoseconds. */
#include "sim/myrinet/hw/machine.h"

#include "base/error.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ENTRY(name, unit, least, most) {#name, unit, least, most},
static const struct {
    const char *name, *unit;
    double least, most;
} values[MYRI_M_COUNT] = {MYRI_MACHINE_VALUES(ENTRY)};

const char *myri_machine_name_of(enum myri_machine_value k)
{
    return values[k].name;
}

const char *myri_machine_unit_of(enum myri_machine_value k)
{
    return values[k].unit;
}

int myri_machine_value_of(const char *name)
{
    for (int i = 0; i < MYRI_M_COUNT; i++)
        if (strcmp(values[i].name, name) == 0)
            return i;
    return -1;
}

const char *myri_machine_class_name(char c)
{
    return c == 'g' ? "given" : c == 'd' ? "derived" : c == 'f' ? "fitted" : "assumed";
}

static int put(struct myri_machine *m, int k, double v, const char *where)
{
    if (!isfinite(v) || (v != 0 && v < values[k].least) || v > values[k].most || (v == 0 && values[k].least > 0))
        return rnl_fail(RNL_ERR_ARG, "%s%s%s is %g; it has to be from %g to %g %s", where, *where ? ": " : "",
                        values[k].name, v, values[k].least, values[k].most, values[k].unit);
    if (k == MYRI_M_page && (v != (uint32_t)v || ((uint32_t)v & ((uint32_t)v - 1))))
        return rnl_fail(RNL_ERR_ARG, "%s%spage is %g; it has to be a power of two", where, *where ? ": " : "", v);
    m->v[k] = v;
    return 0;
}

/* VALUE NUMBER UNIT CLASS SOURCE */
static int take_value(struct myri_machine *m, char *line, int number, unsigned char *seen)
{
    char where[32], name[32], figure[32], unit[16], class_name[16];
    int used = 0;
    snprintf(where, sizeof where, "line %d", number);
    if (sscanf(line, "%31s %31s %15s %15s %n", name, figure, unit, class_name, &used) != 4 || !line[used])
        return rnl_fail(RNL_ERR_ARG, "%s: a value has a number, a unit, a class and its source behind its name", where);
    int k = myri_machine_value_of(name);
    if (k < 0)
        return rnl_fail(RNL_ERR_ARG, "%s: there is no value '%s'; runnel paper machine lists them", where, name);
    if (seen[k]++)
        return rnl_fail(RNL_ERR_ARG, "%s: %s is there twice", where, name);
    if (strcmp(unit, values[k].unit) != 0)
        return rnl_fail(RNL_ERR_ARG, "%s: %s is kept in %s, not in %s", where, name, values[k].unit, unit);
    char *end;
    double v = strtod(figure, &end);
    if (*end || end == figure)
        return rnl_fail(RNL_ERR_ARG, "%s: '%s' is no number", where, figure);
    int rc = put(m, k, v, where);
    if (rc < 0)
        return rc;
    char c = strcmp(class_name, "given") == 0     ? 'g'
             : strcmp(class_name, "derived") == 0 ? 'd'
             : strcmp(class_name, "fitted") == 0  ? 'f'
             : strcmp(class_name, "assumed") == 0 ? 'a'
                                                  : 0;
    if (!c)
        return rnl_fail(RNL_ERR_ARG, "%s: a class is given, derived, fitted or assumed, not '%s'", where, class_name);
    m->class_of[k] = c;
    snprintf(m->source[k], sizeof m->source[k], "%s", line + used);
    return 0;
}

int myri_machine_parse(const char *text, size_t n, struct myri_machine *out)
{
    struct myri_machine m;
    unsigned char seen[MYRI_M_COUNT] = {0};
    memset(&m, 0, sizeof m);
    if (n > MYRI_MACHINE_FILE || memchr(text, 0, n))
        return rnl_fail(RNL_ERR_ARG, "a machine is text of at most %d bytes", MYRI_MACHINE_FILE);
    for (size_t at = 0, number = 1; at < n; number++) {
        const char *end = memchr(text + at, '\n', n - at);
        size_t len = end ? (size_t)(end - text) - at : n - at;
        char line[400];
        if (len >= sizeof line)
            return rnl_fail(RNL_ERR_ARG, "line %zu has more than %zu characters", number, sizeof line - 1);
        memcpy(line, text + at, len);
        line[len] = 0;
        at += len + 1;
        char *p = line + strspn(line, " \t");
        if (!*p || *p == '#')
            continue;
        int rc = 0;
        if (strncmp(p, "machine ", 8) == 0) {
            if (sscanf(p + 8, "%15s", m.name) != 1)
                rc = rnl_fail(RNL_ERR_ARG, "line %zu: a machine has a name", number);
        } else if (strncmp(p, "about ", 6) == 0) {
            snprintf(m.about, sizeof m.about, "%.*s", (int)sizeof m.about - 1, p + 6 + strspn(p + 6, " \t"));
        } else {
            rc = take_value(&m, p, (int)number, seen);
        }
        if (rc < 0)
            return rc;
    }
    if (!m.name[0])
        return rnl_fail(RNL_ERR_ARG, "the machine has no name: a line 'machine NAME'");
    for (int i = 0; i < MYRI_M_COUNT; i++)
        if (!seen[i])
            return rnl_fail(RNL_ERR_ARG, "machine %s: %s is missing", m.name, values[i].name);
    *out = m;
    return 0;
}

int myri_machine_set(struct myri_machine *m, const char *assignment)
{
    char name[32];
    const char *eq = strchr(assignment, '=');
    if (!eq || (size_t)(eq - assignment) >= sizeof name)
        return rnl_fail(RNL_ERR_ARG, "'%s' is not NAME=NUMBER", assignment);
    memcpy(name, assignment, (size_t)(eq - assignment));
    name[eq - assignment] = 0;
    int k = myri_machine_value_of(name);
    char *end;
    double v = strtod(eq + 1, &end);
    if (k < 0)
        return rnl_fail(RNL_ERR_ARG, "a machine has no value '%s'; runnel paper machine lists them", name);
    if (*end || end == eq + 1)
        return rnl_fail(RNL_ERR_ARG, "'%s' is no number", eq + 1);
    int rc = put(m, k, v, "");
    if (rc == 0) {
        m->class_of[k] = 'a';
        snprintf(m->source[k], sizeof m->source[k], "set by hand");
    }
    return rc;
}

static uint64_t whole(double ps)
{
    return (uint64_t)(ps + 0.5);
}

uint64_t myri_machine_us(const struct myri_machine *m, enum myri_machine_value k)
{
    return whole(m->v[k] * 1e6);
}

uint64_t myri_machine_ns(const struct myri_machine *m, enum myri_machine_value k)
{
    return whole(m->v[k] * 1e3);
}

uint64_t myri_machine_cycles(const struct myri_machine *m, enum myri_machine_value k)
{
    return whole(m->v[k] * 1e6 / m->v[MYRI_M_ni_clock]);
}

uint32_t myri_machine_done(const struct myri_machine *m, enum myri_machine_value rate, uint64_t all, uint64_t left)
{
    /* one tick for what was rounded */
    return left >= all ? 0 : (uint32_t)((double)(all - left + 1) * m->v[rate] / 1e6) & ~3u;
}

uint64_t myri_machine_bytes(const struct myri_machine *m, enum myri_machine_value rate, uint64_t n)
{
    return m->v[rate] > 0 ? whole((double)n * 1e6 / m->v[rate]) : 0;
}
