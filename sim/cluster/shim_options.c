/* SPDX-License-Identifier: BSD-3-Clause
 *
 * shim_options.c - getopt and getopt_long: the C library's keep their place in variables of its own. Arguments that
 * are no options are moved behind the options, as there, unless the letters begin with '+'. */
#include "sim/cluster/arena.h"
#include "sim/cluster/cluster_internal.h"
#include "sim/cluster/shim.h"

#include <getopt.h>
#include <stdio.h>
#include <string.h>

struct call {
    int argc;
    char **argv;
    const char *letters;
    const struct option *options; /* NULL: short ones only */
    int *option;
    struct vc_arena *a;
};

/* before, what, after: one sentence about it. */
static void complain(const struct call *c, const char *before, const char *what, const char *after)
{
    char text[256];
    if (!c->a->tell || c->letters[0] == ':')
        return;
    snprintf(text, sizeof text, "%s: %s'%s'%s\n", c->argv[0], before, what, after);
    vc_process_write(vc_process_now, 2, text, strlen(text));
}

static bool is_option(const char *word)
{
    return word[0] == '-' && word[1] != '\0';
}

/* Arguments that are no options and were passed stand in [passed, passed_end); options behind them, up to the index,
 * have been taken: they change places. */
static void move_passed(const struct call *c)
{
    struct vc_arena *a = c->a;
    int taken = a->index - a->passed_end;
    for (int k = 0; k < taken; k++) {
        char *moved = c->argv[a->passed_end + k];
        for (int i = a->passed_end + k; i > a->passed + k; i--)
            c->argv[i] = c->argv[i - 1];
        c->argv[a->passed + k] = moved;
    }
    a->passed += taken;
    a->passed_end = a->index;
}

/* 1: an option stands at the index. */
static bool find_option(const struct call *c)
{
    struct vc_arena *a = c->a;
    if (a->passed_end > a->index)
        a->passed_end = a->index;
    if (a->passed > a->index)
        a->passed = a->index;
    if (c->letters[0] != '+') {
        if (a->passed != a->passed_end && a->passed_end != a->index)
            move_passed(c);
        else if (a->passed_end != a->index)
            a->passed = a->index;
        while (a->index < c->argc && !is_option(c->argv[a->index]))
            a->index++;
        a->passed_end = a->index;
    }
    if (a->index < c->argc && strcmp(c->argv[a->index], "--") == 0) { /* all else is passed */
        a->index++;
        if (a->passed != a->passed_end && a->passed_end != a->index)
            move_passed(c);
        else if (a->passed == a->passed_end)
            a->passed = a->index;
        a->passed_end = a->index = c->argc;
    }
    if (a->index < c->argc)
        return is_option(c->argv[a->index]);
    if (a->passed != a->passed_end)
        a->index = a->passed;
    return false;
}

static const char *letter_of(const struct call *c, char letter)
{
    const char *letters = c->letters + strspn(c->letters, "+:");
    return letter != ':' && letter != ';' ? strchr(letters, letter) : NULL;
}

/* The option of that name, or the only one that begins so; NULL: none. *several: more than one, and they differ. */
static const struct option *long_of(const struct call *c, const char *name, size_t n, int *several)
{
    const struct option *found = NULL;
    *several = 0;
    for (const struct option *o = c->options; o->name; o++) {
        if (strncmp(o->name, name, n) != 0)
            continue;
        if (o->name[n] == '\0') {
            *several = 0;
            return o;
        }
        *several =
            *several || (found && (found->val != o->val || found->has_arg != o->has_arg || found->flag != o->flag));
        if (!found)
            found = o;
    }
    return found;
}

static int ambiguous(const struct call *c, const char *word)
{
    char names[200] = " is ambiguous; possibilities:";
    size_t n = strcspn(word + 2, "=");
    for (const struct option *o = c->options; o->name; o++) {
        size_t have = strlen(names);
        if (strncmp(o->name, word + 2, n) == 0)
            snprintf(names + have, sizeof names - have, " '--%s'", o->name);
    }
    complain(c, "option ", word, names);
    c->a->letter = 0;
    return '?';
}

static int take_long(const struct call *c, const char *word)
{
    struct vc_arena *a = c->a;
    size_t n = strcspn(word + 2, "=");
    int several;
    const struct option *o = long_of(c, word + 2, n, &several);
    char name[100];
    a->index++;
    if (several)
        return ambiguous(c, word);
    if (!o) {
        complain(c, "unrecognized option ", word, "");
        a->letter = 0;
        return '?';
    }
    snprintf(name, sizeof name, "--%s", o->name);
    if (word[2 + n] == '=' && o->has_arg == no_argument) {
        complain(c, "option ", name, " doesn't allow an argument");
        a->letter = o->val;
        return '?';
    }
    if (word[2 + n] == '=') {
        a->arg = (char *)(uintptr_t)(word + 2 + n + 1);
    } else if (o->has_arg == required_argument) {
        if (a->index >= c->argc) {
            complain(c, "option ", name, " requires an argument");
            a->letter = o->val;
            return c->letters[0] == ':' ? ':' : '?';
        }
        a->arg = c->argv[a->index++];
    }
    if (c->option)
        *c->option = (int)(o - c->options);
    if (!o->flag)
        return o->val;
    *o->flag = o->val;
    return 0;
}

static int take_short(const struct call *c, char *word)
{
    struct vc_arena *a = c->a;
    char letter[2] = {word[a->in_word++], '\0'};
    const char *known = letter_of(c, letter[0]);
    char *rest = word + a->in_word;
    int last = *rest == '\0';
    if (last || (known && known[1] == ':')) {
        a->in_word = 0;
        a->index++;
    }
    if (!known) {
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
    struct vc_arena *a = c->a;
    a->arg = NULL;
    if (a->index <= 0 || a->passed == 0) { /* begin, or begin anew */
        a->index = a->index <= 0 ? 1 : a->index;
        a->passed = a->passed_end = a->index;
        a->in_word = 0;
    }
    if (a->in_word > 0 && a->index < c->argc)
        return take_short(c, c->argv[a->index]);
    if (!find_option(c))
        return -1;
    char *word = c->argv[a->index];
    if (word[1] == '-' && c->options)
        return take_long(c, word);
    a->in_word = 1;
    return take_short(c, word);
}

static int shim_getopt_long(int argc, char **argv, const char *letters, const struct option *options, int *option)
{
    const struct call c = {argc, argv, letters, options, option, vc_arena_now()};
    vc_process_called(vc_process_now);
    return next_option(&c);
}

static int shim_getopt(int argc, char **argv, const char *letters)
{
    return shim_getopt_long(argc, argv, letters, NULL, NULL);
}

const struct vc_shim vc_shim_options[] = {
    VC_SHIM(getopt),
    VC_SHIM_AS(__posix_getopt, shim_getopt),
    VC_SHIM(getopt_long),
    VC_SHIM_END,
};
