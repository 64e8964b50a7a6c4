/* SPDX-License-Identifier: BSD-3-Clause
 *
 * lex.c - tokens of a file, with conditional compilation: lines that begin with a dot. */
#include "lang/orca/orca.h"
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

struct lex_options lex_options;

static const char *const keywords[] = {
    "AND",
    "ARRAY",
    "BAG",
    "BEGIN",
    "CASE",
    "CONST",
    "DATA",
    "DO",
    "ELSE",
    "ELSIF",
    "END",
    "ESAC",
    "EXIT",
    "FI",
    "FOR",
    "FORK",
    "FROM",
    "FUNCTION",
    "GENERIC",
    "GRAPH",
    "GUARD",
    "IF",
    "IMPLEMENTATION",
    "IMPORT",
    "IN",
    "MODULE",
    "NEW",
    "NODENAME",
    "NODES",
    "NOT",
    "NUMERIC",
    "OBJECT",
    "OD",
    "OF",
    "ON",
    "OPERATION",
    "OR",
    "OUT",
    "PROCESS",
    "RECORD",
    "REPEAT",
    "RETURN",
    "SCALAR",
    "SET",
    "SHARED",
    "SPECIFICATION",
    "THEN",
    "TYPE",
    "UNION",
    "UNTIL",
    "WHILE",
};
/* Longest first. An assignment operator such as +:= is two tokens, since blanks may stand between. */
static const char *const signs[] = {"<<", ">>", "/=", "<=", ">=", ":=", "..", "=>", "+", "-", "*",
                                    "/",  "%",  "|",  "^",  "&",  "~",  "=",  "<",  ">", ",", ".",
                                    ";",  ":",  "(",  ")",  "[",  "]",  "{",  "}",  "$", "!"};

struct lexer {
    struct source *src;
    const char *p, *end, *line_start;
    int line;
    struct token *t;
    int count, room;
    const char **defined;
    int defined_count;
    int depth, skipping; /* levels of .ifdef, and the level from which on text is skipped, or 0 */
    bool seen_else[64];
};

static struct place here(struct lexer *l, const char *p)
{
    return (struct place){l->src, l->line, (int)(p - l->line_start) + 1};
}

static struct token *push(struct lexer *l, enum token_kind kind, const char *from)
{
    if (l->count == l->room) {
        int room = l->room ? 2 * l->room : 256;
        struct token *t = alloc((size_t)room * sizeof *t);
        if (l->count)
            memcpy(t, l->t, (size_t)l->count * sizeof *t);
        l->t = t;
        l->room = room;
    }
    struct token *t = &l->t[l->count++];
    *t = (struct token){.kind = kind, .at = here(l, from)};
    return t;
}

static const char *keyword(const char *s, size_t n)
{
    char upper[16];
    if (n >= sizeof upper)
        return NULL;
    bool is_upper = true, is_lower = true;
    for (size_t i = 0; i < n; i++) {
        is_upper &= isupper((unsigned char)s[i]) != 0;
        is_lower &= islower((unsigned char)s[i]) != 0;
        upper[i] = (char)toupper((unsigned char)s[i]);
    }
    upper[n] = 0;
    bool lower = lex_options.lower || lex_options.both, up = !lex_options.lower || lex_options.both;
    if (!(is_upper && up) && !(is_lower && lower))
        return NULL;
    for (size_t i = 0; i < sizeof keywords / sizeof *keywords; i++)
        if (strcmp(keywords[i], upper) == 0)
            return keywords[i];
    return NULL;
}

