/* SPDX-License-Identifier: BSD-3-Clause
 *
 * stand_options.c - getopt and getopt_long: the C library's keep their place in variables of its own. Arguments that
 * are no options are moved behind the options, as there, unless the letters begin with '+'. */
#include "sim/cluster/arena.h"
#include "sim/cluster/inside.h"
#include "sim/cluster/stand.h"

#include <getopt.h>
#include <stdio.h>
#include <string.h>

struct call {
    int argc;
    char **argv;
    const char *letters;
    const struct option *options; /* NULL: short ones only */
    int *option;
    struct rnl_arena *a;
};

/* before, what, after: one sentence about it. */
static void complain(const struct call *c, const char *before, const char *what, const char *after)
{
    char text[256];
    if (!c->a->tell || c->letters[0] == ':')
        return;
    snprintf(text, sizeof text, "%s: %s'%s'%s\n", c->argv[0], before, what, after);
    rnl_guest_write(rnl_guest_now, 2, text, strlen(text));
}

/* The next argument that is an option comes to a->index, what it passed moves behind it. 0 = there is none. */
static int bring_option(const struct call *c, int arguments)
{
    struct rnl_arena *a = c->a;
    int at = a->index;
    while (at < c->argc && (c->argv[at][0] != '-' || c->argv[at][1] == '\0')) {
        if (c->letters[0] == '+')
            return 0;
        at++;
    }
    if (at >= c->argc)
        return 0;
    for (int k = 0; k < arguments && at + k < c->argc; k++) {
        char *moved = c->argv[at + k];
        for (int i = at + k; i > a->index + k; i--)
            c->argv[i] = c->argv[i - 1];
        c->argv[a->index + k] = moved;
    }
    return 1;
}

/* 1: the option there takes the next word, too. */
static int takes_next(const struct call *c, const char *word);

static const char *letter_of(const struct call *c, char letter)
{
    const char *letters = c->letters + strspn(c->letters, "+:");
    return letter != ':' && letter != ';' ? strchr(letters, letter) : NULL;
}

/* NULL: none, or several that begin so. */
static const struct option *long_of(const struct call *c, const char *name, size_t n)
{
    const struct option *found = NULL;
    int several = 0;
    for (const struct option *o = c->options; o != NULL && o->name != NULL; o++) {
        if (strncmp(o->name, name, n) != 0)
            continue;
        if (o->name[n] == '\0')
            return o;
        several = several || (found != NULL && (found->val != o->val || found->has_arg != o->has_arg));
        found = o;
    }
    return several ? NULL : found;
}

static int takes_next(const struct call *c, const char *word)
{
    if (word[1] == '-') {
        size_t n = strcspn(word + 2, "=");
        const struct option *o = long_of(c, word + 2, n);
        return word[2] != '\0' && word[2 + n] == '\0' && o != NULL && o->has_arg == required_argument;
    }
    for (const char *p = word + 1; *p != '\0'; p++) {
        const char *letter = letter_of(c, *p);
        if (letter != NULL && letter[1] == ':')
            return letter[2] != ':' && p[1] == '\0';
    }
    return 0;
}

static int take_long(const struct call *c, const char *word)
{
    struct rnl_arena *a = c->a;
    size_t n = strcspn(word + 2, "=");
    const struct option *o = long_of(c, word + 2, n);
    a->index++;
    if (o == NULL) {
        complain(c, "unrecognized option ", word, "");
        a->letter = 0;
        return '?';
    }
    if (word[2 + n] == '=' && o->has_arg == no_argument) {
        complain(c, "option ", o->name, " doesn't allow an argument");
        a->letter = o->val;
        return '?';
    }
    if (word[2 + n] == '=') {
        a->arg = (char *)(uintptr_t)(word + 2 + n + 1);
    } else if (o->has_arg == required_argument) {
        if (a->index >= c->argc) {
            complain(c, "option ", o->name, " requires an argument");
            a->letter = o->val;
            return c->letters[0] == ':' ? ':' : '?';
        }
        a->arg = c->argv[a->index++];
    }
    if (c->option != NULL)
        *c->option = (int)(o - c->options);
    if (o->flag == NULL)
        return o->val;
    *o->flag = o->val;
    return 0;
}

static int take_short(const struct call *c, char *word)
{
    struct rnl_arena *a = c->a;
    char letter[2] = {word[a->in_word++], '\0'};
    const char *known = letter_of(c, letter[0]);
    char *rest = word + a->in_word;
    int last = *rest == '\0';
    if (last || (known != NULL && known[1] == ':')) {
        a->in_word = 0;
        a->index++;
    }
    if (known == NULL) {
        complain(c, "invalid option -- ", letter, "");
        a->letter = letter[0];
        return '?';
    }
    if (known[1] != ':')
        return letter[0];
    if (!last) {
        a->arg = rest;
    } else if (known[2] != ':') {
        if (a->index >= c->argc) {
            complain(c, "option requires an argument -- ", letter, "");
            a->letter = letter[0];
            return c->letters[0] == ':' || c->letters[1] == ':' ? ':' : '?';
        }
        a->arg = c->argv[a->index++];
    }
    return letter[0];
}

static int next_option(const struct call *c)
{
    struct rnl_arena *a = c->a;
    a->arg = NULL;
    if (a->index <= 0) { /* begin anew */
        a->index = 1;
        a->in_word = 0;
    }
    if (a->in_word > 0 && a->index < c->argc)
        return take_short(c, c->argv[a->index]);
    if (!bring_option(c, 0))
        return -1;
    int at = a->index;
    while (c->argv[at][0] != '-' || c->argv[at][1] == '\0')
        at++;
    bring_option(c, 1 + takes_next(c, c->argv[at]));
    char *word = c->argv[a->index];
    if (strcmp(word, "--") == 0) {
        a->index++;
        return -1;
    }
    if (word[1] == '-' && c->options != NULL)
        return take_long(c, word);
    a->in_word = 1;
    return take_short(c, word);
}

static int stand_getopt_long(int argc, char **argv, const char *letters, const struct option *options, int *option)
{
    const struct call c = {argc, argv, letters, options, option, rnl_arena_now()};
    rnl_guest_called(rnl_guest_now);
    return next_option(&c);
}

static int stand_getopt(int argc, char **argv, const char *letters)
{
    return stand_getopt_long(argc, argv, letters, NULL, NULL);
}

const struct rnl_stand rnl_stand_options[] = {
    RNL_STAND(getopt),
    RNL_STAND_AS(__posix_getopt, stand_getopt),
    RNL_STAND(getopt_long),
    RNL_STAND_END,
};
