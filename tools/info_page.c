/* SPDX-License-Identifier: BSD-3-Clause
 *
 * info_page.c - see info.h. */
#include "info.h"

#include <ctype.h>
#include <stdio.h>

enum { NAME_COLUMNS = 24, VALUE_COLUMNS = 12 };

/* Nothing that would move a terminal's cursor. */
static void put_plain(const char *s)
{
    for (; *s; s++)
        putchar((unsigned char)*s < ' ' || *s == 127 ? '?' : *s);
}

void info_put_json(const char *s)
{
    putchar('"');
    for (; *s; s++) {
        unsigned char c = (unsigned char)*s;
        if (c == '"' || c == '\\')
            printf("\\%c", c);
        else if (c < ' ' || c > '~')
            printf("\\u%04x", c);
        else
            putchar(c);
    }
    putchar('"');
}

static void put_name(const char *name)
{
    putchar('"');
    for (; *name; name++)
        putchar(*name == ' ' ? '_' : *name);
    fputs("\":", stdout);
}

void info_key(struct info_page *p, const char *name)
{
    if (p->rows++)
        putchar(',');
    put_name(name);
}

void info_section(struct info_page *p, const char *name)
{
    p->rows = 0;
    if (p->json) {
        fputs(p->sections ? "}," : "{", stdout);
        put_name(name);
        putchar('{');
    } else {
        printf("%s%c%s\n", p->sections ? "\n" : "", toupper((unsigned char)name[0]), name + 1);
    }
    p->sections++;
}

void info_row(struct info_page *p, const char *name, const char *value, const char *remark)
{
    if (p->json) {
        info_key(p, name);
        info_put_json(value);
        return;
    }
    printf("  %-*s ", NAME_COLUMNS, name);
    if (!remark || !*remark) {
        put_plain(value);
        putchar('\n');
    } else {
        printf("%-*s  %s\n", VALUE_COLUMNS, value, remark);
    }
}

void info_flag(struct info_page *p, const char *name, int yes, const char *remark)
{
    if (p->json) {
        info_key(p, name);
        fputs(yes ? "true" : "false", stdout);
    } else {
        info_row(p, name, yes ? "yes" : "no", remark);
    }
}

void info_number(struct info_page *p, const char *name, uint64_t value, const char *remark)
{
    char text[24];
    snprintf(text, sizeof text, "%llu", (unsigned long long)value);
    if (p->json) {
        info_key(p, name);
        fputs(value == INFO_NO_LIMIT ? "null" : text, stdout);
    } else {
        info_row(p, name, value == INFO_NO_LIMIT ? "no limit" : text, remark);
    }
}

void info_setting(struct info_page *p, const char *name, const char *value, int from_environment, const char *what)
{
    const char *from = from_environment ? "environment" : "default";
    if (p->json) {
        info_key(p, name);
        fputs("{\"value\":", stdout);
        info_put_json(value);
        printf(",\"from\":\"%s\"}", from);
        return;
    }
    printf("  %-*s ", NAME_COLUMNS, name);
    put_plain(value);
    printf("  (%s)\n  %*s %s\n", from, NAME_COLUMNS, "", what);
}

void info_end(struct info_page *p)
{
    if (p->json)
        puts("}}");
}