static void lex_number(struct lexer *l)
{
    const char *from = l->p, *p = from;
    while (p < l->end && (isdigit((unsigned char)*p) || (*p >= 'A' && *p <= 'F')))
        p++;
    int base = 10;
    const char *digits_end = from;
    if (p < l->end && *p == 'H') {
        base = 16;
        digits_end = p;
        l->p = p + 1;
    } else {
        while (digits_end < l->end && isdigit((unsigned char)*digits_end))
            digits_end++;
        l->p = digits_end;
        if (digits_end < l->end && *digits_end == 'B') {
            base = 8;
            l->p++;
        }
    }
    if (base == 10 && l->p + 1 < l->end && *l->p == '.' && l->p[1] != '.') {
        p = l->p + 1;
        while (p < l->end && isdigit((unsigned char)*p))
            p++;
        struct text t = {0};
        add_bytes(&t, from, (size_t)(p - from));
        if (p < l->end && (*p == 'E' || *p == 'D')) {
            const char *q = p + 1;
            if (q < l->end && (*q == '+' || *q == '-'))
                q++;
            if (q < l->end && isdigit((unsigned char)*q)) {
                add(&t, "e");
                while (q < l->end && isdigit((unsigned char)*q))
                    q++;
                add_bytes(&t, p + 1, (size_t)(q - p - 1));
                p = q;
            } else if (*p == 'D') {
                p++;
            }
        }
        l->p = p;
        push(l, TOK_REAL, from)->r = strtod(t.s, NULL);
        return;
    }
    uint64_t v = 0;
    bool over = false;
    for (p = from; p < digits_end; p++) {
        unsigned d = isdigit((unsigned char)*p) ? (unsigned)(*p - '0') : (unsigned)(*p - 'A' + 10);
        if (d >= (unsigned)base) {
            error_at(here(l, p), "the digit %c does not exist in a number with base %d", *p, base);
            d = 0;
        }
        over |= v > ((uint64_t)INT64_MAX - d) / (unsigned)base;
        v = v * (unsigned)base + d;
    }
    if (over)
        error_at(here(l, from), "the number is larger than the largest longint, %lld", (long long)INT64_MAX);
    push(l, TOK_INT, from)->i = (int64_t)(over ? 0 : v);
}

static void lex_string(struct lexer *l)
{
    const char *from = l->p++;
    struct text t = {0};
    add_bytes(&t, "", 0);
    while (l->p < l->end && *l->p != '"' && *l->p != '\n') {
        if (*l->p == '\\' && l->p + 1 < l->end && l->p[1] != '\n')
            l->p++;
        add_bytes(&t, l->p++, 1);
    }
    if (l->p >= l->end || *l->p != '"')
        error_at(here(l, from), "the string has no end in its line; a double quote was expected");
    else
        l->p++;
    struct token *k = push(l, TOK_STRING, from);
    k->s = t.s;
    k->n = t.n;
}

static bool is_defined(struct lexer *l, const char *s)
{
    for (int i = 0; i < l->defined_count; i++)
        if (strcmp(l->defined[i], s) == 0)
            return true;
    return false;
}

static void set_defined(struct lexer *l, const char *s, bool yes)
{
    const char **all = alloc(((size_t)l->defined_count + 1) * sizeof *all);
    int n = 0;
    for (int i = 0; i < l->defined_count; i++)
        if (strcmp(l->defined[i], s) != 0)
            all[n++] = l->defined[i];
    if (yes)
        all[n++] = s;
    l->defined = all;
    l->defined_count = n;
}

static void include(struct lexer *l, const char *name, struct place at);

/* A line that begins with a dot. */
static void conditional(struct lexer *l, int depth)
{
    const char *from = l->p, *end = from;
    while (end < l->end && *end != '\n')
        end++;
    char *line = copy_text(from + 1, (size_t)(end - from - 1)), *save = NULL;
    struct place at = here(l, from);
    const char *what = strtok_r(line, " \t\r", &save), *arg = strtok_r(NULL, " \t\r", &save);
    l->p = end;
    what = what ? what : "";
    bool conditional_if = strcmp(what, "ifdef") == 0 || strcmp(what, "ifndef") == 0;
    bool needs_name =
        conditional_if || strcmp(what, "define") == 0 || strcmp(what, "undef") == 0 || strcmp(what, "include") == 0;
    if (needs_name && !arg) {
        error_at(at, "a name was expected after .%s", what);
    } else if (conditional_if) {
        if (l->depth + 1 >= (int)(sizeof l->seen_else / sizeof *l->seen_else)) {
            error_at(at, "conditions are nested more than %d deep", l->depth);
            return;
        }
        l->seen_else[++l->depth] = false;
        if (!l->skipping && is_defined(l, arg) != (what[2] == 'd'))
            l->skipping = l->depth;
    } else if (strcmp(what, "else") == 0) {
        if (l->depth == 0 || l->seen_else[l->depth]) {
            error_at(at, ".else without its .ifdef or .ifndef");
            return;
        }
        l->seen_else[l->depth] = true;
        if (l->skipping == l->depth)
            l->skipping = 0;
        else if (!l->skipping)
            l->skipping = l->depth;
    } else if (strcmp(what, "endif") == 0) {
        if (l->depth == 0) {
            error_at(at, ".endif without its .ifdef or .ifndef");
            return;
        }
        if (l->skipping == l->depth)
            l->skipping = 0;
        l->depth--;
    } else if (l->skipping) {
        return;
    } else if (strcmp(what, "define") == 0 || strcmp(what, "undef") == 0) {
        set_defined(l, arg, what[0] == 'd');
    } else if (strcmp(what, "include") == 0) {
        if (depth > 8)
            error_at(at, "files include each other more than 8 deep");
        else
            include(l, arg, at);
    } else {
        error_at(
            at,
            "one of .define .undef .ifdef .ifndef .else .endif .include was expected in a line that begins with a dot");
    }
}

static int include_depth;

static void include(struct lexer *l, const char *name, struct place at)
{
    size_t n = strlen(name);
    if (n < 2 || name[0] != '"' || name[n - 1] != '"') {
        error_at(at, "a file name between double quotes was expected after .include");
        return;
    }
    const char *slash = strrchr(l->src->path, '/');
    const char *path =
        form("%.*s%.*s", slash ? (int)(slash - l->src->path + 1) : 0, l->src->path, (int)n - 2, name + 1);
    struct source *src = read_source(path);
    if (!src) {
        error_at(at, "the included file %s cannot be read", path);
        return;
    }
    struct lexer in = {.src = src,
                       .p = src->text,
                       .end = src->text + src->n,
                       .line_start = src->text,
                       .line = 1,
                       .defined = l->defined,
                       .defined_count = l->defined_count};
    include_depth++;
    while (in.p < in.end) {
        if (*in.p == '.')
            conditional(&in, include_depth);
        else if (!isspace((unsigned char)*in.p) && *in.p != '#')
            error_at(here(&in, in.p), "an included file may hold only lines that begin with a dot");
        while (in.p < in.end && *in.p != '\n')
            in.p++;
        if (in.p < in.end)
            in.p++;
        in.line++;
        in.line_start = in.p;
    }
    include_depth--;
    l->defined = in.defined;
    l->defined_count = in.defined_count;
}

static void lex_name(struct lexer *l)
{
    const char *from = l->p;
    while (l->p < l->end && (isalnum((unsigned char)*l->p) || *l->p == '_'))
        l->p++;
    size_t n = (size_t)(l->p - from);
    const char *k = keyword(from, n);
    struct token *t = push(l, k ? TOK_KEYWORD : TOK_NAME, from);
    t->s = k ? k : copy_text(from, n);
    if (!k && (from[0] == '_' || from[n - 1] == '_' || strstr(t->s, "__")))
        error_at(t->at, "a name neither begins nor ends with an underscore, and has no two in a row");
    if (n > 128)
        error_at(t->at, "a name has at most 128 characters");
}

static void lex_sign(struct lexer *l)
{
    for (size_t i = 0; i < sizeof signs / sizeof *signs; i++) {
        size_t n = strlen(signs[i]);
        if ((size_t)(l->end - l->p) >= n && memcmp(l->p, signs[i], n) == 0) {
            push(l, TOK_SIGN, l->p)->s = signs[i];
            l->p += n;
            return;
        }
    }
    unsigned char c = (unsigned char)*l->p;
    if (c >= 32 && c < 127)
        error_at(here(l, l->p), "the character %c has no meaning here", c);
    else
        error_at(here(l, l->p), "the byte with the value %d is not allowed outside comments; Orca is written in ASCII",
                 c);
    l->p++;
}

struct token *lex(struct source *src, int *count)
{
    struct lexer l = {.src = src,
                      .p = src->text,
                      .end = src->text + src->n,
                      .line_start = src->text,
                      .line = 1,
                      .defined = lex_options.defined,
                      .defined_count = lex_options.defined_count};
    while (l.p < l.end) {
        char c = *l.p;
        if (c == '\n') {
            l.line++;
            l.line_start = ++l.p;
        } else if (c == '.' && l.p == l.line_start) {
            conditional(&l, 0);
        } else if (c == '#' || l.skipping) {
            while (l.p < l.end && *l.p != '\n')
                l.p++;
        } else if (c == ' ' || (c >= '\t' && c <= '\r')) {
            l.p++;
        } else if (isalpha((unsigned char)c) || c == '_') {
            lex_name(&l);
        } else if (isdigit((unsigned char)c)) {
            lex_number(&l);
        } else if (c == '"') {
            lex_string(&l);
        } else if (c == '\'') {
            if (l.end - l.p < 3 || l.p[1] == '\n' || l.p[2] != '\'') {
                error_at(here(&l, l.p), "a character is one character between two single quotes");
                l.p++;
            } else {
                push(&l, TOK_CHAR, l.p)->i = (unsigned char)l.p[1];
                l.p += 3;
            }
        } else {
            lex_sign(&l);
        }
    }
    if (l.depth)
        error_at(here(&l, l.p), "the file ends inside .ifdef or .ifndef; .endif was expected");
    push(&l, TOK_END, l.p)->s = "the end of the file";
    *count = l.count;
    return l.t;
}
